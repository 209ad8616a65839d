//! The wish to end a command: SIGINT, SIGTERM and SIGHUP.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit_code::ExitCode;
use crate::failure::Failure;

static WISHED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Takes the signals over. The first one sets the flag that is returned; a second one ends the process at once.
///
/// SIGHUP stays ignored where it was (nohup(1)).
///
/// # Errors
/// The signals cannot be caught.
pub(crate) fn on_signals() -> Result<Arc<AtomicBool>, Failure> {
    if let Some(wished) = WISHED.get() {
        return Ok(Arc::clone(wished));
    }
    let wished = Arc::clone(WISHED.get_or_init(Arc::default));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if signal == SIGHUP && is_ignored(signal) {
            continue;
        }
        let code = i32::from(ExitCode::Interrupted.number());
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&wished))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&wished)))
            .map_err(|error| {
                Failure::new(
                    ExitCode::MachineForbids,
                    "signals cannot be caught",
                    error.to_string(),
                )
            })?;
    }
    Ok(wished)
}

/// Whether a signal has come since they were taken over.
pub(crate) fn is_wished() -> bool {
    WISHED
        .get()
        .is_some_and(|wished| wished.load(Ordering::Relaxed))
}

/// Whether this process was started with the signal ignored (proc(5), `SigIgn`).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
