//! Properties of `spy` that hold for all captures, and tests of filters.

use serde_json::Value;

use crate::support::{Said, Scratch, captured, captures, frame_of, pcap, run, spy};

/// Records of a capture as JSON; the last one is the summary.
fn records(name: &str, arguments: &[&str]) -> Vec<Value> {
    let path = captured(name);
    let mut all = vec![path.to_str().expect("UTF-8"), "--json", "-"];
    all.extend(arguments);
    let said = run(&mut spy(&all));
    assert_eq!(said.code, 0, "{name}: {}", said.err);
    let parse = |line| serde_json::from_str(line).expect("JSON");
    said.out.lines().map(parse).collect()
}

#[test]
fn nothing_in_the_captures_is_malformed_and_every_frame_is_accounted_for() {
    for name in &captures() {
        let records = records(name, &[]);
        let summary = records.last().expect("a summary");
        assert_eq!(summary["record"], "summary");
        for what in ["frames", "datagrams", "submessages", "announcements"] {
            assert_eq!(summary["malformed"][what], 0, "{name}: {what}");
        }
        let count = |member: &str| summary[member].as_u64().expect(member);
        let reassembled = records
            .iter()
            .filter(|record| record["ip_packets"].as_u64() > Some(1))
            .count() as u64;
        let accounted = count("datagrams") + count("ip_fragments") - reassembled
            + count("other_udp")
            + count("not_udp")
            + count("ipv6");
        assert_eq!(count("frames"), accounted, "{name}");
        assert_eq!(count("shown") as usize, records.len() - 1, "{name}");
        let schema = "isolane/spy/3";
        assert!(records.iter().all(|record| record["schema"] == schema));
    }
}

#[test]
fn a_capture_can_come_through_a_pipe() {
    let path = captured("cyc-cyc");
    let file = std::fs::File::open(&path).expect("a capture");
    let piped = run(spy(&["-"]).stdin(file));
    assert_eq!(piped, run(&mut spy(&[path.to_str().expect("UTF-8")])));
    let nothing = run(&mut spy(&["-"]));
    assert_eq!(nothing.code, 2, "{}", nothing.err);
}

#[test]
fn topics_are_known_from_discovery_and_can_be_chosen() {
    let records = records("cyc-fast", &["--topic", "Square", "--kind", "data"]);
    let (summary, shown) = records.split_last().expect("a summary");
    assert!(shown.len() > 5, "{summary}");
    for record in shown {
        for submessage in record["submessages"].as_array().expect("a list") {
            assert_eq!(submessage["topic"], "Square");
            assert_eq!(submessage["kind"], "DATA");
        }
        assert_eq!(record["discovery"], false);
    }
    let filtered = summary["filtered"].as_u64().expect("a count");
    let datagrams = summary["datagrams"].as_u64().expect("a count");
    assert_eq!(filtered + shown.len() as u64, datagrams);
}

/// Part of a capture after the last frame that contains a topic's name.
fn behind_the_announcements(capture: &[u8], topic: &[u8]) -> Vec<u8> {
    let (file_header, mut left) = capture.split_at(24);
    let mut behind = left;
    while let Some(record_header) = left.first_chunk::<16>() {
        let [.., a, b, c, d, _, _, _, _] = *record_header;
        let bytes = 16 + u32::from_le_bytes([a, b, c, d]) as usize;
        let (record, rest) = left.split_at(bytes);
        left = rest;
        if record.windows(topic.len()).any(|part| part == topic) {
            behind = rest;
        }
    }
    [file_header, behind].concat()
}

fn summary_of(said: &Said) -> Value {
    let summary = said.out.lines().last().expect("a summary");
    serde_json::from_str(summary).expect("JSON")
}

#[test]
fn samples_whose_topic_a_capture_does_not_announce_are_shown_and_counted() {
    let capture = std::fs::read(captured("cyc-fast")).expect("a capture");
    let behind = behind_the_announcements(&capture, b"Square\0");
    let scratch = Scratch::new(&behind);
    let arguments = [scratch.path(), "--topic", "Square", "--json", "-"];
    let said = run(&mut spy(&arguments));
    let summary = summary_of(&said);
    let unannounced = summary["unannounced"].as_u64();
    assert!(unannounced > Some(5), "{summary}");
    assert!(summary["shown"].as_u64() > Some(5), "{summary}");
    assert!(said.err.contains("may be of another topic"), "{}", said.err);
}

#[test]
fn announcements_behind_the_samples_of_a_capture_name_their_topic() {
    let capture = std::fs::read(captured("cyc-fast")).expect("a capture");
    let behind = behind_the_announcements(&capture, b"Square\0");
    let announcements = &capture[24..capture.len() - (behind.len() - 24)];
    let scratch = Scratch::new(&[&behind, announcements].concat());
    let of = |topic| {
        let data = ["--kind", "data", "--json", "-"];
        let said = run(spy(&[scratch.path(), "--topic", topic]).args(data));
        let summary = summary_of(&said);
        let count = |key: &str| summary[key].as_u64().expect("a count");
        (count("shown"), count("unannounced"))
    };
    let (shown, unannounced) = of("Square");
    assert!(shown > 5 && unannounced == 0, "{shown} {unannounced}");
    assert_eq!(of("Circle"), (0, 0));
}

#[test]
fn an_entity_a_domain_and_a_level_can_be_chosen() {
    let all = records("cyc-cyc", &[]);
    let data = |record: &Value| {
        let submessages = record["submessages"].as_array().cloned();
        submessages
            .unwrap_or_default()
            .into_iter()
            .find(|submessage| submessage["kind"] == "DATA" && submessage["topic"] == "Square")
    };
    let sample = all.iter().find_map(data).expect("a sample");
    let writer = sample["writer"].as_str().expect("a GUID");
    let chosen = records("cyc-cyc", &["--writer", writer]);
    assert!(chosen.len() > 2 && chosen.len() < all.len());
    for submessage in chosen.iter().filter_map(data) {
        assert_eq!(submessage["writer"], writer);
    }
    let shown = |arguments: &[&str]| {
        let records = records("cyc-cyc", arguments);
        records.last().expect("a summary")["shown"].as_u64()
    };
    let everything = all.last().expect("a summary")["shown"].as_u64();
    assert_eq!(shown(&["--domain", "0"]), everything);
    assert_eq!(shown(&["--domain", "1"]), Some(0));
    assert_eq!(shown(&["--level", "7"]), Some(0));
    assert!(shown(&["--level", "0"]) > Some(0));
    assert_eq!(shown(&["--count", "3"]), Some(3));
}

/// Message with isolane's RTPS header and these bytes.
fn message(behind: &[u8]) -> Vec<u8> {
    let mut message = b"RTPS\x02\x05\x01\xee0123456789ab".to_vec();
    message.extend(behind);
    message
}

#[test]
fn what_is_malformed_is_shown_with_the_reason_and_counted() {
    let frames = [
        // A submessage longer than its message.
        frame_of(&message(&[0x07, 1, 0xff, 0])),
        // A HEARTBEAT whose last number is below the first, followed by a valid PAD.
        frame_of(&message(
            &[
                &[0x07, 1, 28, 0][..],
                &[0; 12],
                &[9, 0, 0, 0, 0, 0, 0, 0],
                &[1, 0, 0, 0, 0, 0, 0, 0],
                &[1, 1, 0, 0],
            ]
            .concat(),
        )),
        // Another major version, and a header that ends too early.
        frame_of(b"RTPS\x09\x00\x01\xee0123456789ab"),
        frame_of(b"RTPS\x02"),
        // Not an RTPS message.
        frame_of(b"hello"),
    ];
    let file = Scratch::new(&pcap(1, &frames));
    let said = run(&mut spy(&[file.path()]));
    assert_eq!(said.code, 0, "{}", said.err);
    for reason in [
        "MALFORMED at byte 20: the bytes end too early",
        "MALFORMED: RTPS version 9.x is not supported",
        "MALFORMED: the bytes end too early",
    ] {
        assert!(said.out.contains(reason), "no {reason} in\n{}", said.out);
    }
    assert!(said.out.contains("level 7"), "by DSCP alone: {}", said.out);
    assert!(
        said.err.contains("malformed (datagrams 2, submessages 2)"),
        "{}",
        said.err
    );
    assert!(said.err.contains("other_udp 1"), "{}", said.err);
}

#[test]
fn a_capture_of_the_first_bytes_of_each_frame_shows_what_is_there() {
    let mut frames = crate::support::frames("cyc-cyc");
    for frame in &mut frames {
        frame.bytes.truncate(110);
    }
    let file = Scratch::new(&pcap(1, &frames));
    let said = run(&mut spy(&[file.path()]));
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("captured 68 B"), "{}", said.out);
    assert!(said.out.contains("(the capture ends here"), "{}", said.out);
    assert!(said.out.contains("HEARTBEAT"), "{}", said.out);
    assert!(!said.err.contains("malformed"), "{}", said.err);
    assert!(said.err.contains("truncated_datagrams"), "{}", said.err);
}
