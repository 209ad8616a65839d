//! Runs a test again inside a separate network namespace. There the test may create and remove interfaces, and the
//! programs it starts discover no other participants. For tests of whole processes.

use std::process::Command;

/// Set for the run inside.
const INSIDE: &str = "ISOLANE_TEST_INSIDE_NAMESPACE";

/// Runs `inside` in the namespace, as the test named `test`, with loopback up. Where the system does not allow
/// namespaces, it prints a message, and fails in CI.
pub(crate) fn in_namespace(test: &str, inside: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        ip("link set lo up");
        return inside();
    }
    let succeeds = |mut command: Command| command.status().is_ok_and(|status| status.success());
    let namespace = |rights: &[&str]| {
        let mut command = Command::new("unshare");
        command.arg("--net").args(rights);
        command
    };
    // Root needs no user namespace, and may run where none can be created.
    let rights: [&[&str]; 2] = [&[], &["--map-root-user"]];
    let usable = rights.into_iter().find(|rights| {
        let mut probe = namespace(rights);
        probe.arg("true");
        succeeds(probe)
    });
    let Some(rights) = usable else {
        let in_ci = std::env::var_os("CI").is_some();
        assert!(!in_ci, "CI must allow network namespaces");
        eprintln!("no network namespace can be made here: nothing was tried");
        return;
    };
    let mut again = namespace(rights);
    again.arg(std::env::current_exe().expect("a path"));
    again
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1");
    assert!(succeeds(again), "the run inside has failed");
}

/// Changes the namespace with `ip`.
pub(crate) fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    let done = status.is_ok_and(|status| status.success());
    assert!(done, "ip {arguments}");
}
