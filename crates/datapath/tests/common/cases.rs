//! Cases of a program that prepares its network namespace before it has a second thread.

use std::panic::catch_unwind;

/// Returns whether this is CI, where every case must run.
pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some()
}

pub(crate) type Case = (&'static str, fn());

/// Runs the cases; returns the number that failed.
pub(crate) fn run(surroundings: &str, cases: &[Case]) -> usize {
    let mut failed = 0;
    for (name, case) in cases {
        let passed = catch_unwind(case).is_ok();
        failed += usize::from(!passed);
        let verdict = if passed { "ok" } else { "FAILED" };
        println!("test {name} ({surroundings}) ... {verdict}");
    }
    failed
}
