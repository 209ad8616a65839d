//! Isolation by counters, over sockets and over lanes.

use isolane_bench::namespace::Testbed;
use isolane_bench::scenario::isolation::{Counter, Mechanism, Trial, Verdict, hosts, trials};
use isolane_bench::scenario::rtt;
use isolane_bench::scenario::transport::{BulkReader, Lanes, Transport};

use crate::ONE_AT_A_TIME;
use crate::support::{program, testbed_of};

const UDP: Transport = Transport::Udp;
const XDP: Transport = Transport::Xdp(Lanes {
    are_steered: false,
    keeps_reserve: true,
    shared_level: None,
});

/// How often a run is made that the machine spoils.
const TRIES: u32 = 3;

/// Makes a trial, again if the machine has spoilt it: that is no fault of the code.
fn judged(testbed: &Testbed, trial: &Trial) -> Verdict {
    for attempt in 1.. {
        let outcome = rtt::run_between_hosts(testbed, &program(), &trial.config).unwrap();
        if attempt == TRIES || !trial.is_spoilt(&outcome.run) {
            let verdict = trial.judge(&outcome.run);
            println!("{verdict:?}");
            assert_eq!(verdict.fault, None, "{:#?}", outcome.run);
            return verdict;
        }
    }
    unreachable!("the last attempt returns")
}

/// Makes all trials of a transport that are meant, if there are hosts; there must be some.
fn all_judged(transport: Transport, is_meant: impl Fn(&Trial) -> bool) -> Vec<Verdict> {
    let meant: Vec<Trial> = trials(transport, 1).into_iter().filter(is_meant).collect();
    assert!(!meant.is_empty(), "there is such a trial");
    let _one = ONE_AT_A_TIME.lock();
    let Some(testbed) = testbed_of(&hosts()) else {
        return Vec::new();
    };
    meant.iter().map(|trial| judged(&testbed, trial)).collect()
}

/// With all mechanisms, and bulk that nobody drains: its reader keeps it, or its lane.
fn is_unread(trial: &Trial) -> bool {
    let is_drained = matches!(trial.config.bulk_reader, None | Some(BulkReader::Drains));
    !is_drained && trial.without.is_none()
}

#[test]
fn over_sockets_bulk_that_nobody_drains_costs_what_is_critical_nothing() {
    for verdict in all_judged(UDP, is_unread) {
        assert!(verdict.unread > Some(0), "it was full: {verdict:?}");
    }
}

#[test]
fn over_lanes_bulk_that_nobody_drains_costs_what_is_critical_nothing() {
    for verdict in all_judged(XDP, is_unread) {
        assert!(verdict.unread > Some(0), "it was full: {verdict:?}");
        for counter in Counter::ALL {
            assert_eq!(verdict.counts.get(counter), Some(0), "{}", counter.name());
        }
    }
}

#[test]
fn over_sockets_each_counter_is_above_0_without_its_mechanism() {
    all_judged(UDP, |trial| trial.without.is_some());
}

#[test]
fn over_lanes_each_counter_is_above_0_without_its_mechanism() {
    all_judged(XDP, |trial| trial.without.is_some());
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

#[test]
fn a_companion_lacks_what_it_is_without_and_differs_in_nothing_else_that_counts() {
    for trial in trials(XDP, 1) {
        let Transport::Xdp(lanes) = trial.config.transport else {
            panic!("{trial:?} is not about lanes");
        };
        let loses_unnamed = trial.config.cable.loss.is_hidden;
        assert_eq!(loses_unnamed, trial.without == Some(Mechanism::Ledger));
        assert_eq!(
            lanes.keeps_reserve,
            trial.without != Some(Mechanism::Reserve)
        );
        let is_shared = lanes.shared_level.is_some();
        assert_eq!(is_shared, trial.without == Some(Mechanism::Priorities));
    }
}
