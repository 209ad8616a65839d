//! Stop flag set by SIGINT, SIGTERM and SIGHUP, and polled by the loops.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use isolane::Participant;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Maximum polling interval of the flag.
const LOOK_PERIOD: Duration = Duration::from_millis(20);

/// Installs the signal handlers. An ignored SIGHUP (nohup(1)) stays ignored.
pub(crate) fn on_signals() -> io::Result<()> {
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
pub(crate) fn end() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Returns whether the program is to end.
pub(crate) fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Runs the participant for `period`, or until the program is to end.
pub(crate) fn run_for(participant: &Participant, period: Duration) {
    let end = Instant::now() + period;
    while !is_requested() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        participant.run_for(left.min(LOOK_PERIOD));
    }
}
