//! Statements about how arguments, environment and description become settings.

use clap::Parser;
use isolane_model::{Durability, History, Reliability};

use super::*;

fn settings(line: &str) -> Settings {
    let arguments = Arguments::try_parse_from(line.split_whitespace()).expect(line);
    Settings::new(arguments, &|_| None).unwrap_or_else(|failure| panic!("{line}: {failure}"))
}

fn endpoint(line: &str) -> EndpointSettings {
    match settings(line).command {
        Command::Publish(publish) => publish.endpoint,
        Command::Subscribe(subscribe) => subscribe.endpoint,
        other => panic!("{line} is {other:?}"),
    }
}

/// The endpoint of a command for the topic of the example, whose type is what `pub` speaks.
fn described(line: &str) -> EndpointSettings {
    let text = isolane_model::example().replace("vehicle::BrakePressure", "ShapeType");
    let system = System::from_toml(&text, "isolane.toml").expect("the example");
    let arguments = Arguments::try_parse_from(line.split_whitespace()).expect(line);
    let network = network(&arguments.common, Some(&system), &|_| None).expect(line);
    let Raw::Publish(publish) = arguments.command else {
        panic!("{line} publishes nothing")
    };
    PublishSettings::new(network, publish, Some(&system))
        .expect(line)
        .endpoint
}

#[test]
fn the_arguments_are_consistent_in_themselves() {
    Arguments::grammar().debug_assert();
}

#[test]
fn a_writer_is_reliable_and_a_reader_is_not_unless_it_wants_history() {
    assert_eq!(
        endpoint("isolane pub T").reliability.value,
        Reliability::Reliable
    );
    assert_eq!(
        endpoint("isolane sub T").reliability.value,
        Reliability::BestEffort
    );
    let late = endpoint("isolane sub T --durability transient-local");
    assert_eq!(late.durability.value, Durability::TransientLocal);
    assert_eq!(late.reliability.value, Reliability::Reliable);
    assert_eq!(
        endpoint("isolane sub T --reliable").reliability.value,
        Reliability::Reliable
    );
    assert_eq!(
        endpoint("isolane pub T --best-effort").reliability.value,
        Reliability::BestEffort
    );
}

#[test]
fn a_subscriber_holds_a_burst_and_says_why() {
    assert_eq!(endpoint("isolane pub T").history.value, History::default());
    let history = endpoint("isolane sub T").history;
    assert_eq!(history.value.to_string(), "64");
    let said = settings("isolane -v sub T").describe();
    let line = said.lines().find(|line| line.starts_with("history"));
    let line = line.expect("a line");
    assert!(line.starts_with("history = 64 ") && line.ends_with("# default for readers"));
    assert_eq!(
        endpoint("isolane sub T --history 2")
            .history
            .value
            .to_string(),
        "2"
    );
}

#[test]
fn a_described_topic_has_the_settings_of_the_description() {
    let endpoint = described("isolane pub BrakePressure");
    assert_eq!(endpoint.level.value.get(), 7);
    assert_eq!(endpoint.reliability.value, Reliability::BestEffort);
    assert!(matches!(endpoint.level.source, Source::File { .. }));
    let endpoint = described("isolane pub BrakePressure --level 2 --reliable --history 9");
    assert_eq!(endpoint.level.value.get(), 2);
    assert_eq!(endpoint.level.source, Source::CommandLine("--level"));
    assert_eq!(endpoint.reliability.value, Reliability::Reliable);
    assert!(endpoint.max_samples.value.get() >= 9);
}

#[test]
fn peers_and_interfaces_may_be_repeated() {
    let endpoint = endpoint("isolane sub T --peer 10.0.0.1 --peer 127.0.0.1:7410 -i lo -i lo -i a");
    let peers: Vec<String> = endpoint.peers.value.iter().map(Peer::to_string).collect();
    assert_eq!(peers, ["10.0.0.1", "127.0.0.1:7410"]);
    let named = Interfaces::Named(vec![String::from("lo"), String::from("a")]);
    assert_eq!(endpoint.network.interfaces.value, named);
}

#[test]
fn the_demo_measures_the_payloads_of_the_paper_for_three_seconds() {
    let Command::Demo(demo) = settings("isolane demo").command else {
        panic!("demo is a demo")
    };
    let payloads = demo.runs.payloads.value.iter();
    let payloads: Vec<u32> = payloads.map(|payload| payload.get()).collect();
    assert_eq!(payloads, [64, 512, 1024]);
    assert_eq!(demo.runs.run_for.value.as_secs(), 3);
}

#[test]
fn json_goes_to_a_file_or_to_standard_output() {
    let json = |line: &str| match settings(line).command {
        Command::Demo(demo) => demo.runs.json,
        Command::List(list) => list.json,
        other => panic!("{line} is {other:?}"),
    };
    assert_eq!(json("isolane demo"), None);
    assert_eq!(
        json("isolane demo --json -"),
        Some(Destination::StandardOutput)
    );
    assert_eq!(
        json("isolane ls --json x.json"),
        Some(Destination::File("x.json".into()))
    );
}

#[test]
fn every_setting_is_printed_with_its_source() {
    let said = settings("isolane -v pub T --count 5 --domain 9").describe();
    for line in [
        "domain = 9 # command line --domain",
        "count = 5 # command line --count",
        "reliability = reliable # default for writers",
        "period = 33ms # default",
        "run_for = until stopped # default",
    ] {
        let found = said
            .lines()
            .any(|said| said.split_whitespace().eq(line.split_whitespace()));
        assert!(found, "no {line} in\n{said}");
    }
}
