//! Tests of how arguments, environment and description become settings.

use clap::Parser;
use isolane_model::{DatapathChoice, Durability, History, Reliability};

use super::*;
use crate::values::Peer;

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

/// Endpoint settings for the example's topic, with the type of `pub`.
fn described(line: &str) -> EndpointSettings {
    let text = isolane_model::example().replace("vehicle::BrakePressure", "ShapeType");
    let system = System::from_toml(&text, "isolane.toml", isolane::DATAPATHS).expect("the example");
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

/// Settings of a command with a description.
fn with_description(line: &str, text: &str) -> Result<Settings, Failure> {
    let path = std::env::temp_dir().join(format!(
        "isolane-settings-{}-{:?}.toml",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&path, text).expect("a temporary file");
    let arguments = Arguments::try_parse_from(line.split_whitespace()).expect(line);
    let named = path.clone().into_os_string();
    let settings = Settings::new(arguments, &|name| {
        (name == "ISOLANE_CONFIG").then(|| named.clone())
    });
    std::fs::remove_file(path).expect("it was written");
    settings
}

const TWO_HOSTS: &str = "[host.left]\ninterface = \"eth7\"\ndatapath = \"xdp\"\ndiscovery_level = 4\n\
    xdp = { queue = 1, queues = { 7 = 0 } }\n\
    protect = { topics = { capacity = 9, period = \"1ms\", reserved = 3 } }\n\
    [host.right]\ninterface = \"eth8\"\n\
    [topic.Square]\ntype = \"ShapeType\"\nmax_bytes = 64\nfrom = [\"left\"]\nto = [\"right\"]\n\
    budget = { capacity = 20, period = \"10ms\", over = \"demote\" }\n";

fn lane(line: &str, text: &str) -> LaneSettings {
    let settings = with_description(line, text).unwrap_or_else(|why| panic!("{line}: {why}"));
    settings
        .command
        .lane()
        .expect("it has a participant")
        .clone()
}

#[test]
fn the_described_host_gives_interface_datapath_queues_and_protection() {
    for command in ["pub Square", "sub Square", "ls"] {
        let line = format!("isolane {command} --host left");
        let settings = with_description(&line, TWO_HOSTS).expect("good settings");
        assert_eq!(settings.notes, [""; 0]);
        let lane = settings.command.lane().expect("it has a participant");
        assert_eq!(lane.datapath.value, DatapathChoice::Named("xdp"));
        assert!(matches!(lane.datapath.source, Source::File { line: 3, .. }));
        assert_eq!(lane.datapaths[0].options().integer("queue"), Some(1));
        let topics = lane.protect.topics.as_ref().expect("described");
        assert_eq!(topics.reserved.value, 3);
        let said = settings.describe();
        for part in [
            "interfaces = eth7",
            "datapath = xdp",
            "discovery_level = 4",
            "xdp.queues = { 7 = 0 }",
            "9 in 1ms",
        ] {
            assert!(said.contains(part), "no {part} in\n{said}");
        }
    }
}

#[test]
fn a_topic_that_is_not_described_is_told_with_those_that_are() {
    let notes = |line: &str, text: &str| {
        let settings = with_description(line, text);
        settings.expect("good settings").notes
    };
    assert_eq!(
        notes("isolane sub Sqare --host left", TWO_HOSTS),
        ["the description has no topic Sqare, only Square: defaults apply"]
    );
    let only_a_host = "[host.left]\ninterface = \"eth7\"\n";
    assert_eq!(
        notes("isolane sub Square --host left", only_a_host),
        ["the description has no topics: defaults apply to Square"]
    );
    assert_eq!(notes("isolane ls --host left", only_a_host), [""; 0]);
}

#[test]
fn the_command_line_has_its_way_with_datapath_queue_and_interface() {
    let line = "isolane sub Square --host left --datapath xdp:queue=3 -i lo";
    let settings = with_description(line, TWO_HOSTS).expect("good settings");
    let lane = settings.command.lane().expect("it has a participant");
    assert_eq!(lane.datapath.value, DatapathChoice::Named("xdp"));
    assert_eq!(lane.datapath.source, Source::CommandLine("--datapath"));
    assert_eq!(lane.datapaths[0].options().integer("queue"), Some(3));
    assert!(settings.describe().contains("interfaces = lo"));
    let without = lane_of("isolane sub Square");
    assert_eq!(without.datapath.value, DatapathChoice::Named("udp"));
    assert!(without.protect.topics.is_none() && without.note.is_none());
}

fn lane_of(line: &str) -> LaneSettings {
    endpoint(line).lane
}

#[test]
fn a_machine_that_is_no_described_host_is_told_so_and_one_host_alone_is_meant() {
    let nobody = lane("isolane sub Square", TWO_HOSTS);
    assert_eq!(nobody.datapath.value, DatapathChoice::Named("udp"));
    let note = nobody.note.expect("a note");
    assert!(
        note.contains("left, right") && note.contains("--host NAME"),
        "{note}"
    );
    let one = "[host.left]\ninterface = \"eth7\"\n";
    let only = lane("isolane ls", one);
    assert_eq!((only.host.as_deref(), only.note), (Some("left"), None));
    assert_eq!(only.datapath.value, DatapathChoice::Auto);
    let wrong = with_description("isolane ls --host middle", TWO_HOSTS).expect_err("no host");
    assert!(wrong.to_string().contains("left, right"), "{wrong}");
    let none = Settings::new(
        Arguments::try_parse_from(["isolane", "ls", "--host", "left"]).expect("a line"),
        &|_| None,
    );
    assert!(
        none.expect_err("nothing is described")
            .to_string()
            .contains("--config FILE")
    );
}

#[test]
fn the_example_offers_the_datapaths_that_a_description_may_name() {
    let mut lines = isolane_model::example().lines();
    let line = lines.find(|line| line.starts_with("datapath = "));
    let (_, offered) = line.expect("a line").split_once("# ").expect("a comment");
    let offered: Vec<_> = offered.split(" | ").collect();
    let kinds = isolane::DATAPATHS.iter().map(|kind| kind.name());
    assert_eq!(
        offered,
        ["auto"].into_iter().chain(kinds).collect::<Vec<_>>()
    );
}

#[test]
fn a_reader_has_the_budget_of_the_description_or_of_the_command_line() {
    let budget = |line: &str| match with_description(line, TWO_HOSTS).expect(line).command {
        Command::Subscribe(subscribe) => subscribe.budget,
        other => panic!("{line} is {other:?}"),
    };
    let described = budget("isolane sub Square");
    assert_eq!(
        described.value.expect("it has one").to_string(),
        "20/10ms/demote"
    );
    assert!(matches!(described.source, Source::File { .. }));
    let given = budget("isolane sub Square --budget 7/1s");
    assert_eq!(given.value.expect("it has one").to_string(), "7/1s/drop");
    assert_eq!(budget("isolane sub Other").value, None);
    for wrong in [
        "7",
        "0/1s",
        "7/1",
        "7/99us",
        "7/11s",
        "7/1s/keep",
        "7/1s/drop/x",
    ] {
        let line = ["isolane", "sub", "T", "--budget", wrong];
        assert!(Arguments::try_parse_from(line).is_err(), "{wrong}");
    }
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
fn the_demo_measures_the_payloads_of_the_paper_for_two_seconds() {
    let Command::Demo(demo) = settings("isolane demo").command else {
        panic!("demo is a demo")
    };
    let payloads = demo.runs.payloads.value.iter();
    let payloads: Vec<u32> = payloads.map(|payload| payload.get()).collect();
    assert_eq!(payloads, [64, 512, 1024]);
    assert_eq!(demo.runs.run_for.value.as_secs(), 2);
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

#[test]
fn the_deadline_offered_follows_from_the_period_that_a_writer_has() {
    let text = "[host.a]\ninterface = \"lo\"\n[topic.Square]\ntype = \"ShapeType\"\nmax_bytes = 64\n\
        period = \"10ms\"\ndeadline = \"2ms\"\nfrom = [\"a\"]\nto = [\"a\"]\n";
    for (line, millis) in [
        ("isolane pub Square", 12),
        ("isolane pub Square --period 1s", 1_002),
        ("isolane sub Square", 12),
    ] {
        let endpoint = match with_description(line, text).expect(line).command {
            Command::Publish(publish) => publish.endpoint,
            Command::Subscribe(subscribe) => subscribe.endpoint,
            other => panic!("{line} is {other:?}"),
        };
        let expected = Some(Duration::from_millis(millis));
        assert_eq!(endpoint.separation_max, expected, "{line}");
    }
}
