//! Tests of receive time stamps, and of frames without room for one.

use isolane_datapath::clock::monotonic_now;
use isolane_datapath::{Datapath, ReceiveBurst};
use isolane_datapath_xdp::xdp::Xdp;
use isolane_datapath_xdp::xdp::counters;
use isolane_wire::time::Instant;
use isolane_wire::{ipv4, udp};

use crate::bpf::ForwardFull;
use crate::fixture::On;
use crate::hosts::{eventually, index_of};
use crate::network::Segment;
use crate::support::{CRITICAL, finish, participant, payload, send};

/// Length of the headers in front of a payload.
const HEADERS_BYTES: usize = 14 + ipv4::HEADER_BYTES + udp::HEADER_BYTES;

/// Returns the next datagram's time stamp, and the eight bytes in front of its frame.
fn receive(path: &mut On<Xdp>) -> (Option<Instant>, [u8; 8]) {
    let mut burst = ReceiveBurst::new();
    eventually("a datagram comes", || {
        (path.receive_burst(CRITICAL, 1, &mut burst) > 0).then_some(())
    });
    let received = burst.first().expect("it is no malformed one");
    let frame_start = received.frame.range().start - HEADERS_BYTES;
    let in_front = &received.frame.buffer()[..frame_start];
    (received.arrived, *in_front.last_chunk().expect("head room"))
}

#[test]
fn a_stamp_is_of_the_arrival_and_what_else_lies_in_front_of_a_frame_is_never_taken_for_one() {
    const DATAGRAMS: u32 = 50;
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[CRITICAL], |_| {});
    let mut other = participant(segment.add_host(), &[CRITICAL], |config| {
        config.udp.timestamps = true;
    });
    let to = other.unicast(CRITICAL)[0];
    for number in 0..DATAGRAMS {
        let before = monotonic_now();
        send(&mut one, CRITICAL, &payload(number, 64), &[to]);
        let (arrived, _) = receive(&mut other);
        let arrived = arrived.expect("a stamp");
        assert!(before <= arrived && arrived <= monotonic_now());
    }

    // From here on a program at the bridge fills the room in front of each frame.
    let forwards = segment.in_the_middle(|| {
        ForwardFull::attach(index_of("port1"), index_of("port2")).expect("a program at the bridge")
    });
    for number in 0..DATAGRAMS {
        send(&mut one, CRITICAL, &payload(number, 64), &[to]);
        assert_eq!(receive(&mut other), (None, ForwardFull::METADATA));
    }
    let ledger = other.ledger();
    let of_lane = ledger.lane(CRITICAL);
    assert_eq!(of_lane.receive.unstamped, u64::from(DATAGRAMS));
    let by_lane = of_lane.events.get(counters::RECEIVED_BY_LANE);
    assert_eq!(by_lane, u64::from(2 * DATAGRAMS));
    assert_eq!(other.warnings(), [], "it was not served so far");
    other.check_interfaces();
    let warnings: Vec<String> = other.warnings().iter().map(ToString::to_string).collect();
    let said = warnings
        .iter()
        .any(|warning| warning.contains("no room for timestamps"));
    assert!(said, "{warnings:?}");

    // The lane no longer looks for stamps, and still counts the frames without one.
    for number in 0..DATAGRAMS {
        send(&mut one, CRITICAL, &payload(number, 64), &[to]);
        assert_eq!(receive(&mut other).0, None);
    }
    let of_lane = *other.ledger().lane(CRITICAL);
    assert_eq!(of_lane.receive.unstamped, u64::from(2 * DATAGRAMS));
    drop(forwards);
    finish(one);
    finish(other);
}
