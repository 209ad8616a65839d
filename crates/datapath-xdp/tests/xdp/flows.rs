//! Tests of topic ports and budgets.

use std::num::NonZeroU32;
use std::time::Duration;

use isolane_datapath::{
    Budget, Datapath, FlowId, Lane, OverBudget, RateLimit, RateLimitError, RateLimitTarget,
};
use isolane_datapath_xdp::xdp::counters;

use crate::fixture::On;
use crate::support::{BULK, CRITICAL, count, finish, pair, payload, receive, send, until};

/// Rate limit of `capacity` datagrams; its replenishment period is longer than a test.
fn budget(capacity: u32, over: OverBudget) -> Option<RateLimit> {
    Some(RateLimit {
        budget: Budget {
            capacity: NonZeroU32::new(capacity).expect("some"),
            period: Duration::from_secs(10),
        },
        over,
    })
}

fn flow_of(path: &mut On<isolane_datapath_xdp::xdp::Xdp>, lane: Lane) -> FlowId {
    let flow = path.open_flow(lane);
    flow.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_topics_port_comes_by_its_lane_and_has_its_own_budget() {
    let [mut one, mut other] = pair(&[CRITICAL]);
    let flow = flow_of(&mut other, CRITICAL);
    let (to_flow, to_lane) = (other.flow_unicast(flow)[0], other.unicast(CRITICAL)[0]);
    assert_ne!(to_flow, to_lane);
    other
        .set_rate_limit(RateLimitTarget::Flow(flow), budget(5, OverBudget::Drop))
        .expect("the flow is there");
    for number in 0..20 {
        send(&mut one, CRITICAL, &payload(number, 64), &[to_flow]);
    }
    for number in 0..20 {
        send(&mut one, CRITICAL, &payload(100 + number, 64), &[to_lane]);
    }
    assert_eq!(receive(&mut other, CRITICAL, 25).len(), 25);
    until(&other, CRITICAL, |ledger| {
        ledger.receive.dropped(counters::BUDGET) == 15
    });
    assert_eq!(count(&other, CRITICAL, counters::RECEIVED_BY_LANE), 25);
    let observed = other.observe();
    let of_flow = observed.flows.iter().find(|one| one.flow == Some(flow));
    assert_eq!(of_flow.expect("it is shown").left, Some(0));

    // The budget is changed while it is in use, and then removed. The port is then no longer registered, and the count
    // of dropped datagrams is kept.
    other
        .set_rate_limit(RateLimitTarget::Flow(flow), None)
        .expect("there");
    send(&mut one, CRITICAL, &payload(1, 64), &[to_flow]);
    assert_eq!(receive(&mut other, CRITICAL, 1).len(), 1);
    other.close_flow(flow);
    assert!(other.flow_unicast(flow).is_empty());
    let gone = other.set_rate_limit(RateLimitTarget::Flow(flow), None);
    assert_eq!(gone, Err(RateLimitError::NoFlow));
    let receive = other.ledger().lane(CRITICAL).receive;
    assert_eq!(receive.dropped(counters::BUDGET), 15);
    finish(one);
    finish(other);
}

#[test]
fn what_is_beyond_a_lanes_budget_takes_the_lowest_lane_where_it_says_so() {
    let [mut one, mut other] = pair(&[BULK, CRITICAL]);
    let to = other.unicast(CRITICAL)[0];
    other
        .set_rate_limit(
            RateLimitTarget::Lane(CRITICAL),
            budget(3, OverBudget::Demote),
        )
        .expect("the lane is open");
    for number in 0..10 {
        send(&mut one, CRITICAL, &payload(number, 64), &[to]);
    }
    assert_eq!(receive(&mut other, CRITICAL, 3).len(), 3);
    assert_eq!(receive(&mut other, BULK, 7).len(), 7);
    assert_eq!(count(&other, BULK, counters::RECEIVED_BY_LANE), 7);
    finish(one);
    finish(other);
}

#[test]
fn flows_are_bounded_and_those_given_back_are_given_again() {
    let [one, mut other] = pair(&[CRITICAL]);
    let flows: Vec<FlowId> = std::iter::from_fn(|| other.open_flow(CRITICAL).ok())
        .take(100)
        .collect();
    assert_eq!(flows.len(), isolane_datapath::limits::MAX_LANE_FLOWS);
    for flow in &flows {
        other.close_flow(*flow);
    }
    for _ in 0..100 {
        let flow = flow_of(&mut other, CRITICAL);
        other.close_flow(flow);
    }
    finish(one);
    finish(other);
}

#[test]
fn what_cannot_be_protected_is_named() {
    let [one, mut other] = pair(&[CRITICAL]);
    let closed = other.set_rate_limit(
        RateLimitTarget::Flow(FlowId(0)),
        budget(1, OverBudget::Drop),
    );
    assert_eq!(closed, Err(RateLimitError::NoFlow));
    let mut short = budget(1, OverBudget::Drop).expect("a budget");
    short.budget.period = Duration::from_micros(1);
    let refused = other.set_rate_limit(RateLimitTarget::Lane(CRITICAL), Some(short));
    assert!(matches!(refused, Err(RateLimitError::Period { .. })));
    finish(one);
    finish(other);
}
