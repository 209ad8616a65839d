//! `apply` and `rollback` killed at every system call they make.

use std::collections::BTreeMap;
use std::process::Command;

use crate::command::run;
use crate::test_host::{Looks, Place, inside};

/// System calls of a trace: name, and index among the calls of that name.
pub(crate) fn calls(trace: &str) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let name = |line: &str| {
        let (name, _) = line.split_once('(')?;
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (is_name && !name.is_empty()).then(|| name.to_owned())
    };
    trace
        .lines()
        .filter_map(name)
        .map(|name| {
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            (name, *count)
        })
        .collect()
}

/// Kills `call` at each system call that it makes in an undisturbed run. `prepare` runs before each call, and
/// afterwards a rollback must restore everything. Returns the number of kills.
fn kill_everywhere(
    place: &Place,
    before: &Looks,
    prepare: &dyn Fn(),
    call: &dyn Fn() -> Command,
) -> usize {
    prepare();
    let (code, _, err) = run(&mut place.traced(&call(), "trace=all"));
    assert_eq!(code, 0, "{err}");
    let calls = calls(&place.trace());
    assert!(calls.len() > 100, "{calls:?}");
    let (code, _, err) = run(&mut place.tune(&["rollback"]));
    assert_eq!(code, 0, "{err}");
    let mut killed = 0;
    for (name, number) in &calls {
        prepare();
        let what = format!("inject={name}:signal=KILL:when={number}");
        let status = place
            .traced(&call(), &what)
            .output()
            .expect("strace")
            .status;
        // strace ends with the signal of the traced process.
        killed += usize::from(status.code().is_none());
        let when = format!("killed at {name} number {number}");
        let (code, _, err) = run(&mut place.tune(&["rollback"]));
        assert_eq!((code, err.as_str()), (0, ""), "{when}");
        place.assert_is(before, &when);
    }
    // Memory and thread calls vary between runs, but hardly any call may be missed.
    assert!(
        killed * 100 >= calls.len() * 98,
        "{killed} of {}",
        calls.len()
    );
    killed
}

#[test]
fn after_apply_was_killed_at_any_system_call_a_rollback_restores_all() {
    let name = "killed::after_apply_was_killed_at_any_system_call_a_rollback_restores_all";
    inside(name, || {
        let place = Place::new("tune-killed");
        place.write_plan(&place.plan());
        let before = place.look();
        let apply = || place.tune(&["apply", &place.plan_file(), "--no-boot"]);
        let killed = kill_everywhere(&place, &before, &|| {}, &apply);
        println!("apply was killed {killed} times");
    });
}

#[test]
fn after_a_rollback_was_killed_at_any_system_call_the_next_restores_all() {
    let name = "killed::after_a_rollback_was_killed_at_any_system_call_the_next_restores_all";
    inside(name, || {
        let place = Place::new("tune-rollback-killed");
        place.write_plan(&place.plan());
        let before = place.look();
        let applied = || {
            let (code, _, err) = run(&mut place.tune(&["apply", &place.plan_file(), "--no-boot"]));
            assert_eq!(code, 0, "{err}");
        };
        let rollback = || place.tune(&["rollback"]);
        let killed = kill_everywhere(&place, &before, &applied, &rollback);
        println!("rollback was killed {killed} times");
    });
}
