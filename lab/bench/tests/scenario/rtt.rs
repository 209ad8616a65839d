//! Round trips.

use isolane_bench::cable::Arbiter;
use isolane_bench::experiment::{Cell, Datapath, Load};
use isolane_bench::record::Dataset;
use isolane_bench::report::{Order, Publisher, Run};
use isolane_bench::scenario::ScenarioError;
use isolane_bench::scenario::rtt::{self, Outcome};

use crate::ONE_AT_A_TIME;
use crate::support::{program, testbed};

fn cell(datapath: Datapath, publisher: Publisher, disturbance: Load) -> Cell {
    Cell {
        datapath,
        publisher: Some(publisher),
        disturbance,
        seconds: 1,
        ..Cell::default()
    }
}

/// Flood of long frames, because the machine must carry twice the cable's rate.
fn flooded() -> Cell {
    Cell {
        flood_payload_bytes: Some(1_024),
        flood_factor: 2.0,
        ..cell(Datapath::Udp, Publisher::Thread, Load::Flood)
    }
}

/// Checks the properties of every run, on any machine.
fn is_whole(outcome: &Outcome) -> &Run {
    let run = &outcome.run;
    assert_eq!(run.invalid, None, "{run:#?}");
    assert_eq!(run.samples, 2_000);
    assert_eq!(outcome.rounds.rtt_ns().len() as u64 + run.lost, run.samples);
    assert_eq!(run.duplicates, 0);
    for flow in &run.flows {
        assert_eq!(flow.check(), Ok(()));
    }
    has_whole_ways(run);
    run
}

/// Asserts that both ends report the same clock, and that the parts of each returned round trip add up to the whole.
fn has_whole_ways(run: &Run) {
    let ways = &run.one_way;
    assert_eq!(ways.refused, None, "both ends are on this machine");
    assert!(
        ways.clock
            .as_ref()
            .is_some_and(|clock| clock.contains("CLOCK_MONOTONIC"))
    );
    assert_eq!(ways.rounds, run.samples - run.lost);
    let means = [ways.there_us, ways.turnaround_us, ways.back_us].map(|part| part.mean);
    let sum_us: f64 = means.into_iter().flatten().sum();
    let whole_us = run.rtt_us.mean.expect("round trips");
    assert!((sum_us - whole_us).abs() < 0.001, "{sum_us} of {whole_us}");
}

/// Asserts that the results of a run are those of its file.
fn has_the_same_results_from_its_file(outcome: &Outcome) {
    let folder = tempfile::tempdir().expect("a folder");
    let dataset = Dataset::in_folder(folder.path());
    dataset.write(1, &outcome.rounds).expect("a file");
    let rounds = dataset.read(1).expect("rounds");
    let run = &outcome.run;
    let of_file = Run::new(&run.settings, &rounds, None);
    assert_eq!(of_file.rtt_us, run.rtt_us);
    assert_eq!((of_file.owd_us, of_file.host_us), (run.owd_us, run.host_us));
    assert_eq!(of_file.windows, run.windows);
    assert_eq!(of_file.one_way, run.one_way);
}

#[test]
fn through_memory_every_ping_comes_back_or_was_dropped_by_name() {
    let _one = ONE_AT_A_TIME.lock();
    let config = cell(Datapath::Memory, Publisher::Job, Load::None).round_trips();
    let outcome = rtt::run_in_memory(&config).unwrap();
    let run = is_whole(&outcome);
    // A thread that stalled writes all due samples in one burst, which may exceed a lane.
    let dropped = run.flows.iter().map(|flow| {
        flow.refused + flow.unsent + flow.send_refused + flow.receive_dropped + flow.rejected
    });
    assert_eq!(run.lost, dropped.sum::<u64>(), "{run:#?}");
    assert!(run.rtt_us.median.is_some());
    assert_eq!(run.cable_us.median, None);
}

#[test]
fn in_memory_there_is_no_thread_to_publish_from() {
    let config = cell(Datapath::Memory, Publisher::Thread, Load::None).round_trips();
    let error = rtt::run_in_memory(&config).unwrap_err();
    assert!(matches!(error, ScenarioError::Config(_)), "{error}");
}

#[test]
fn over_loopback_every_ping_is_accounted_for() {
    let _one = ONE_AT_A_TIME.lock();
    let config = cell(Datapath::UdpLoopback, Publisher::Job, Load::None).round_trips();
    let outcome = rtt::run_over_loopback(&program(), &config).unwrap();
    is_whole(&outcome);
}

#[test]
fn between_hosts_a_round_trip_has_the_cables_part_and_the_hosts_part() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(testbed) = testbed() else { return };
    for publisher in [Publisher::Thread, Publisher::Job] {
        let config = cell(Datapath::Udp, publisher, Load::None).round_trips();
        let outcome = rtt::run_between_hosts(&testbed, &program(), &config).unwrap();
        let run = is_whole(&outcome);
        let cable = run.cable_us.min.expect("the cable stamps");
        // 186 bytes each way at 40 Mbit/s, and never less.
        assert!(cable >= 2.0 * 37.0, "{cable}");
        assert!(run.rtt_us.min.unwrap() > cable);
        let system = run.system.as_ref().expect("the system's activity");
        assert!(system.interrupts > Some(0), "{system:?}");
        has_the_same_results_from_its_file(&outcome);
    }
}

#[test]
fn under_a_flood_what_is_lost_is_named() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(testbed) = testbed() else { return };
    let config = flooded().round_trips();
    let outcome = rtt::run_between_hosts(&testbed, &program(), &config).unwrap();
    let run = is_whole(&outcome);
    let dropped = run.flows[0].cable.expect("a cable").dropped;
    assert!(dropped > 0 && run.lost >= dropped, "{run:#?}");
    let flood = run.ledger.as_ref().and_then(|ledger| ledger.flood.as_ref());
    assert!(flood.expect("a flood").a_to_b.factor > 1.0);
}

#[test]
fn under_a_flood_a_strict_link_loses_no_critical_sample() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(testbed) = testbed() else { return };
    let strict = Cell {
        arbiter: Arbiter::Strict,
        ..flooded()
    };
    let config = strict.round_trips();
    let outcome = rtt::run_between_hosts(&testbed, &program(), &config).unwrap();
    let run = is_whole(&outcome);
    assert_eq!(run.arbiter(), Some(Arbiter::Strict));
    for flow in &run.flows {
        assert_eq!(flow.cable.expect("a cable").dropped, 0, "{flow:?}");
    }
    let cable = run.ledger.as_ref().expect("a cable").cable;
    assert!(
        cable.a_to_b.frames.dropped_queue > 0,
        "the flood lost frames"
    );
}

#[test]
fn in_fifo_order_samples_are_accounted_for_though_all_topics_share_a_lane() {
    let _one = ONE_AT_A_TIME.lock();
    let fifo = Cell {
        order: Order::Fifo,
        ..cell(Datapath::UdpLoopback, Publisher::Job, Load::None)
    };
    let config = fifo.round_trips();
    let outcome = rtt::run_over_loopback(&program(), &config).unwrap();
    let run = is_whole(&outcome);
    assert!(run.flows.iter().all(|flow| flow.shared_lane.is_some()));
}

#[test]
fn disturbances_without_hosts_are_refused() {
    let config = cell(Datapath::UdpLoopback, Publisher::Job, Load::Bulk).round_trips();
    let error = rtt::run_over_loopback(&program(), &config).unwrap_err();
    assert!(
        error.to_string().contains("`bulk` needs two hosts"),
        "{error}"
    );
}
