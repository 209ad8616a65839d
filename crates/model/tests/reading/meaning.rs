//! Tests of valid descriptions: given values, and defaults of omitted ones.

use core::time::Duration;

use isolane_datapath::kind::Options;
use isolane_model::{
    DatapathChoice, Durability, History, HistoryDepth, Host, OverBudget, Reliability, Source,
    Sourced, Waiting, example,
};

use super::{system, topic_with};

#[test]
fn the_example_says_what_it_says() {
    let system = system(example());
    assert!(system.warnings().is_empty(), "{:#?}", system.warnings());
    assert_eq!(system.domain().value.get(), 0);
    let hosts: Vec<_> = system
        .hosts()
        .iter()
        .map(|host| host.name.value.as_str())
        .collect();
    assert_eq!(hosts, ["zone-left", "zone-right"]);
    assert_eq!(system.hosts()[0].core.value, Some(1));
    assert_eq!(system.hosts()[0].priority.value, Some(70));
    assert_eq!(system.hosts()[0].discovery_level.value, None);
    assert_eq!(system.hosts()[1].datapath.value, DatapathChoice::Auto);
    let protect = &system.hosts()[0].protect;
    assert_eq!(protect.topics.as_ref().expect("given").reserved.value, 200);
    assert_eq!(
        protect.others.as_ref().expect("given").capacity.value.get(),
        1000
    );
    assert_eq!(of_xdp(&system.hosts()[0]).levels("levels"), Some(0xe0));

    let brakes = system.topic("BrakePressure").expect("it is described");
    assert_eq!(brakes.level.value.get(), 7);
    assert_eq!(brakes.period.value, Some(Duration::from_micros(500)));
    assert_eq!(brakes.deadline.value, Some(Duration::from_micros(400)));
    assert_eq!(brakes.max_bytes.value.get(), 64);
    assert_eq!(brakes.reliability.value, Reliability::BestEffort);
    assert_eq!(brakes.history.value, History::KeepLast(HistoryDepth::ONE));
    assert!(!brakes.keyed.value);

    let valves = system.topic("ValveState").expect("it is described");
    assert!(valves.keyed.value);
    assert_eq!(valves.durability.value, Durability::TransientLocal);
    assert_eq!(valves.max_samples.value.get(), 32);

    let diagnostics = system.topic("Diagnostics").expect("it is described");
    assert_eq!(diagnostics.history.value, History::KeepAll);
    assert_eq!(diagnostics.max_samples.value.get(), 64);
    let budget = diagnostics.budget.as_ref().expect("it has one");
    assert_eq!(budget.capacity.value.get(), 20);
    assert_eq!(budget.period.value, Duration::from_millis(10));
    assert_eq!(budget.over.value, OverBudget::Drop);
}

#[test]
fn a_host_knows_the_topics_it_sends_and_receives() {
    let system = system(example());
    let names = |topics: Vec<&isolane_model::Topic>| -> Vec<String> {
        topics
            .iter()
            .map(|topic| topic.name.value.clone())
            .collect()
    };
    assert_eq!(
        names(system.sends("zone-left").collect()),
        ["BrakePressure", "ValveState"]
    );
    assert_eq!(
        names(system.receives("zone-left").collect()),
        ["ValveState", "Diagnostics"]
    );
    assert_eq!(system.sends("zone-middle").count(), 0);
}

#[test]
fn a_description_without_topics_is_one() {
    assert!(system("").topics().is_empty());
}

#[test]
fn what_is_left_out_has_the_default_and_says_so() {
    let system = system(&topic_with(""));
    let topic = system.topic("T").expect("it is described");
    assert_eq!(topic.level.value.get(), 0);
    assert_eq!(topic.reliability.value, Reliability::Reliable);
    assert_eq!(topic.durability.value, Durability::Volatile);
    assert_eq!(topic.period.value, None);
    assert_eq!(topic.level.source, Source::Default);
    assert_eq!(system.domain().source, Source::Default);
    assert_eq!(topic.type_name.source.to_string(), "isolane.toml:6");
}

#[test]
fn keeping_all_without_max_samples_gets_a_default_that_names_its_reason() {
    let system = system(&topic_with("history = \"all\""));
    let samples = &system.topics()[0].max_samples;
    assert_eq!(samples.value.get(), 256);
    assert_eq!(
        samples.source.to_string(),
        "default for history = \"all\" and max_bytes"
    );
}

#[test]
fn the_default_of_a_history_of_all_samples_is_sized_in_bytes() {
    for (max_bytes, samples) in [
        (1, 256),
        (1_020, 256),
        (1_021, 255),
        (1_396, 187),
        (4_092, 64),
        (1 << 20, 64),
    ] {
        let default = History::KeepAll.default_max_samples(false, max_bytes);
        assert_eq!(default.value.get(), samples, "{max_bytes} bytes");
    }
}

#[test]
fn a_keyed_topic_gets_room_for_several_instances() {
    let system = system(&topic_with("keyed = true\nhistory = 3"));
    assert_eq!(system.topics()[0].max_samples.value.get(), 48);
}

#[test]
fn a_host_says_what_protects_it_and_how_its_lanes_are_set_up() {
    let text = "[host.left]\ninterface = \"eth0\"\nwaiting = \"spin\"\n[host.left.protect]\n\
        topics = { capacity = 2000, period = \"10ms\", reserved = 200 }\n\
        [host.left.xdp]\nqueue = 1\nqueues = { 7 = 0 }\nlevels = [7, 5]\nvlan = 12\n\
        [host.right]\ninterface = \"eth0\"\n";
    let system = system(text);
    let [left, right] = system.hosts() else {
        panic!("two hosts")
    };
    let topics = left.protect.topics.as_ref().expect("given");
    assert_eq!(
        (topics.capacity.value.get(), topics.reserved.value),
        (2000, 200)
    );
    assert_eq!(topics.period.source.to_string(), "isolane.toml:5");
    assert!(left.protect.others.is_none() && right.protect.topics.is_none());
    assert_eq!(left.waiting.value, Waiting::Spin);
    let xdp = of_xdp(left);
    let mut queues = [None; 8];
    queues[7] = Some(0);
    assert_eq!(xdp.integer("queue"), Some(1));
    assert_eq!(xdp.per_level("queues"), queues);
    assert_eq!(xdp.levels("levels"), Some(0xa0));
    assert_eq!(xdp.integer("vlan"), Some(12));
    assert_eq!(of_xdp(right).levels("levels"), Some(0xff));
    let settings = right.datapath_settings("xdp").expect("it has options");
    assert!(
        settings
            .entries()
            .all(|(_, value)| value.source == Source::Default)
    );
}

fn of_xdp(host: &Host) -> Options {
    host.datapath_settings("xdp")
        .expect("it has options")
        .options()
}

/// Level, largest sample, and other keys of a topic.
type DescribedTopic = (u8, u32, &'static str);

/// Levels with a lane on the only host, and the source of that setting, where these topics exist.
fn lanes(host: &str, topics: &[DescribedTopic]) -> (Option<u8>, String) {
    let mut text = format!("[host.a]\ninterface = \"eth0\"\n{host}\n");
    for (number, (level, max_bytes, others)) in topics.iter().enumerate() {
        text += &format!(
            "[topic.t{number}]\ntype = \"T\"\nfrom = [\"a\"]\nto = [\"a\"]\nreliability = \"best-effort\"\n\
             level = {level}\nmax_bytes = {max_bytes}\n{others}\n"
        );
    }
    let system = system(&text);
    let settings = system.hosts()[0].datapath_settings("xdp");
    let mut entries = settings.expect("a known kind").entries();
    let (_, levels) = entries
        .find(|(spec, _)| spec.key == "levels")
        .expect("a known option");
    (
        of_xdp(&system.hosts()[0]).levels("levels"),
        levels.source.to_string(),
    )
}

#[test]
fn the_highest_level_of_each_host_keeps_its_lane_and_so_do_all_where_lanes_are_chosen() {
    let text = r#"
        host.a.interface = "eth0"
        host.b.interface = "eth0"
        host.c.interface = "eth0"
        [topic.Brake]
        type = "T"
        level = 7
        max_bytes = 64
        reliability = "best-effort"
        from = ["a"]
        to = ["b"]
        [topic.Video]
        type = "T"
        level = 2
        max_bytes = 9000
        reliability = "best-effort"
        from = ["a"]
        to = ["c"]
    "#;
    let system = system(text);
    let levels = |host: &Host| of_xdp(host).levels("levels");
    let of_all = system.hosts().iter().map(levels);
    assert_eq!(Vec::from_iter(of_all), [0xfb, 0xff, 0xff].map(Some));
    let mut host = system.hosts()[0].clone();
    for (choice, expected) in [
        (DatapathChoice::Named("xdp"), 0xff),
        (DatapathChoice::Auto, 0xfb),
    ] {
        host.choose_datapath(Sourced::default_value(choice));
        assert_eq!(levels(&host), Some(expected));
    }
}

#[test]
fn auto_leaves_levels_of_large_samples_to_sockets() {
    let derived = "default for max_bytes of topics";
    let budget = "budget = { capacity = 20, period = \"10ms\" }";
    let cases: [(&str, &[DescribedTopic], u8, &str); 10] = [
        ("", &[(7, 64, ""), (2, 100_000, "")], 0xfb, derived),
        (
            "",
            &[(7, 64, ""), (2, 1_397, ""), (1, 1_396, "")],
            0xfb,
            derived,
        ),
        (
            "",
            &[(7, 64, ""), (2, 9_000, ""), (2, 64, "")],
            0xff,
            "default",
        ),
        // The highest level in use is the critical one.
        ("", &[(7, 9_000, ""), (2, 64, "")], 0xff, "default"),
        // Only a lane enforces a budget.
        ("", &[(7, 64, ""), (2, 9_000, budget)], 0xff, "default"),
        (
            "datapath = \"xdp\"",
            &[(7, 64, ""), (2, 9_000, "")],
            0xff,
            "default",
        ),
        (
            "xdp.levels = [2, 7]",
            &[(7, 64, ""), (2, 9_000, "")],
            0x84,
            "isolane.toml:3",
        ),
        // A level in `queues` keeps its lane.
        (
            "xdp.queues = { 2 = 1 }",
            &[(7, 64, ""), (2, 9_000, "")],
            0xff,
            "default",
        ),
        (
            "xdp.queues = { 2 = 1 }",
            &[(7, 64, ""), (2, 9_000, ""), (1, 9_000, "")],
            0xfd,
            derived,
        ),
        // Only lanes enforce limits of the host.
        (
            "protect.topics = { capacity = 2000, period = \"10ms\", reserved = 200 }",
            &[(7, 64, ""), (2, 9_000, "")],
            0xff,
            "default",
        ),
    ];
    for (host, topics, levels, source) in cases {
        let case = format!("{host} {topics:?}");
        assert_eq!(
            lanes(host, topics),
            (Some(levels), source.to_owned()),
            "{case}"
        );
    }
}
