//! Tests of group information and filtered changes in HEARTBEAT and GAP.

use isolane_wire::{
    ByteOrder, Error,
    message::{Gap, GapGroup, Heartbeat, HeartbeatGroup, Submessage},
    sequence::{SequenceNumber, SequenceNumberSet},
};

use crate::bytes::{Bytes, ORDERS, READER, WRITER, reread};

/// Appends the current, first and last number of the group, and two digests.
fn with_group(bytes: Bytes, current: i64, first: i64, last: i64) -> Bytes {
    let numbers = bytes.sequence(current).sequence(first).sequence(last);
    numbers.raw(&[0xab; 8])
}

#[test]
fn group_information_behind_a_heartbeat_must_be_possible() {
    for order in ORDERS {
        let parse = |current, first, last| {
            let heartbeat = Bytes::from_writer_to_reader(order)
                .sequence(1)
                .sequence(1)
                .u32(5);
            let body = with_group(heartbeat, current, first, last);
            Heartbeat::parse(body.flags(8), &body.bytes)
        };
        let parsed = parse(9, 1, 8).unwrap();
        assert_eq!(parsed.count, 5);
        let expected = HeartbeatGroup {
            current: SequenceNumber(9),
            first: SequenceNumber(1),
            last: SequenceNumber(8),
            writers: [0xab; 4],
            secure_writers: [0xab; 4],
        };
        assert_eq!(parsed.group, Some(expected));
        assert!(parse(9, 9, 8).is_ok());
        for (current, first, last) in [
            (0, 1, 1),
            (9, 0, 1),
            (9, 1, -1),
            (9, 5, 3),
            (4, 5, 4),
            (4, 1, 5),
            (i64::MIN, i64::MIN, i64::MAX),
        ] {
            let parsed = parse(current, first, last);
            let refused = Err(Error::InvalidSequenceNumber);
            assert_eq!(parsed, refused, "{current}, {first} to {last}");
        }
    }
}

#[test]
fn group_information_that_was_announced_must_be_there() {
    let heartbeat = Bytes::from_writer_to_reader(ByteOrder::Little)
        .sequence(1)
        .sequence(1)
        .u32(5);
    let whole = with_group(heartbeat, 1, 1, 1);
    for length in 28..whole.bytes.len() {
        let cut = Heartbeat::parse(whole.flags(8), &whole.bytes[..length]);
        assert_eq!(cut, Err(Error::Truncated), "{length} bytes");
        let without = Heartbeat::parse(whole.flags(0), &whole.bytes[..length]);
        assert!(without.is_ok(), "{length} bytes");
    }
    let gap = Bytes::from_writer_to_reader(ByteOrder::Little)
        .sequence(3)
        .set(6, 0, &[]);
    let parsed = Gap::parse(gap.flags(2), &gap.bytes);
    assert_eq!(parsed, Err(Error::Truncated));
}

#[test]
fn group_information_behind_a_gap_must_be_possible() {
    for order in ORDERS {
        let parse = |start, end| {
            let body = Bytes::from_writer_to_reader(order)
                .sequence(3)
                .set(6, 2, &[0x4000_0000])
                .sequence(start)
                .sequence(end);
            Gap::parse(body.flags(2), &body.bytes)
        };
        for (start, end) in [(1, 1), (5, 4), (5, 0x3_0000_0002)] {
            let expected = GapGroup {
                start: SequenceNumber(start),
                end: SequenceNumber(end),
            };
            assert_eq!(parse(start, end).unwrap().group, Some(expected));
        }
        for (start, end) in [(0, 1), (1, 0), (-1, 5), (5, 3), (i64::MAX, 1)] {
            let refused = Err(Error::InvalidSequenceNumber);
            assert_eq!(parse(start, end), refused, "{start} to {end}");
        }
    }
}

fn gap() -> Gap {
    let mut list = SequenceNumberSet::new(SequenceNumber(6));
    list.insert(SequenceNumber(7));
    Gap {
        reader: READER,
        writer: WRITER,
        start: SequenceNumber(3),
        list,
        group: None,
        filtered: None,
    }
}

#[test]
fn the_count_of_filtered_changes_stands_behind_the_group_if_there_is_one() {
    let group = GapGroup {
        start: SequenceNumber(11),
        end: SequenceNumber(15),
    };
    for order in ORDERS {
        let plain = Bytes::from_writer_to_reader(order)
            .sequence(3)
            .set(6, 2, &[0x4000_0000]);
        let filtered = plain.clone().sequence(0x2_0000_0001);
        let expected = Gap {
            filtered: Some(0x2_0000_0001),
            ..gap()
        };
        assert_eq!(
            Gap::parse(filtered.flags(4), &filtered.bytes),
            Ok(expected),
            "{order:?}"
        );
        let both = plain.clone().sequence(11).sequence(15).sequence(2);
        let expected = Gap {
            group: Some(group),
            filtered: Some(2),
            ..gap()
        };
        assert_eq!(Gap::parse(both.flags(6), &both.bytes), Ok(expected));
        assert_eq!(
            Gap::parse(plain.flags(4), &plain.bytes),
            Err(Error::Truncated)
        );
    }
}

#[test]
fn a_gap_with_any_of_it_survives_the_way_there_and_back() {
    let group = GapGroup {
        start: SequenceNumber(0x1_0000_0002),
        end: SequenceNumber(0x1_0000_0001),
    };
    for (group, filtered, length) in [
        (None, None, 36),
        (Some(group), None, 52),
        (None, Some(0x5_0000_0004), 44),
        (Some(group), Some(1), 60),
    ] {
        let sent = Gap {
            group,
            filtered,
            ..gap()
        };
        let mut buffer = [0xaa; 64];
        assert_eq!(sent.buffer_len(), length);
        assert_eq!(sent.emit(&mut buffer), length);
        assert_eq!(reread(&buffer[..length]), Submessage::Gap(sent));
    }
}

#[test]
fn a_heartbeat_with_its_group_survives_the_way_there_and_back() {
    let sent = Heartbeat {
        reader: READER,
        writer: WRITER,
        first: SequenceNumber(1),
        last: SequenceNumber(4),
        count: 7,
        is_final: true,
        liveliness: true,
        group: Some(HeartbeatGroup {
            current: SequenceNumber(0x1_0000_0009),
            first: SequenceNumber(2),
            last: SequenceNumber(8),
            writers: *b"some",
            secure_writers: [0; 4],
        }),
    };
    let mut buffer = [0xaa; 64];
    assert_eq!((sent.emit(&mut buffer), sent.buffer_len()), (64, 64));
    assert_eq!(reread(&buffer), Submessage::Heartbeat(sent));
}
