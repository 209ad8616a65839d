//! A datapath that fails on purpose (`Builder::fault`): what is promised is kept all the same.

use isolane::{FaultPlan, Participant, Qos};

use crate::support::{Message, Site, World, take_numbers};

/// Of a million, one in ten.
const OFTEN: u32 = 100_000;

/// Everything that a network and a host may do to datagrams, but change their bytes: RTPS has no
/// checksum of its own.
fn plan(seed: u64) -> FaultPlan {
    FaultPlan {
        loss_per_million: OFTEN,
        duplication_per_million: OFTEN,
        delay_per_million: OFTEN,
        starvation_per_million: OFTEN,
        would_block_per_million: OFTEN,
        unreachable_per_million: OFTEN,
        exhaustion_per_million: OFTEN,
        ..FaultPlan::new(seed)
    }
}

fn join(world: &mut World, plan: FaultPlan) -> Participant {
    let builder = world.site.builder().fault(plan);
    let participant = builder.build().expect("a participant");
    world.drive(&participant);
    participant
}

#[test]
fn reliable_samples_come_once_and_in_order_whatever_fails() {
    const COUNT: u32 = 200;
    for site in Site::both() {
        let mut world = World::new(site);
        let [alice, bob] = [1, 2].map(|seed| join(&mut world, plan(seed)));
        let qos = Qos::reliable().keep_all().max_samples(COUNT as u16);
        let writer = alice.create_writer::<Message>("Faults", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Faults", &qos).unwrap();
        world.until_matched(&writer, &reader);
        for number in 0..COUNT {
            writer.write(&Message::number(number)).expect("room");
        }
        let mut received = Vec::new();
        world.until("all arrive", || {
            received.extend(take_numbers(&reader));
            received.len() == COUNT as usize
        });
        assert!(received.into_iter().eq(0..COUNT), "in order, each once");
        for participant in [&alice, &bob] {
            let injected = participant.report().datagrams.total().injected;
            assert!(
                injected.duplicated > 0 && injected.exhausted > 0,
                "{injected:?}"
            );
        }
        world.until("nothing is kept back", || {
            let pending = |one: &Participant| one.report().datagrams.total().receive.pending;
            pending(&alice) + pending(&bob) == 0
        });
    }
}

#[test]
fn an_interface_that_is_gone_for_a_while_costs_no_reliable_sample() {
    for site in Site::both() {
        let mut world = World::new(site);
        let plan = FaultPlan::new(1);
        let plug = plan.plug.clone();
        let [alice, bob] = [FaultPlan::new(2), plan].map(|plan| join(&mut world, plan));
        let qos = Qos::reliable().keep_all().max_samples(8);
        let writer = alice.create_writer::<Message>("Plug", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Plug", &qos).unwrap();
        world.until_matched(&writer, &reader);
        plug.pull();
        for number in 0..4 {
            writer.write(&Message::number(number)).expect("room");
        }
        world.run_for(std::time::Duration::from_millis(100));
        assert!(take_numbers(&reader).is_empty());
        plug.put_back();
        let mut received = Vec::new();
        world.until("all arrive", || {
            received.extend(take_numbers(&reader));
            received.len() == 4
        });
        assert_eq!(received, [0, 1, 2, 3]);
    }
}
