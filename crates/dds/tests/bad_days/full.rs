//! Tests of rings that fill up because a reader is slow, and of frames that are returned late.

use std::time::{Duration, Instant};

use isolane_datapath_xdp::xdp::counters;

use crate::network::INTERFACE;
use crate::world::{BULK, Block, CRITICAL, Side, Topic, best_effort, two_hosts, until};

/// Writes as soon as there is room, while only the writer's side runs; returns how often there was none.
fn write(side: &Side, topic: &Topic, number: u32, bytes: usize) -> u32 {
    let bytes = vec![number as u8; bytes];
    let sample = Block { number, bytes };
    let mut refused = 0;
    while let Err(error) = topic.writer.write(&sample) {
        refused += 1;
        assert!(refused < 20_000, "sample {number}: {error}");
        side.run(Duration::from_millis(1));
    }
    refused
}

#[test]
fn what_a_late_reader_misses_is_counted_and_costs_the_critical_topic_nothing() {
    const SAMPLES: u32 = 800;
    let hosts = two_hosts();
    let [one, other] = [0, 1].map(|place| Side::on_lanes(&hosts[place]));
    let sides = [&one, &other];
    let bulk = Topic::new(sides, "Bulk", &best_effort(BULK));
    let critical = Topic::new(sides, "Critical", &best_effort(CRITICAL));
    bulk.pass_by_lane(sides, BULK);
    critical.pass_by_lane(sides, CRITICAL);
    for number in 0..SAMPLES {
        write(&one, &bulk, number, 300);
        if number % 10 == 9 {
            // Fewer frames are in flight than a veth's own queue holds.
            one.run(Duration::from_millis(1));
        }
    }
    write(&one, &critical, 1, 64);
    one.run(Duration::from_millis(20));
    let came = until(sides, || critical.take() == [1]);
    assert!(came, "{}", other.participant.report().datagrams);

    let sent = one.ledger(BULK).transmit.sent;
    let all_arrived = until(sides, || other.ledger(BULK).receive.arrived >= sent);
    let receive = other.ledger(BULK).receive;
    assert!(all_arrived, "{sent} sent: {receive:?}");
    let missed = receive.dropped(counters::RING_FULL);
    assert!(missed > 0, "{receive:?}");
    assert_eq!(receive.received + missed, sent, "{receive:?}");
    assert_eq!(other.ledger(CRITICAL).receive.dropped_total(), 0);
    let rings = other.participant.observe().rings;
    let shown = rings.iter().filter(|ring| ring.lane == Some(BULK.into()));
    assert_eq!(shown.map(|ring| ring.missed).sum::<u64>(), missed);
    bulk.pass_by_lane(sides, BULK);
    drop((bulk, critical));
    one.finish();
    other.finish();
}

#[test]
fn frames_that_a_device_keeps_come_back_late_and_all_come_back() {
    let hosts = two_hosts();
    let [one, other] = [0, 1].map(|place| Side::on_lanes(&hosts[place]));
    let sides = [&one, &other];
    let topic = Topic::new(sides, "Topic", &best_effort(CRITICAL));
    topic.pass_by_lane(sides, CRITICAL);
    let out = || {
        let report = one.participant.report();
        report.frames_out - report.frames_armed
    };
    // A frame in the ring of a device that goes down returns when the device is up again, or when the ring is closed.
    one.ip(&format!("link set {INTERFACE} down"));
    let begin = Instant::now();
    for number in 0..40 {
        write(&one, &topic, number, 500);
        one.run(Duration::from_millis(1));
    }
    let down = begin.elapsed();
    let unfinished = one.count(CRITICAL, counters::KICK_UNFINISHED);
    assert!(unfinished > 0 && out() > 0, "{unfinished} kicks, {}", out());
    // The loop sleeps, and only occasionally kicks the device for the frames that it still holds.
    let kicks = one.count(CRITICAL, counters::KICK);
    assert!(
        kicks < 200 + 8 * down.as_millis() as u64,
        "{kicks} in {down:?}"
    );
    one.ip(&format!("link set {INTERFACE} up"));
    // The frames return with the next transmission.
    topic.pass_by_lane(sides, CRITICAL);
    assert!(until(sides, || out() == 0), "{} stay out", out());
    let (sent, got) = (
        one.ledger(CRITICAL).transmit,
        other.ledger(CRITICAL).receive,
    );
    assert!(got.arrived <= sent.sent, "{sent:?} {got:?}");
    drop(topic);
    one.finish();
    other.finish();
}
