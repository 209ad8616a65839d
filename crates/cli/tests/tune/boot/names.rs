//! Tests of the paths in a unit: systemd must read program and folder as they are, and both must exist at the next
//! boot.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::machine::{Machine, UNIT, copy_to};
use super::systemd::verified;
use super::{FLUSH, applied, assert_same, rolled_back};
use crate::command::run;
use crate::test_host::inside;

#[test]
fn names_that_mean_something_to_systemd_are_escaped() {
    let name = "boot::names::names_that_mean_something_to_systemd_are_escaped";
    inside(name, || {
        let (program, state) = (
            "tools $HOME ${PATH} 100% %h",
            "state $HOME $$ 100% %n \"it's\" \\n \\",
        );
        let Some(machine) = Machine::new("tune-boot-names", program, state) else {
            return;
        };
        let place = &machine.place;
        place.write_plan(&place.plan());
        applied(&machine);
        let planned = place.look();
        let unit = machine.unit();
        let (program, arguments) = unit.command();
        assert_eq!(Path::new(&program), machine.program());
        let state = machine.state().to_str().expect("UTF-8");
        let expected = ["tune", "apply", "--boot", "--state", state];
        assert_eq!(arguments, expected);
        assert_eq!(unit.mounts(), [program.as_str(), "/usr/local"]);
        // `systemd-analyze` checks that the program exists.
        assert_eq!(verified(UNIT).unwrap_or_default(), "");
        machine.boot_again();
        let (code, out, err) = unit.start();
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert_same(&place.look(), &planned, "after a boot");
        rolled_back(&machine);
    });
}

#[test]
fn what_will_not_be_there_at_a_boot_is_refused_and_nothing_is_changed() {
    let name = "boot::names::what_will_not_be_there_at_a_boot_is_refused_and_nothing_is_changed";
    inside(name, || {
        let Some(machine) = Machine::new("tune-boot-refused", "bin", "state") else {
            return;
        };
        let place = &machine.place;
        place.write_plan(&place.plan());
        let before = place.look();
        let plan = place.plan_file();
        let assert_refused = |call: &mut Command, why: &str, remedy: &str| {
            let (code, out, err) = run(call);
            assert_eq!((code, out.as_str()), (3, ""), "{err}");
            for said in [
                "cannot be saved for the next boot",
                why,
                remedy,
                "--no-boot",
            ] {
                assert!(err.contains(said), "no {said} in {err}");
            }
            assert_same(&place.look(), &before, why);
            assert!(!Path::new(UNIT).exists(), "{why}");
        };
        let install = "install isolane in a permanent place";
        // In a folder that is emptied at boot, and is also a file system in memory.
        let in_run = Path::new("/run/isolane/isolane");
        copy_to(in_run);
        assert_refused(
            &mut machine.tune_by(in_run, &["apply", &plan]),
            "it is in /run, which is empty after a boot",
            install,
        );
        // Another file system in memory.
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "tmpfs", "/usr/local/bin"])
            .status();
        assert!(done.expect("mount").success());
        copy_to(machine.program());
        assert_refused(
            &mut machine.tune(&["apply", &plan]),
            "its file system is in memory",
            install,
        );
        let done = Command::new("umount").arg("/usr/local/bin").status();
        assert!(done.expect("umount").success());
        // Characters that systemd accepts in no program name.
        let quoted = Path::new("/usr/local/it's/isolane");
        copy_to(quoted);
        assert_refused(
            &mut machine.tune_by(quoted, &["apply", &plan]),
            "its name contains quotes or backslashes",
            install,
        );
        // The program file is replaced while it runs, by a build or an installation.
        let gone = Path::new("/usr/local/gone/isolane");
        copy_to(gone);
        let script = "exec 3< /usr/local/gone/isolane; rm /usr/local/gone/isolane; \
                      exec /proc/self/fd/3 tune apply \"$0\" --state /usr/local/state";
        assert_refused(
            Command::new("sh").args(["-ec", script, &plan]),
            "it was removed or replaced since it was started",
            install,
        );
        // The saved plan itself would be lost.
        let stays = Path::new("/usr/local/stays/isolane");
        copy_to(stays);
        let mut elsewhere = Command::new(stays);
        elsewhere.args(["tune", "apply", &plan, "--state", "/run/state"]);
        assert_refused(
            &mut elsewhere,
            "the plan would be saved in /run/state, and it is in /run",
            "--state DIR",
        );
        // All of these are accepted if the plan ends with the boot.
        let (code, _, err) = run(&mut machine.tune_by(in_run, &["apply", &plan, "--no-boot"]));
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(fs::read_to_string(FLUSH).expect("ours").trim(), "0");
        rolled_back(&machine);
    });
}

#[test]
fn a_program_in_a_folder_of_builds_is_taken_with_a_word_of_warning() {
    let name = "boot::names::a_program_in_a_folder_of_builds_is_taken_with_a_word_of_warning";
    inside(name, || {
        let Some(machine) = Machine::new("tune-boot-built", "target/debug", "state") else {
            return;
        };
        let place = &machine.place;
        let tag = "Signature: 8a477f597d28d172789f06886806bc55\n";
        fs::write("/usr/local/target/CACHEDIR.TAG", tag).expect("ours");
        place.write_plan(&place.plan());
        let said = applied(&machine);
        let warning = "note: /usr/local/target/debug/isolane is needed at each boot, and is in /usr/local/target,";
        assert!(said.starts_with(warning), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        rolled_back(&machine);
    });
}
