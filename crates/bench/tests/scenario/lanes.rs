//! Bulk of strangers for a level of the participants, over sockets and over lanes.

use isolane_bench::scenario::isolation::{Counter, Mechanism, Trial, hosts, trials};
use isolane_bench::scenario::rtt;
use isolane_bench::scenario::transport::{Lanes, Transport};

use crate::ONE_AT_A_TIME;
use crate::support::{program, testbed_of};

/// Makes the trial of that name over each transport; `None` where there are no hosts.
fn judged(transport: Transport, is_meant: impl Fn(&Trial) -> bool) -> Option<()> {
    let testbed = testbed_of(&hosts())?;
    let meant = trials(transport, 1).into_iter().find(is_meant);
    let trial = meant.expect("there is such a trial");
    let outcome = rtt::run_between_hosts(&testbed, &program(), &trial.config).unwrap();
    let verdict = trial.judge(&outcome.run);
    println!("{verdict:?}");
    // What the machine spoils is no fault of the code.
    let is_spoilt = outcome
        .run
        .cable
        .as_ref()
        .is_some_and(|cable| cable.ingress_drops > 0);
    assert!(is_spoilt || verdict.fault.is_none(), "{:#?}", outcome.run);
    Some(())
}

const TRANSPORTS: [Transport; 2] = [
    Transport::Udp,
    Transport::Xdp(Lanes {
        are_steered: false,
        keeps_reserve: true,
        shared_level: None,
    }),
];

#[test]
fn a_bulk_lane_that_nobody_reads_costs_the_critical_one_nothing() {
    let _one = ONE_AT_A_TIME.lock();
    for transport in TRANSPORTS {
        judged(transport, |trial| {
            trial.without.is_none() && trial.name.contains("nobody reads")
        });
    }
}

#[test]
fn without_the_reserve_a_bulk_lane_that_nobody_reads_takes_the_critical_ones_buffers() {
    let _one = ONE_AT_A_TIME.lock();
    judged(TRANSPORTS[1], |trial| {
        trial.without == Some(Mechanism::Reserve)
    });
}

#[test]
fn each_counter_has_a_companion_in_which_it_counts() {
    let all: Vec<Trial> = TRANSPORTS
        .into_iter()
        .flat_map(|transport| trials(transport, 1))
        .collect();
    for counter in Counter::ALL {
        let mut companions = all.iter().filter_map(|trial| trial.without);
        assert!(
            companions.any(|mechanism| mechanism.counter() == counter),
            "{}",
            counter.name()
        );
    }
    assert!(all.iter().all(|trial| trial.config.check().is_ok()));
}
