//! Tests of messages written submessage by submessage.

use isolane_wire::{
    BufferTooSmall,
    guid::{EntityId, GuidPrefix},
    locator::Locator,
    message::{
        AckNack, DataFragPrefix, DataPrefix, Gap, HEADER_BYTES, Header, HeaderExtension, Heartbeat,
        HeartbeatFrag, InfoReply, InfoReplyIp4, InfoSource, MessageWriter, NackFrag, PayloadKind,
        SAMPLE_PREFIX_BYTES, SamplePrefix, Submessage, Submessages, pad,
    },
    sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet},
    time::Timestamp,
};

use crate::bytes::{READER, WRITER};

const PREFIX: GuidPrefix = GuidPrefix([7; 12]);
const ONE: SequenceNumber = SequenceNumber(1);

const HEARTBEAT: Heartbeat = Heartbeat {
    reader: READER,
    writer: WRITER,
    group: None,
    first: ONE,
    last: ONE,
    count: 1,
    is_final: true,
    liveliness: false,
};

const HEAD: DataPrefix = DataPrefix {
    reader: EntityId::UNKNOWN,
    writer: WRITER,
    sequence: ONE,
    key_hash: None,
    status: None,
    payload: PayloadKind::Data,
};

fn fragment() -> DataFragPrefix {
    DataFragPrefix {
        reader: READER,
        writer: WRITER,
        sequence: ONE,
        first_fragment: 1,
        fragments: 1,
        fragment_size: 5,
        sample_size: 10,
        key_hash: None,
        status: None,
        is_key: false,
    }
}

/// One submessage of each kind.
fn write_all(message: &mut MessageWriter<'_>) -> Result<(), BufferTooSmall> {
    let acknack = AckNack {
        reader: READER,
        writer: WRITER,
        state: SequenceNumberSet::new(ONE),
        count: 1,
        is_final: true,
    };
    let nack_frag = NackFrag {
        reader: READER,
        writer: WRITER,
        sequence: ONE,
        state: FragmentNumberSet::new(1),
        count: 1,
    };
    let heartbeat_frag = HeartbeatFrag {
        reader: READER,
        writer: WRITER,
        sequence: ONE,
        last_fragment: 1,
        count: 1,
    };
    let gap = Gap {
        reader: READER,
        writer: WRITER,
        group: None,
        filtered: None,
        start: ONE,
        list: SequenceNumberSet::new(SequenceNumber(3)),
    };
    let place = Locator::udpv4([10, 0, 0, 1], 7411);
    let places = [&[1, 0, 0, 0][..], &[1, 0, 0, 0, 0, 0, 0, 0], &[0; 16]].concat();
    let reply = InfoReply::parse(1, &places).unwrap();
    let reply_ip4 = InfoReplyIp4 {
        unicast: place,
        multicast: None,
    };
    let extension = HeaderExtension {
        sent: Some(Timestamp::ZERO),
        ..HeaderExtension::default()
    };
    let source = InfoSource {
        version: [2, 5],
        vendor: [0, 0],
        prefix: PREFIX,
    };
    message
        .header_extension(&extension)?
        .info_source(&source)?
        .info_reply(&reply)?
        .info_reply_ip4(&reply_ip4)?
        .info_destination(PREFIX)?
        .info_timestamp(Timestamp::ZERO)?
        .data(&HEAD, b"\0\x01\0\0a")?
        .data_frag(&fragment(), b"12345")?
        .heartbeat(&HEARTBEAT)?
        .heartbeat_frag(&heartbeat_frag)?
        .acknack(&acknack)?
        .nack_frag(&nack_frag)?
        .gap(&gap)
        .map(|_| ())
}

fn kinds(message: &[u8]) -> String {
    Submessages::new(message, HEADER_BYTES)
        .map(|submessage| match submessage.unwrap() {
            Submessage::HeaderExtension(_) => "extension ",
            Submessage::InfoReply(_) => "reply ",
            Submessage::InfoReplyIp4(_) => "reply_ip4 ",
            Submessage::InfoSource(_) => "source ",
            Submessage::InfoDestination(_) => "destination ",
            Submessage::InfoTimestamp(_) => "timestamp ",
            Submessage::Data(_) => "data ",
            Submessage::DataFrag(_) => "data_frag ",
            Submessage::Heartbeat(_) => "heartbeat ",
            Submessage::HeartbeatFrag(_) => "heartbeat_frag ",
            Submessage::AckNack(_) => "acknack ",
            Submessage::NackFrag(_) => "nack_frag ",
            Submessage::Gap(_) => "gap ",
            other => panic!("{other:?} was not written"),
        })
        .collect()
}

const ALL: &str = "extension source reply reply_ip4 destination timestamp data data_frag heartbeat \
                   heartbeat_frag acknack nack_frag gap ";

#[test]
fn what_is_written_reads_back_in_order() {
    let header = Header::new(PREFIX);
    let mut buffer = [0xaa; 512];
    let mut message = MessageWriter::new(&mut buffer, &header).unwrap();
    assert_eq!((message.len(), message.remaining()), (20, 492));
    write_all(&mut message).unwrap();
    let length = message.len();
    assert_eq!(message.remaining(), 512 - length);
    assert_eq!(Header::parse(&buffer), Ok(header));
    assert_eq!(kinds(&buffer[..length]), ALL);
}

#[test]
fn in_a_buffer_of_any_size_a_message_holds_whole_submessages_only() {
    for room in 0..480 {
        let mut buffer = vec![0xaa; room];
        let Ok(mut message) = MessageWriter::new(&mut buffer, &Header::new(PREFIX)) else {
            assert!(room < HEADER_BYTES);
            continue;
        };
        let fitted = write_all(&mut message).is_ok();
        let length = message.len();
        let written = kinds(&buffer[..length]);
        assert!(ALL.starts_with(&written), "{room} bytes: {written}");
        assert_eq!(fitted, written == ALL);
        assert!(
            buffer[length..].iter().all(|byte| *byte == 0xaa),
            "{room} bytes"
        );
    }
}

#[test]
fn a_payload_is_padded_with_zeros_to_a_multiple_of_four() {
    let mut buffer = [0xaa; 64];
    let mut message = MessageWriter::new(&mut buffer, &Header::new(PREFIX)).unwrap();
    message.data(&HEAD, b"\0\x01\0\x03a").unwrap();
    let length = message.len();
    let Some(Ok(Submessage::Data(data))) = Submessages::new(&buffer[..length], HEADER_BYTES).next()
    else {
        panic!("no DATA");
    };
    assert_eq!(data.bytes, b"\0\x01\0\x03a\0\0\0");
}

#[test]
fn a_payload_too_long_for_the_length_field_is_refused_amid_others() {
    let mut buffer = vec![0; 100_000];
    let mut message = MessageWriter::new(&mut buffer, &Header::new(PREFIX)).unwrap();
    assert_eq!(
        message.data(&HEAD, &vec![0; 65_536]).err(),
        Some(BufferTooSmall)
    );
    assert_eq!(message.len(), HEADER_BYTES);
    message
        .data(&HEAD, &vec![0; 65_500])
        .unwrap()
        .heartbeat(&HEARTBEAT)
        .unwrap();
    let length = message.len();
    assert_eq!(kinds(&buffer[..length]), "data heartbeat ");
}

#[test]
fn the_heads_laid_out_once_are_those_written_one_by_one() {
    let header = Header::new(PREFIX);
    let laid_out = SamplePrefix::new(&header, WRITER);
    let timestamp = Timestamp::from_nanos(1_700_000_000_123_456_789);
    let payload = vec![7; 0x2_0000];
    for (number, payload_len) in [
        (1, 0),
        (0x1_2345_6789, 68),
        (i64::MAX - 1, 0xffe8),
        (2, 0x1_0000),
    ] {
        let head = DataPrefix {
            sequence: SequenceNumber(number),
            ..HEAD
        };
        let mut one_by_one = vec![0; SAMPLE_PREFIX_BYTES];
        let length = MessageWriter::new(&mut one_by_one, &header)
            .and_then(|mut message| {
                message
                    .info_timestamp(timestamp)
                    .map(|message| message.len())
            })
            .expect("it fits");
        head.emit(&mut one_by_one[length..], payload_len);

        let mut datagram = [0xff; SAMPLE_PREFIX_BYTES];
        laid_out.emit(&mut datagram, timestamp, head.sequence, payload_len);
        assert_eq!(datagram[..], one_by_one, "{payload_len} bytes");

        let message = [&datagram[..], &payload[..payload_len]].concat();
        let submessages: Vec<_> = Submessages::new(&message, HEADER_BYTES).collect();
        let [
            Ok(Submessage::InfoTimestamp(Some(when))),
            Ok(Submessage::Data(data)),
        ] = submessages[..]
        else {
            panic!("{submessages:?}");
        };
        assert_eq!((when, data.sequence), (timestamp, head.sequence));
        assert_eq!((data.writer, data.bytes.len()), (WRITER, payload_len));
    }
}

#[test]
fn a_message_with_padding_behind_it_reads_as_before_and_then_as_pad() {
    let mut buffer = [0xff; 1_024];
    let mut message = MessageWriter::new(&mut buffer, &Header::new(PREFIX)).unwrap();
    write_all(&mut message).unwrap();
    let end = message.len();
    let before = buffer;
    let expected: Vec<_> = Submessages::new(&before[..end], HEADER_BYTES).collect();
    for padding in [4, 8, 68, 200] {
        assert!(pad(&mut buffer[end..end + padding]), "{padding} bytes");
        let padded = &buffer[..end + padding];
        let mut found: Vec<_> = Submessages::new(padded, HEADER_BYTES).collect();
        assert_eq!(found.pop(), Some(Ok(Submessage::Pad)), "{padding} bytes");
        assert_eq!(found, expected, "{padding} bytes");
        let mut last = Submessages::new(padded, end);
        let body = last.next_raw().map(|last| last.map(|last| last.body));
        assert_eq!(body, Some(Ok(&[0; 200][..padding - 4])));
        assert_eq!(last.offset(), padded.len());
    }
}

#[test]
fn no_padding_has_a_length_that_no_submessage_has() {
    let longest = 4 + 65_532;
    for length in [0, 1, 2, 3, 5, 6, 67, longest + 1, longest + 4] {
        let mut room = vec![0xff; length];
        assert!(!pad(&mut room), "{length} bytes");
        assert!(room.iter().all(|byte| *byte == 0xff), "{length} bytes");
    }
    assert!(pad(&mut vec![0; longest]));
}
