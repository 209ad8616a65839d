//! Tests of settings that are resolved from command line, environment and description.

use isolane_model::{DatapathChoice, Durability, History, Reliability, Word};

use super::*;
use crate::arguments::Arguments;
use crate::commands::endpoint::{EndpointSettings, SubscribeSettings};

fn call(line: &str) -> Call {
    Call::parse(line.split_whitespace()).expect(line)
}

/// Settings of a command after its options are resolved, and the settings of its endpoint or participant.
#[derive(Debug)]
struct Resolved {
    settings: Settings,
    endpoint: Option<EndpointSettings>,
    lane: LaneSettings,
    budget: Option<String>,
}

impl Resolved {
    fn new(line: &str, environment: Environment<'_>) -> Result<Self, Failure> {
        let (command, mut settings) = Settings::new(call(line), environment)?;
        let mut budget = None;
        let endpoint = match command {
            Command::Publish(publish) => publish.resolve(&mut settings)?.endpoint,
            Command::Subscribe(subscribe) => {
                let resolved: SubscribeSettings = subscribe.resolve(&mut settings)?;
                budget = resolved.budget.map(|budget| budget.to_string());
                resolved.endpoint
            }
            Command::List(list) => {
                return Ok(Self {
                    lane: settings.lane(list.lane)?,
                    settings,
                    endpoint: None,
                    budget,
                });
            }
            other => panic!("{line} is {other:?}"),
        };
        Ok(Self {
            settings,
            lane: endpoint.lane.clone(),
            endpoint: Some(endpoint),
            budget,
        })
    }

    /// Value and source of a setting, as `-v` prints them.
    fn line(&self, name: &str) -> (String, String) {
        let mut lines = self.settings.lines.iter();
        let line = lines.find(|line| line.name == name).expect(name);
        (line.value.clone(), line.source.clone())
    }

    fn value(&self, name: &str) -> String {
        self.line(name).0
    }
}

fn resolved(line: &str) -> Resolved {
    Resolved::new(line, &|_| None).unwrap_or_else(|failure| panic!("{line}: {failure}"))
}

/// Resolves a command line together with the description in `text`.
fn with_description(line: &str, text: &str) -> Result<Resolved, Failure> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("isolane.toml");
    std::fs::write(&path, text).expect("a temporary file");
    Resolved::new(line, &|name| {
        (name == "ISOLANE_CONFIG").then(|| path.clone().into_os_string())
    })
}

/// Resolves a command line with the example description, in which the topic has the type that `pub` writes.
fn described(line: &str) -> Resolved {
    let text = isolane_model::example().replace("vehicle::BrakePressure", "ShapeType");
    with_description(line, &text).expect(line)
}

#[test]
fn the_arguments_are_consistent_in_themselves() {
    Arguments::grammar().debug_assert();
}

#[test]
fn a_writer_is_reliable_and_a_reader_is_not_unless_it_wants_history() {
    let reliability = |line: &str| resolved(line).value("reliability");
    assert_eq!(reliability("isolane pub T"), "reliable");
    assert_eq!(reliability("isolane sub T"), "best-effort");
    let late = resolved("isolane sub T --durability transient-local");
    let endpoint = late.endpoint.as_ref().expect("a reader");
    assert!(!endpoint.is_volatile && endpoint.is_reliable);
    assert_eq!(late.value("durability"), Durability::TransientLocal.word());
    assert_eq!(reliability("isolane sub T --reliable"), "reliable");
    assert_eq!(reliability("isolane pub T --best-effort"), "best-effort");
}

#[test]
fn a_subscriber_holds_a_burst_and_says_why() {
    let writer = resolved("isolane pub T");
    assert_eq!(writer.value("history"), History::default().to_string());
    let reader = resolved("isolane sub T");
    assert_eq!(
        reader.line("history"),
        ("64".into(), "default for readers".into())
    );
    assert_eq!(resolved("isolane sub T --history 2").value("history"), "2");
}

#[test]
fn a_described_topic_has_the_settings_of_the_description() {
    let topic = described("isolane pub BrakePressure");
    let (level, source) = topic.line("level");
    assert_eq!(level, "7");
    assert!(source.contains("isolane.toml:"), "{source}");
    assert_eq!(topic.value("reliability"), Reliability::BestEffort.word());
    let given = described("isolane pub BrakePressure --level 2 --reliable --history 9");
    assert_eq!(
        given.line("level"),
        ("2".into(), "command line --level".into())
    );
    assert_eq!(given.value("reliability"), "reliable");
    assert!(given.value("max_samples").parse::<u32>().expect("a number") >= 9);
}

const TWO_HOSTS: &str = "[host.left]\ninterface = \"eth7\"\ndatapath = \"xdp\"\ndiscovery_level = 4\n\
    xdp = { queue = 1, queues = { 7 = 0 } }\n\
    protect = { topics = { capacity = 9, period = \"1ms\", reserved = 3 } }\n\
    [host.right]\ninterface = \"eth8\"\n\
    [topic.Square]\ntype = \"ShapeType\"\nmax_bytes = 64\nfrom = [\"left\"]\nto = [\"right\"]\n\
    budget = { capacity = 20, period = \"10ms\", over = \"demote\" }\n";

fn lane(line: &str, text: &str) -> LaneSettings {
    with_description(line, text)
        .unwrap_or_else(|why| panic!("{line}: {why}"))
        .lane
}

#[test]
fn the_described_host_gives_interface_datapath_queues_and_protection() {
    for command in ["pub Square", "sub Square", "ls"] {
        let line = format!("isolane {command} --host left");
        let resolved = with_description(&line, TWO_HOSTS).expect("good settings");
        assert_eq!(resolved.settings.notes, [""; 0]);
        let lane = &resolved.lane;
        assert_eq!(lane.host.datapath.value, DatapathChoice::Named("xdp"));
        assert!(matches!(
            lane.host.datapath.source,
            Source::File { line: 3, .. }
        ));
        assert_eq!(lane.host.datapaths[0].options().integer("queue"), Some(1));
        let topics = lane.host.protect.topics.as_ref().expect("described");
        assert_eq!(topics.reserved.value, 3);
        let said = resolved.settings.describe();
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
fn an_undescribed_topic_is_reported_with_the_described_ones() {
    let notes = |line: &str, text: &str| {
        let resolved = with_description(line, text);
        resolved.expect("good settings").settings.notes
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
    let resolved_line = with_description(line, TWO_HOSTS).expect("good settings");
    let lane = &resolved_line.lane;
    assert_eq!(lane.host.datapath.value, DatapathChoice::Named("xdp"));
    assert_eq!(lane.host.datapath.source, Source::CommandLine("--datapath"));
    let xdp = isolane::XdpOptions::from_options(&lane.host.datapaths[0].options());
    assert_eq!(xdp.expect("the options are checked").queues, [3; 8]);
    assert_eq!(resolved_line.value("interfaces"), "lo");
    let without = resolved("isolane sub Square").lane;
    assert_eq!(without.host.datapath.value, DatapathChoice::Named("udp"));
    assert!(without.host.protect.topics.is_none() && without.note.is_none());
}

#[test]
fn a_machine_that_is_no_described_host_is_reported_and_a_single_host_is_assumed() {
    let unknown = lane("isolane sub Square", TWO_HOSTS);
    assert_eq!(unknown.host.datapath.value, DatapathChoice::Named("udp"));
    let note = unknown.note.expect("a note");
    assert!(
        note.contains("left, right") && note.contains("--host NAME"),
        "{note}"
    );
    let one = "[host.left]\ninterface = \"eth7\"\n";
    let only = lane("isolane ls", one);
    assert_eq!((&*only.host.name.value, only.note), ("left", None));
    assert_eq!(only.host.datapath.value, DatapathChoice::Auto);
    let wrong = with_description("isolane ls --host middle", TWO_HOSTS).expect_err("no host");
    assert!(wrong.to_string().contains("left, right"), "{wrong}");
    let none = Resolved::new("isolane ls --host left", &|_| None);
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
    let resolved = |line: &str| with_description(line, TWO_HOSTS).expect(line);
    let described = resolved("isolane sub Square");
    assert_eq!(described.budget.as_deref(), Some("20/10ms/demote"));
    assert!(described.line("budget").1.contains("isolane.toml:"));
    let given = resolved("isolane sub Square --budget 7/1s");
    assert_eq!(given.budget.as_deref(), Some("7/1s/drop"));
    assert_eq!(resolved("isolane sub Other").budget, None);
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
        assert!(Call::parse(line).is_err(), "{wrong}");
    }
}

#[test]
fn peers_and_interfaces_may_be_repeated() {
    let line = "isolane sub T --peer 10.0.0.1 --peer 127.0.0.1:7410 -i lo -i lo -i a";
    let resolved = resolved(line);
    assert_eq!(resolved.value("peer"), "10.0.0.1,127.0.0.1:7410");
    assert_eq!(resolved.lane.peers.len(), 2);
    let named = Interfaces::Named(vec![String::from("lo"), String::from("a")]);
    assert_eq!(resolved.settings.network.interfaces.value, named);
}

#[test]
fn options_of_measurements_have_their_defaults_or_what_was_given() {
    let value = |line: &str, name: &str| {
        let mut options = call(line).options.into_iter();
        let option = options.find(|option| option.name == name);
        option.map(|option| option.value)
    };
    let all = value("isolane demo", "payload");
    assert_eq!(all.as_deref(), Some("64,512,1024"));
    let given = value("isolane bench rtt --payload 64", "payload");
    assert_eq!(given.as_deref(), Some("64"));
}

#[test]
fn json_goes_to_a_file_or_to_standard_output() {
    let outputs = |line: &str| call(line).outputs;
    assert_eq!(outputs("isolane demo"), []);
    assert_eq!(
        outputs("isolane demo --json -"),
        [Destination::StandardOutput]
    );
    let file = |name: &str| Destination::File(name.into());
    assert_eq!(outputs("isolane ls --json x.json"), [file("x.json")]);
    let both = outputs("isolane demo --json x.json --page x.html");
    assert_eq!(both, [file("x.json"), file("x.html")]);
}

#[test]
fn every_setting_is_printed_with_its_source() {
    let said = resolved("isolane -v pub T --count 5 --domain 9")
        .settings
        .describe();
    for line in [
        "domain = 9 # command line --domain",
        "topic = T # command line TOPIC",
        "count = 5 # command line --count",
        "reliability = reliable # default for writers",
        "period = 33ms # default",
        "seconds = none # default",
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
    for (line, expected) in [
        ("isolane pub Square", "12ms"),
        ("isolane pub Square --period 1s", "1002ms"),
        ("isolane sub Square", "12ms"),
    ] {
        let resolved = with_description(line, text).expect(line);
        assert_eq!(resolved.value("qos_deadline"), expected, "{line}");
    }
}
