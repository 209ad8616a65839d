//! `isolane tune` as a program, on a virtual device. Each test runs itself again in a network namespace with a pair of
//! virtual devices, and changes their settings, never those of the machine's devices. It needs root; without root it
//! prints a message, and fails in CI.

mod boot;
#[path = "../command/mod.rs"]
mod command;
mod concurrent_calls;
mod hostile;
mod killed;
mod learn;
mod test_host;
mod verify;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use isolane_tune::{Machine as _, Plan, Queues, Setting, SettingError, ThisMachine, Value};

use self::test_host::{Place, all_napi_threads, inside, napi_thread};
use command::run;

fn apply(place: &Place) -> Command {
    place.tune(&["apply", &place.plan_file(), "--no-boot"])
}

#[test]
fn a_plan_is_applied_shown_and_rolled_back() {
    inside("a_plan_is_applied_shown_and_rolled_back", || {
        let place = Place::new("tune-whole");
        let before = place.look();
        place.write_plan(&place.plan());
        let (code, out, err) = run(&mut apply(&place));
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        for said in [
            "queues of eth0: 2 receive, 2 transmit -> 4 receive, 4 transmit",
            "tx-udp-segmentation of eth0: on -> off",
            "napi_defer_hard_irqs: \"2\" -> \"0\"",
            "/etc/security/limits.d/90-isolane.conf: none -> \"@realtime",
            "12 settings set, 0 already in effect",
        ] {
            assert!(out.contains(said), "no {said} in {out}");
        }
        let (code, out, _) = run(&mut apply(&place));
        assert!(
            out.contains("0 settings set, 12 already in effect"),
            "{code} {out}"
        );
        let (code, out, _) = run(&mut place.tune(&["status"]));
        assert!(
            code == 0 && out.contains("12 settings applied, 0 undone since"),
            "{out}"
        );

        fs::write("/sys/class/net/eth0/gro_flush_timeout", "7").expect("of this namespace");
        let (code, out, _) = run(&mut place.tune(&["status"]));
        let undone = "UNDONE  flush: /sys/class/net/eth0/gro_flush_timeout: \"7\", should be \"0\"";
        assert!(code == 1 && out.contains(undone), "{out}");

        let (code, out, err) = run(&mut place.tune(&["rollback"]));
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        place.assert_is(&before, "after the rollback");
        let (code, out, _) = run(&mut place.tune(&["rollback"]));
        assert!(code == 0 && out.contains("nothing to undo"), "{out}");
    });
}

#[test]
fn what_is_not_as_planned_is_refused_and_named() {
    inside("what_is_not_as_planned_is_refused_and_named", || {
        let place = Place::new("tune-refused");
        let mut foreign = place.plan();
        foreign.machine.machine_id = Some(String::from("another"));
        place.write_plan(&foreign);
        let (code, _, err) = run(&mut apply(&place));
        assert!(code == 2 && err.contains("for another machine"), "{err}");

        place.write_plan(&place.plan());
        fs::write("/sys/class/net/eth0/gro_flush_timeout", "7").expect("of this namespace");
        let before = place.look();
        let (code, _, err) = run(&mut apply(&place));
        assert_eq!(code, 1, "{err}");
        let stale = "gro_flush_timeout: planned from \"20000\", found \"7\"";
        assert!(
            err.contains(stale) && err.contains("1 step cannot be done"),
            "{err}"
        );
        place.assert_is(&before, "after a stale plan");
    });
}

#[test]
fn a_plan_that_fails_half_way_is_undone_and_the_step_is_named() {
    inside(
        "a_plan_that_fails_half_way_is_undone_and_the_step_is_named",
        || {
            let place = Place::new("tune-half");
            let mut plan = place.plan();
            let queues = plan.steps[0].clone();
            let last = plan.steps.last_mut().expect("steps");
            // More queues than the device can have, in a form that planning produces.
            let more = Value::Queues(Queues {
                rx: 64,
                tx: 64,
                combined: 0,
            });
            (last.setting, last.from, last.to) = (queues.setting, queues.to, more);
            let id = last.id.clone();
            place.write_plan(&plan);
            let before = place.look();
            let (code, _, err) = run(&mut apply(&place));
            assert_eq!(code, 3, "{err}");
            assert!(err.contains("all changes were undone"), "{err}");
            assert!(err.contains(&format!("{id}: queues of eth0: ")), "{err}");
            place.assert_is(&before, "after a failure");
        },
    );
}

#[test]
fn a_signal_half_way_undoes_all() {
    inside("a_signal_half_way_undoes_all", || {
        let place = Place::new("tune-signal");
        place.write_plan(&place.plan());
        let before = place.look();
        for signal in ["TERM", "INT", "HUP"] {
            // While the first document is renamed, when much has been changed already.
            let at = format!("inject=rename:signal={signal}:when=1");
            let (code, _, err) = run(&mut place.traced(&apply(&place), &at));
            assert_eq!(code, 130, "{signal}: {err}");
            assert!(err.contains("it was stopped on request"), "{err}");
            place.assert_is(&before, signal);
        }
    });
}

#[test]
fn a_read_only_file_system_and_a_user_without_rights_are_reported() {
    inside(
        "a_read_only_file_system_and_a_user_without_rights_are_reported",
        || {
            let place = Place::new("tune-rights");
            place.write_plan(&place.plan());
            let before = place.look();
            let apply = apply(&place);
            let mut without =
                place.under("setpriv", &["--reuid", "65534", "--clear-groups"], &apply);
            let (code, _, err) = run(&mut without);
            assert!(code == 3 && err.contains("run it as root"), "{err}");

            let remount = |how: &str| {
                let done = Command::new("mount").args(["-o", how, "/sys"]).status();
                assert!(done.expect("mount").success());
            };
            remount("remount,ro");
            let (code, _, err) = run(&mut self::apply(&place));
            remount("remount,rw");
            assert_eq!(code, 3, "{err}");
            assert!(err.contains("not allowed: Read-only file system"), "{err}");
            place.assert_is(&before, "after a read-only sysfs");
        },
    );
}

#[test]
fn an_interface_that_vanished_is_reported_and_the_rest_is_restored() {
    inside(
        "an_interface_that_vanished_is_reported_and_the_rest_is_restored",
        || {
            let place = Place::new("tune-gone");
            let files = place.look().files;
            place.write_plan(&place.plan());
            let (code, _, err) = run(&mut apply(&place));
            assert_eq!(code, 0, "{err}");
            let gone = Command::new("ip").args(["link", "delete", "eth0"]).status();
            assert!(gone.expect("ip, of iproute2").success());
            let (code, out, err) = run(&mut place.tune(&["rollback"]));
            assert_eq!((code, err.as_str()), (0, ""), "{out}");
            assert!(out.contains("queues of eth0: no longer exists"), "{out}");
            assert_eq!(place.look().files, files);
        },
    );
}

#[test]
fn what_nothing_asks_for_any_more_is_planned_back_and_a_rollback_still_finds_the_first() {
    inside(
        "what_nothing_asks_for_any_more_is_planned_back_and_a_rollback_still_finds_the_first",
        || {
            let place = Place::new("tune-leftover");
            let before = place.look();
            place.write_plan(&place.plan());
            let (code, _, err) = run(&mut apply(&place));
            assert_eq!(code, 0, "{err}");
            // Another program has set the value.
            fs::write("/sys/class/net/eth0/gro_flush_timeout", "7").expect("of this namespace");
            // There is no description: no setting is requested.
            let mut plan = place.tune(&["plan", "--json", "-"]);
            let (code, out, err) = run(plan.current_dir(place.state()));
            assert_eq!(code, 0, "{err}");
            let plan: Plan = serde_json::from_str(&out).expect("a plan");
            let ids: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
            assert_eq!(ids.first(), Some(&"restore.queues"), "{ids:?}");
            assert_eq!(ids.len(), 11, "{ids:?}");
            assert!(ids.iter().all(|id| id.starts_with("restore.")), "{ids:?}");
            assert!(!ids.contains(&"restore.flush"), "{ids:?}");
            place.write_plan(&plan);
            let (code, out, err) = run(&mut apply(&place));
            assert_eq!(code, 0, "{out}{err}");
            fs::write("/sys/class/net/eth0/gro_flush_timeout", "20000").expect("of this namespace");
            let now = place.look();
            assert_eq!(now.devices, before.devices);
            assert_eq!(now.network, before.network);
            let (code, _, err) = run(&mut place.tune(&["rollback"]));
            assert_eq!(code, 0, "{err}");
            place.assert_is(&before, "after the rollback");
        },
    );
}

/// Receive threads of a device, one of which gets a higher priority than applications.
#[test]
fn a_thread_of_a_device_is_scheduled_and_put_back() {
    inside("a_thread_of_a_device_is_scheduled_and_put_back", || {
        let place = Place::new("tune-thread");
        let mut plan = place.plan();
        plan.steps.retain(|step| step.id == "threaded");
        place.write_plan(&plan);
        let (code, _, err) = run(&mut apply(&place));
        assert_eq!(code, 0, "{err}");
        let lanes = isolane_tune::probe(isolane::DATAPATHS).devices;
        assert!(lanes.iter().any(|device| device.threaded == Some(true)));

        let thread = napi_thread("eth0");
        let setting = Setting::Thread {
            name: thread.clone(),
        };
        let mut machine = ThisMachine::new();
        let before = machine.read(&setting).expect("it can be read");
        let Value::Thread(mut class) = before.clone() else {
            panic!("{before}");
        };
        class.fifo = Some(75);
        plan.steps[0].id = String::from("thread");
        plan.steps[0].from = before.clone();
        plan.steps[0].to = Value::Thread(class);
        plan.steps[0].setting = setting.clone();
        plan.steps.truncate(1);
        place.write_plan(&plan);
        let (code, out, err) = run(&mut apply(&place));
        assert!(code == 0 && out.contains("-> FIFO 75"), "{out}{err}");
        let priority = Command::new("ps")
            .args(["-e", "-o", "comm=,rtprio="])
            .output();
        let priority = String::from_utf8(priority.expect("ps").stdout).expect("UTF-8");
        let line = priority
            .lines()
            .find(|line| line.split_whitespace().next() == Some(thread.as_str()));
        assert!(line.expect("it runs").ends_with(" 75"), "{line:?}");
        assert_ne!(machine.read(&setting), Ok(before));
        let (code, _, err) = run(&mut place.tune(&["rollback"]));
        assert_eq!(code, 0, "{err}");
        // The threads ended with the device.
        assert!(
            isolane_tune::probe(isolane::DATAPATHS)
                .devices
                .iter()
                .all(|device| device.threaded == Some(false))
        );
    });
}

/// Threads are visible from all network namespaces, and each container has an interface `eth0`.
#[test]
fn a_thread_of_another_namespaces_device_is_not_there() {
    inside("a_thread_of_another_namespaces_device_is_not_there", || {
        let threaded = "echo 1 > /sys/class/net/eth0/threaded";
        fs::write("/sys/class/net/eth0/threaded", "1").expect("of this namespace");
        let own = napi_thread("eth0");
        let before = all_napi_threads("eth0");
        assert!(before.contains(&own), "{own}: {before:?}");
        let script = format!(
            "mount -t sysfs sysfs /sys; {}; {threaded}; echo done; read line || true",
            test_host::DEVICES
        );
        let other = Command::new("unshare")
            .args(["--net", "--mount", "sh", "-ec", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut other = command::Running(other.expect("unshare, of util-linux"));
        let mut said = String::new();
        let out = other.0.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut said).expect("a line");
        assert_eq!(said, "done\n");
        let after = all_napi_threads("eth0");
        let mut others = after.difference(&before);
        let name = others.next().expect("its threads").clone();

        let mut machine = ThisMachine::new();
        let mut read = |name: &str| machine.read(&Setting::Thread { name: name.into() });
        assert!(read(&own).is_ok());
        assert_eq!(read(&name), Err(SettingError::Gone), "{name}");
    });
}

/// An invalid plan is treated like any other invalid file.
#[test]
fn a_broken_plan_is_wrong_usage() {
    let folder = command::Folder::new("tune-broken");
    let plan = Plan {
        schema: String::from(isolane_tune::SCHEMA),
        machine: isolane_tune::here().machine,
        origin: String::from("test"),
        profile: String::from("test"),
        boot_id: None,
        steps: Vec::new(),
        not_planned: Vec::new(),
        preconditions: Vec::new(),
    };
    let whole = serde_json::to_string(&plan).expect("JSON");
    for length in [0, 1, whole.len() / 2, whole.len() - 1] {
        folder.write("plan.json", &whole[..length]);
        let arguments = ["tune", "apply", &folder.file("plan.json"), "--state"];
        let mut command = command::isolane(&arguments);
        command.arg(folder.file("state"));
        let (code, _, err) = run(&mut command);
        assert!(code == 2 && err.contains("cannot read the plan"), "{err}");
    }
}
