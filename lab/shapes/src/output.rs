//! Line-buffered standard output, and standard error. A peer's name can neither add a line nor control the terminal.
//!
//! A failed output ends the program as SIGINT does, so that peers get its departure announcement. A closed pipe is no
//! failure: its reader has seen enough.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::OnceLock;

use isolane_model::visible_line;

use crate::stop;

static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Prints a line and flushes it; prints nothing after a failure.
pub(crate) fn line(text: Arguments<'_>) {
    if FAILED.get().is_some() {
        return;
    }
    let mut out = io::stdout().lock();
    if let Err(error) =
        writeln!(out, "{}", visible_line(&text.to_string())).and_then(|()| out.flush())
    {
        // Only the first failure is reported.
        let _ = FAILED.set(error);
        stop::end();
    }
}

/// Prints a line on standard error, unless that is closed or full.
pub(crate) fn warning(text: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", visible_line(&text.to_string()));
}

/// Error that ended the output, unless its reader closed it.
pub(crate) fn failure() -> Option<&'static io::Error> {
    let failed = FAILED.get();
    failed.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}
