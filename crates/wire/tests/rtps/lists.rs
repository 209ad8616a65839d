//! Tests of number sets and parameter lists.

use isolane_wire::{
    BufferTooSmall, ByteOrder, Error,
    parameter::{ParameterList, ParameterWriter, pid},
    sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet},
};

use crate::bytes::{Bytes, ORDERS};

#[test]
fn a_set_takes_numbers_from_its_base_up_to_255_above() {
    let mut set = SequenceNumberSet::new(SequenceNumber(100));
    assert!(set.is_empty());
    assert!(!set.insert(SequenceNumber(99)));
    assert!(!set.insert(SequenceNumber(356)));
    assert!(!set.insert(SequenceNumber(i64::MAX)));
    assert!(!set.insert(SequenceNumber(i64::MIN)));
    assert!(set.is_empty());
    for number in [355, 100, 131, 132] {
        assert!(set.insert(SequenceNumber(number)));
        assert!(set.contains(SequenceNumber(number)));
    }
    assert!(!set.contains(SequenceNumber(101)));
    assert!(!set.contains(SequenceNumber(99)));
    assert_eq!(set.num_bits(), 256);
    let members: Vec<_> = set.iter().map(SequenceNumber::get).collect();
    assert_eq!(members, [100, 131, 132, 355]);
}

#[test]
fn a_set_grows_as_wide_as_its_highest_member_and_stays_so() {
    let mut set = SequenceNumberSet::new(SequenceNumber(1));
    assert_eq!(set.num_bits(), 0);
    set.insert(SequenceNumber(33));
    assert_eq!(set.num_bits(), 33);
    set.remove(SequenceNumber(33));
    set.remove(SequenceNumber(-5));
    assert!(set.is_empty() && !set.contains(SequenceNumber(33)));
    assert_eq!(set.num_bits(), 33);
}

#[test]
fn a_set_of_fragments_behaves_alike() {
    let mut set = FragmentNumberSet::new(10);
    assert!(!set.insert(9) && !set.insert(266));
    assert!(set.insert(10) && set.insert(265));
    assert_eq!((set.base(), set.num_bits()), (10, 256));
    assert!(set.iter().eq([10, 265]));
    set.remove(10);
    assert!(!set.contains(10) && set.contains(265) && !set.is_empty());
}

fn list(order: ByteOrder) -> Bytes {
    Bytes::new(order)
        .u16(pid::DOMAIN_ID)
        .u16(4)
        .u32(42)
        .u16(pid::PAD)
        .u16(4)
        .u32(0)
        .u16(0x4000 | pid::KEY_HASH)
        .u16(0)
        .u16(pid::SENTINEL)
        .u16(0xffff)
        .raw(b"rest")
}

#[test]
fn a_list_is_read_in_either_byte_order_and_padding_is_left_out() {
    for order in ORDERS {
        let bytes = list(order);
        let (parsed, length) = ParameterList::parse(&bytes.bytes, order).unwrap();
        assert_eq!(&bytes.bytes[length..], b"rest");
        assert_eq!(parsed.order(), order);
        let found: Vec<_> = parsed
            .iter()
            .map(|parameter| {
                (
                    parameter.id,
                    parameter.must_understand,
                    parameter.value.len(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [(pid::DOMAIN_ID, false, 4), (pid::KEY_HASH, true, 0)]
        );
        assert_eq!(parsed.find(pid::KEY_HASH), Some(&[][..]));
        assert_eq!(parsed.find(pid::TOPIC_NAME), None);
    }
}

#[test]
fn a_list_needs_its_sentinel() {
    for order in ORDERS {
        let bytes = list(order).bytes;
        for length in 0..bytes.len() - 4 {
            let parsed = ParameterList::parse(&bytes[..length], order);
            assert_eq!(parsed, Err(Error::Truncated), "{length} bytes");
        }
    }
}

#[test]
fn a_length_that_is_not_a_multiple_of_four_is_refused() {
    for order in ORDERS {
        let bytes = Bytes::new(order)
            .u16(pid::DOMAIN_ID)
            .u16(5)
            .raw(&[0; 20])
            .bytes;
        let parsed = ParameterList::parse(&bytes, order);
        assert_eq!(parsed, Err(Error::InvalidParameter(pid::DOMAIN_ID)));
    }
}

#[test]
fn a_list_written_reads_back_with_padding() {
    let mut buffer = [0xaa; 64];
    let mut writer = ParameterWriter::new(&mut buffer);
    writer
        .put(pid::KEY_HASH, &[1, 2, 3])
        .put_u8(pid::EXPECTS_INLINE_QOS, 1)
        .put_u32(pid::DOMAIN_ID, 7)
        .put_i32(pid::TRANSPORT_PRIORITY, -7)
        .put_str(pid::TOPIC_NAME, "Square");
    let length = writer.finish().unwrap();
    let (parsed, read) = ParameterList::parse(&buffer[..length], ByteOrder::Little).unwrap();
    assert_eq!(read, length);
    let found: Vec<_> = parsed
        .iter()
        .map(|parameter| (parameter.id, parameter.value))
        .collect();
    let minus_seven = (-7_i32).to_le_bytes();
    assert_eq!(
        found,
        [
            (pid::KEY_HASH, &[1, 2, 3, 0][..]),
            (pid::EXPECTS_INLINE_QOS, &[1, 0, 0, 0]),
            (pid::DOMAIN_ID, &[7, 0, 0, 0]),
            (pid::TRANSPORT_PRIORITY, &minus_seven),
            (pid::TOPIC_NAME, b"\x07\0\0\0Square\0\0"),
        ]
    );
}

#[test]
fn a_list_that_does_not_fit_says_so_at_its_end() {
    for room in 0..16 {
        let mut buffer = vec![0; room];
        let mut writer = ParameterWriter::new(&mut buffer);
        writer.put_u32(pid::DOMAIN_ID, 7).put(pid::PAD, &[]);
        assert_eq!(writer.finish(), Err(BufferTooSmall), "{room} bytes");
    }
    let mut buffer = [0; 16];
    let mut writer = ParameterWriter::new(&mut buffer);
    writer.put_u32(pid::DOMAIN_ID, 7).put(pid::PAD, &[]);
    assert_eq!(writer.finish(), Ok(16));
}

#[test]
fn nothing_follows_a_parameter_that_did_not_fit() {
    let mut buffer = [0; 32];
    let mut writer = ParameterWriter::new(&mut buffer);
    writer
        .put(pid::USER_DATA, &[9; 40])
        .put_u32(pid::DOMAIN_ID, 7);
    assert_eq!(writer.finish(), Err(BufferTooSmall));
    assert_eq!(buffer, [0; 32]);
}

#[test]
fn a_value_too_long_for_its_length_field_does_not_fit() {
    let mut buffer = vec![0; 80_000];
    let mut writer = ParameterWriter::new(&mut buffer);
    writer.put(pid::USER_DATA, &vec![0; 65_536]);
    assert_eq!(writer.finish(), Err(BufferTooSmall));
}
