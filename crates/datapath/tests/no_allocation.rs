//! After a lane is open, moving datagrams allocates nothing.

#[path = "../../../tests/support/counting_allocator.rs"]
mod counting_allocator;

use counting_allocator::allocator_calls_of;
use isolane_datapath::memory::Network;
use isolane_datapath::{Datapath, Lane, ReceiveBurst, TransmitBurst};
use isolane_testkit::conformance::{Fixture, Options};
use isolane_testkit::fixtures::UdpOnLoopback;
use isolane_testkit::{Fault, FaultPlan};

const LANES: [Lane; 2] = [Lane::ALL[2], Lane::ALL[8]];
const NOWHERE: u16 = 9;

/// Exchanges bursts of all kinds: full, empty, too long, refused, without destination, and longer than the reader
/// takes.
fn exchange(one: &mut impl Datapath, other: &mut impl Datapath, rounds: usize) {
    let mut transmit = TransmitBurst::new();
    let mut receive = ReceiveBurst::new();
    for round in 0..rounds {
        let lane = LANES[round % 2];
        let to = other.unicast(lane)[0];
        let nowhere = isolane_wire::locator::Locator::udpv4([127, 0, 0, 1], NOWHERE);
        for frames in 0..16 {
            let Some(mut frame) = one.pool().take(lane) else {
                break;
            };
            let len = if frames == 7 { 65_536 } else { frames * 100 };
            frame.set_range(0..len);
            transmit.push(frame).expect("room in the burst");
            match frames {
                3 => {}
                5 => transmit.address(nowhere).expect("room"),
                _ => transmit.address(to).expect("room"),
            }
        }
        one.send_burst(lane, &mut transmit);
        if round % 3 != 0 {
            while other.receive_burst(lane, 16, &mut receive) == 16 {
                receive.clear();
            }
            receive.clear();
            one.receive_burst(lane, 16, &mut receive);
            receive.clear();
        }
        let ledger = other.ledger();
        assert_eq!(ledger.balance(), Ok(()));
    }
}

fn assert_silent(mut one: impl Datapath, mut other: impl Datapath) {
    for lane in LANES {
        one.open_lane(lane).expect("the lane opens");
        other.open_lane(lane).expect("the lane opens");
    }
    let allocations = allocator_calls_of(|| exchange(&mut one, &mut other, 300));
    assert_eq!(allocations, 0);
    let total = other.ledger().total().receive;
    assert!(total.received > 1_000, "{total:?}");
}

#[test]
fn udp_allocates_nothing_after_open() {
    let mut fixture = UdpOnLoopback::new();
    let options = Options::default();
    assert_silent(fixture.attach(&options), fixture.attach(&options));
}

#[test]
fn memory_allocates_nothing_after_open() {
    let network = Network::new(1);
    assert_silent(network.attach([10, 0, 0, 1]), network.attach([10, 0, 0, 2]));
}

#[test]
fn faults_allocate_nothing_after_open() {
    let network = Network::new(1);
    let plan = FaultPlan {
        loss_per_million: 100_000,
        duplication_per_million: 100_000,
        delay_per_million: 100_000,
        corruption_per_million: 100_000,
        shortening_per_million: 100_000,
        starvation_per_million: 100_000,
        would_block_per_million: 10_000,
        unreachable_per_million: 10_000,
        exhaustion_per_million: 10_000,
        ..FaultPlan::new(1)
    };
    let [one, other] = [1, 2].map(|last| {
        let memory = network.attach([10, 0, 0, last]);
        Fault::new(Box::new(memory), plan.clone())
    });
    assert_silent(one, other);
}
