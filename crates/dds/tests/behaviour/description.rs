//! Participants and QoS come from a description.

use std::time::Duration;

use isolane::{Builder, DATAPATHS, DescriptionError, Network, Qos, System};

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
    let build = |host, name, address| {
        let builder = Builder::from_description(&system, host, Some(name)).expect("described");
        builder.memory(&network, address).build().expect("valid")
    };
    let left = build("left", "pedal", [10, 0, 0, 1]);
    let right = build("right", "wheel", [10, 0, 0, 2]);
    let qos = Qos::from_description(&system, "Brake").expect("described");
    let writer = left
        .create_writer::<Message>("Brake", &qos)
        .expect("as described");
    let reader = right
        .create_reader::<Message>("Brake", &qos)
        .expect("as described");
    // Also with a DEADLINE, which both ends have from the description.
    assert_eq!((writer.matched_readers(), reader.matched_writers()), (1, 1));
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
fn a_name_that_is_not_described_is_refused_with_the_described_ones() {
    let system = system();
    let error = |host, participant| match Builder::from_description(&system, host, participant) {
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
}

#[test]
fn a_file_that_is_no_description_is_refused_with_its_lines() {
    let path = std::env::temp_dir().join(format!("isolane-{}.toml", std::process::id()));
    std::fs::write(&path, "[host.left]\ninterfaces = \"lo\"\n").expect("a temporary file");
    let error = isolane::load_description(&path).expect_err("an unknown key");
    std::fs::remove_file(&path).expect("the file exists");
    assert!(error.to_string().contains(":2:"), "{error}");
}
