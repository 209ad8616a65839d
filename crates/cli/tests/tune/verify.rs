//! Tests of `tune verify`: settings, wake-ups, and changes by other programs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::{Running, run};
use crate::test_host::{DEVICES, Place, inside};

/// A report comes within a period of one second; the limit leaves time for a busy machine.
const SOON: Duration = Duration::from_secs(10);

const FLUSH: &str = "/sys/class/net/eth0/gro_flush_timeout";

#[test]
fn wake_ups_and_settings_are_reported_and_a_difference_is_an_answer_of_no() {
    inside(
        "verify::wake_ups_and_settings_are_reported_and_a_difference_is_an_answer_of_no",
        || {
            let place = Place::new("tune-verify");
            let verify = ["verify", "--core", "0", "--seconds", "1"];
            let (code, out, err) = run(&mut place.tune(&verify));
            for said in [
                "no plan is applied",
                "not checked: --max-latency",
                "Nothing was verified",
            ] {
                assert!(code == 1 && out.contains(said), "no {said} in {out}{err}");
            }
            let (code, out, err) = run(&mut place.tune(&["verify"]));
            assert!(code == 1 && out.contains("no core is known"), "{out}{err}");
            assert!(out.contains("Nothing was verified: apply a plan"), "{out}");
            let (code, out, err) = run(place.tune(&["verify"]).args(["--json", "-"]));
            let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
            assert_eq!(
                (code, &report["checked"]),
                (1, &Value::Bool(false)),
                "{report:#}"
            );
            let (code, out, err) = run(place.tune(&verify).args(["--max-latency", "10s"]));
            assert!(code == 0 && !out.contains("judged"), "{out}{err}");
            place.write_plan(&place.plan());
            let (code, _, err) = run(&mut place.tune(&["apply", &place.plan_file(), "--no-boot"]));
            assert_eq!(code, 0, "{err}");

            let json = |more: &[&str]| {
                let mut command = place.tune(&verify);
                let (code, out, err) = run(command.args(more).args(["--json", "-"]));
                let report: Value =
                    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
                assert_eq!(report["schema"], "isolane/tune-verify/2");
                (code, report)
            };
            let (code, report) = json(&[]);
            assert_eq!(
                (code, report["failed"].as_array().map(Vec::len)),
                (0, Some(0)),
                "{report:#}"
            );
            let woken = &report["wake_ups"][0];
            let of = |name: &str| woken[name].as_u64().unwrap_or_else(|| panic!("{report:#}"));
            // A thousand a second, except those that came too late for the next one.
            assert!((1..=1_000).contains(&of("samples")), "{report:#}");
            assert!(
                of("min_ns") <= of("median_ns") && of("median_ns") <= of("max_ns"),
                "{report:#}"
            );
            let settings = report["applied"]["settings"].as_array().map(Vec::len);
            assert_eq!(settings, Some(12));

            // No thread is woken within a nanosecond.
            let (code, report) = json(&["--max-latency", "1ns"]);
            let why = report["failed"][0].as_str().unwrap_or_default();
            assert!(code == 1 && why.contains("the limit is 1ns"), "{report:#}");
            fs::write(FLUSH, "7").expect("of this namespace");
            let (code, report) = json(&[]);
            let why = report["failed"][0].as_str().unwrap_or_default();
            assert!(code == 1 && why.contains("gro_flush_timeout"), "{report:#}");
            let (code, _, err) = run(&mut place.tune(&["rollback"]));
            assert_eq!(code, 0, "{err}");
        },
    );
}

#[test]
fn a_watch_reports_what_others_undo_and_set_again() {
    inside(
        "verify::a_watch_reports_what_others_undo_and_set_again",
        || {
            let place = Place::new("tune-watch");
            place.write_plan(&place.plan());
            let (code, _, err) = run(&mut place.tune(&["apply", &place.plan_file(), "--no-boot"]));
            assert_eq!(code, 0, "{err}");
            let mut watching = place.tune(&["verify", "--watch"]);
            let watching = watching.stdout(Stdio::piped()).stderr(Stdio::null());
            let mut watching = Running(watching.spawn().expect("it starts"));
            let lines = BufReader::new(watching.0.stdout.take().expect("piped")).lines();
            // The wait ends if no report arrives.
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || {
                lines
                    .map_while(Result::ok)
                    .try_for_each(|line| sender.send(line))
            });
            let until = |what: &str| {
                let begin = Instant::now();
                loop {
                    let left = SOON.saturating_sub(begin.elapsed());
                    let line = receiver.recv_timeout(left);
                    let line = line.unwrap_or_else(|error| panic!("{what}: {error}"));
                    if line.contains(what) {
                        return;
                    }
                }
            };
            until("12 of 12 settings in effect");
            fs::write(FLUSH, "7").expect("of this namespace");
            until(
                "another program set /sys/class/net/eth0/gro_flush_timeout to \"7\"; it should be \"0\"",
            );
            fs::write(FLUSH, "0").expect("of this namespace");
            until("again, as it should be");
            // A network manager could set its own queueing discipline in this way.
            ip_or_tc("tc qdisc replace dev eth0 root pfifo limit 10");
            until(
                "another program set queueing of eth0 to pfifo of 10 frames; it should be pfifo of 128",
            );
            ip_or_tc("tc qdisc replace dev eth0 root pfifo limit 128");
            until("again, as it should be");
            // A driver could restart its device and lose its settings in this way.
            ip_or_tc("ip link delete eth0");
            until("rps_cpus no longer exists; it should be \"1\"");
            ip_or_tc(DEVICES);
            until("rps_cpus to \"0\"; it should be \"1\"");
            let (code, _, err) = run(&mut place.tune(&["rollback"]));
            assert_eq!(code, 0, "{err}");
            until("the plan was rolled back");
            let stop = Command::new("kill")
                .args(["-INT", &watching.pid().to_string()])
                .status();
            assert!(stop.expect("kill").success());
            let end = watching.0.wait().expect("it ends");
            assert_eq!(end.code(), Some(130));
        },
    );
}

/// Change by another program in this namespace.
fn ip_or_tc(script: &str) {
    let done = Command::new("sh").args(["-ec", script]).status();
    assert!(done.expect("a shell").success(), "{script}");
}

#[test]
fn without_the_right_to_a_priority_it_says_so() {
    inside("verify::without_the_right_to_a_priority_it_says_so", || {
        let place = Place::new("tune-verify-rights");
        let verify = place.tune(&["verify", "--core", "0", "--seconds", "1"]);
        let mut without = place.under("setpriv", &["--reuid", "65534", "--clear-groups"], &verify);
        let (code, _, err) = run(&mut without);
        assert!(code == 3 && err.contains("CAP_SYS_NICE"), "{code} {err}");
    });
}
