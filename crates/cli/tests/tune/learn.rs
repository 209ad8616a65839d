//! Tests of `tune learn` on a device without an RSS table: it prints a message and changes nothing. Tests of the crate
//! `isolane-tune` use a model of a device with a table, and the testbed an emulated one.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::run;
use crate::test_host::{Looks, Place, inside};

const DESCRIPTION: &str = r#"
[host.left]
interface = "eth0"
[host.right]
interface = "eth0"
[topic.Reply]
type = "T"
level = 7
max_bytes = 64
from = ["right"]
to = ["left"]
[participant.a]
host = "left"
address = "10.9.0.1"
port = 7000
reads = ["Reply"]
[participant.b]
host = "right"
address = "10.9.0.2"
port = 7000
writes = ["Reply"]
"#;

fn learn(place: &Place, peer: &str) -> Command {
    let path = place.file("isolane.toml");
    fs::write(&path, DESCRIPTION).expect("a temporary folder");
    let mut command = place.tune(&["learn", peer, "--interface", "eth0", "--host", "left"]);
    command.args(["--config", &path]);
    command
}

fn with_an_address() {
    let done = Command::new("ip")
        .args(["address", "add", "10.9.0.1/24", "dev", "eth0"])
        .status();
    assert!(done.expect("ip, of iproute2").success());
}

/// Checks that nothing was changed, and that there is nothing to undo.
fn assert_untouched(place: &Place, before: &Looks, when: &str) {
    // The description may differ, because it is not compared.
    place.assert_is(before, when);
    let (code, out, err) = run(&mut place.tune(&["rollback"]));
    assert!(
        code == 0 && out.contains("nothing to undo"),
        "{when}: {out}{err}"
    );
}

#[test]
fn a_device_without_a_table_is_named_and_left_as_it_is() {
    let name = "learn::a_device_without_a_table_is_named_and_left_as_it_is";
    inside(name, || {
        let place = Place::new("tune-learn");
        with_an_address();
        let before = place.look();
        let (code, out, err) = run(&mut learn(&place, "10.9.0.2"));
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        for said in [
            "the hash of eth0 was not learnt",
            "its RSS table: ",
            "isolane tune ports",
        ] {
            assert!(err.contains(said), "no {said} in {err}");
        }
        assert_untouched(&place, &before, "without a table");
    });
}

#[test]
fn on_top_of_a_plan_a_learning_that_cannot_be_leaves_the_plan() {
    let name = "learn::on_top_of_a_plan_a_learning_that_cannot_be_leaves_the_plan";
    inside(name, || {
        let place = Place::new("tune-learn-plan");
        with_an_address();
        let before = place.look();
        place.write_plan(&place.plan());
        let (code, _, err) = run(&mut place.tune(&["apply", &place.plan_file(), "--no-boot"]));
        assert_eq!(code, 0, "{err}");
        let journal = Path::new(&place.state()).join("tune.journal");
        let recorded = fs::read(&journal).expect("it is kept");
        let (code, _, err) = run(&mut learn(&place, "10.9.0.2"));
        assert_eq!(code, 3, "{err}");
        assert_eq!(fs::read(&journal).expect("it is kept"), recorded);
        let (code, out, _) = run(&mut place.tune(&["status"]));
        assert!(code == 0 && out.contains("0 undone since"), "{out}");
        let (code, _, err) = run(&mut place.tune(&["rollback"]));
        assert_eq!((code, err.as_str()), (0, ""));
        place.assert_is(&before, "after the rollback");
    });
}

#[test]
fn a_lack_of_rights_and_a_missing_description_are_reported() {
    inside(
        "learn::a_lack_of_rights_and_a_missing_description_are_reported",
        || {
            let place = Place::new("tune-learn-rights");
            let before = place.look();
            let (code, _, err) = run(&mut learn(&place, "10.9.0.2"));
            assert!(code == 3 && err.contains("it has no IPv4 address"), "{err}");
            with_an_address();
            let before = Looks {
                interfaces: place.look().interfaces,
                lanes: place.look().lanes,
                ..before
            };
            let (code, _, err) = run(&mut learn(&place, "10.9.0.7"));
            assert_eq!(code, 2, "{err}");
            assert!(err.contains("no flow from 10.9.0.7"), "{err}");
            let learn = learn(&place, "10.9.0.2");
            let mut without =
                place.under("setpriv", &["--reuid", "65534", "--clear-groups"], &learn);
            let (code, _, err) = run(&mut without);
            assert_eq!(code, 3, "{err}");
            assert!(err.contains("run it as root, or give --level 6"), "{err}");
            assert_untouched(&place, &before, "without rights");
        },
    );
}

#[test]
fn killed_at_any_moment_it_leaves_nothing_to_undo() {
    inside(
        "learn::killed_at_any_moment_it_leaves_nothing_to_undo",
        || {
            let place = Place::new("tune-learn-killed");
            with_an_address();
            let before = place.look();
            // Kills the command when it opens files, among them the journal's folder and lock, and when it queries the
            // driver.
            let mut killed = 0;
            for (call, most) in [("openat", 60), ("ioctl", 20), ("sendto", 40), ("flock", 5)] {
                for number in 1..=most {
                    let what = format!("inject={call}:signal=KILL:when={number}");
                    let mut traced = place.traced(&learn(&place, "10.9.0.2"), &what);
                    let status = traced.output().expect("strace").status;
                    assert_untouched(&place, &before, &format!("{call} {number}"));
                    if status.code().is_some() {
                        break;
                    }
                    killed += 1;
                }
            }
            assert!(killed > 25, "{killed}");
        },
    );
}
