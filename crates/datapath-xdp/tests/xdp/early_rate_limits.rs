//! Tests of budgets that are set when the participant is created, before any lane is open.

use std::num::NonZeroU32;
use std::time::Duration;

use isolane_datapath::{
    Budget, Datapath, InterfaceRateLimit, Lane, OverBudget, RateLimit, RateLimitError,
    RateLimitTarget,
};
use isolane_datapath_xdp::xdp::counters;
use isolane_datapath_xdp::xdp::{OnFailure, Xdp};

use crate::fixture::On;
use crate::hosts::{eventually, ip};
use crate::network::{INTERFACE, Segment};
use crate::support::{BULK, CRITICAL, finish, participant, payload, receive, send, until};

/// Budget of `capacity` datagrams; its replenishment period is longer than a test.
fn budget(capacity: u32) -> Budget {
    Budget {
        capacity: NonZeroU32::new(capacity).expect("some"),
        period: Duration::from_secs(10),
    }
}

fn drop_beyond(capacity: u32) -> Option<RateLimit> {
    Some(RateLimit {
        budget: budget(capacity),
        over: OverBudget::Drop,
    })
}

fn set_rate_limit(path: &mut On<Xdp>, lane: Lane, with: Option<RateLimit>) {
    let protected = path.set_rate_limit(RateLimitTarget::Lane(lane), with);
    protected.unwrap_or_else(|error| panic!("{lane}: {error}"));
}

fn open(path: &mut On<Xdp>, lanes: &[Lane]) {
    for lane in lanes {
        path.open_lane(*lane).expect("the lane can be had");
    }
}

/// Sends `datagrams` datagrams to a lane.
fn flood(from: &mut On<Xdp>, to: &On<Xdp>, lane: Lane, datagrams: u32) {
    for number in 0..datagrams {
        send(from, CRITICAL, &payload(number, 64), &to.unicast(lane)[..1]);
    }
}

/// Checks that a lane with a budget of three accepts three of ten datagrams.
fn assert_takes_three_of_ten(from: &mut On<Xdp>, to: &mut On<Xdp>, lane: Lane) {
    flood(from, to, lane, 10);
    assert_eq!(receive(to, lane, 3).len(), 3);
    until(to, lane, |ledger| {
        ledger.receive.dropped(counters::BUDGET) == 7
    });
    assert_eq!(to.ledger().lane(lane).receive.received, 3);
}

#[test]
fn a_budget_set_before_the_device_is_taken_holds_from_the_first_datagram() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[CRITICAL], |_| {});
    let mut other = participant(segment.add_host(), &[], |_| {});
    set_rate_limit(&mut other, CRITICAL, drop_beyond(3));
    open(&mut other, &[CRITICAL]);
    let flows = other.observe().flows;
    assert!(!flows.is_empty());
    assert!(flows.iter().all(|flow| flow.rate_limit == drop_beyond(3)));
    assert_takes_three_of_ten(&mut one, &mut other, CRITICAL);
    finish(one);
    finish(other);
}

#[test]
fn a_budget_set_before_a_later_lane_opens_holds_for_that_lane_alone() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[CRITICAL], |_| {});
    let mut other = participant(segment.add_host(), &[BULK], |_| {});
    set_rate_limit(&mut other, CRITICAL, drop_beyond(3));
    open(&mut other, &[CRITICAL]);
    assert_takes_three_of_ten(&mut one, &mut other, CRITICAL);
    flood(&mut one, &other, BULK, 10);
    assert_eq!(receive(&mut other, BULK, 10).len(), 10);
    finish(one);
    finish(other);
}

#[test]
fn a_level_that_goes_by_sockets_has_its_budget_as_soon_as_another_level_has_a_lane() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[CRITICAL], |_| {});
    let only_critical = |config: &mut isolane_datapath_xdp::xdp::XdpConfig| {
        config.options.levels = 1 << 7;
    };
    let mut other = participant(segment.add_host(), &[], only_critical);
    set_rate_limit(&mut other, BULK, drop_beyond(3));
    open(&mut other, &[BULK, CRITICAL]);
    assert!(!other.path.is_on_device(BULK));
    assert_takes_three_of_ten(&mut one, &mut other, BULK);
    finish(one);
    finish(other);
}

#[test]
fn the_last_budget_counts_and_one_that_cannot_be_kept_changes_nothing() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[CRITICAL], |_| {});
    let mut other = participant(segment.add_host(), &[], |_| {});
    set_rate_limit(&mut other, CRITICAL, drop_beyond(1));
    set_rate_limit(&mut other, CRITICAL, drop_beyond(3));
    set_rate_limit(&mut other, BULK, drop_beyond(1));
    set_rate_limit(&mut other, BULK, None);
    let mut short = drop_beyond(2).expect("a budget");
    short.budget.period = Duration::from_micros(1);
    for lane in [CRITICAL, BULK] {
        let refused = other.set_rate_limit(RateLimitTarget::Lane(lane), Some(short));
        assert!(matches!(refused, Err(RateLimitError::Period { .. })));
    }
    open(&mut other, &[BULK, CRITICAL]);
    assert_takes_three_of_ten(&mut one, &mut other, CRITICAL);
    flood(&mut one, &other, BULK, 10);
    assert_eq!(receive(&mut other, BULK, 10).len(), 10);
    finish(one);
    finish(other);
}

#[test]
fn an_interfaces_budget_set_early_holds_for_all_lanes_that_open() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[CRITICAL], |_| {});
    let mut other = participant(segment.add_host(), &[], |_| {});
    let with = |topics| InterfaceRateLimit {
        topics,
        foreign: None,
    };
    let refused = other.set_interface_rate_limit(with(Some((budget(5), 5))));
    assert!(matches!(refused, Err(RateLimitError::Reserve { .. })));
    // Two of the five datagrams are reserved for the most critical lane.
    let protected = other.set_interface_rate_limit(with(Some((budget(5), 2))));
    assert_eq!(protected, Ok(()));
    open(&mut other, &[CRITICAL, BULK]);
    flood(&mut one, &other, BULK, 10);
    assert_eq!(receive(&mut other, BULK, 3).len(), 3);
    until(&other, BULK, |ledger| {
        ledger.receive.dropped(counters::INTERFACE_BUDGET) == 7
    });
    flood(&mut one, &other, CRITICAL, 10);
    assert_eq!(receive(&mut other, CRITICAL, 2).len(), 2);
    until(&other, CRITICAL, |ledger| {
        ledger.receive.dropped(counters::INTERFACE_BUDGET) == 8
    });
    finish(one);
    finish(other);
}

#[test]
fn where_no_level_is_to_have_a_lane_a_budget_is_refused_at_once() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[], |config| config.options.levels = 0);
    let refused = one.set_rate_limit(RateLimitTarget::Lane(CRITICAL), drop_beyond(3));
    assert!(matches!(refused, Err(RateLimitError::NoLanes)));
    let refused = one.set_interface_rate_limit(InterfaceRateLimit::default());
    assert!(matches!(refused, Err(RateLimitError::NoLanes)));
    finish(one);
}

#[test]
fn a_budget_on_the_device_of_another_program_is_reported_as_not_enforced() {
    let mut segment = Segment::new();
    let host = segment.add_host();
    let owner = participant(host.clone(), &[CRITICAL], |_| {});
    let mut second = participant(host, &[], |config| {
        config.options.on_failure = OnFailure::Sockets;
    });
    set_rate_limit(&mut second, CRITICAL, drop_beyond(3));
    open(&mut second, &[CRITICAL]);
    assert!(!second.path.is_on_device(CRITICAL));
    let warnings: Vec<String> = second.warnings().iter().map(ToString::to_string).collect();
    let said = warnings
        .iter()
        .any(|warning| warning.contains("are not enforced"));
    assert!(said, "{warnings:?}");
    let refused = second.set_rate_limit(RateLimitTarget::Lane(CRITICAL), drop_beyond(3));
    assert!(matches!(refused, Err(RateLimitError::NoLanes)));
    finish(second);
    finish(owner);
}

#[test]
fn an_interface_that_is_gone_can_be_protected_no_more() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[CRITICAL], |_| {});
    set_rate_limit(&mut one, CRITICAL, drop_beyond(3));
    one.host.enter(|| ip(&format!("link delete {INTERFACE}")));
    eventually("the deletion is noticed", || {
        one.check_interfaces();
        (!one.path.is_on_device(CRITICAL)).then_some(())
    });
    for lane in [CRITICAL, BULK] {
        let refused = one.set_rate_limit(RateLimitTarget::Lane(lane), drop_beyond(3));
        assert!(matches!(refused, Err(RateLimitError::NoLanes)));
    }
    finish(one);
}

#[test]
fn where_no_level_so_far_has_a_lane_a_note_says_that_nothing_is_counted_yet() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[BULK], |config| {
        config.options.levels = 1 << CRITICAL.level().expect("a level").get();
    });
    assert_eq!(one.warnings(), []);
    set_rate_limit(&mut one, BULK, drop_beyond(3));
    let warnings: Vec<String> = one.warnings().iter().map(ToString::to_string).collect();
    let said = warnings
        .iter()
        .any(|warning| warning.contains("until an endpoint"));
    assert!(said, "{warnings:?}");
    finish(one);
}

#[test]
fn without_kernel_timers_only_set_budgets_are_reported() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[CRITICAL], |config| {
        config.options.kernel_timers = false;
    });
    assert_eq!(one.warnings(), []);
    set_rate_limit(&mut one, CRITICAL, drop_beyond(3));
    let warnings: Vec<String> = one.warnings().iter().map(ToString::to_string).collect();
    let said = warnings
        .iter()
        .any(|warning| warning.contains("this program's loop refills"));
    assert!(said, "{warnings:?}");
    finish(one);
}
