//! Participants and QoS come from a description.

use std::time::Duration;

use isolane::{
    Builder, DATAPATHS, DescriptionError, Limits, Network, Participant, Qos, System,
    description::{DatapathChoice, Host},
};

use crate::support::{Message, level};

const TEXT: &str = r#"
    domain = 3
    [host.left]
    interface = "lo"
    datapath = "udp"
    max_participants = 20
    [host.left.protect.topics]
    capacity = 2000
    period = "10ms"
    reserved = 200
    [host.right]
    interface = "lo"
    [topic.Brake]
    type = "Message"
    level = 7
    period = "500us"
    deadline = "400us"
    max_bytes = 64
    reliability = "best-effort"
    from = ["left"]
    to = ["right"]
    budget = { capacity = 20, period = "10ms", over = "demote" }
    [participant.pedal]
    host = "left"
    address = "10.0.0.1"
    port = 32768
    announces = "itself"
    writes = ["Brake"]
    [participant.wheel]
    host = "right"
    address = "10.0.0.2"
    port = 32768
    announces = "itself"
    reads = ["Brake"]
"#;

fn system() -> System {
    System::from_toml(TEXT, "isolane.toml", DATAPATHS).expect("a valid description")
}

#[test]
fn described_participants_and_topics_need_no_setting_in_the_program() {
    let (system, network) = (system(), Network::new(1));
    let build = |host: Option<&str>, name, address| {
        let builder = Builder::from_description(&system, host, Some(name)).expect("described");
        builder.memory(&network, address).build().expect("valid")
    };
    let left = build(Some("left"), "pedal", [10, 0, 0, 1]);
    // The participant's host is the default.
    let right = build(None, "wheel", [10, 0, 0, 2]);
    let qos = Qos::from_description(&system, "Brake").expect("described");
    let writer = left
        .create_writer::<Message>("Brake", &qos)
        .expect("as described");
    let reader = right
        .create_reader::<Message>("Brake", &qos)
        .expect("as described");
    // Also with a DEADLINE, which both ends have from the description.
    assert_eq!((writer.matched_readers(), reader.matched_writers()), (1, 1));
    // Only the host "left" has a budget.
    assert!(
        right
            .warnings()
            .iter()
            .all(|it| !it.contains("budget of the interface"))
    );
    assert_eq!(left.described_peers()[0].name, "wheel");
    let warnings = left.warnings();
    assert!(
        warnings
            .iter()
            .any(|warning| warning.contains("budget of the interface")),
        "{warnings:?}"
    );
}

#[test]
fn the_qos_of_a_topic_is_that_of_its_description() {
    let qos = Qos::from_description(&system(), "Brake").expect("described");
    assert_eq!(qos.transport_level(), level(7));
    assert!(!qos.is_reliable());
    let deadline = isolane_wire::time::Duration::from(Duration::from_micros(900));
    assert_eq!(qos.policies().deadline, deadline);
}

#[test]
fn a_described_history_of_all_samples_has_the_memory_of_one_in_code() {
    let network = Network::new(1);
    let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
    let alice = builder.sample_memory(1).build().expect("a participant");
    // The error names the memory of the endpoint.
    let memory = |qos: &Qos| {
        let refused = alice.create_writer::<Message>("Report", qos).err();
        refused.expect("too little memory").to_string()
    };
    for max_bytes in [64, 1_020, 1_021, 2_000, 60_000] {
        let text = format!(
            "[host.left]\ninterface = \"lo\"\n[topic.Report]\ntype = \"Message\"\n\
             max_bytes = {max_bytes}\nhistory = \"all\"\nfrom = [\"left\"]\nto = [\"left\"]\n"
        );
        let system = System::from_toml(&text, "isolane.toml", DATAPATHS).expect("valid");
        let described = Qos::from_description(&system, "Report").expect("described");
        let in_code = Qos::reliable().keep_all().max_bytes(max_bytes + 4);
        assert_eq!(memory(&described), memory(&in_code), "{max_bytes} bytes");
    }
}

#[test]
fn a_participant_has_the_qos_of_the_description_that_it_was_built_from() {
    let network = Network::new(1);
    let builder = Builder::from_description(&system(), Some("left"), None).expect("described");
    let left = builder.memory(&network, [10, 0, 0, 1]).build().unwrap();
    let qos = left.described_qos("Brake").expect("described");
    let expected = Qos::from_description(&system(), "Brake").expect("described");
    assert_eq!(qos.policies(), expected.policies());
    let unknown = left.described_qos("Brak").expect_err("no topic");
    assert!(unknown.to_string().contains("Brake"), "{unknown}");
    let other = Participant::builder(0).memory(&network, [10, 0, 0, 2]);
    let error = other.build().unwrap().described_qos("Brake");
    assert!(matches!(error, Err(DescriptionError::NoDescription)));
}

#[test]
fn a_name_that_is_not_described_is_refused_with_the_described_ones() {
    let system = system();
    let error =
        |host: &str, participant| match Builder::from_description(&system, Some(host), participant)
        {
            Ok(_) => panic!("{host}, {participant:?}"),
            Err(error) => error.to_string(),
        };
    assert!(error("middle", None).contains("left, right"));
    assert!(error("left", Some("horn")).contains("pedal, wheel"));
    assert!(error("right", Some("pedal")).contains("on host \"left\""));
    let unknown = Qos::from_description(&system, "Brak").expect_err("no topic");
    assert!(matches!(
        unknown,
        DescriptionError::Missing { kind: "topic", .. }
    ));
    let only_a_host =
        System::from_toml("[host.left]\ninterface = \"lo\"", "isolane.toml", DATAPATHS)
            .expect("a valid description");
    let error = Builder::from_description(&only_a_host, None, Some("pedal")).err();
    let error = error.expect("no participant").to_string();
    assert!(
        error.ends_with("it describes none: add [participant.NAME]"),
        "{error}"
    );
}

#[test]
fn the_only_host_of_a_description_is_the_default() {
    let only_a_host =
        System::from_toml("[host.left]\ninterface = \"lo\"", "isolane.toml", DATAPATHS)
            .expect("a valid description");
    assert!(Builder::from_description(&only_a_host, None, None).is_ok());
    let of_several = Builder::from_description(&system(), None, None).err();
    let error = of_several.expect("this machine is neither").to_string();
    assert!(error.contains("left, right"), "{error}");
}

#[test]
fn a_host_keeps_what_it_does_not_say() {
    let mut host = Host::new(DATAPATHS);
    host.datapath.value = DatapathChoice::Named("udp");
    let limits = Limits {
        local_endpoints: 1,
        ..Limits::default()
    };
    // Without an interface, it keeps the loopback interface.
    let builder = Participant::builder(107).loopback().limits(limits);
    let participant = builder.host(&host).build().expect("valid");
    let qos = Qos::best_effort();
    let create = || participant.create_writer::<Message>("Brake", &qos);
    let _only = create().expect("one endpoint");
    assert!(create().is_err(), "the limit is the builder's");
}

#[test]
fn a_file_that_is_no_description_is_refused_with_its_lines() {
    let path = std::env::temp_dir().join(format!("isolane-{}.toml", std::process::id()));
    std::fs::write(&path, "[host.left]\ninterfaces = \"lo\"\n").expect("a temporary file");
    let error = isolane::load_description(&path).expect_err("an unknown key");
    std::fs::remove_file(&path).expect("the file exists");
    assert!(error.to_string().contains(":2:"), "{error}");
}
