//! Reports made by hand: a sound one, and each fault there can be.

use super::*;
use serde_json::json;

/// A sound report: the rows inside the participants in their places, all others alike.
fn report() -> Value {
    let times = json!({
        "min": 40.0, "median": 80.5, "p99": 100.0, "p99_9": null, "max": 120.0, "mean": 81.0,
        "variance": 2.0,
    });
    let flow = |topic: &str| {
        json!({
            "topic": topic, "offered": 2000, "refused": 0, "written": 2000,
            "unsent": 0, "send_refused": 0, "sent": 2000,
            "cable": { "arrived": 2000, "dropped": 3 }, "receive_dropped": 0,
            "received": 1997, "duplicates": 0, "rejected": 0, "delivered": 1997,
        })
    };
    let run = json!({
        "datapath": "udp", "stages": ["executor"], "receive_work": "softirq", "publisher": "job", "order": "priority",
        "disturbance": null, "interference": false, "payload_bytes": 64, "rate_hz": 2000,
        "samples": 2000, "lost": 0, "late_sends": 0, "rtt_us": times, "owd_us": times, "one_way": null,
        "host_us": times, "cable_us": times, "window_p99_median_us": 99.0,
        "sender_late_max_us": 3.0, "cable_late_max_us": 3.0, "bound_us": null,
        "invalid": null, "cable": { "arbiter": "strict" }, "cores": null, "disturbed": null,
        "storm": null, "lanes": null, "policing": { "others": null, "bulk": null },
        "inversions": { "ping": 0, "pong": 0, "total": 0, "all_levels": 0 },
        "kernel_late": { "total": 2 }, "distribution": { "rtt_us": null },
        "flows": [flow("RTTPing"), flow("RTTPong")],
    });
    let mut runs = vec![run; RUNS];
    let inside = INSIDE
        .iter()
        .flat_map(|word| ORDERS.map(|order| (word, order)));
    for (run, (disturbance, order)) in runs.iter_mut().zip(inside) {
        run["disturbance"] = json!(disturbance);
        run["order"] = json!(order);
        run["disturbed"] = json!({
            "bulk_written": 9, "bulk_delivered": 9, "bulk_acknowledged": true, "enough": true,
        });
        if order == "fifo" {
            run["inversions"]["total"] = json!(5);
        }
    }
    json!({
        "schema": "isolane/rtt/1",
        "cable": { "ingress_drops": 0 },
        "runs": runs,
    })
}

/// The place of a run that nothing disturbs.
const QUIET: usize = RUNS - 1;

fn of<'a>(report: &'a mut Value, disturbance: &str, order: &str) -> &'a mut Value {
    let runs = report["runs"].as_array_mut().unwrap();
    let is_row = |run: &&mut Value| run["disturbance"] == disturbance && run["order"] == order;
    runs.iter_mut().find(is_row).unwrap()
}

#[test]
fn an_inversion_by_priority_is_a_fault_and_so_is_none_in_fifo_order() {
    let mut inverted = report();
    of(&mut inverted, "bulk", "priority")["inversions"]["all_levels"] = json!(1);
    assert!(matches!(fault(&inverted), Some(Fault::Wrong(_))));
    let mut smooth = report();
    of(&mut smooth, "repair", "fifo")["inversions"]["total"] = json!(0);
    assert!(matches!(fault(&smooth), Some(Fault::Wrong(_))));
    for (disturbance, order, count) in [
        ("bulk", "fifo", "total"),
        ("bulk", "priority", "all_levels"),
    ] {
        let mut unknown = report();
        of(&mut unknown, disturbance, order)["inversions"][count] = json!(null);
        assert!(matches!(fault(&unknown), Some(Fault::Wrong(_))), "{count}");
    }
}

#[test]
fn a_disturbance_that_did_too_little_is_tried_again() {
    let mut weak = report();
    let row = of(&mut weak, "joining", "fifo");
    row["disturbed"]["enough"] = json!(false);
    row["inversions"]["total"] = json!(0);
    assert!(matches!(fault(&weak), Some(Fault::Stalled(_))));
}

#[test]
fn a_bulk_sample_that_never_came_is_a_fault_and_so_is_bulk_that_nobody_counted() {
    let mut lost = report();
    of(&mut lost, "bulk", "fifo")["disturbed"]["bulk_delivered"] = json!(8);
    assert!(matches!(fault(&lost), Some(Fault::Wrong(_))));
    for nothing in [json!(null), json!(0)] {
        let mut silent = report();
        let disturbed = &mut of(&mut silent, "repair", "priority")["disturbed"];
        disturbed["bulk_written"] = nothing.clone();
        disturbed["bulk_delivered"] = nothing;
        assert!(matches!(fault(&silent), Some(Fault::Wrong(_))));
    }
}

#[test]
fn a_run_without_the_ledgers_of_both_topics_is_a_fault() {
    let mut without = report();
    without["runs"][QUIET]["flows"] = json!([]);
    assert!(matches!(fault(&without), Some(Fault::Wrong(_))));
    let mut one = report();
    one["runs"][QUIET]["flows"].as_array_mut().unwrap().pop();
    assert!(matches!(fault(&one), Some(Fault::Wrong(_))));
}

#[test]
fn a_row_that_is_not_there_is_a_fault() {
    let mut without = report();
    of(&mut without, "repair", "priority")["disturbance"] = json!("flood");
    assert!(matches!(fault(&without), Some(Fault::Wrong(_))));
}

#[test]
fn a_complete_report_has_no_fault() {
    assert_eq!(fault(&report()), None);
}

#[test]
fn a_report_is_faulty_without_runs_or_when_the_cable_dropped() {
    let mut without_runs = report();
    without_runs["runs"] = json!([]);
    assert!(fault(&without_runs).is_some());
    let mut dropped = report();
    dropped["cable"]["ingress_drops"] = json!(3);
    assert!(matches!(fault(&dropped), Some(Fault::Stalled(_))));
}

#[test]
fn a_sample_that_no_hop_accounts_for_is_a_fault() {
    let mut lost = report();
    lost["runs"][0]["flows"][0]["delivered"] = json!(1996);
    assert!(matches!(fault(&lost), Some(Fault::Wrong(_))));
}

#[test]
fn an_undisturbed_run_has_a_round_trip_and_every_run_its_keys() {
    let mut silent = report();
    silent["runs"][QUIET]["rtt_us"]["median"] = json!(null);
    assert!(fault(&silent).is_some());
    silent["runs"][QUIET]["disturbance"] = json!("flood");
    assert_eq!(fault(&silent), None);
    let mut incomplete = report();
    incomplete["runs"][0]
        .as_object_mut()
        .unwrap()
        .remove("rate_hz");
    assert!(fault(&incomplete).is_some());
}
