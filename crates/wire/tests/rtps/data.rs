//! DATA: flags, inline QoS, payload.

use isolane_wire::{
    ByteOrder, Error,
    guid::EntityId,
    message::{
        Data, DataPrefix, HEADER_BYTES, PayloadKind, StatusInfo, Submessage, SubmessageId,
        Submessages,
    },
    parameter::pid,
    sequence::SequenceNumber,
};

use crate::bytes::{Bytes, ORDERS, READER, WRITER};

const Q: u8 = 0x02;
const D: u8 = 0x04;
const K: u8 = 0x08;
const N: u8 = 0x10;

const HASH: [u8; 16] = *b"sixteen bytes it";

/// Fields up to the inline QoS or payload.
fn fixed(order: ByteOrder, sequence: i64) -> Bytes {
    Bytes::new(order)
        .u16(0)
        .u16(16)
        .raw(&READER.0)
        .raw(&WRITER.0)
        .sequence(sequence)
}

fn parameter(bytes: Bytes, id: u16, value: &[u8]) -> Bytes {
    bytes.u16(id).u16(value.len() as u16).raw(value)
}

fn sentinel(bytes: Bytes) -> Bytes {
    parameter(bytes, pid::SENTINEL, &[])
}

fn parse(body: &Bytes, flags: u8) -> Result<Data<'_>, Error> {
    Data::parse(body.flags(flags), &body.bytes, 100)
}

#[test]
fn a_sample_is_read_in_either_byte_order() {
    for order in ORDERS {
        let body = fixed(order, 0x3_0000_0004).raw(b"\0\x01\0\0payload!");
        let data = parse(&body, D).unwrap();
        assert_eq!((data.reader, data.writer), (READER, WRITER));
        assert_eq!(data.sequence, SequenceNumber(0x3_0000_0004));
        assert_eq!(data.payload, PayloadKind::Data);
        assert_eq!(data.bytes, b"\0\x01\0\0payload!");
        assert_eq!(data.payload_offset, 100 + 20);
        assert_eq!(data.little_endian, order == ByteOrder::Little);
        assert_eq!(data.inline_qos, None);
        assert_eq!(data.key_hash(), None);
        assert_eq!(data.status_info(), StatusInfo::default());
        assert!(!data.non_standard);
    }
}

#[test]
fn inline_qos_is_read_in_either_byte_order_and_status_info_always_big_endian() {
    for order in ORDERS {
        let body = parameter(fixed(order, 1), pid::KEY_HASH, &HASH);
        let body = parameter(body, pid::STATUS_INFO, &[0, 0, 0, 3]);
        let body = sentinel(body).raw(b"\0\x01\0\0key.");
        let data = parse(&body, Q | K).unwrap();
        assert_eq!(data.payload, PayloadKind::Key);
        assert_eq!(data.bytes, b"\0\x01\0\0key.");
        assert_eq!(data.payload_offset, 100 + 20 + 20 + 8 + 4);
        assert_eq!(data.key_hash(), Some(HASH));
        let status = data.status_info();
        assert!(status.disposed && status.unregistered);
    }
}

#[test]
fn the_lifespan_of_a_sample_is_read_in_either_byte_order_and_one_below_zero_is_none() {
    for order in ORDERS {
        let number = |value: u32| match order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        };
        let of = |seconds: i32| {
            let value = [number(seconds as u32), number(1 << 31)].concat();
            let body = sentinel(parameter(fixed(order, 1), pid::LIFESPAN, &value));
            parse(&body, Q).unwrap().lifespan()
        };
        let lifespan = of(3).unwrap();
        assert_eq!((lifespan.seconds, lifespan.fraction), (3, 1 << 31));
        assert_eq!(of(-1), None);
        let short = sentinel(parameter(fixed(order, 1), pid::LIFESPAN, &[0; 4]));
        assert_eq!(parse(&short, Q).unwrap().lifespan(), None);
        assert_eq!(parse(&fixed(order, 1), 0).unwrap().lifespan(), None);
    }
}

#[test]
fn the_two_bits_of_status_info_are_distinct() {
    for (flags, disposed, unregistered) in [
        (0, false, false),
        (1, true, false),
        (2, false, true),
        (4, false, false),
    ] {
        let body = parameter(
            fixed(ByteOrder::Little, 1),
            pid::STATUS_INFO,
            &[0, 0, 0, flags],
        );
        let body = sentinel(body);
        let status = parse(&body, Q).unwrap().status_info();
        assert_eq!(
            (status.disposed, status.unregistered),
            (disposed, unregistered)
        );
    }
}

#[test]
fn without_the_flags_there_is_no_payload_whatever_follows() {
    for order in ORDERS {
        let body = fixed(order, 1).raw(b"leftover");
        let data = parse(&body, 0).unwrap();
        assert_eq!((data.payload, data.bytes), (PayloadKind::None, &[][..]));
    }
}

#[test]
fn a_payload_of_a_vendors_format_is_marked() {
    let body = fixed(ByteOrder::Little, 1).raw(b"\0\x01\0\0");
    assert!(parse(&body, D | N).unwrap().non_standard);
}

#[test]
fn a_payload_is_sample_or_key_but_not_both() {
    for order in ORDERS {
        let body = fixed(order, 1).raw(b"\0\x01\0\0");
        let flags = body.flags(D | K);
        assert_eq!(parse(&body, D | K), Err(Error::InvalidFlags(flags)));
    }
}

#[test]
fn a_sequence_number_that_is_not_positive_is_refused() {
    for order in ORDERS {
        for sequence in [0, -1, i64::MIN, SequenceNumber::UNKNOWN.get()] {
            let body = fixed(order, sequence).raw(b"\0\x01\0\0");
            assert_eq!(
                parse(&body, D),
                Err(Error::InvalidSequenceNumber),
                "{sequence}"
            );
        }
    }
}

#[test]
fn what_a_later_version_puts_before_inline_qos_is_skipped() {
    for order in ORDERS {
        let body = Bytes::new(order)
            .u16(0)
            .u16(24)
            .raw(&READER.0)
            .raw(&WRITER.0)
            .sequence(1)
            .raw(b"unknown.");
        let body = sentinel(parameter(body, pid::KEY_HASH, &HASH)).raw(b"\0\x01\0\0");
        let data = parse(&body, Q | D).unwrap();
        assert_eq!(data.key_hash(), Some(HASH));
        assert_eq!(data.bytes, b"\0\x01\0\0");
    }
}

#[test]
fn an_offset_to_inline_qos_that_points_into_the_head_or_beyond_the_end_is_refused() {
    for order in ORDERS {
        for offset in [0, 15, 21, u16::MAX] {
            let body = Bytes::new(order)
                .u16(0)
                .u16(offset)
                .raw(&READER.0)
                .raw(&WRITER.0)
                .sequence(1)
                .raw(b"\0\x01\0\0");
            assert_eq!(parse(&body, D), Err(Error::Truncated), "{offset}");
        }
    }
}

#[test]
fn inline_qos_without_an_end_is_refused() {
    for order in ORDERS {
        let body = parameter(fixed(order, 1), pid::KEY_HASH, &HASH);
        assert_eq!(parse(&body, Q | D), Err(Error::Truncated));
        let body = fixed(order, 1).u16(pid::KEY_HASH).u16(16).raw(&[0; 12]);
        assert_eq!(parse(&body, Q | D), Err(Error::Truncated));
    }
}

#[test]
fn a_sample_with_an_unknown_parameter_that_must_be_understood_is_refused() {
    for order in ORDERS {
        let body = sentinel(parameter(fixed(order, 1), 0x4055, &[0; 4]));
        assert_eq!(parse(&body, Q), Err(Error::MustUnderstand(0x0055)));
        let body = sentinel(parameter(fixed(order, 1), 0x4071, &[0, 0, 0, 1]));
        assert!(parse(&body, Q).unwrap().status_info().disposed);
    }
}

#[test]
fn a_key_hash_of_too_few_bytes_is_none() {
    let body = sentinel(parameter(
        fixed(ByteOrder::Little, 1),
        pid::KEY_HASH,
        &[1; 12],
    ));
    assert_eq!(parse(&body, Q).unwrap().key_hash(), None);
}

#[test]
fn in_a_message_the_payload_is_where_its_offset_says() {
    let body = sentinel(parameter(fixed(ByteOrder::Big, 1), pid::KEY_HASH, &HASH));
    let message = body
        .raw(b"\0\x01\0\0payload!")
        .message(SubmessageId::DATA, Q | D);
    let Some(Ok(Submessage::Data(data))) = Submessages::new(&message, HEADER_BYTES).next() else {
        panic!("no DATA in {message:02x?}");
    };
    assert_eq!(&message[data.payload_offset..], data.bytes);
    assert_eq!(data.bytes, b"\0\x01\0\0payload!");
}

#[test]
fn a_head_in_front_of_a_payload_in_place_reads_back() {
    let dispose = StatusInfo {
        disposed: true,
        unregistered: false,
    };
    for (key_hash, status, payload, length) in [
        (None, None, PayloadKind::Data, 24),
        (Some(HASH), None, PayloadKind::Data, 48),
        (None, Some(dispose), PayloadKind::Key, 36),
        (Some(HASH), Some(dispose), PayloadKind::Key, 56),
        (Some(HASH), Some(dispose), PayloadKind::None, 56),
    ] {
        let head = DataPrefix {
            reader: EntityId::UNKNOWN,
            writer: WRITER,
            sequence: SequenceNumber(0x1_0000_0001),
            key_hash,
            status,
            payload,
        };
        assert_eq!(head.buffer_len(), length);
        assert!(length <= DataPrefix::MAX_BYTES);
        let bytes: &[u8] = match payload {
            PayloadKind::None => &[],
            _ => b"\0\x01\0\0in place",
        };
        let mut message = vec![0xaa; length];
        message.extend_from_slice(bytes);
        head.emit(&mut message[..length], bytes.len());

        let mut submessages = Submessages::new(&message, 0);
        let Some(Ok(Submessage::Data(data))) = submessages.next() else {
            panic!("{head:?} reads as something else");
        };
        assert_eq!(submessages.offset(), message.len());
        assert_eq!((data.reader, data.writer), (EntityId::UNKNOWN, WRITER));
        assert_eq!(data.sequence, head.sequence);
        assert_eq!((data.payload, data.bytes), (payload, bytes));
        assert_eq!(data.key_hash(), key_hash);
        assert_eq!(data.status_info(), status.unwrap_or_default());
        assert_eq!(data.payload_offset, length);
    }
}

#[test]
fn a_payload_too_long_for_the_length_field_goes_on_to_the_end_of_the_message() {
    let head = DataPrefix {
        reader: READER,
        writer: WRITER,
        sequence: SequenceNumber(1),
        key_hash: None,
        status: None,
        payload: PayloadKind::Data,
    };
    let length = head.buffer_len();
    let mut message = vec![0; length + 80_000];
    head.emit(&mut message[..length], 80_000);
    let Some(Ok(Submessage::Data(data))) = Submessages::new(&message, 0).next() else {
        panic!("no DATA");
    };
    assert_eq!(data.bytes.len(), 80_000);
}
