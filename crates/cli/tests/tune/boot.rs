//! Tests of the part of a plan that runs at each boot. The test carries out the unit as systemd would, on a machine
//! whose kernel has lost all settings and has another boot id. In a mount namespace, a folder of the test replaces the
//! machine's folder of units.

mod killed;
mod machine;
mod names;
mod systemd;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isolane_tune::{Plan, Setting, Step, ThreadClass, Value};

use self::machine::{Machine, UNIT};
use crate::command::{Running, run};
use crate::test_host::{Looks, inside, napi_thread};

const FLUSH: &str = "/sys/class/net/eth0/gro_flush_timeout";
const PORTS: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// Checks that kernel settings and files are equal.
fn assert_same(now: &Looks, then: &Looks, when: &str) {
    assert_eq!(now.devices, then.devices, "{when}");
    assert_eq!(now.network, then.network, "{when}");
    assert_eq!(now.files, then.files, "{when}");
}

/// Applies the plan and keeps it for boots; returns standard error.
fn applied(machine: &Machine) -> String {
    let (code, out, err) = run(&mut machine.tune(&["apply", &machine.place.plan_file()]));
    assert_eq!(code, 0, "{out}{err}");
    err
}

fn rolled_back(machine: &Machine) {
    let (code, out, err) = run(&mut machine.tune(&["rollback"]));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let kept = machine.kept();
    assert!(kept.is_empty(), "{kept:?}");
}

#[test]
fn what_the_unit_says_sets_all_again_after_each_boot() {
    let name = "boot::what_the_unit_says_sets_all_again_after_each_boot";
    inside(name, || {
        let Some(machine) = Machine::new("tune-boot", "bin", "state") else {
            return;
        };
        let place = &machine.place;
        let before = place.look();
        place.write_plan(&place.plan());
        assert_eq!(applied(&machine), "", "nothing is doubted");
        let planned = place.look();
        let kept = [
            UNIT,
            "/etc/systemd/system/multi-user.target.d/isolane-tune.conf",
            "/usr/local/state/tune.plan",
            "/usr/local/state/tune.journal",
        ];
        let mut found = machine.kept();
        let mut kept = kept.map(PathBuf::from);
        found.sort();
        kept.sort();
        assert_eq!(found, kept);
        if systemd::verified(UNIT).is_none() {
            eprintln!("there is no systemd-analyze: it was not asked");
        }
        assert_eq!(systemd::verified(UNIT).unwrap_or_default(), "");
        let unit = machine.unit();
        let eth0 = "sys-subsystem-net-devices-eth0.device";
        assert!(unit.words("Unit", "Wants").is_empty());
        assert!(unit.words("Unit", "After").contains(&eth0));
        assert_eq!(unit.words("Unit", "Before"), ["network-online.target"]);
        assert_eq!(
            unit.mounts(),
            ["/usr/local/bin/isolane", "/usr/local/state"]
        );

        for boot in 1..=2 {
            machine.boot_again();
            let now = place.look();
            assert_eq!(now.devices, before.devices, "boot {boot}");
            assert_eq!(now.network, before.network, "boot {boot}");
            let (code, out, _) = run(&mut machine.tune(&["status"]));
            assert!(code == 1 && out.contains("ENDED   flush"), "{out}");

            let (code, out, err) = unit.start();
            assert_eq!((code, err.as_str()), (0, ""), "boot {boot}: {out}");
            assert!(out.contains("threaded: \"0\" -> \"1\""), "{out}");
            assert_same(&place.look(), &planned, &format!("boot {boot}"));
            let (code, out, _) = run(&mut machine.tune(&["status"]));
            assert!(code == 0 && out.contains("0 undone since"), "{out}");
        }
        // Starts the unit again by hand.
        let (code, out, err) = unit.start();
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert!(!out.contains(" -> "), "{out}");

        rolled_back(&machine);
        assert_same(&place.look(), &before, "after the rollback");
        let folder = Path::new(UNIT).with_file_name("multi-user.target.d");
        assert!(!folder.exists(), "it was made for the drop-in");
    });
}

#[test]
fn after_a_rollback_nothing_is_left_that_a_boot_would_start() {
    let name = "boot::after_a_rollback_nothing_is_left_that_a_boot_would_start";
    inside(name, || {
        let Some(machine) = Machine::new("tune-boot-back", "bin", "state") else {
            return;
        };
        let place = &machine.place;
        let before = place.look();
        place.write_plan(&place.plan());
        applied(&machine);
        let unit = machine.unit();
        machine.boot_again();
        // Rollback in a boot in which the plan was not applied: files are restored.
        rolled_back(&machine);
        assert!(!unit.has_its_condition());
        assert_same(&place.look(), &before, "after the rollback");
        let (code, _, err) = run(&mut machine.tune(&["apply", "--boot"]));
        assert_eq!(code, 3, "{err}");
        assert!(err.contains("there is no saved plan"), "{err}");
    });
}

#[test]
fn a_plan_that_puts_all_back_leaves_nothing_for_boots() {
    let name = "boot::a_plan_that_puts_all_back_leaves_nothing_for_boots";
    inside(name, || {
        let Some(machine) = Machine::new("tune-boot-restored", "bin", "state") else {
            return;
        };
        let place = &machine.place;
        let before = place.look();
        place.write_plan(&place.plan());
        applied(&machine);
        // There is no description: no setting is requested any more.
        let mut plan = machine.tune(&["plan", "--json", "-"]);
        let (code, out, err) = run(plan.current_dir(machine.state()));
        assert_eq!(code, 0, "{err}");
        let plan: Plan = serde_json::from_str(&out).expect("a plan");
        place.write_plan(&plan);
        applied(&machine);
        let journal = machine.state().join("tune.journal");
        assert_eq!(machine.kept(), [journal], "no unit, and no plan");
        rolled_back(&machine);
        assert_same(&place.look(), &before, "after the rollback");
    });
}

#[test]
fn a_kept_plan_that_cannot_be_read_is_reported_and_not_overwritten() {
    let name = "boot::a_kept_plan_that_cannot_be_read_is_reported_and_not_overwritten";
    inside(name, || {
        let Some(machine) = Machine::new("tune-boot-broken", "bin", "state") else {
            return;
        };
        let place = &machine.place;
        place.write_plan(&place.plan());
        applied(&machine);
        let path = machine.state().join("tune.plan");
        let whole = fs::read_to_string(&path).expect("it is kept");
        machine.boot_again();
        let before = place.look();
        for broken in [
            &whole[..whole.len() / 2],
            &whole.replace("saved-plan/3", "saved-plan/9"),
            "",
        ] {
            fs::write(&path, broken).expect("of this test");
            let (code, out, err) = machine.unit().start();
            assert_eq!((code, out.as_str()), (3, ""), "{err}");
            assert!(err.contains("the saved plan in"), "{err}");
            assert!(err.contains("cannot be read"), "{err}");
            let mut apply = machine.tune(&["apply", &place.plan_file()]);
            let (code, out, err) = run(&mut apply);
            assert_eq!((code, out.as_str()), (3, ""), "{err}");
            assert!(err.contains("saved earlier in"), "{err}");
            assert_same(&place.look(), &before, "a broken plan");
            assert_eq!(fs::read_to_string(&path).expect("it is kept"), broken);
        }
        rolled_back(&machine);
    });
}

#[test]
fn what_is_not_found_again_is_left_out_and_reported() {
    inside(
        "boot::what_is_not_found_again_is_left_out_and_reported",
        || {
            let Some(machine) = Machine::new("tune-boot-lost", "bin", "state") else {
                return;
            };
            let place = &machine.place;
            let mut plan = place.plan();
            let kept = ["threaded", "ports"];
            plan.steps.retain(|step| kept.contains(&step.id.as_str()));
            let of_last_queue = Setting::Attribute {
                path: String::from("/sys/class/net/eth0/queues/rx-1/rps_cpus"),
            };
            plan.steps.push(Step {
                id: String::from("rps"),
                setting: of_last_queue,
                from: Value::Text(String::from("0")),
                to: Value::Text(String::from("1")),
                ..plan.steps[0].clone()
            });
            place.write_plan(&plan);
            applied(&machine);
            // In addition, a thread whose number changes at each boot.
            let thread = napi_thread("eth0");
            let class = |fifo| {
                let cores = Vec::new();
                Value::Thread(ThreadClass { fifo, cores })
            };
            plan.steps = vec![Step {
                id: String::from("priority"),
                setting: Setting::Thread {
                    name: thread.clone(),
                },
                from: class(None),
                to: class(Some(75)),
                ..plan.steps[0].clone()
            }];
            place.write_plan(&plan);
            applied(&machine);

            // The device now has fewer queues, and its threads have other numbers.
            machine.boot(
                "ip link add eth0 numtxqueues 1 numrxqueues 1 type veth peer name eth1; \
             ethtool -K eth0 gro on > /dev/null; ip link set eth0 up; ip link set eth1 up",
            );
            let (code, out, err) = machine.unit().start();
            assert_eq!(code, 0, "{out}{err}");
            let left_out: Vec<&str> = err.lines().collect();
            assert_eq!(left_out.len(), 2, "{err}");
            let rps = "note: left out: rps: /sys/class/net/eth0/queues/rx-1/rps_cpus: ";
            assert!(left_out[0].starts_with(rps), "{err}");
            let priority = format!("note: left out: priority: thread {thread}: ");
            assert!(left_out[1].starts_with(&priority), "{err}");
            // The other settings are in effect.
            assert_eq!(fs::read_to_string(PORTS).expect("ours").trim(), "7400-7500");
            let devices = place.look().devices;
            assert!(devices.iter().any(|device| device.threaded == Some(true)));
            rolled_back(&machine);
        },
    );
}

#[test]
fn an_interface_that_does_not_come_is_waited_for_and_the_rest_is_set() {
    let name = "boot::an_interface_that_does_not_come_is_waited_for_and_the_rest_is_set";
    inside(name, || {
        let Some(machine) = Machine::new("tune-boot-gone", "bin", "state") else {
            return;
        };
        let place = &machine.place;
        place.write_plan(&place.plan());
        applied(&machine);
        machine.boot("true");

        // A stop during the wait takes effect, and nothing is set.
        let mut waiting = machine.unit().started();
        let waiting = waiting.stdout(Stdio::null()).stderr(Stdio::null());
        let mut waiting = Running(waiting.spawn().expect("it starts"));
        sleep(Duration::from_secs(1));
        assert!(waiting.0.try_wait().expect("ours").is_none(), "it waits");
        let begin = Instant::now();
        let stop = ["-TERM", &waiting.pid().to_string()].map(String::from);
        assert!(
            Command::new("kill")
                .args(stop)
                .status()
                .expect("kill")
                .success()
        );
        let end = waiting.0.wait().expect("it ends");
        assert_eq!(end.code(), Some(130));
        assert!(begin.elapsed() < Duration::from_secs(10), "it waited on");
        assert_eq!(fs::read_to_string(PORTS).expect("ours").trim(), "");

        let (code, out, err) = machine.unit().start();
        assert_eq!(code, 0, "{out}{err}");
        assert!(err.contains("note: eth0 is not up"), "{err}");
        assert!(err.contains("left out: queues: queues of eth0"), "{err}");
        assert_eq!(fs::read_to_string(PORTS).expect("ours").trim(), "7400-7500");
        rolled_back(&machine);
    });
}

#[test]
fn a_step_that_fails_at_a_boot_undoes_the_others_and_fails_the_unit() {
    let name = "boot::a_step_that_fails_at_a_boot_undoes_the_others_and_fails_the_unit";
    inside(name, || {
        let Some(machine) = Machine::new("tune-boot-fails", "bin", "state") else {
            return;
        };
        let place = &machine.place;
        let mut plan = place.plan();
        // First the step that can be applied, then the one with the queues.
        plan.steps
            .retain(|step| ["queues", "ports"].contains(&step.id.as_str()));
        plan.steps.reverse();
        place.write_plan(&plan);
        applied(&machine);
        machine.boot(
            "ip link add eth0 numtxqueues 1 numrxqueues 1 type veth peer name eth1; \
             ip link set eth0 up; ip link set eth1 up",
        );
        let before = place.look();
        let (code, out, err) = machine.unit().start();
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        assert!(err.contains("all changes were undone"), "{err}");
        assert!(err.contains("queues: queues of eth0"), "{err}");
        assert_same(&place.look(), &before, "after a failure");
        rolled_back(&machine);
    });
}
