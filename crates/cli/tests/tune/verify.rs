//! `tune verify`: settings, wake-ups, and what others change meanwhile.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::command::{PATIENCE, Running, run};
use crate::place::{Place, inside};

const FLUSH: &str = "/sys/class/net/eth0/gro_flush_timeout";

#[test]
fn wake_ups_and_settings_are_told_and_what_is_not_so_is_an_answer_of_no() {
    inside(
        "verify::wake_ups_and_settings_are_told_and_what_is_not_so_is_an_answer_of_no",
        || {
            let place = Place::new("tune-verify");
            let verify = ["verify", "--core", "0", "--seconds", "1"];
            let (code, out, err) = run(&mut place.tune(&verify));
            assert!(
                code == 0 && out.contains("no plan is applied"),
                "{out}{err}"
            );
            place.write_plan(&place.plan());
            let (code, _, err) = run(&mut place.tune(&["apply", &place.plan_file(), "--no-boot"]));
            assert_eq!(code, 0, "{err}");

            let json = |more: &[&str]| {
                let mut command = place.tune(&verify);
                let (code, out, err) = run(command.args(more).args(["--json", "-"]));
                let report: Value =
                    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
                assert_eq!(report["schema"], "isolane/tune-verify/1");
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
            // A thousand a second, less those that came too late for the next.
            assert!((1..=1_000).contains(&of("samples")), "{report:#}");
            assert!(
                of("min_ns") <= of("median_ns") && of("median_ns") <= of("max_ns"),
                "{report:#}"
            );
            let settings = report["applied"]["settings"].as_array().map(Vec::len);
            assert_eq!(settings, Some(12));

            // No thread is woken within a nanosecond.
            let (code, report) = json(&["--at-most", "1ns"]);
            let why = report["failed"][0].as_str().unwrap_or_default();
            assert!(
                code == 1 && why.contains("1ns at most are allowed"),
                "{report:#}"
            );
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
fn who_watches_is_told_what_others_undo_and_set_again() {
    inside(
        "verify::who_watches_is_told_what_others_undo_and_set_again",
        || {
            let place = Place::new("tune-watch");
            place.write_plan(&place.plan());
            let (code, _, err) = run(&mut place.tune(&["apply", &place.plan_file(), "--no-boot"]));
            assert_eq!(code, 0, "{err}");
            let mut watching = place.tune(&["verify", "--watch"]);
            let watching = watching.stdout(Stdio::piped()).stderr(Stdio::null());
            let mut watching = Running(watching.spawn().expect("it starts"));
            let lines = BufReader::new(watching.0.stdout.take().expect("piped")).lines();
            let mut lines = lines.map(|line| line.expect("UTF-8"));
            let begin = std::time::Instant::now();
            let mut until = |what: &str| {
                let seen = lines.find(|line| line.contains(what));
                assert!(
                    seen.is_some() && begin.elapsed() < PATIENCE,
                    "{what}: {seen:?}"
                );
            };
            until("12 of 12 settings stand");
            fs::write(FLUSH, "7").expect("of this namespace");
            until(
                "somebody set /sys/class/net/eth0/gro_flush_timeout to \"7\"; it should be \"20000\"",
            );
            fs::write(FLUSH, "20000").expect("of this namespace");
            until("again, as it should be");
            let (code, _, err) = run(&mut place.tune(&["rollback"]));
            assert_eq!(code, 0, "{err}");
            until("the plan was rolled back");
        },
    );
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
