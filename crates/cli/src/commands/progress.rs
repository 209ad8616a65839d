//! What a person sees while something is being measured: on a terminal a bar, elsewhere a line for
//! each part. On standard error: results go elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::tell;

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(200);

/// Parts of one measurement, counted.
pub(crate) struct Progress {
    bar: ProgressBar,
    parts: usize,
    begun: usize,
}

impl Progress {
    /// So many parts are to come.
    pub(crate) fn new(parts: usize) -> Self {
        let bar = ProgressBar::new(parts as u64);
        // A template that does not parse is a fault of this file; the plain bar serves then.
        if let Ok(style) =
            ProgressStyle::with_template("{spinner} [{elapsed}] {wide_bar} {pos}/{len}  {msg}")
        {
            bar.set_style(style);
        }
        Self {
            bar,
            parts,
            begun: 0,
        }
    }

    /// The next part begins.
    pub(crate) fn begin(&mut self, what: String) {
        self.bar.set_position(self.begun as u64);
        self.begun += 1;
        if self.bar.is_hidden() {
            tell(format!("{}/{}: {what}", self.begun, self.parts));
        } else {
            self.bar.set_message(what);
            self.bar.enable_steady_tick(TICK);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
