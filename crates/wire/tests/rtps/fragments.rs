//! DATA_FRAG, HEARTBEAT_FRAG and NACK_FRAG.

use isolane_wire::{
    ByteOrder, Error,
    message::{
        DataFrag, DataFragPrefix, HeartbeatFrag, NackFrag, PayloadKind, StatusInfo, Submessage,
        Submessages,
    },
    parameter::pid,
    sequence::{FragmentNumberSet, SequenceNumber},
};

use crate::bytes::{Bytes, ORDERS, READER, WRITER, reread};

const Q: u8 = 0x02;
const K: u8 = 0x04;
const N: u8 = 0x08;

/// Numeric fields of a DATA_FRAG.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    sequence: i64,
    first: u32,
    count: u16,
    size: u16,
    sample: u32,
}

/// Fragments 2 and 3 of 3, of 10 + 10 + 5 bytes.
const LAST_TWO: Numbers = Numbers {
    sequence: 1,
    first: 2,
    count: 2,
    size: 10,
    sample: 25,
};

fn fixed(order: ByteOrder, numbers: Numbers) -> Bytes {
    Bytes::new(order)
        .u16(0)
        .u16(28)
        .raw(&READER.0)
        .raw(&WRITER.0)
        .sequence(numbers.sequence)
        .u32(numbers.first)
        .u16(numbers.count)
        .u16(numbers.size)
        .u32(numbers.sample)
}

fn parse(body: &Bytes, flags: u8) -> Result<DataFrag<'_>, Error> {
    DataFrag::parse(body.flags(flags), &body.bytes, 100)
}

#[test]
fn fragments_are_read_in_either_byte_order() {
    for order in ORDERS {
        let body = fixed(order, LAST_TWO).raw(b"ten bytes!five!");
        let data = parse(&body, 0).unwrap();
        assert_eq!((data.reader, data.writer), (READER, WRITER));
        assert_eq!(data.sequence, SequenceNumber(1));
        assert_eq!((data.first_fragment, data.fragments), (2, 2));
        assert_eq!((data.fragment_size, data.sample_size), (10, 25));
        assert_eq!(data.bytes, b"ten bytes!five!");
        assert_eq!((data.total_fragments(), data.sample_offset()), (3, 10));
        assert_eq!(data.payload, PayloadKind::Data);
        assert_eq!(data.payload_offset, 100 + 32);
        assert_eq!(data.little_endian, order == ByteOrder::Little);
        assert_eq!(data.inline_qos, None);
        assert!(!data.non_standard);
    }
}

#[test]
fn the_flags_of_fragments_stand_one_bit_below_those_of_data() {
    let body = fixed(ByteOrder::Little, LAST_TWO).raw(b"ten bytes!five!");
    assert_eq!(parse(&body, K).unwrap().payload, PayloadKind::Key);
    let vendors = parse(&body, N).unwrap();
    assert_eq!(
        (vendors.payload, vendors.non_standard),
        (PayloadKind::Data, true)
    );
}

#[test]
fn inline_qos_stands_in_front_of_the_fragments() {
    for order in ORDERS {
        let body = fixed(order, LAST_TWO)
            .u16(pid::STATUS_INFO)
            .u16(4)
            .raw(&[0, 0, 0, 1])
            .u16(pid::SENTINEL)
            .u16(0)
            .raw(b"ten bytes!five!");
        let data = parse(&body, Q).unwrap();
        assert_eq!(data.bytes, b"ten bytes!five!");
        assert!(data.status_info().disposed);
        assert_eq!(data.key_hash(), None);
    }
}

#[test]
fn padding_behind_the_fragments_is_cut_and_more_than_padding_refused() {
    for order in ORDERS {
        let body = fixed(order, LAST_TWO).raw(b"ten bytes!five!");
        assert_eq!(
            parse(&body.clone().raw(&[0; 3]), 0).unwrap().bytes.len(),
            15
        );
        assert_eq!(parse(&body.raw(&[0; 4]), 0), Err(Error::InvalidFragment));
    }
}

#[test]
fn fewer_bytes_than_the_fragments_have_are_truncated() {
    let body = fixed(ByteOrder::Little, LAST_TWO).raw(b"ten bytes!five");
    assert_eq!(parse(&body, 0), Err(Error::Truncated));
}

#[test]
fn numbers_and_sizes_that_contradict_each_other_are_refused() {
    let contradictions = [
        Numbers {
            first: 0,
            ..LAST_TWO
        },
        Numbers {
            count: 0,
            ..LAST_TWO
        },
        Numbers {
            size: 0,
            ..LAST_TWO
        },
        Numbers {
            sample: 0,
            ..LAST_TWO
        },
        // The last fragment would be the fourth of three.
        Numbers {
            count: 3,
            ..LAST_TWO
        },
        Numbers {
            first: 4,
            count: 1,
            ..LAST_TWO
        },
        Numbers {
            first: u32::MAX,
            count: u16::MAX,
            ..LAST_TWO
        },
        // A fragment larger than the sample.
        Numbers {
            first: 1,
            count: 1,
            size: 26,
            ..LAST_TWO
        },
    ];
    for order in ORDERS {
        for numbers in contradictions {
            let body = fixed(order, numbers).raw(&[0; 40]);
            assert_eq!(parse(&body, 0), Err(Error::InvalidFragment), "{numbers:?}");
        }
    }
}

#[test]
fn fragments_of_no_valid_sequence_number_are_refused() {
    for order in ORDERS {
        let body = fixed(
            order,
            Numbers {
                sequence: 0,
                ..LAST_TWO
            },
        )
        .raw(&[0; 15]);
        assert_eq!(parse(&body, 0), Err(Error::InvalidSequenceNumber));
    }
}

#[test]
fn an_offset_to_inline_qos_that_points_into_the_head_is_refused() {
    let mut body = fixed(ByteOrder::Little, LAST_TWO).raw(b"ten bytes!five!");
    body.bytes[2] = 27;
    assert_eq!(parse(&body, 0), Err(Error::Truncated));
}

#[test]
fn a_head_of_fragments_reads_back() {
    for (key_hash, status, is_key) in [
        (None, None, false),
        (
            Some([9; 16]),
            Some(StatusInfo {
                disposed: false,
                unregistered: true,
            }),
            true,
        ),
    ] {
        let head = DataFragPrefix {
            reader: READER,
            writer: WRITER,
            sequence: SequenceNumber(77),
            first_fragment: 3,
            fragments: 1,
            fragment_size: 8,
            sample_size: 24,
            key_hash,
            status,
            is_key,
        };
        let length = head.buffer_len();
        let mut message = vec![0xaa; length];
        message.extend_from_slice(b"fragment");
        head.emit(&mut message[..length], 8);
        let Some(Ok(Submessage::DataFrag(data))) = Submessages::new(&message, 0).next() else {
            panic!("{head:?} reads as something else");
        };
        assert_eq!(data.sequence, head.sequence);
        assert_eq!((data.first_fragment, data.fragments), (3, 1));
        assert_eq!((data.fragment_size, data.sample_size), (8, 24));
        assert_eq!(
            (data.bytes, data.payload_offset),
            (&b"fragment"[..], length)
        );
        assert_eq!(data.payload == PayloadKind::Key, is_key);
        assert_eq!(data.key_hash(), key_hash);
        assert_eq!(data.status_info(), status.unwrap_or_default());
    }
}

#[test]
fn a_heartbeat_of_fragments_is_read_in_either_byte_order() {
    for order in ORDERS {
        let body = |sequence, last| {
            Bytes::from_writer_to_reader(order)
                .sequence(sequence)
                .u32(last)
                .u32(4)
        };
        let parse = |body: Bytes| HeartbeatFrag::parse(body.flags(0), &body.bytes);
        let expected = HeartbeatFrag {
            reader: READER,
            writer: WRITER,
            sequence: SequenceNumber(6),
            last_fragment: 70,
            count: 4,
        };
        assert_eq!(parse(body(6, 70)), Ok(expected));
        assert_eq!(parse(body(0, 70)), Err(Error::InvalidSequenceNumber));
        assert_eq!(parse(body(6, 0)), Err(Error::InvalidFragment));

        let mut buffer = [0xaa; 28];
        assert_eq!(expected.emit(&mut buffer), 28);
        assert_eq!(reread(&buffer), Submessage::HeartbeatFrag(expected));
    }
}

#[test]
fn a_nack_of_fragments_is_read_in_either_byte_order() {
    for order in ORDERS {
        let body = |sequence, base, num_bits, words: &[u32]| {
            Bytes::from_writer_to_reader(order)
                .sequence(sequence)
                .u32(base)
                .bitmap(num_bits, words)
                .u32(4)
        };
        let parse = |body: Bytes| NackFrag::parse(body.flags(0), &body.bytes);
        let mut state = FragmentNumberSet::new(5);
        assert!(state.insert(5) && state.insert(7));
        let expected = NackFrag {
            reader: READER,
            writer: WRITER,
            sequence: SequenceNumber(6),
            state,
            count: 4,
        };
        assert_eq!(parse(body(6, 5, 3, &[0xa000_0000])), Ok(expected));
        assert_eq!(parse(body(0, 5, 0, &[])), Err(Error::InvalidSequenceNumber));
        assert_eq!(parse(body(6, 0, 0, &[])), Err(Error::InvalidSet));
        assert_eq!(parse(body(6, 5, 257, &[0; 9])), Err(Error::InvalidSet));
        assert_eq!(parse(body(6, u32::MAX, 1, &[0])), Err(Error::InvalidSet));

        let mut buffer = [0xaa; 40];
        let length = expected.emit(&mut buffer);
        assert_eq!(length, expected.buffer_len());
        assert_eq!(reread(&buffer[..length]), Submessage::NackFrag(expected));
    }
}
