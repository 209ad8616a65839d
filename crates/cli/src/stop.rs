//! Stop request by SIGINT, SIGTERM or SIGHUP.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit_code::ExitCode;
use crate::failure::Failure;

static WISHED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Effect of a signal after the first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    EndsTheProcess,
    Nothing,
}

/// Installs the signal handlers. The first signal sets the returned flag; a second one ends the process at once.
///
/// An ignored SIGHUP (nohup(1)) stays ignored.
pub(crate) fn on_signals() -> Result<Arc<AtomicBool>, Failure> {
    register(Second::EndsTheProcess)
}

/// Installs the handlers for work that must be completed or undone. A second signal does not end the process.
pub(crate) fn on_signals_only() -> Result<Arc<AtomicBool>, Failure> {
    register(Second::Nothing)
}

fn register(second: Second) -> Result<Arc<AtomicBool>, Failure> {
    if let Some(wished) = WISHED.get() {
        return Ok(Arc::clone(wished));
    }
    let wished = Arc::clone(WISHED.get_or_init(Arc::default));
    let failed = |error: io::Error| {
        let what = "signals cannot be caught";
        Failure::forbidden(what, error)
    };
    let code = i32::from(ExitCode::Interrupted.number());
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if signal == SIGHUP && is_ignored(signal) {
            continue;
        }
        if second == Second::EndsTheProcess {
            flag::register_conditional_shutdown(signal, code, Arc::clone(&wished))
                .map_err(failed)?;
        }
        flag::register(signal, Arc::clone(&wished)).map_err(failed)?;
    }
    Ok(wished)
}

/// Returns whether a signal arrived since the handlers were installed.
pub(crate) fn is_wished() -> bool {
    WISHED
        .get()
        .is_some_and(|wished| wished.load(Ordering::Relaxed))
}

/// Returns whether this process was started with the signal ignored (proc(5), `SigIgn`).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, mkfifoat};
    use signal_hook::low_level::raise;

    use super::*;
    use crate::result_file::ResultFile;

    /// One test for all cases, because they share the flag of the process.
    #[test]
    fn a_second_signal_does_not_end_work_to_undo_and_the_first_ends_the_wait_for_a_reader() {
        let stopped = on_signals_only().expect("signals are caught");
        for _ in 0..2 {
            raise(SIGTERM).expect("this process");
        }
        assert!(stopped.load(Ordering::Relaxed), "for the work");
        assert!(is_wished(), "for everything else");
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo");
        mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).expect("a FIFO");
        let opened = ResultFile::create(&fifo).map(drop);
        let ended = opened.expect_err("no reader").kind();
        assert_eq!(ended, io::ErrorKind::Interrupted);
    }
}
