//! Throughput.

use isolane_bench::namespace::{TestHosts, TestHostsConfig};
use isolane_bench::process::Cores;
use isolane_bench::report::{Run, Stream};
use isolane_bench::scenario::throughput::{self, Reliability};
use isolane_bench::scenario::transport::{Lanes, Transport, lanes_impossible};
use isolane_bench::scenario::{Content, Waiting};

use crate::ONE_AT_A_TIME;
use crate::support::{program, testbed};

fn config(reliability: Reliability) -> throughput::Config {
    throughput::Config {
        reliability,
        latency_budget_us: 0,
        payload_bytes: 1_024,
        max_samples: 256,
        rate_hz: None,
        waiting: Waiting::Sleep,
        content: Content::Zeros,
        both_directions: false,
        readers: 1,
        busy: false,
        seconds: 1,
        cores: Cores::of_machine(),
    }
}

/// Valid run over loopback.
fn over_loopback(config: &throughput::Config) -> Run {
    let _one = ONE_AT_A_TIME.lock();
    let run = throughput::run_over_loopback(&program(), config).unwrap();
    assert_eq!(run.invalid, None, "{run:#?}");
    run
}

fn stream(run: &Run) -> &Stream {
    run.stream.as_ref().unwrap()
}

#[test]
fn over_loopback_reliable_samples_all_come() {
    let run = over_loopback(&config(Reliability::Reliable));
    let stream = stream(&run);
    assert!(stream.samples_written > 0);
    assert_eq!(stream.samples_lost, 0);
    assert!(stream.samples_per_s.unwrap() > 0.0);
    for end in [stream.writer, stream.reader] {
        assert!(end.cpu_us_per_sample.unwrap() > 0.0 && end.threads.unwrap() > 0);
    }
}

#[test]
fn over_loopback_a_stream_has_its_rate() {
    let config = throughput::Config {
        rate_hz: Some(500),
        ..config(Reliability::Reliable)
    };
    let run = over_loopback(&config);
    // None is written before it is due; a busy machine writes later.
    let written = stream(&run).samples_written;
    assert!((1..=500).contains(&written), "{written}");
}

#[test]
fn over_loopback_best_effort_samples_are_accounted_for_though_the_kernel_drops_segmented_bursts() {
    for payload_bytes in [1_024, 8_192, 60_000] {
        let run = over_loopback(&throughput::Config {
            payload_bytes,
            ..config(Reliability::BestEffort)
        });
        assert!(stream(&run).samples_delivered > 0);
    }
}

#[test]
fn over_loopback_best_effort_samples_that_share_datagrams_are_accounted_for() {
    let config = throughput::Config {
        latency_budget_us: 5_000,
        payload_bytes: 64,
        ..config(Reliability::BestEffort)
    };
    let run = over_loopback(&config);
    assert!(stream(&run).samples_delivered > 0);
    let sent = run.flows[0].datagrams.unwrap().sent;
    assert!(sent < stream(&run).samples_written / 4, "{run:#?}");
}

/// Two hosts joined without a cable, with devices of one queue; `None` without the rights.
fn joined() -> Option<TestHosts> {
    testbed()?;
    let one_queue = TestHostsConfig {
        queues: 1,
        ..TestHostsConfig::default()
    };
    Some(TestHosts::without_cable(&one_queue).unwrap())
}

#[test]
fn over_lanes_reliable_samples_all_come_and_none_by_a_socket() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(hosts) = joined() else { return };
    if let Some(reason) = lanes_impossible(&hosts).unwrap() {
        println!("no lanes here: {reason}");
        return;
    }
    let (lanes, config) = (
        Transport::Xdp(Lanes::default()),
        config(Reliability::Reliable),
    );
    let run = throughput::run_between_hosts(&hosts, &program(), lanes, &config).unwrap();
    assert_eq!(run.invalid, None, "{run:#?}");
    assert_eq!((run.settings.datapath.as_str(), run.lost), ("xdp", 0));
    let stream = stream(&run);
    assert!(stream.samples_per_s.unwrap() > 0.0 && stream.mbit_per_s.unwrap() > 0.0);
}

#[test]
fn over_sockets_between_the_same_hosts_reliable_samples_all_come() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(hosts) = joined() else { return };
    let config = config(Reliability::Reliable);
    let run = throughput::run_between_hosts(&hosts, &program(), Transport::Udp, &config).unwrap();
    assert_eq!(run.invalid, None, "{run:#?}");
    assert_eq!((run.settings.datapath.as_str(), run.lost), ("udp", 0));
    assert_eq!(stream(&run).received_by_lane, None);
}

#[test]
fn streams_in_both_directions_are_one_result_and_reliable() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(hosts) = joined() else { return };
    let config = throughput::Config {
        both_directions: true,
        rate_hz: Some(1_000),
        ..config(Reliability::Reliable)
    };
    let run = throughput::run_between_hosts(&hosts, &program(), Transport::Udp, &config).unwrap();
    assert_eq!(run.invalid, None, "{run:#?}");
    // One direction alone cannot write more than a thousand in its second.
    let written = stream(&run).samples_written;
    assert!((1_001..=2_000).contains(&written), "{written}");
    assert_eq!(stream(&run).samples_delivered, written);
}

#[test]
fn each_of_several_readers_gets_every_reliable_sample_beside_busy_loops() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(hosts) = joined() else { return };
    let config = throughput::Config {
        readers: 3,
        busy: true,
        rate_hz: Some(1_000),
        ..config(Reliability::Reliable)
    };
    let run = throughput::run_between_hosts(&hosts, &program(), Transport::Udp, &config).unwrap();
    assert_eq!(run.invalid, None, "{run:#?}");
    let stream = stream(&run);
    assert!(stream.samples_written <= 1_000);
    assert_eq!(stream.samples_delivered, 3 * stream.samples_written);
    assert!(stream.samples_per_s.unwrap() < 1_100.0, "a mean, no sum");
    assert!(run.system.is_some());
}
