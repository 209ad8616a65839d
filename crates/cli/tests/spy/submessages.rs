//! Tests of submessages that the captures lack: `spy` shows each with all its fields.

use isolane_wire::{
    builtin_data::{ContentFilterProperty, EndpointData},
    guid::{EntityId, EntityKind, Guid, GuidPrefix},
    locator::Locator,
    message::{
        ChecksumKind, DataFragPrefix, DataPrefix, Gap, GapGroup, Header, HeaderExtension,
        Heartbeat, HeartbeatFrag, HeartbeatGroup, InfoReplyIp4, MessageChecksum, MessageWriter,
        NackFrag, PayloadKind,
    },
    sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet},
    time::Timestamp,
};
use serde_json::Value;

use crate::support::{Scratch, frame_of, pcap, run, spy};

const READER: EntityId = EntityId::user(2, EntityKind::READER_NO_KEY);
const WRITER: EntityId = EntityId::user(1, EntityKind::WRITER_NO_KEY);
const ONE: SequenceNumber = SequenceNumber(1);

/// Message of these submessages, after a header extension with all its fields.
fn message(fill: impl FnOnce(&mut MessageWriter<'_>)) -> Vec<u8> {
    let mut extension = HeaderExtension {
        message_bytes: Some(0),
        sent: Some(Timestamp::from_nanos(1_500_000_000)),
        u_extension: Some(*b"four"),
        w_extension: Some(*b"eight888"),
        checksum: Some(MessageChecksum::zero(ChecksumKind::Crc32c)),
        parameters: None,
    };
    let mut buffer = [0; 1024];
    let header = Header::new(GuidPrefix([7; 12]));
    let mut message = MessageWriter::new(&mut buffer, &header).expect("room");
    message.header_extension(&extension).expect("room");
    fill(&mut message);
    let length = message.len();
    extension.seal(&mut buffer[..length]);
    buffer[..length].to_vec()
}

/// Output for a message as text, and its submessages as JSON.
fn shown(message: &[u8]) -> (String, Vec<Value>) {
    let file = Scratch::new(&pcap(1, &[frame_of(message)]));
    let text = run(&mut spy(&[file.path()])).out;
    let json = run(&mut spy(&["--json", "-", file.path()])).out;
    let record: Value = serde_json::from_str(json.lines().next().expect("a record")).expect("JSON");
    let submessages = record["submessages"].as_array().expect("a list").clone();
    (text, submessages)
}

#[test]
fn a_header_extension_is_shown_with_all_its_fields() {
    let message = message(|_| {});
    let (text, submessages) = shown(&message);
    let line = "HEADER_EXTENSION message_bytes 52, sent_us 1500000.0, checksum ";
    assert!(text.contains(line), "{text}");
    let [extension] = &submessages[..] else {
        panic!("{submessages:?}");
    };
    assert_eq!(extension["kind"], "HEADER_EXTENSION");
    assert_eq!(extension["message_bytes"], 52);
    assert_eq!(extension["sent_us"], 1_500_000.0);
}

#[test]
fn a_message_with_a_wrong_checksum_is_malformed_and_shown_all_the_same() {
    let mut message = message(|message| {
        message.info_destination(GuidPrefix([9; 12])).expect("room");
    });
    let last = message.len() - 1;
    message[last] ^= 1;
    let (text, submessages) = shown(&message);
    let reason = "MALFORMED at byte 20: the checksum is wrong";
    assert!(text.contains(reason), "{text}");
    assert_eq!(submessages[0]["why"], "the checksum is wrong");
    assert_eq!(submessages[1]["kind"], "INFO_DST");
}

#[test]
fn a_readers_content_filter_is_shown() {
    let guid = Guid {
        prefix: GuidPrefix([7; 12]),
        entity: READER,
    };
    let mut data = EndpointData::new(guid);
    data.topic_name = "Square".try_into().expect("short");
    data.type_name = "ShapeType".try_into().expect("short");
    let filter = ContentFilterProperty {
        filtered_topic_name: "Left",
        related_topic_name: "Square",
        class_name: ContentFilterProperty::DDSSQL,
        expression: "x < %0",
        parameters: ["7"].into_iter().collect(),
    };
    let mut value = vec![0; filter.buffer_len()];
    filter.emit(&mut value);
    let mut payload = [0; 512];
    let length = data
        .emit_filtered(Some(&value), &mut payload)
        .expect("room");
    let head = DataPrefix {
        reader: EntityId::UNKNOWN,
        writer: EntityId::SEDP_SUBSCRIPTIONS_WRITER,
        sequence: ONE,
        key_hash: None,
        status: None,
        payload: PayloadKind::Data,
    };
    let message = message(|message| {
        message.data(&head, &payload[..length]).expect("room");
    });
    let (text, submessages) = shown(&message);
    let line = "content_filter (class DDSSQL, expression \"x < %0\", parameters 7)";
    assert!(text.contains(line), "{text}");
    let announced = submessages.iter().find(|it| !it["announcement"].is_null());
    let shown = &announced.expect("an announcement")["announcement"]["content_filter"];
    assert_eq!(shown["class"], "DDSSQL");
    assert_eq!(shown["expression"], "x < %0");
    assert_eq!(shown["parameters"], serde_json::json!(["7"]));
}

#[test]
fn a_sample_of_shapetype_is_decoded_or_the_reason_is_given() {
    let writer = Guid {
        prefix: GuidPrefix([7; 12]),
        entity: WRITER,
    };
    let mut announced = EndpointData::new(writer);
    announced.topic_name = "Square".try_into().expect("short");
    announced.type_name = "ShapeType".try_into().expect("short");
    let mut announcement = [0; 512];
    let length = announced.emit(&mut announcement).expect("room");
    // CDR_LE: the colour, x, y, the size, and a payload of 3 bytes.
    let mut sample = vec![0, 1, 0, 0, 4, 0, 0, 0, b'R', b'E', b'D', 0];
    for number in [7, -9, 20, 3_i32] {
        sample.extend(number.to_le_bytes());
    }
    sample.extend([1, 2, 3]);
    let message = message(|message| {
        let mut head = DataPrefix {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SEDP_PUBLICATIONS_WRITER,
            sequence: ONE,
            key_hash: None,
            status: None,
            payload: PayloadKind::Data,
        };
        message.data(&head, &announcement[..length]).expect("room");
        head.writer = WRITER;
        message.data(&head, &sample).expect("room");
        message.data(&head, &sample[..10]).expect("room");
        head.writer = EntityId::user(9, EntityKind::WRITER_NO_KEY);
        message.data(&head, &sample).expect("room");
    });
    let (text, submessages) = shown(&message);
    let line = "sample (additional_payload_size 3, color RED, shapesize 20, x 7, y -9)";
    assert_eq!(text.matches("sample (").count(), 2, "{text}");
    assert!(text.contains(line), "{text}");
    let of_user = |it: &&Value| it["kind"] == "DATA" && it["announcement"].is_null();
    let samples: Vec<_> = submessages.iter().filter(of_user).collect();
    assert_eq!(samples[0]["sample"]["y"], -9);
    assert!(samples[1]["sample"]["not_decoded"].is_string(), "{text}");
    assert_eq!(samples[2]["sample"], Value::Null, "of an unknown type");
}

#[test]
fn groups_and_filters_are_shown() {
    let message = message(|message| {
        let heartbeat = Heartbeat {
            reader: READER,
            writer: WRITER,
            first: ONE,
            last: ONE,
            count: 1,
            is_final: true,
            liveliness: true,
            group: Some(HeartbeatGroup {
                current: SequenceNumber(9),
                first: SequenceNumber(5),
                last: SequenceNumber(8),
                writers: *b"some",
                secure_writers: [0; 4],
            }),
        };
        let gap = Gap {
            reader: READER,
            writer: WRITER,
            start: ONE,
            list: SequenceNumberSet::new(SequenceNumber(4)),
            group: Some(GapGroup {
                start: SequenceNumber(5),
                end: SequenceNumber(7),
            }),
            filtered: Some(2),
        };
        message.heartbeat(&heartbeat).expect("room");
        message.gap(&gap).expect("room");
    });
    let (text, submessages) = shown(&message);
    for part in [
        "first 1, last 1, liveliness, group (current 9, first 5, last 8), count 1, final",
        "start 1, base 4, filtered_count 2, group (end 7, start 5)",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert_eq!(submessages[1]["group"]["current"], 9);
    assert_eq!(submessages[2]["filtered_count"], 2);
    assert_eq!(submessages[2]["group"]["end"], 7);
}

#[test]
fn fragments_and_what_is_said_of_them_are_shown() {
    let message = message(|message| {
        let head = DataFragPrefix {
            reader: READER,
            writer: WRITER,
            sequence: ONE,
            first_fragment: 2,
            fragments: 1,
            fragment_size: 8,
            sample_size: 20,
            key_hash: None,
            status: None,
            is_key: false,
        };
        let heartbeat = HeartbeatFrag {
            reader: READER,
            writer: WRITER,
            sequence: ONE,
            last_fragment: 3,
            count: 1,
        };
        let mut state = FragmentNumberSet::new(1);
        state.insert(1);
        state.insert(3);
        let nack = NackFrag {
            reader: READER,
            writer: WRITER,
            sequence: ONE,
            state,
            count: 4,
        };
        message.data_frag(&head, b"fragment").expect("room");
        message.heartbeat_frag(&heartbeat).expect("room");
        message.nack_frag(&nack).expect("room");
    });
    let (text, submessages) = shown(&message);
    for part in [
        "sequence 1, first_fragment 2, fragments 1, total_fragments 3, fragment_bytes 8, sample_bytes 20",
        "sequence 1, last_fragment 3, count 1",
        "sequence 1, missing 1 3, count 4",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    let kinds = submessages
        .iter()
        .map(|it| it["kind"].as_str().expect("a kind"));
    assert!(kinds.eq([
        "HEADER_EXTENSION",
        "DATA_FRAG",
        "HEARTBEAT_FRAG",
        "NACK_FRAG"
    ]));
    assert_eq!(submessages[3]["missing"], serde_json::json!([1, 3]));
}

#[test]
fn where_replies_go_is_shown_also_in_its_short_form() {
    let message = message(|message| {
        let reply = InfoReplyIp4 {
            unicast: Locator::udpv4([10, 0, 0, 1], 7411),
            multicast: Some(Locator::udpv4([239, 255, 0, 1], 7401)),
        };
        message.info_reply_ip4(&reply).expect("room");
    });
    let (text, submessages) = shown(&message);
    assert_eq!(submessages[1]["unicast"][0], "udp/10.0.0.1:7411");
    // Submessages that only describe others are shown only on request.
    assert!(!text.contains("INFO_REPLY_IP4"), "{text}");
    let file = Scratch::new(&pcap(1, &[frame_of(&message)]));
    let text = run(&mut spy(&[file.path(), "--kind", "info"])).out;
    let line = "INFO_REPLY_IP4 unicast udp/10.0.0.1:7411, multicast udp/239.255.0.1:7401";
    assert!(text.contains(line), "{text}");
}

#[test]
fn what_is_not_decoded_is_shown_by_its_number() {
    let mut message = message(|_| {});
    // The length and checksum of the extension would be wrong.
    message.truncate(20);
    message.extend([0x80, 1, 4, 0, 0, 0, 0, 0]);
    let (text, submessages) = shown(&message);
    assert!(text.contains("UNKNOWN id 0x80, flags 1, bytes 4"), "{text}");
    assert_eq!(submessages[0]["id"], "0x80");
}
