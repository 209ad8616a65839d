//! Rate limit of discovery: messages that exceed it wait, and leases are renewed meanwhile.

use std::time::Duration;

use isolane_sim::{NodeConfig, NodeId, Topic, World};
use isolane_wire::qos::LivelinessKind;

use crate::support::{PATIENCE, SECOND, endpoints, ms};

/// Number of writers of the first node, and of readers of the second.
const TOPICS: usize = 60;

const RATE: u64 = 4_096;

/// Two nodes without multicast groups, so that all messages are sent to their addresses. The first node writes the
/// topics that the second reads.
fn many_topics(bytes_per_s: u64) -> (World, NodeId, NodeId) {
    let mut world = World::new(1);
    let node = |peer| {
        let mut config = NodeConfig::with_peers(&[NodeId(peer)]);
        config.discovery_bytes_per_s = bytes_per_s;
        config.limits.local_endpoints = TOPICS as u16 + 4;
        config
    };
    let a = world.node(node(1));
    let b = world.node(node(0));
    for number in 0..TOPICS {
        let topic = Topic::new(&format!("topic {number}"));
        world.create_writer(a, &topic);
        world.create_reader(b, &topic);
    }
    (world, a, b)
}

/// Time until both nodes know all endpoints of each other.
fn time_to_know(bytes_per_s: u64) -> Duration {
    let (mut world, a, b) = many_topics(bytes_per_s);
    world.run_until("all is known", PATIENCE, |world| {
        endpoints(world, a) == TOPICS && endpoints(world, b) == TOPICS
    });
    world.elapsed()
}

#[test]
fn a_small_system_is_found_as_fast_as_without_the_limit() {
    let limited = time_to_know(NodeConfig::default().discovery_bytes_per_s);
    assert_eq!(limited, time_to_know(u64::MAX));
}

#[test]
fn sedp_sends_no_more_than_its_rate_and_what_waits_is_sent_later() {
    let (mut world, a, b) = many_topics(RATE);
    let mut least_behind = 0;
    for second in 1..=30 {
        world.run_for(SECOND);
        // SPDP is exempt from the limit: some 300 bytes every two seconds, and a few announcements at the start.
        let spdp_bytes = 300 * (20 + second);
        let sent = world.bytes_sent_to(b).saturating_sub(spdp_bytes);
        assert!(sent <= RATE * (second + 1), "{sent} bytes in {second} s");
        if endpoints(&world, b) < TOPICS {
            least_behind = second;
        }
    }
    assert!(
        least_behind >= 2,
        "known after {least_behind} s: nothing waited"
    );
    assert_eq!(
        (endpoints(&world, a), endpoints(&world, b)),
        (TOPICS, TOPICS)
    );
    assert!(world.protocol(a).counters().discovery_limited > 0);
}

#[test]
fn leases_are_renewed_while_sedp_waits() {
    let (mut world, a, b) = many_topics(1_024);
    let topic = Topic::new("alive").level(3).qos(|qos| {
        qos.liveliness.kind = LivelinessKind::Automatic;
        qos.liveliness.lease = isolane_wire::time::Duration::from_millis(300);
    });
    let writer = world.create_writer(a, &topic);
    let reader = world.create_reader(b, &topic);
    world.run_until("the writer is found", PATIENCE, |world| {
        world.matched_writers(reader) == 1 && world.matched_readers(writer) == 1
    });
    // Endpoints that are created and deleted make SEDP exceed its rate.
    for number in 0..200 {
        let topic = Topic::new(&format!("short-lived {number}"));
        let short_lived = world.create_reader(b, &topic);
        world.run_for(ms(50));
        world.delete_reader(short_lived);
    }
    let changed = world.take_liveliness_changed(reader).expect("it was alive");
    assert_eq!((changed.alive, changed.not_alive), (1, 0));
    for node in [a, b] {
        assert_eq!(world.protocol(node).remote_participants().count(), 1);
        assert_eq!(world.protocol(node).counters().leases_expired, 0);
    }
    assert!(world.protocol(b).counters().discovery_limited > 0);
}
