//! Tests of isolation by counters, over sockets and over lanes: one or two runs of each kind, to test that they run and
//! are judged. `cargo xtask isolation`, a step of `cargo xtask test --all`, has all of them.

use isolane_bench::cable::{Arbiter, Loss};
use isolane_bench::report::Order;
use isolane_bench::scenario::isolation::{Counter, Mechanism, Trial, Verdict, hosts, trials};
use isolane_bench::scenario::rtt::Config;
use isolane_bench::scenario::transport::{BulkReader, Lanes, Transport};

use crate::ONE_AT_A_TIME;
use crate::support::{program, testbed_of};

const UDP: Transport = Transport::Udp;
const XDP: Transport = Transport::Xdp(Lanes {
    are_steered: false,
    overcommits: false,
    recycles: true,
    shared_level: None,
});

/// Runs the last of the selected trials, if there are hosts; at least one must be selected.
fn judged(transport: Transport, is_meant: impl Fn(&Trial) -> bool) -> Option<Verdict> {
    let meant = trials(transport, 1).into_iter().rfind(is_meant);
    let trial = meant.expect("there is such a trial");
    let _one = ONE_AT_A_TIME.lock();
    let testbed = testbed_of(&hosts())?;
    let made = trial.make(&testbed, &program(), |attempt, verdict| {
        println!("attempt {attempt} does not count: {verdict:?}");
    });
    println!("{:?}", made.verdict);
    assert_eq!(made.verdict.fault, None, "{:#?}", made.run);
    Some(made.verdict)
}

/// Returns whether the trial has all mechanisms and a bulk reader that does not drain its lane.
fn is_not_drained(trial: &Trial) -> bool {
    trial.without.is_none() && trial.config.bulk_reader == Some(BulkReader::DoesNotDrain)
}

fn is_without(mechanism: Mechanism) -> impl Fn(&Trial) -> bool {
    move |trial| trial.without == Some(mechanism)
}

#[test]
fn over_sockets_undrained_bulk_costs_critical_samples_nothing() {
    if let Some(verdict) = judged(UDP, is_not_drained) {
        assert!(verdict.unread > Some(0), "it was full: {verdict:?}");
    }
}

#[test]
fn over_lanes_undrained_bulk_costs_nothing_though_its_ring_takes_more_than_there_is() {
    let Some(verdict) = judged(XDP, is_not_drained) else {
        return;
    };
    assert!(verdict.unread > Some(0), "it was recycled: {verdict:?}");
    for counter in Counter::ALL {
        assert_eq!(verdict.counts.get(counter), Some(0), "{}", counter.name());
    }
}

#[test]
fn over_sockets_critical_samples_are_lost_without_a_strict_link() {
    judged(UDP, is_without(Mechanism::StrictLink));
}

#[test]
fn over_lanes_the_same_bulk_takes_the_reserve_without_recycling() {
    judged(XDP, is_without(Mechanism::Recycling));
}

#[test]
fn over_each_transport_each_counter_that_it_has_is_shown_at_0_and_has_a_companion() {
    for (transport, missing) in [(UDP, Some(Counter::Touched)), (XDP, None)] {
        let all = trials(transport, 1);
        assert!(all.iter().all(|trial| trial.config.check().is_ok()));
        for counter in Counter::ALL {
            let is_there = missing != Some(counter);
            let kept = all.iter().filter(|trial| trial.without.is_none());
            for trial in kept {
                assert_eq!(trial.counters().contains(&counter), is_there, "{trial:?}");
            }
            let mut companions = all.iter().filter_map(|trial| trial.without);
            let has_companion = companions.any(|mechanism| mechanism.counter() == counter);
            assert_eq!(has_companion, is_there, "{transport:?}: {}", counter.name());
        }
    }
}

/// Disables only this mechanism.
fn switch_off(mechanism: Mechanism, config: &mut Config) {
    match (mechanism, &mut config.transport) {
        (Mechanism::PrioritiesAndLanes, transport) => {
            if let Transport::Xdp(lanes) = transport {
                lanes.shared_level = Some(0);
            }
            config.scenario = config.scenario.clone().in_order(Order::Fifo);
        }
        (Mechanism::StrictLink, _) => config.cable.arbiter = Arbiter::Fifo,
        (Mechanism::Recycling, Transport::Xdp(lanes)) => lanes.recycles = false,
        (Mechanism::Recycling, Transport::Udp) => panic!("sockets recycle nothing"),
        (Mechanism::Ledger, _) => {
            config.cable.loss = Loss {
                probability: 0.02,
                is_hidden: true,
                ..Loss::default()
            };
        }
    }
}

#[test]
fn a_companion_is_a_run_with_all_mechanisms_and_that_one_off() {
    for transport in [UDP, XDP] {
        let (kept, companions): (Vec<Trial>, Vec<Trial>) = trials(transport, 1)
            .into_iter()
            .partition(|trial| trial.without.is_none());
        for companion in companions {
            let mechanism = companion.without.expect("it is a companion");
            let is_its = |kept: &&Trial| {
                let mut config = kept.config.clone();
                config.seed = companion.config.seed;
                let is_changed = config != companion.config;
                switch_off(mechanism, &mut config);
                is_changed && config == companion.config
            };
            assert_eq!(kept.iter().filter(is_its).count(), 1, "{companion:#?}");
        }
    }
}
