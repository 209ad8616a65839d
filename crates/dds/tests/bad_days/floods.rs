//! Tests of floods at the port of a level, of another level, and at an unused port, with and without budgets. Every
//! dropped datagram is counted under a name, and a critical topic meanwhile loses nothing.
//!
//! Each round sends fewer datagrams than a veth's own queue holds, and waits for a sample sent after them, because
//! losses on the veth would not be counted.

use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::time::Duration;

use isolane::{Budget, InterfaceRateLimit, Level, OverBudget, Qos, RateLimit};
use isolane_datapath::ReceiveDrop;
use isolane_datapath_xdp::xdp::counters;

use crate::network::{Host, Segment};
use crate::world::{BULK, CRITICAL, OTHER, Side, Topic, best_effort};

const ROUNDS: u32 = 25;
const FLOOD: u32 = 150;
const ALL: u64 = (ROUNDS * FLOOD) as u64;
/// A port without a socket.
const UNUSED_PORT: u16 = 9;

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

/// Two hosts with topics, and a third one that floods.
struct Flooded {
    one: Side,
    other: Side,
    flooder: Host,
    topics: Vec<(Level, Topic)>,
}

impl Flooded {
    fn new(topics: &[(Level, Qos)]) -> Flooded {
        let mut segment = Segment::new();
        let [first, second, flooder] = [(); 3].map(|()| segment.add_host());
        let [one, other] = [&first, &second].map(Side::on_lanes);
        let sides = [&one, &other];
        let topics = topics.iter().enumerate().map(|(number, (level, qos))| {
            let topic = Topic::new(sides, &format!("Topic{number}"), qos);
            topic.pass_by_lane(sides, *level);
            (*level, topic)
        });
        let topics = topics.collect();
        Flooded {
            one,
            other,
            flooder,
            topics,
        }
    }

    /// Floods a port. After each round, a sample of each of the first topics must arrive.
    fn flood(&self, port: u16, watched: usize) {
        let socket = self
            .flooder
            .enter(|| UdpSocket::bind((self.flooder.address(), 0)))
            .expect("a socket");
        let place = (self.other.host.address(), port);
        for round in 0..ROUNDS {
            for _ in 0..FLOOD {
                let sent = socket.send_to(b"RTPS, and nothing that makes sense", place);
                sent.expect("room in the socket");
            }
            for (_, topic) in &self.topics[..watched] {
                topic.pass([&self.one, &self.other], round, 64);
            }
        }
    }

    fn dropped(&self, level: Level, reason: ReceiveDrop) -> u64 {
        self.other.ledger(level).receive.dropped(reason)
    }

    /// Number of datagrams of the flood that the participant had to parse.
    fn looked_at(&self) -> u64 {
        self.other.participant.counters().malformed_messages
    }

    /// Checks that no sample of a watched topic was lost, and that all datagrams are counted under a name.
    fn finish(self, watched: usize) {
        for (level, topic) in &self.topics[..watched] {
            let ledger = topic.reader.ledger();
            assert_eq!(
                (ledger.lost, ledger.rejected),
                (0, 0),
                "{level:?}: {ledger:?}"
            );
        }
        drop(self.topics);
        self.one.finish();
        self.other.finish();
    }
}

#[test]
fn a_flood_on_the_critical_port_is_dropped_at_the_driver_and_other_topics_go_on() {
    // The level's port is flooded; one topic of that level has its own port.
    let own = best_effort(CRITICAL).budget(budget(1_000), OverBudget::Drop);
    let world = Flooded::new(&[
        (OTHER, best_effort(OTHER)),
        (CRITICAL, own),
        (CRITICAL, best_effort(CRITICAL)),
    ]);
    let other = &world.other.participant;
    other
        .set_level_limit(CRITICAL, drop_beyond(100))
        .expect("it is open");
    world.flood(world.other.port(CRITICAL), 2);
    let dropped = world.dropped(CRITICAL, counters::BUDGET);
    assert!(dropped >= ALL / 2, "{dropped} of {ALL}");
    let full = world.dropped(CRITICAL, counters::RING_FULL);
    assert_eq!(dropped + full + world.looked_at(), ALL);
    world.finish(2);
}

#[test]
fn without_a_budget_the_same_flood_is_all_looked_at_and_the_other_level_still_loses_nothing() {
    let world = Flooded::new(&[
        (OTHER, best_effort(OTHER)),
        (CRITICAL, best_effort(CRITICAL)),
    ]);
    world.flood(world.other.port(CRITICAL), 1);
    let (dropped, full) = (
        world.dropped(CRITICAL, counters::BUDGET),
        world.dropped(CRITICAL, counters::RING_FULL),
    );
    assert_eq!(dropped, 0);
    assert_eq!(full + world.looked_at(), ALL);
    world.finish(1);
}

#[test]
fn a_flood_on_another_port_is_dropped_at_the_driver_by_its_budget() {
    let world = Flooded::new(&[(CRITICAL, best_effort(CRITICAL)), (BULK, best_effort(BULK))]);
    let other = &world.other.participant;
    other
        .set_level_limit(BULK, drop_beyond(100))
        .expect("it is open");
    world.flood(world.other.port(BULK), 1);
    let dropped = world.dropped(BULK, counters::BUDGET);
    assert!(dropped >= ALL / 2, "{dropped} of {ALL}");
    let full = world.dropped(BULK, counters::RING_FULL);
    assert_eq!(dropped + full + world.looked_at(), ALL);
    assert_eq!(world.other.ledger(CRITICAL).receive.dropped_total(), 0);
    world.finish(1);
}

#[test]
fn a_flood_that_takes_the_interfaces_budget_leaves_the_critical_share() {
    let world = Flooded::new(&[(CRITICAL, best_effort(CRITICAL)), (BULK, best_effort(BULK))]);
    let rate_limit = InterfaceRateLimit {
        topics: Some((budget(300), 200)),
        foreign: None,
    };
    let other = &world.other.participant;
    other.set_interface_limit(rate_limit).expect("it is there");
    world.flood(world.other.port(BULK), 1);
    let dropped = world.dropped(BULK, counters::INTERFACE_BUDGET);
    assert!(dropped >= ALL / 2, "{dropped} of {ALL}");
    assert_eq!(world.other.ledger(CRITICAL).receive.dropped_total(), 0);
    world.finish(1);
}

#[test]
fn with_nothing_reserved_the_same_flood_takes_what_is_critical_along() {
    let world = Flooded::new(&[(CRITICAL, best_effort(CRITICAL)), (BULK, best_effort(BULK))]);
    let rate_limit = InterfaceRateLimit {
        topics: Some((budget(300), 0)),
        foreign: None,
    };
    let other = &world.other.participant;
    other.set_interface_limit(rate_limit).expect("it is there");
    world.flood(world.other.port(BULK), 0);
    let sides = [&world.one, &world.other];
    for number in 0..20 {
        world.topics[0].1.write(sides, number, 64);
    }
    let is_lost = || world.dropped(CRITICAL, counters::INTERFACE_BUDGET) > 0;
    assert!(
        crate::world::until(sides, is_lost),
        "the reserve was not needed"
    );
    world.finish(0);
}

#[test]
fn a_flood_on_an_unused_port_is_dropped_by_the_budget_of_others_where_there_is_one() {
    let world = Flooded::new(&[(CRITICAL, best_effort(CRITICAL))]);
    let decided = |reason| world.other.decided(reason);
    world.flood(UNUSED_PORT, 1);
    assert!(decided("unknown port") >= ALL, "passed, untouched");
    assert_eq!(decided("over the budget of others"), 0);

    let rate_limit = InterfaceRateLimit {
        topics: None,
        foreign: Some(budget(100)),
    };
    let other = &world.other.participant;
    other.set_interface_limit(rate_limit).expect("it is there");
    world.flood(UNUSED_PORT, 1);
    let dropped = decided("over the budget of others");
    assert!(dropped >= ALL / 2, "{dropped} of {ALL}");
    assert_eq!(world.looked_at(), 0);
    assert_eq!(world.other.ledger(CRITICAL).receive.dropped_total(), 0);
    world.finish(1);
}
