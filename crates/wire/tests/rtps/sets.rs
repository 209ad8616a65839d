//! Tests of the coherent set and group information of a sample.

use isolane_wire::{
    ByteOrder,
    guid::GuidPrefix,
    guid::{EntityId, EntityKind},
    message::{
        CoherentSetInfo, Data, DataFragPrefix, DataPrefix, HEADER_BYTES, Header, MessageWriter,
        PayloadKind, StatusInfo, Submessage, Submessages, VENDOR_ID, VERSION, group_digest,
    },
    parameter::{ParameterList, pid},
    sequence::SequenceNumber,
};

const HEAD: DataPrefix = DataPrefix {
    reader: EntityId::UNKNOWN,
    writer: EntityId::user(1, EntityKind::WRITER_NO_KEY),
    sequence: SequenceNumber(9),
    key_hash: None,
    status: None,
    payload: PayloadKind::Data,
};

fn number(number: i64) -> Option<SequenceNumber> {
    Some(SequenceNumber(number))
}

fn written(fill: impl FnOnce(&mut MessageWriter<'_>)) -> Vec<u8> {
    let mut buffer = vec![0xee; 512];
    let header = Header {
        version: VERSION,
        vendor: VENDOR_ID,
        prefix: GuidPrefix([7; 12]),
    };
    let mut message = MessageWriter::new(&mut buffer, &header).unwrap();
    fill(&mut message);
    let length = message.len();
    buffer[..length].to_vec()
}

fn with_data<T>(bytes: &[u8], look: impl FnOnce(&Data<'_>) -> T) -> T {
    let mut submessages = Submessages::new(bytes, HEADER_BYTES);
    let Some(Ok(Submessage::Data(data))) = submessages.next() else {
        panic!("a DATA was written");
    };
    let seen = look(&data);
    assert!(submessages.next().is_none(), "nothing is left over");
    seen
}

#[test]
fn a_marked_sample_is_read_as_it_was_written() {
    let marks = [
        CoherentSetInfo::default(),
        CoherentSetInfo {
            coherent_set: number(7),
            ..CoherentSetInfo::default()
        },
        CoherentSetInfo {
            coherent_set: number(7),
            group_sequence: number(1 << 40),
            group_coherent_set: number(i64::MAX),
            writers: Some([1, 2, 3, 4]),
        },
    ];
    let heads = [
        HEAD,
        DataPrefix {
            key_hash: Some([5; 16]),
            ..HEAD
        },
        DataPrefix {
            key_hash: Some([5; 16]),
            status: Some(StatusInfo {
                disposed: true,
                unregistered: false,
            }),
            payload: PayloadKind::Key,
            ..HEAD
        },
    ];
    for mark in marks {
        for head in heads {
            let bytes = written(|message| {
                message
                    .data_with_set(&head, &mark, &[1, 2, 3, 4, 5])
                    .unwrap();
            });
            with_data(&bytes, |data| {
                assert_eq!(data.coherent_set_info(), mark);
                assert_eq!(data.key_hash(), head.key_hash);
                assert_eq!(data.status_info(), head.status.unwrap_or_default());
                assert_eq!(data.sequence, HEAD.sequence);
                assert_eq!(data.bytes, [1, 2, 3, 4, 5, 0, 0, 0]);
                assert_eq!(data.set_end(), None);
            });
            assert_eq!(bytes.len(), HEADER_BYTES + head.len_with_set(&mark) + 8);
        }
    }
}

#[test]
fn without_a_mark_the_bytes_are_those_of_any_sample() {
    let head = DataPrefix {
        key_hash: Some([5; 16]),
        ..HEAD
    };
    let marked = written(|message| {
        message
            .data_with_set(&head, &CoherentSetInfo::default(), &[1; 4])
            .unwrap();
    });
    let plain = written(|message| {
        message.data(&head, &[1; 4]).unwrap();
    });
    assert_eq!(marked, plain);
}

#[test]
fn the_end_of_a_set_is_known_by_its_number_and_by_having_no_payload() {
    let end = CoherentSetInfo {
        coherent_set: Some(SequenceNumber::UNKNOWN),
        ..CoherentSetInfo::default()
    };
    let of = |payload, mark: &CoherentSetInfo| {
        let head = DataPrefix { payload, ..HEAD };
        let bytes = written(|message| {
            message.data_with_set(&head, mark, &[]).unwrap();
        });
        with_data(&bytes, |data| data.set_end())
    };
    assert_eq!(of(PayloadKind::None, &end), Some(end));
    assert_eq!(of(PayloadKind::Data, &end), None);
    assert_eq!(of(PayloadKind::None, &CoherentSetInfo::default()), None);
    let in_set = CoherentSetInfo {
        coherent_set: number(3),
        ..CoherentSetInfo::default()
    };
    assert_eq!(of(PayloadKind::None, &in_set), None);
    assert_eq!((end.set(), in_set.set()), (None, number(3)));
}

#[test]
fn marks_are_read_in_both_byte_orders_and_short_ones_are_not_there() {
    for (order, bytes) in [
        (
            ByteOrder::Little,
            [0x56, 0, 8, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0],
        ),
        (
            ByteOrder::Big,
            [0, 0x56, 0, 8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 0],
        ),
    ] {
        let (list, _) = ParameterList::parse(&bytes, order).unwrap();
        let mark = CoherentSetInfo::of(Some(&list));
        assert_eq!(mark.coherent_set, number((1 << 32) + 2));
    }
    for id in [
        pid::COHERENT_SET,
        pid::GROUP_SEQ_NUM,
        pid::GROUP_COHERENT_SET,
    ] {
        let short = [id as u8, 0, 4, 0, 1, 2, 3, 4, 1, 0, 0, 0];
        let (list, _) = ParameterList::parse(&short, ByteOrder::Little).unwrap();
        assert!(CoherentSetInfo::of(Some(&list)).is_empty());
    }
    assert!(CoherentSetInfo::of(None).is_empty());
}

#[test]
fn a_marked_fragment_says_what_a_whole_sample_says() {
    let head = DataFragPrefix {
        reader: EntityId::UNKNOWN,
        writer: HEAD.writer,
        sequence: HEAD.sequence,
        first_fragment: 1,
        fragments: 1,
        fragment_size: 8,
        sample_size: 12,
        key_hash: None,
        status: None,
        is_key: false,
    };
    let mark = CoherentSetInfo {
        coherent_set: number(7),
        group_sequence: number(12),
        ..CoherentSetInfo::default()
    };
    let bytes = written(|message| {
        message.data_frag_with_set(&head, &mark, &[1; 8]).unwrap();
    });
    assert_eq!(bytes.len(), HEADER_BYTES + head.len_with_set(&mark) + 8);
    let Some(Ok(Submessage::DataFrag(fragment))) = Submessages::new(&bytes, HEADER_BYTES).next()
    else {
        panic!("a DATA_FRAG was written");
    };
    assert_eq!(CoherentSetInfo::of(fragment.inline_qos.as_ref()), mark);
    assert_eq!(fragment.bytes, [1; 8]);
}

/// MD5 of a count and big-endian entity ids, computed by another program.
#[test]
fn the_digest_of_a_group_is_that_of_its_writers() {
    let writers = [EntityId([0, 0, 1, 3]), EntityId([0, 0, 2, 3])];
    let one = group_digest(writers[..1].iter().copied());
    let both = group_digest(writers.iter().copied());
    assert_eq!(one, [200, 128, 43, 239]);
    assert_eq!(both, [154, 96, 216, 250]);
    assert_ne!(group_digest([].into_iter()), one);
}
