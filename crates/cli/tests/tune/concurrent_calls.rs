//! Tests of two concurrent calls of `tune`: one does its work, the other reports that and changes nothing.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::command::{PATIENCE, Running, run};
use crate::test_host::{Place, inside};

const FLUSH: &str = "/sys/class/net/eth0/gro_flush_timeout";

fn apply(place: &Place) -> Command {
    place.tune(&["apply", &place.plan_file(), "--no-boot"])
}

/// Exit code of an ended process, and its standard error.
fn end_of(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    (output.status.code(), said)
}

#[test]
fn two_at_a_time_are_refused() {
    inside("concurrent_calls::two_at_a_time_are_refused", || {
        let place = Place::new("tune-two");
        place.write_plan(&place.plan());
        let state = place.state();
        fs::create_dir_all(&state).expect("a temporary folder");
        let lock = format!("{state}/tune.lock");
        let (code, _, err) = run(&mut place.under("flock", &[&lock], &apply(&place)));
        assert_eq!(code, 3, "{err}");
        assert!(err.contains("another `isolane tune` is running"), "{err}");
    });
}

#[test]
fn while_one_is_half_way_others_are_refused_and_it_comes_to_its_end() {
    let name = "concurrent_calls::while_one_is_half_way_others_are_refused_and_it_comes_to_its_end";
    inside(name, || {
        let place = Place::new("tune-half-way");
        let before = place.look();
        place.write_plan(&place.plan());
        // The first document is renamed late, when much has been changed already, so the other calls have three
        // seconds.
        let slow = "inject=rename:delay_enter=3000000:when=1";
        let mut first = place.traced(&apply(&place), slow);
        let first = first.stdout(Stdio::null()).stderr(Stdio::null());
        let mut first = Running(first.spawn().expect("strace"));
        let begin = Instant::now();
        while fs::read_to_string(FLUSH).expect("of this namespace").trim() != "0" {
            assert!(begin.elapsed() < PATIENCE, "it sets nothing");
            sleep(Duration::from_millis(5));
        }
        // Another plan, and the end of the first call.
        let mut other = place.plan();
        other.steps.retain(|step| step.id == "defer");
        place.write_plan(&other);
        for mut call in [apply(&place), place.tune(&["rollback"])] {
            let (code, _, err) = run(&mut call);
            assert_eq!(code, 3, "{err}");
            assert!(err.contains("another `isolane tune` is running"), "{err}");
            assert!(err.contains("wait until it is done"), "{err}");
        }
        let has_ended = first.0.try_wait().expect("it can be asked");
        assert!(
            has_ended.is_none(),
            "the others came too late: {has_ended:?}"
        );
        assert!(first.0.wait().expect("it ends").success());
        let (code, out, err) = run(&mut place.tune(&["status"]));
        assert!(
            code == 0 && out.contains("12 settings applied, 0 undone since"),
            "{out}{err}"
        );
        let (code, _, err) = run(&mut place.tune(&["rollback"]));
        assert_eq!((code, err.as_str()), (0, ""));
        place.assert_is(&before, "after the rollback");
    });
}

#[test]
fn of_two_that_start_together_none_is_half_done() {
    inside(
        "concurrent_calls::of_two_that_start_together_none_is_half_done",
        || {
            let place = Place::new("tune-together");
            let before = place.look();
            place.write_plan(&place.plan());
            for round in 0..10 {
                let start = || {
                    let mut call = apply(&place);
                    let call = call.stdout(Stdio::null()).stderr(Stdio::piped());
                    call.spawn().expect("it starts")
                };
                let ends = [start(), start()].map(end_of);
                // The second call finds all settings as planned.
                let is_fine = |(code, said): &(Option<i32>, String)| match code {
                    Some(0) => true,
                    Some(3) => said.contains("another `isolane tune` is running"),
                    _ => false,
                };
                assert!(ends.iter().all(is_fine), "round {round}: {ends:?}");
                assert!(ends.iter().any(|(code, _)| *code == Some(0)), "{ends:?}");
                let (code, out, _) = run(&mut place.tune(&["status"]));
                assert!(code == 0 && out.contains("0 undone since"), "{out}");
                let (code, _, err) = run(&mut place.tune(&["rollback"]));
                assert_eq!((code, err.as_str()), (0, ""));
                place.assert_is(&before, "after the rollback");
            }
        },
    );
}
