//! Rings that fill up because a reader is late, and frames that come back late.

use std::time::Duration;

use isolane::Participant;
use isolane_datapath::{Counted, ReceiveDrop};

use crate::hosts::ip;
use crate::network::Segment;
use crate::world::{BULK, Block, CRITICAL, Side, Topic, best_effort, two_hosts, until};

/// Writes as soon as there is room, running the writer's side only; how often there was none.
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
            // What is in the air is less than what a veth's own queue holds.
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
    let missed = receive.dropped(ReceiveDrop::RingFull);
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
fn frames_that_come_back_late_make_the_writer_wait_and_all_come_back() {
    const SAMPLES: u32 = 300;
    let mut segment = Segment::new();
    let hosts = [(); 2].map(|()| segment.add_host());
    let [one, other] = [0, 1].map(|place| Side::on_lanes(&hosts[place]));
    let sides = [&one, &other];
    let topic = Topic::new(sides, "Topic", &best_effort(CRITICAL));
    topic.pass_by_lane(sides, CRITICAL);
    // A frame comes back when nobody has it any more: here, when a slow link has let it through.
    let slow = "qdisc add dev port2 root tbf rate 4mbit burst 4000 limit 2000000";
    segment.in_the_middle(|| {
        let mut command = std::process::Command::new("tc");
        crate::hosts::output(command.args(slow.split(' ')));
    });
    let before = one.count(CRITICAL, Counted::SentByLane);
    let mut waited = 0;
    for number in 0..SAMPLES {
        waited += write(&one, &topic, number, 1_000);
    }
    let by_lane = one.count(CRITICAL, Counted::SentByLane) - before;
    assert!(waited > 0, "the link was not slow");
    let mut came = Vec::new();
    let all = until(sides, || {
        came.extend(topic.take());
        came.len() >= SAMPLES as usize
    });
    assert!(all, "{} came; {waited} waits, {by_lane} by lane", came.len());
    assert_eq!(came, (0..SAMPLES).collect::<Vec<_>>());
    assert!(by_lane > u64::from(SAMPLES / 2), "{by_lane} by lane");
    let at_home = |participant: &Participant| {
        let report = participant.report();
        report.frames_out == report.frames_armed
    };
    assert!(until(sides, || at_home(&one.participant)), "frames stay out");
    segment.in_the_middle(|| ip("link show dev port2"));
    drop(topic);
    one.finish();
    other.finish();
}
