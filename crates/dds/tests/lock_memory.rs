//! Tests of locking memory: the whole process is locked, or an error names the reason. They have a separate process for
//! that.

use isolane::{BuildError, Network, Participant};

/// Locked memory of this process in KiB.
fn locked_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    let number = line.unwrap().split_whitespace().next().unwrap();
    number.parse().unwrap()
}

#[test]
fn memory_is_locked_or_the_participant_refused_with_what_to_do() {
    assert_eq!(locked_kib(), 0);
    let network = Network::new(1);
    let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
    match builder.lock_memory(true).build() {
        Ok(_participant) => assert!(locked_kib() > 1_024, "{} KiB", locked_kib()),
        Err(error) => {
            assert!(matches!(error, BuildError::Lock { .. }), "{error}");
            let message = error.to_string();
            assert!(message.contains("ulimit -l"), "{message}");
            assert!(message.contains("CAP_IPC_LOCK"), "{message}");
        }
    }
}
