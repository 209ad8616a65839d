//! Behaviour of each kind of fault over the memory datapath.

use isolane_datapath::ledger::LaneLedger;
use isolane_datapath::limits::MAX_BURST;
use isolane_datapath::memory::{Memory, Network};
use isolane_datapath::{
    Datapath, Lane, Pool, PoolConfig, ReceiveBurst, ReceiveDrop, Refusal, SendReport, TransmitBurst,
};
use isolane_testkit::fault::{HELD_RECYCLES, MAX_HELD, retain_messages};
use isolane_testkit::{Fault, FaultPlan, Injected};
use isolane_wire::locator::Locator;

const LANE: Lane = Lane::ALL[8];
const OTHER: Lane = Lane::ALL[2];
const ALWAYS: u32 = 1_000_000;
const OFTEN: u32 = 250_000;

/// A sender without faults and a receiver with a plan.
struct World {
    sender: Memory,
    faulty: Fault,
    burst: ReceiveBurst,
}

impl World {
    fn new(plan: FaultPlan) -> World {
        let network = Network::new(1);
        let sender = network.attach([10, 0, 0, 1]);
        let faulty = Fault::new(Box::new(network.attach([10, 0, 0, 2])), plan);
        let (mut sender, mut faulty) = (sender, faulty);
        for lane in [LANE, OTHER] {
            sender.open_lane(lane).unwrap();
            faulty.open_lane(lane).unwrap();
        }
        World {
            sender,
            faulty,
            burst: ReceiveBurst::new(),
        }
    }

    /// Sends datagrams of eight bytes that contain these numbers.
    fn send(&mut self, lane: Lane, numbers: std::ops::Range<u64>) {
        let to = self.faulty.unicast(lane)[0];
        for number in numbers {
            let mut burst = TransmitBurst::new();
            let mut frame = self.sender.pool().take(lane).unwrap();
            frame.append(&number.to_be_bytes()).unwrap();
            burst.push(frame).unwrap();
            burst.address(to).unwrap();
            self.sender.send_burst(lane, &mut burst);
        }
    }

    fn receive(&mut self, lane: Lane, limit: usize) -> Vec<Vec<u8>> {
        self.faulty.receive_burst(lane, limit, &mut self.burst);
        let burst = std::mem::take(&mut self.burst);
        burst.iter().map(|one| one.frame.to_vec()).collect()
    }

    /// Receives the numbers of the datagrams of one call.
    fn numbers(&mut self, lane: Lane, limit: usize) -> Vec<u64> {
        let received = self.receive(lane, limit);
        let numbers = received.iter().map(|bytes| bytes[..].try_into().unwrap());
        numbers.map(u64::from_be_bytes).collect()
    }

    fn ledger(&self, lane: Lane) -> LaneLedger {
        let ledger = self.faulty.ledger();
        ledger.balance().unwrap();
        *ledger.lane(lane)
    }

    fn injected(&self, lane: Lane) -> Injected {
        self.faulty.handle().injected(lane)
    }

    /// Sends messages from the faulty end, one in each frame.
    fn answer(&mut self, count: usize) -> SendReport {
        self.answer_on(LANE, count)
    }

    fn answer_on(&mut self, lane: Lane, count: usize) -> SendReport {
        let to = self.sender.unicast(lane)[0];
        let mut burst = TransmitBurst::new();
        for _ in 0..count {
            burst.push(self.faulty.pool().take(lane).unwrap()).unwrap();
            burst.address(to).unwrap();
        }
        let report = self.faulty.send_burst(lane, &mut burst);
        assert!(burst.is_empty());
        report
    }
}

fn everything(seed: u64) -> FaultPlan {
    FaultPlan {
        loss_per_million: OFTEN,
        duplication_per_million: OFTEN,
        delay_per_million: OFTEN,
        corruption_per_million: OFTEN,
        shortening_per_million: OFTEN,
        starvation_per_million: OFTEN,
        would_block_per_million: OFTEN,
        unreachable_per_million: OFTEN,
        ..FaultPlan::new(seed)
    }
}

/// Returns the datagrams, the ledger and the faults of one lane.
fn run(seed: u64, disturb: impl Fn(&mut World)) -> (Vec<Vec<u8>>, LaneLedger, Injected) {
    let mut world = World::new(everything(seed));
    let mut received = Vec::new();
    for round in 0..100 {
        world.send(LANE, round * 8..round * 8 + 8);
        disturb(&mut world);
        world.answer(5);
        received.extend(world.receive(LANE, MAX_BURST));
    }
    (received, world.ledger(LANE), world.injected(LANE))
}

#[test]
fn the_same_seed_does_the_same_again() {
    assert_eq!(run(1, |_| {}), run(1, |_| {}));
    assert_ne!(run(1, |_| {}).0, run(2, |_| {}).0);
}

#[test]
fn what_happens_on_one_lane_does_not_change_another() {
    let disturbed = run(1, |world| {
        world.send(OTHER, 0..3);
        world.receive(OTHER, 2);
    });
    assert_eq!(disturbed, run(1, |_| {}));
}

#[test]
fn every_kind_of_fault_occurs_and_is_counted() {
    let (_, ledger, injected) = run(1, |_| {});
    let LaneLedger {
        receive, transmit, ..
    } = ledger;
    assert!(
        receive.dropped(ReceiveDrop::FAULT_LOSS) > 100,
        "{receive:?}"
    );
    assert!(
        injected.duplicated > 50
            && injected.delayed > 50
            && injected.corrupted > 50
            && injected.shortened > 50
            && injected.starved > 10,
        "{injected:?}"
    );
    assert_eq!(receive.starved, injected.starved);
    assert!(
        transmit.refused(Refusal::FAULT_WOULD_BLOCK) > 50
            && transmit.refused(Refusal::FAULT_UNREACHABLE) > 20,
        "{transmit:?}"
    );
}

#[test]
fn an_empty_plan_changes_nothing() {
    let mut world = World::new(FaultPlan::new(1));
    world.send(LANE, 0..20);
    assert_eq!(world.numbers(LANE, 16), (0..16).collect::<Vec<_>>());
    assert_eq!(world.numbers(LANE, 16), (16..20).collect::<Vec<_>>());
    assert_eq!(
        world.answer(3),
        SendReport {
            sent: 3,
            refused: 0
        }
    );
    world.ledger(LANE);
    assert_eq!(world.injected(LANE), Injected::default());
}

#[test]
fn a_datagram_that_is_kept_back_is_passed_by_others_and_comes_within_its_bound() {
    let mut delayed = 0;
    for seed in 0..50 {
        let mut world = World::new(FaultPlan {
            delay_per_million: OFTEN,
            delay_bursts: 3,
            ..FaultPlan::new(seed)
        });
        world.send(LANE, 0..12);
        let received: Vec<u64> = (0..15).flat_map(|_| world.numbers(LANE, 1)).collect();
        for (place, number) in received.iter().enumerate() {
            let bound = *number as usize + 3 + MAX_HELD;
            assert!(place <= bound, "{received:?}");
        }
        delayed += usize::from(!received.is_sorted());
        // Delayed datagrams arrive although no others follow.
        while world.faulty.ready_lanes() != 0 {
            world.numbers(LANE, 1);
        }
        let ledger = world.ledger(LANE);
        assert_eq!((ledger.receive.received, ledger.receive.pending), (12, 0));
    }
    assert!(delayed > 25, "out of order with {delayed} of 50 seeds");
}

#[test]
fn a_copy_comes_once_and_later() {
    let mut world = World::new(FaultPlan {
        duplication_per_million: ALWAYS,
        delay_bursts: 1,
        ..FaultPlan::new(1)
    });
    world.send(LANE, 0..4);
    assert_eq!(world.numbers(LANE, 16), [0, 1, 2, 3]);
    assert_eq!(world.numbers(LANE, 16), []);
    assert_eq!(world.ledger(LANE).receive.pending, 4);
    assert_eq!(world.numbers(LANE, 16), [0, 1, 2, 3]);
    assert_eq!(world.faulty.ready_lanes(), 0);
    let arrived = world.ledger(LANE).receive.arrived;
    assert_eq!((arrived, world.injected(LANE).duplicated), (8, 4));
}

#[test]
fn damage_never_passes_as_the_datagram_that_was_sent() {
    let mut world = World::new(FaultPlan {
        corruption_per_million: ALWAYS,
        ..FaultPlan::new(1)
    });
    world.send(LANE, 0..100);
    for number in 0..100_u64 {
        let received = world.receive(LANE, 1);
        assert_eq!(received[0].len(), 8);
        assert_ne!(received[0], number.to_be_bytes());
    }
    let mut world = World::new(FaultPlan {
        shortening_per_million: ALWAYS,
        ..FaultPlan::new(1)
    });
    world.send(LANE, 0..100);
    for number in 0..100_u64 {
        let received = &world.receive(LANE, 1)[0];
        assert!((1..8).contains(&received.len()));
        assert!(number.to_be_bytes().starts_with(received));
    }
}

#[test]
fn a_full_buffer_refuses_the_rest_of_the_burst() {
    let mut world = World::new(FaultPlan {
        would_block_per_million: OFTEN,
        ..FaultPlan::new(1)
    });
    let mut refused = 0;
    for _ in 0..50 {
        refused += world.answer(4).refused;
        let received = world.sender.receive_burst(LANE, 16, &mut world.burst);
        world.burst.clear();
        assert!(received <= 4);
    }
    let transmit = world.ledger(LANE).transmit;
    assert_eq!(
        transmit.refused(Refusal::FAULT_WOULD_BLOCK),
        u64::from(refused)
    );
    // One message in four stops its burst of four, so far more than a quarter is refused.
    assert!((80..160).contains(&refused), "{refused} of 200");
}

#[test]
fn a_pulled_plug_refuses_and_drops_everything_until_it_is_back() {
    let plan = FaultPlan {
        duplication_per_million: ALWAYS,
        ..FaultPlan::new(1)
    };
    let plug = plan.plug.clone();
    let mut world = World::new(plan);
    world.send(LANE, 0..2);
    assert_eq!(world.numbers(LANE, 16), [0, 1]);

    plug.pull();
    world.send(LANE, 2..6);
    assert_eq!(world.receive(LANE, 16), [[]; 0]);
    assert_eq!(world.faulty.ready_lanes(), 0, "nothing wakes the reader");
    assert_eq!(
        world.answer(3),
        SendReport {
            sent: 0,
            refused: 3
        }
    );
    let ledger = world.ledger(LANE);
    // Four new datagrams and two delayed copies.
    let gone = ledger.receive.dropped(ReceiveDrop::FAULT_INTERFACE_GONE);
    assert_eq!(gone, 4 + 2);
    assert_eq!(ledger.transmit.refused(Refusal::FAULT_INTERFACE_GONE), 3);

    plug.put_back();
    world.send(LANE, 6..8);
    assert_eq!(world.numbers(LANE, 16), [6, 7]);
    assert_eq!(world.answer(3).sent, 3);
    world.ledger(LANE);
}

#[test]
fn an_exhausted_pool_says_so_and_leaves_receive_frames_and_leases_alone() {
    let mut world = World::new(FaultPlan {
        exhaustion_per_million: ALWAYS,
        ..FaultPlan::new(1)
    });
    let pool = world.faulty.pool().clone();
    assert_eq!(world.answer(1).sent, 1);
    assert!(pool.take(LANE).is_none());
    assert_eq!((pool.exhausted(LANE), pool.exhausted(OTHER)), (1, 0));
    assert!(pool.take(OTHER).is_some());
    assert_eq!(pool.lease(LANE, 2).unwrap().len(), 2);
    world.send(LANE, 0..1);
    assert_eq!(world.numbers(LANE, 16), [0]);
    assert_eq!(world.injected(LANE).exhausted, 1);
    assert_eq!(world.injected(OTHER).exhausted, 0);
}

#[test]
fn frames_of_an_exhausted_pool_come_home_once_one_was_wanted_or_by_recycling() {
    let mut world = World::new(FaultPlan {
        exhaustion_per_million: ALWAYS,
        ..FaultPlan::new(1)
    });
    let pool = world.faulty.pool().clone();
    world.answer(1);
    assert!(!world.faulty.wants_recycling());
    for _ in 1..HELD_RECYCLES {
        world.faulty.recycle();
        assert_eq!(pool.free(LANE), 0);
    }
    world.faulty.recycle();
    assert_eq!(pool.outstanding_of(LANE), 0);

    world.answer(1);
    assert!(pool.take(LANE).is_none());
    assert!(world.faulty.wants_recycling());
    world.faulty.recycle();
    assert!(!world.faulty.wants_recycling());
    assert_eq!(pool.outstanding_of(LANE), 0);

    world.answer(1);
    world.faulty.handle().end_exhaustion();
    assert!(world.faulty.wants_recycling());
    world.faulty.recycle();
    world.answer(1);
    assert_eq!(pool.outstanding(), 0);
}

#[test]
fn lanes_that_the_plan_is_not_about_are_left_alone() {
    let plan = FaultPlan {
        lanes: LANE.bit(),
        loss_per_million: ALWAYS,
        exhaustion_per_million: ALWAYS,
        ..FaultPlan::new(1)
    };
    let plug = plan.plug.clone();
    let mut world = World::new(plan);
    world.send(OTHER, 0..3);
    world.send(LANE, 0..3);
    assert_eq!(world.numbers(OTHER, 16), [0, 1, 2]);
    assert_eq!(world.numbers(LANE, 16), []);
    world.answer_on(OTHER, 1);
    assert!(world.faulty.pool().take(OTHER).is_some());
    // The interface is removed for all lanes.
    plug.pull();
    world.send(OTHER, 3..5);
    assert_eq!(world.numbers(OTHER, 16), []);
    let receive = world.ledger(OTHER).receive;
    assert_eq!(receive.dropped(ReceiveDrop::FAULT_INTERFACE_GONE), 2);
}

#[test]
fn messages_taken_out_leave_the_others_with_their_frames() {
    let pool = Pool::new(PoolConfig::default());
    pool.reserve_lane(LANE).unwrap();
    // Frames contain their number, and the ports of their destinations are consecutive.
    let mut burst = TransmitBurst::new();
    let mut ports = 0..;
    for (number, count) in [1, 2, 0, 1, 3].into_iter().enumerate() {
        let mut frame = pool.take(LANE).unwrap();
        frame.append(&[number as u8]).unwrap();
        burst.push(frame).unwrap();
        for port in ports.by_ref().take(count) {
            burst.address(Locator::udpv4([10, 0, 0, 1], port)).unwrap();
        }
    }
    // All destinations of the first and fourth frame, and one of three of the last.
    retain_messages(&mut burst, |message| ![0, 3, 5].contains(&message.to.port));
    let left = burst.messages().iter().map(|message| {
        let number = burst.frame(message)[0];
        (number, message.to.port)
    });
    assert_eq!(left.collect::<Vec<_>>(), [(1, 1), (1, 2), (4, 4), (4, 6)]);
    assert_eq!((burst.len(), burst.unaddressed()), (3, 1));
    assert_eq!(pool.outstanding(), 3);
    retain_messages(&mut burst, |_| false);
    assert_eq!((burst.len(), burst.unaddressed()), (1, 1));
}
