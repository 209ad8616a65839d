//! Tests of isolation by counters, over sockets and over lanes: a run of each kind, to test that they run and are judged.
//! `cargo xtask isolation`, a step of `cargo xtask test --all`, has all of them.

use isolane_bench::experiment::{Planned, Scenario, shipped};
use isolane_bench::scenario::rtt;

use crate::ONE_AT_A_TIME;
use crate::support::{program, testbed};

/// Runs the last planned run of a block over a datapath for a second, if there are hosts.
fn is_as_expected(block: &str, datapath: &str) {
    let text = shipped("isolation").expect("it is shipped");
    let scenario = Scenario::parse(text).expect("a scenario");
    let is_meant = |run: &Planned| {
        scenario.blocks[run.block].name == block && run.cell.datapath.word() == datapath
    };
    let mut runs = scenario.plan(true).expect("runs").into_iter();
    let mut planned = runs.rfind(is_meant).expect("a run");
    planned.cell.seconds = 1;
    let _one = ONE_AT_A_TIME.lock();
    let Some(testbed) = testbed() else { return };
    let once = || rtt::run_between_hosts(&testbed, &program(), &planned.cell.round_trips());
    let expect = &scenario.blocks[planned.block].expect;
    let measured = expect.measure(once, |attempt, why| {
        println!("attempt {attempt} does not count: {why}");
    });
    let run = measured.expect("a run").run;
    assert_eq!(run.unexpected, None, "{run:#?}");
}

#[test]
fn over_sockets_undrained_bulk_costs_critical_samples_nothing() {
    is_as_expected("flood", "udp");
}

#[test]
fn over_lanes_undrained_bulk_costs_nothing_though_its_ring_takes_more_than_there_is() {
    is_as_expected("overcommit", "xdp");
}

#[test]
fn over_sockets_critical_samples_are_lost_without_a_strict_link() {
    is_as_expected("fifo-link", "udp");
}

#[test]
fn over_lanes_the_same_bulk_takes_the_reserve_without_recycling() {
    is_as_expected("no-recycling", "xdp");
}

#[test]
fn ends_that_spin_or_busy_poll_exchange_random_bytes() {
    let text = "title = \"t\"\n[[block]]\nname = \"b\"\ntitle = \"b\"\n\
                set = { content = \"random\", seconds = 1 }\n\
                cell = [{ waiting = \"spin\" }, { waiting = \"busy-poll\", datapath = \"xdp\" }]";
    let scenario = Scenario::parse(text).expect("a scenario");
    let _one = ONE_AT_A_TIME.lock();
    let Some(testbed) = testbed() else { return };
    for planned in scenario.plan(true).expect("runs") {
        let config = planned.cell.round_trips();
        let measured = rtt::run_between_hosts(&testbed, &program(), &config);
        let run = measured.expect("a run").run;
        assert_eq!((&run.invalid, run.lost), (&None, 0), "{run:#?}");
    }
}
