//! Tests outside of the conformance suite: loss, and participants that leave.

use super::*;

const LANE: Lane = Lane::ALL[8];

fn open(network: &Network, address: [u8; 4]) -> Memory {
    let mut memory = network.attach(address);
    memory.open_lane(LANE).unwrap();
    memory
}

fn send(from: &mut Memory, to: Locator, count: usize) {
    let mut burst = TransmitBurst::new();
    for _ in 0..count {
        burst.push(from.pool().take(LANE).unwrap()).unwrap();
        burst.address(to).unwrap();
        from.send_burst(LANE, &mut burst);
    }
}

#[test]
fn losses_are_counted_and_repeat_with_the_seed() {
    let lost_with = |seed| {
        let network = Network::with_config(MemoryConfig {
            loss_per_million: 100_000,
            queue_datagrams: 1_000,
            ..MemoryConfig::new(seed)
        });
        let mut one = open(&network, [10, 0, 0, 1]);
        let other = open(&network, [10, 0, 0, 2]);
        send(&mut one, other.unicast(LANE)[0], 1_000);
        let ledger = other.ledger();
        ledger.balance().unwrap();
        ledger.lane(LANE).receive.dropped(ReceiveDrop::FAULT_LOSS)
    };
    let lost = lost_with(1);
    assert!((60..140).contains(&lost), "{lost} of 1,000 at 10 %");
    assert_eq!(lost_with(1), lost);
    assert_ne!(
        [lost_with(2), lost_with(3), lost_with(4)],
        [lost; 3],
        "seeds must matter"
    );
}

#[test]
fn participants_with_one_address_have_ports_of_their_own() {
    let network = Network::new(1);
    let mut all: Vec<Locator> = Vec::new();
    let members: Vec<Memory> = (0..3).map(|_| open(&network, [10, 0, 0, 1])).collect();
    all.extend(members.iter().map(|member| member.unicast(LANE)[0]));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 3);
}

#[test]
fn a_member_that_left_gets_nothing_and_its_place_is_reused() {
    let network = Network::new(1);
    let mut one = open(&network, [10, 0, 0, 1]);
    let gone = open(&network, [10, 0, 0, 2]).unicast(LANE)[0];
    send(&mut one, gone, 1);
    assert_eq!(one.ledger().lane(LANE).transmit.bounced, 1);
    let back = open(&network, [10, 0, 0, 2]);
    assert_eq!(back.unicast(LANE), [gone]);
    send(&mut one, gone, 1);
    assert_eq!(back.ledger().lane(LANE).receive.pending, 1);
}

#[test]
fn ready_lanes_are_exactly_those_where_datagrams_wait() {
    let network = Network::new(1);
    let mut one = open(&network, [10, 0, 0, 1]);
    let mut other = open(&network, [10, 0, 0, 2]);
    assert_eq!(other.ready_lanes(), 0);
    send(&mut one, other.unicast(LANE)[0], 1);
    assert_eq!(other.ready_lanes(), LANE.bit());
    let mut burst = ReceiveBurst::new();
    assert_eq!(other.receive_burst(LANE, 16, &mut burst), 1);
    assert_eq!(other.ready_lanes(), 0);
}
