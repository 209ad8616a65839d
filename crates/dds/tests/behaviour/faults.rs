//! Guarantees of a participant whose datapath injects faults (`Builder::datapath`).

use std::{cell::OnceCell, rc::Rc};

use isolane::{Datapath, DatapathFactory, Lane, NetworkConfig, Participant, Qos};
use isolane_datapath::{OpenError, Pool};
use isolane_testkit::{Fault, FaultHandle, FaultPlan};

use crate::support::{Message, Site, World, take_numbers};

/// Probability of one in ten.
const OFTEN: u32 = 100_000;

/// All faults except changed bytes, because RTPS has no mandatory checksum.
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

/// Fault counts of a participant's datapath, and its pool.
#[derive(Debug)]
struct Faults {
    handle: FaultHandle,
    pool: Pool,
}

/// Datapath with injected faults; `faults` is set when it is opened.
#[derive(Debug)]
struct Faulty {
    inner: Box<dyn DatapathFactory>,
    plan: FaultPlan,
    faults: Rc<OnceCell<Faults>>,
}

impl DatapathFactory for Faulty {
    fn name(&self) -> &'static str {
        "fault"
    }

    fn open(self: Box<Self>, network: NetworkConfig) -> Result<Box<dyn Datapath>, OpenError> {
        let datapath = self.inner.open(network)?;
        let pool = datapath.pool().clone();
        let faulty = Fault::new(datapath, self.plan);
        let handle = faulty.handle();
        self.faults
            .set(Faults { handle, pool })
            .expect("opened once");
        Ok(Box::new(faulty))
    }
}

fn join(world: &mut World, plan: FaultPlan) -> (Participant, Faults) {
    let faults = Rc::new(OnceCell::new());
    let faulty = Faulty {
        inner: world.site.datapath(),
        plan,
        faults: Rc::clone(&faults),
    };
    let builder = world.site.builder().datapath(faulty);
    let participant = builder.build().expect("a participant");
    world.drive(&participant);
    let faults = Rc::into_inner(faults).and_then(OnceCell::into_inner);
    (participant, faults.expect("the datapath was opened"))
}

#[test]
fn reliable_samples_come_once_and_in_order_whatever_fails() {
    const COUNT: u32 = 200;
    for site in Site::both() {
        let mut world = World::new(site);
        let [(alice, of_alice), (bob, of_bob)] = [1, 2].map(|seed| join(&mut world, plan(seed)));
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
        let faults = [&of_alice, &of_bob];
        let duplicated = faults.map(|one| one.handle.injected_total().duplicated);
        let exhausted = faults.map(|one| Lane::ALL.map(|lane| one.pool.exhausted(lane)));
        assert_ne!(duplicated, [0; 2]);
        assert_ne!(exhausted, [[0; Lane::COUNT]; 2]);
        of_alice.handle.end_exhaustion();
        of_bob.handle.end_exhaustion();
        world.until("no datagram is delayed, no frame held", || {
            [(&alice, &of_alice), (&bob, &of_bob)]
                .into_iter()
                .all(|(participant, faults)| {
                    let pending = participant.report().datagrams.total().receive.pending;
                    let held = Lane::ALL.map(|lane| faults.pool.outstanding_of(lane));
                    pending == 0 && held == [0; Lane::COUNT]
                })
        });
    }
}

#[test]
fn an_interface_that_is_gone_for_a_while_costs_no_reliable_sample() {
    for site in Site::both() {
        let mut world = World::new(site);
        let plan = FaultPlan::new(1);
        let plug = plan.plug.clone();
        let [alice, bob] = [FaultPlan::new(2), plan].map(|plan| join(&mut world, plan).0);
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
