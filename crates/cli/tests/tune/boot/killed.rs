//! Tests of a power failure while the boot part of a plan runs: the next boot applies all of it, and a rollback still
//! restores the original values.

use super::machine::Machine;
use super::{applied, assert_same, rolled_back};
use crate::command::run;
use crate::killed::calls;
use crate::test_host::inside;

/// System calls that change something or write it to the disk. Nothing changes between two of them.
const CHANGING: [&str; 11] = [
    "write",
    "rename",
    "renameat",
    "unlink",
    "unlinkat",
    "fsync",
    "sendto",
    "ioctl",
    "ftruncate",
    "fchown",
    "flock",
];

#[test]
fn after_a_boot_in_which_it_was_killed_the_next_boot_sets_all() {
    let name = "boot::killed::after_a_boot_in_which_it_was_killed_the_next_boot_sets_all";
    inside(name, || {
        let Some(machine) = Machine::new("tune-boot-killed", "bin", "state") else {
            return;
        };
        let place = &machine.place;
        let before = place.look();
        place.write_plan(&place.plan());
        applied(&machine);
        let planned = place.look();
        let unit = machine.unit();

        machine.boot_again();
        let (code, _, err) = run(&mut place.traced(&unit.started(), "trace=all"));
        assert_eq!(code, 0, "{err}");
        let mut calls = calls(&place.trace());
        calls.retain(|(name, _)| CHANGING.contains(&name.as_str()));
        assert!(calls.len() > 40, "{calls:?}");
        let mut killed = 0;
        for (name, number) in &calls {
            let when = format!("killed at {name} number {number}");
            machine.boot_again();
            let what = format!("inject={name}:signal=KILL:when={number}");
            let mut traced = place.traced(&unit.started(), &what);
            let status = traced.output().expect("strace").status;
            // strace ends with the signal of the traced process.
            killed += usize::from(status.code().is_none());
            machine.boot_again();
            let (code, out, err) = unit.start();
            assert_eq!((code, err.as_str()), (0, ""), "{when}: {out}");
            assert_same(&place.look(), &planned, &when);
        }
        assert!(killed * 100 >= calls.len() * 95, "{killed} of {calls:?}");
        println!("the boot part was killed {killed} times");
        rolled_back(&machine);
        assert_same(&place.look(), &before, "after the rollback");
    });
}
