//! Conformance of the fault datapath over memory and over sockets: the whole suite with an empty plan; with faults, the
//! requirements on ledgers, for each kind of fault and for all at once.

use std::cell::Cell;
use std::marker::PhantomData;

use isolane_datapath::{Datapath, Lane, ReceiveBurst, TransmitBurst};
use isolane_testkit::conformance::{Fixture, Options, account_cases};
use isolane_testkit::fixtures::{MemoryNetwork, UdpOnLoopback};
use isolane_testkit::{Fault, FaultPlan, Injected};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

thread_local! {
    /// Seed of the plans of this thread.
    static SEED: Cell<u64> = const { Cell::new(1) };
}

/// Adds faults to a plan.
trait Plan {
    fn with(plan: FaultPlan) -> FaultPlan;
}

/// Participants of another fixture with injected faults.
struct With<F, P> {
    fixture: F,
    attached: u64,
    plan: PhantomData<P>,
}

impl<F: Fixture<Datapath: 'static>, P: Plan> Fixture for With<F, P> {
    type Datapath = Fault;

    fn new() -> Self {
        With {
            fixture: F::new(),
            attached: 0,
            plan: PhantomData,
        }
    }

    fn attach(&mut self, options: &Options) -> Fault {
        self.attached += 1;
        let seed = SEED.get() << 8 | self.attached;
        let inner = self.fixture.attach(options);
        Fault::new(Box::new(inner), P::with(FaultPlan::new(seed)))
    }

    fn injected(datapath: &Fault, lane: Lane) -> Injected {
        datapath.handle().injected(lane)
    }
}

/// Probability of one in eight.
const OFTEN: u32 = 125_000;

/// Declares plans, each with the faults that it injects often.
macro_rules! plans {
    ($($plan:ident: [$($fault:ident),*];)+) => {
        $(
            struct $plan;

            impl Plan for $plan {
                fn with(plan: FaultPlan) -> FaultPlan {
                    FaultPlan { $($fault: OFTEN,)* ..plan }
                }
            }
        )+
    };
}

plans! {
    Nothing: [];
    Losses: [loss_per_million];
    Copies: [duplication_per_million];
    Delays: [delay_per_million];
    Damage: [corruption_per_million, shortening_per_million];
    Starvation: [starvation_per_million];
    Refusals: [would_block_per_million, unreachable_per_million];
    Exhaustion: [exhaustion_per_million];
}

struct Everything;

impl Plan for Everything {
    fn with(plan: FaultPlan) -> FaultPlan {
        let plan = Refusals::with(Starvation::with(Damage::with(plan)));
        Exhaustion::with(Delays::with(Copies::with(Losses::with(plan))))
    }
}

mod nothing_over_memory {
    use super::*;
    isolane_testkit::conformance!(unicast, With<MemoryNetwork, Nothing>);
    isolane_testkit::conformance!(multicast, With<MemoryNetwork, Nothing>);
}

mod nothing_over_udp {
    use super::*;
    isolane_testkit::conformance!(unicast, With<UdpOnLoopback, Nothing>);
}

/// Instantiates the cases on accounts with a plan, over memory and over sockets.
macro_rules! accounts_with {
    ($($module:ident: $plan:ty;)+) => {
        $(
            mod $module {
                use super::*;
                mod over_memory {
                    use super::*;
                    isolane_testkit::conformance!(accounts, With<MemoryNetwork, $plan>);
                }
                mod over_udp {
                    use super::*;
                    isolane_testkit::conformance!(accounts, With<UdpOnLoopback, $plan>);
                }
            }
        )+
    };
}

accounts_with! {
    losses: Losses;
    copies: Copies;
    delays: Delays;
    damage: Damage;
    starvation: Starvation;
    refusals: Refusals;
    exhaustion: Exhaustion;
    everything: Everything;
}

#[test]
fn accounts_hold_for_many_seeds_of_everything() {
    for seed in 0..30 {
        // Printed if a case fails.
        println!("seed {seed}");
        SEED.set(seed);
        for (name, case) in account_cases::<With<MemoryNetwork, Everything>>() {
            println!("{name}");
            case();
        }
    }
}

/// Returns whether a descriptor of the datapath is readable.
fn wakes(path: &impl Datapath) -> bool {
    let now = Timespec::default();
    path.descriptors().iter().any(|(_, descriptor)| {
        let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
        poll(&mut polled, Some(&now)).expect("poll") > 0
    })
}

#[test]
fn what_is_kept_back_wakes_a_loop_that_waits_for_descriptors() {
    const LANE: Lane = Lane::ALL[8];
    let plan = FaultPlan {
        delay_per_million: 1_000_000,
        delay_bursts: 1,
        ..FaultPlan::new(1)
    };
    let udp = UdpOnLoopback::new().attach(&Options::default());
    let mut faulty = Fault::new(Box::new(udp), plan);
    faulty.open_lane(LANE).expect("the lane opens");
    let mut transmit = TransmitBurst::new();
    let frame = faulty.pool().take(LANE).expect("a free frame");
    transmit.push(frame).expect("room");
    transmit.address(faulty.unicast(LANE)[0]).expect("room");
    faulty.send_burst(LANE, &mut transmit);

    let mut received = ReceiveBurst::new();
    let mut calls = 0;
    while received.is_empty() {
        assert!(wakes(&faulty), "after {calls} calls");
        faulty.receive_burst(LANE, 16, &mut received);
        calls += 1;
    }
    assert_eq!(calls, 3, "one call passed it by");
    assert!(!wakes(&faulty));
    assert_eq!(faulty.ledger().balance(), Ok(()));
}
