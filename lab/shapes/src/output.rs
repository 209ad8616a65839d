//! Line-buffered standard output, standard error, and the stop flag. Text is escaped, so no name of a peer can add a
//! line or control the terminal.
//!
//! A failed output ends the program as SIGINT does, so that peers get its departure announcement.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use isolane::Participant;
use isolane_model::visible_line;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

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
        end();
    }
}

/// Prints a line on standard error; an error is ignored.
pub(crate) fn warning(text: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", visible_line(&text.to_string()));
}

/// Returns the error that ended the output, unless the reader has closed its pipe.
pub(crate) fn failure() -> Option<&'static io::Error> {
    let failed = FAILED.get();
    failed.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}

/// Stop flag. SIGINT, SIGTERM, SIGHUP and a failed output set the flag, and the loops poll it.
static REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Maximum interval between two polls of the stop flag.
const LOOK_PERIOD: Duration = Duration::from_millis(20);

/// Installs the signal handlers. An ignored SIGHUP (nohup(1)) stays ignored.
pub(crate) fn stop_on_signals() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if signal == SIGHUP && is_ignored(signal) {
            continue;
        }
        signal_hook::flag::register(signal, Arc::clone(&REQUESTED))?;
    }
    Ok(())
}

/// Returns whether this process was started with the signal ignored (proc(5), `SigIgn`).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Ends the program as a signal does.
fn end() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Returns whether the stop flag is set.
pub(crate) fn is_stopped() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Runs the participant for `period`, or until the stop flag is set.
pub(crate) fn run_for(participant: &Participant, period: Duration) {
    let end = Instant::now() + period;
    while !is_stopped() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        participant.run_for(left.min(LOOK_PERIOD));
    }
}
