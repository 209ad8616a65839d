//! ACKNACK, HEARTBEAT and GAP.

use isolane_wire::{
    ByteOrder, Error,
    message::{AckNack, Gap, Heartbeat, Submessage},
    sequence::{SequenceNumber, SequenceNumberSet},
};

use crate::bytes::{Bytes, ORDERS, READER, WRITER, reread};

fn set(base: i64, members: &[i64]) -> SequenceNumberSet {
    let mut set = SequenceNumberSet::new(SequenceNumber(base));
    for member in members {
        assert!(set.insert(SequenceNumber(*member)));
    }
    set
}

fn acknack(order: ByteOrder, base: i64, num_bits: u32, words: &[u32]) -> Result<AckNack, Error> {
    let body = Bytes::from_writer_to_reader(order)
        .set(base, num_bits, words)
        .u32(7);
    AckNack::parse(body.flags(0), &body.bytes)
}

#[test]
fn an_acknack_is_read_in_either_byte_order() {
    for order in ORDERS {
        // Bits 0, 33 and 40 of 41.
        let body = Bytes::from_writer_to_reader(order)
            .set(0x1_0000_0005, 41, &[0x8000_0000, 0x4080_0000])
            .u32(0xffff_ffff);
        let expected = AckNack {
            reader: READER,
            writer: WRITER,
            state: set(
                0x1_0000_0005,
                &[0x1_0000_0005, 0x1_0000_0026, 0x1_0000_002d],
            ),
            count: -1,
            is_final: false,
        };
        assert_eq!(AckNack::parse(body.flags(0), &body.bytes), Ok(expected));
        let is_final = AckNack::parse(body.flags(2), &body.bytes).unwrap().is_final;
        assert!(is_final);
    }
}

#[test]
fn an_acknack_may_have_base_0_without_members_but_not_less() {
    for order in ORDERS {
        let state = acknack(order, 0, 0, &[]).unwrap().state;
        assert_eq!((state.base(), state.num_bits()), (SequenceNumber(0), 0));
        assert!(acknack(order, 0, 1, &[0]).is_ok());
        assert_eq!(acknack(order, 0, 1, &[1 << 31]), Err(Error::InvalidSet));
        assert_eq!(acknack(order, -1, 0, &[]), Err(Error::InvalidSet));
    }
}

#[test]
fn a_set_has_at_most_256_bits() {
    for order in ORDERS {
        let state = acknack(order, 1, 256, &[u32::MAX; 8]).unwrap().state;
        assert_eq!(state.iter().count(), 256);
        assert_eq!(state.iter().last(), Some(SequenceNumber(256)));
        assert_eq!(
            acknack(order, 1, 257, &[u32::MAX; 9]),
            Err(Error::InvalidSet)
        );
        assert_eq!(acknack(order, 1, u32::MAX, &[0; 8]), Err(Error::InvalidSet));
    }
}

#[test]
fn a_set_does_not_leave_the_range_of_sequence_numbers() {
    for order in ORDERS {
        assert_eq!(acknack(order, i64::MAX, 32, &[1]), Err(Error::InvalidSet));
        assert!(acknack(order, i64::MAX - 32, 32, &[1]).is_ok());
    }
}

#[test]
fn bits_beyond_the_width_are_not_members() {
    for order in ORDERS {
        let state = acknack(order, 10, 3, &[u32::MAX]).unwrap().state;
        assert_eq!(state, set(10, &[10, 11, 12]));
    }
}

#[test]
fn a_set_with_fewer_words_than_bits_is_truncated() {
    let body = Bytes::from_writer_to_reader(ByteOrder::Little).set(1, 64, &[0]);
    assert_eq!(
        AckNack::parse(body.flags(0), &body.bytes),
        Err(Error::Truncated)
    );
}

#[test]
fn an_acknack_survives_the_way_there_and_back() {
    for (members, length) in [(&[][..], 28), (&[3, 34][..], 32), (&[3, 35, 258][..], 60)] {
        let sent = AckNack {
            reader: READER,
            writer: WRITER,
            state: set(3, members),
            count: 9,
            is_final: members.is_empty(),
        };
        let mut buffer = [0xaa; 100];
        assert_eq!(sent.emit(&mut buffer), sent.buffer_len());
        assert_eq!(sent.buffer_len(), length, "{members:?}");
        assert_eq!(
            reread(&buffer[..sent.buffer_len()]),
            Submessage::AckNack(sent)
        );
    }
}

fn heartbeat(order: ByteOrder, first: i64, last: i64) -> Result<Heartbeat, Error> {
    let body = Bytes::from_writer_to_reader(order)
        .sequence(first)
        .sequence(last)
        .u32(5);
    Heartbeat::parse(body.flags(0), &body.bytes)
}

#[test]
fn a_heartbeat_is_read_in_either_byte_order() {
    for order in ORDERS {
        let body = Bytes::from_writer_to_reader(order)
            .sequence(0x2_0000_0001)
            .sequence(0x2_0000_0003)
            .u32(5);
        let expected = Heartbeat {
            reader: READER,
            writer: WRITER,
            group: None,
            first: SequenceNumber(0x2_0000_0001),
            last: SequenceNumber(0x2_0000_0003),
            count: 5,
            is_final: false,
            liveliness: false,
        };
        let parse = |flags| Heartbeat::parse(body.flags(flags), &body.bytes);
        assert_eq!(parse(0), Ok(expected));
        assert!(parse(2).unwrap().is_final);
        assert!(parse(4).unwrap().liveliness);
        assert!(!parse(4).unwrap().is_final);
    }
}

#[test]
fn a_heartbeat_of_an_empty_writer_ends_one_below_its_beginning() {
    for order in ORDERS {
        assert!(heartbeat(order, 1, 0).is_ok());
        assert!(heartbeat(order, 5, 4).is_ok());
    }
}

#[test]
fn a_heartbeat_that_runs_backwards_or_begins_below_1_is_refused() {
    for order in ORDERS {
        for (first, last) in [
            (0, 0),
            (-1, 3),
            (i64::MIN, i64::MAX),
            (5, 3),
            (1, -1),
            (1, i64::MIN),
        ] {
            assert_eq!(
                heartbeat(order, first, last),
                Err(Error::InvalidSequenceNumber),
                "{first} to {last}"
            );
        }
    }
}

#[test]
fn a_heartbeat_survives_the_way_there_and_back() {
    for (is_final, liveliness) in [(false, false), (true, false), (false, true), (true, true)] {
        let sent = Heartbeat {
            reader: READER,
            writer: WRITER,
            group: None,
            first: SequenceNumber(0x1_0000_0002),
            last: SequenceNumber(0x1_0000_0001),
            count: -7,
            is_final,
            liveliness,
        };
        let mut buffer = [0xaa; 32];
        assert_eq!(sent.emit(&mut buffer), 32);
        assert_eq!(reread(&buffer), Submessage::Heartbeat(sent));
    }
}

#[test]
fn a_gap_is_read_in_either_byte_order() {
    for order in ORDERS {
        let body = Bytes::from_writer_to_reader(order)
            .sequence(3)
            .set(6, 2, &[0x4000_0000]);
        let expected = Gap {
            reader: READER,
            writer: WRITER,
            group: None,
            filtered: None,
            start: SequenceNumber(3),
            list: set(6, &[7]),
        };
        assert_eq!(Gap::parse(body.flags(0), &body.bytes), Ok(expected));
    }
}

#[test]
fn a_gap_begins_at_1_and_its_list_too() {
    for order in ORDERS {
        let gap = |start, base| {
            let body = Bytes::from_writer_to_reader(order)
                .sequence(start)
                .set(base, 0, &[]);
            Gap::parse(body.flags(0), &body.bytes)
        };
        assert!(gap(1, 1).is_ok());
        assert_eq!(gap(0, 2), Err(Error::InvalidSequenceNumber));
        assert_eq!(gap(-4, 2), Err(Error::InvalidSequenceNumber));
        assert_eq!(gap(1, 0), Err(Error::InvalidSet));
    }
}

#[test]
fn a_gap_survives_the_way_there_and_back() {
    for members in [&[][..], &[8, 9, 70][..]] {
        let sent = Gap {
            reader: READER,
            writer: WRITER,
            group: None,
            filtered: None,
            start: SequenceNumber(1),
            list: set(8, members),
        };
        let mut buffer = [0xaa; 80];
        let length = sent.emit(&mut buffer);
        assert_eq!(length, sent.buffer_len());
        assert_eq!(reread(&buffer[..length]), Submessage::Gap(sent));
    }
}
