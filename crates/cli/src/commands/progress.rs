//! What a person sees while something is being measured: on a terminal a bar that moves with the time
//! and says how much is left, elsewhere a line for each part. On standard error: results go
//! elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::tell;

/// Parts of one measurement, and how long they are expected to take.
pub(crate) struct Progress {
    bar: ProgressBar,
    parts: Vec<Duration>,
    /// Parts that have begun.
    begun: usize,
    part_began: Instant,
}

impl Progress {
    /// These parts are to come, each with the time it is expected to take.
    pub(crate) fn new(parts: Vec<Duration>) -> Self {
        let bar = ProgressBar::new(milliseconds(parts.iter().sum()));
        // A template that does not parse is a fault of this file; the plain bar serves then.
        if let Ok(style) = ProgressStyle::with_template("[{elapsed}] {wide_bar} {prefix}  {msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            parts,
            begun: 0,
            part_began: Instant::now(),
        }
    }

    /// The next part begins.
    pub(crate) fn begin(&mut self, what: &str) {
        self.begun += 1;
        self.part_began = Instant::now();
        if self.bar.is_hidden() {
            tell(format!("{}/{}: {what}", self.begun, self.parts.len()));
        } else {
            self.bar.set_message(what.to_owned());
            self.tick();
        }
    }

    /// Time has passed.
    pub(crate) fn tick(&self) {
        let passed = self.passed();
        let left = self.parts.iter().sum::<Duration>().saturating_sub(passed);
        self.bar
            .set_prefix(format!("about {} s left", left.as_secs_f64().ceil()));
        self.bar.set_position(milliseconds(passed));
    }

    /// What is behind, as it was expected: a part that takes longer stops at its end.
    fn passed(&self) -> Duration {
        let Some((current, before)) = self.parts[..self.begun].split_last() else {
            return Duration::ZERO;
        };
        before.iter().sum::<Duration>() + self.part_began.elapsed().min(*current)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_advances_within_a_part_and_not_beyond_it() {
        let (long, short) = (Duration::from_secs(1_000), Duration::ZERO);
        let mut progress = Progress::new(vec![long, short, long]);
        assert_eq!(progress.passed(), Duration::ZERO);
        progress.begin("one");
        let passed = progress.passed();
        assert!(passed < long / 2);
        while progress.passed() <= passed {}
        progress.begin("two");
        assert_eq!(progress.passed(), long, "two has no time to take");
    }
}
