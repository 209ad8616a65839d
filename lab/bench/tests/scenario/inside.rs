//! Tests of disturbances inside the participants.

use isolane_bench::experiment::{Cell, Load};
use isolane_bench::report::{Order, Run};
use isolane_bench::scenario::rtt;

use crate::ONE_AT_A_TIME;
use crate::support::{program, testbed};

/// Run of a second, valid, with the required amount of disturbance; `None` without hosts.
fn measured(disturbance: Load, order: Order) -> Option<Run> {
    let testbed = testbed()?;
    let cell = Cell {
        disturbance,
        order,
        seconds: 1,
        ..Cell::default()
    };
    let outcome = rtt::run_between_hosts(&testbed, &program(), &cell.round_trips()).unwrap();
    let run = outcome.run;
    assert_eq!(run.invalid, None, "{run:#?}");
    assert_eq!(outcome.rounds.rtt_ns().len() as u64 + run.lost, run.samples);
    for flow in &run.flows {
        assert_eq!(flow.check(), Ok(()));
    }
    assert!(run.disturbed.expect("it says what it achieved").enough);
    // The components of a round trip are known if a cable measures them.
    let parts = [run.host_us.median, run.cable_us.median].map(|median| median.is_some());
    assert_eq!(parts, [run.cable.is_some(); 2]);
    Some(run)
}

/// Checks that in priority order no less urgent work precedes the critical sample, and in FIFO order some does.
fn only_fifo_inverts(disturbance: Load) {
    let _one = ONE_AT_A_TIME.lock();
    let Some(fifo) = measured(disturbance, Order::Fifo) else {
        return;
    };
    assert!(fifo.inversions.total > 0, "{:?}", fifo.inversions);
    let by_priority = measured(disturbance, Order::Priority).expect("there were hosts");
    assert_eq!(by_priority.inversions.all_levels, 0);
}

#[test]
fn endpoints_that_come_and_go_come_before_critical_samples_in_fifo_order_only() {
    only_fifo_inverts(Load::Joining);
}

#[test]
fn bulk_comes_before_critical_samples_in_fifo_order_only() {
    only_fifo_inverts(Load::Bulk);
}

#[test]
fn repairs_come_before_critical_samples_in_fifo_order_only() {
    only_fifo_inverts(Load::Repair);
}

#[test]
fn large_samples_come_before_critical_ones_in_fifo_order_only() {
    only_fifo_inverts(Load::Large);
}

#[test]
fn during_large_samples_no_process_relays_frames() {
    let _one = ONE_AT_A_TIME.lock();
    let cable = |disturbance| Some(measured(disturbance, Order::Priority)?.cable.is_some());
    assert!(matches!(cable(Load::Large), None | Some(false)));
    assert!(matches!(cable(Load::Bulk), None | Some(true)));
}

#[test]
fn losses_to_be_repaired_are_of_bulk_samples_only() {
    let _one = ONE_AT_A_TIME.lock();
    for order in [Order::Fifo, Order::Priority] {
        let Some(run) = measured(Load::Repair, order) else {
            return;
        };
        let disturbed = run.disturbed.expect("it was disturbed");
        assert!(disturbed.bulk_lost > Some(0) && disturbed.bulk_repaired > Some(0));
        assert_eq!(disturbed.bulk_delivered, disturbed.bulk_written);
        for flow in &run.flows {
            assert_eq!(flow.cable.expect("a cable").dropped, 0, "{flow:?}");
        }
    }
}
