//! After lanes are open, moving datagrams through them allocates nothing.

#[path = "../../../tests/support/counting_allocator.rs"]
mod counting_allocator;
#[path = "xdp/fixture.rs"]
#[allow(dead_code)]
mod fixture;
#[path = "hosts/mod.rs"]
#[allow(unreachable_pub)]
mod hosts;
#[path = "xdp/network.rs"]
#[allow(dead_code)]
mod network;

use counting_allocator::allocator_calls_of;
use isolane_datapath::{Datapath, Lane, ReceiveBurst, TransmitBurst};
use isolane_datapath_xdp::xdp::counters;
use isolane_testkit::conformance::{Fixture, Options};
use isolane_wire::locator::Locator;

const LANES: [Lane; 2] = [Lane::ALL[2], Lane::ALL[8]];

/// Exchanges bursts of all kinds: to one destination, several, a group, and this host; small ones, and ones too long
/// for a frame.
fn exchange(one: &mut impl Datapath, other: &mut impl Datapath, rounds: usize) {
    let mut transmit = TransmitBurst::new();
    let mut receive = ReceiveBurst::new();
    for round in 0..rounds {
        let lane = LANES[round % 2];
        let (here, there) = (one.unicast(lane)[0], other.unicast(lane)[0]);
        let group = one.multicast(lane)[0];
        let nowhere = Locator::udpv4([192, 0, 2, 1], 9);
        for number in 0..8 {
            let bytes = if number == 7 { 3_000 } else { 8 + number * 100 };
            let Some(mut frame) = one.pool().take_for(lane, bytes) else {
                break;
            };
            let head = frame.head_room();
            frame.buffer_mut()[head..head + 4].copy_from_slice(b"RTPS");
            frame.set_range(head..head + bytes);
            transmit.push(frame).expect("room in the burst");
            let to: &[Locator] = match number {
                1 => &[there, there, here],
                2 => &[group],
                3 => &[nowhere],
                4 => &[],
                _ => &[there],
            };
            for place in to {
                transmit.address(*place).expect("room");
            }
        }
        one.send_burst(lane, &mut transmit);
        while other.receive_burst(lane, 16, &mut receive) == 16 {
            receive.clear();
        }
        receive.clear();
        one.receive_burst(lane, 16, &mut receive);
        receive.clear();
        one.peek_lanes();
        if one.wants_recycling() {
            one.recycle();
        }
    }
}

#[test]
fn lanes_allocate_nothing_after_open() {
    let mut fixture = fixture::XdpOnVeth::new();
    let options = Options::default();
    let [mut one, mut other] = [(); 2].map(|()| fixture.attach(&options));
    for lane in LANES {
        one.open_lane(lane).expect("the lane opens");
        other.open_lane(lane).expect("the lane opens");
    }
    for path in [&mut one, &mut other] {
        // Housekeeping processes the kernel's notifications about neighbours, so the path of a datagram does not.
        path.check_interfaces();
    }
    let allocations = allocator_calls_of(|| exchange(&mut one, &mut other, 200));
    assert_eq!(allocations, 0);
    let ledger = one.ledger();
    let counts = ledger.total().events;
    assert!(counts.get(counters::SENT_BY_LANE) > 500, "{ledger}");
    assert!(counts.get(counters::DESTINATION_COPY) > 50, "{ledger}");
    let received = other.ledger().total().events;
    assert!(
        received.get(counters::RECEIVED_BY_LANE) > 500,
        "{}",
        other.ledger()
    );
}
