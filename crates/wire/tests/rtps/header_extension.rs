//! Tests of HEADER_EXTENSION: each field in both byte orders, what invalidates it, and the changes that it detects.

use isolane_wire::{
    ByteOrder, Error,
    guid::GuidPrefix,
    message::{
        ChecksumKind, HEADER_BYTES, Header, HeaderExtension, MessageChecksum, MessageWriter,
        Submessage, SubmessageId, Submessages,
    },
    parameter::{ParameterList, ParameterWriter, pid},
    time::Timestamp,
};
use proptest::{collection::vec, option, prelude::*};

use crate::bytes::{Bytes, ORDERS};

const PREFIX: GuidPrefix = GuidPrefix(*b"twelve bytes");
const KINDS: [ChecksumKind; 3] = [ChecksumKind::Crc32c, ChecksumKind::Crc64, ChecksumKind::Md5];
/// Offset of the body of the first submessage.
const BODY_AT: usize = HEADER_BYTES + 4;

/// A list of one unknown parameter.
fn unknown_parameter(order: ByteOrder, id: u16) -> Bytes {
    Bytes::new(order).u16(id).u16(4).u32(7)
}

fn parse(flags: u8, body: &Bytes) -> Result<HeaderExtension<'_>, Error> {
    HeaderExtension::parse(body.flags(flags), &body.bytes, BODY_AT)
}

#[test]
fn all_fields_are_read_in_either_byte_order() {
    for order in ORDERS {
        let body = Bytes::new(order)
            .u32(1000)
            .u32(0x0102_0304)
            .u32(0x8000_0000)
            .raw(b"four")
            .raw(b"eight888")
            .raw(&[1, 2, 3, 4])
            .raw(&unknown_parameter(order, 0x7000 - 0x4000).bytes);
        let read = parse(0xbe, &body).unwrap();
        assert_eq!(read.message_bytes, Some(1000));
        let sent = Timestamp {
            seconds: 0x0102_0304,
            fraction: 0x8000_0000,
        };
        assert_eq!(read.sent, Some(sent));
        assert_eq!(read.u_extension, Some(*b"four"));
        assert_eq!(read.w_extension, Some(*b"eight888"));
        let checksum = read.checksum.unwrap();
        assert_eq!(checksum.kind(), ChecksumKind::Crc32c);
        assert_eq!(checksum.bytes(), [1, 2, 3, 4], "big-endian in any case");
        let list = read.parameters.unwrap();
        assert!(list.iter().map(|it| it.id).eq([0x3000]));
    }
}

#[test]
fn the_flags_say_which_fields_there_are_and_which_checksum() {
    for order in ORDERS {
        let body = Bytes::new(order).u32(100).raw(&[9; 20]);
        let alone = parse(0x02, &body).unwrap();
        let expected = HeaderExtension {
            message_bytes: Some(100),
            ..HeaderExtension::default()
        };
        assert_eq!(alone, expected);
        let body = Bytes::new(order).raw(&[9; 16]);
        for (flags, kind) in [0x20, 0x40, 0x60].into_iter().zip(KINDS) {
            let checksum = parse(flags, &body).unwrap().checksum.unwrap();
            assert_eq!(checksum.kind(), kind);
            assert_eq!(checksum.bytes(), &[9; 16][..kind.bytes()]);
        }
    }
}

#[test]
fn a_body_too_short_for_its_fields_is_truncated() {
    for (flags, needed) in [
        (0x02, 4),
        (0x04, 8),
        (0x08, 4),
        (0x10, 8),
        (0x20, 4),
        (0x40, 8),
        (0x60, 16),
    ] {
        let whole = Bytes::new(ByteOrder::Little).raw(&[0xff; 16][..needed]);
        assert!(parse(flags, &whole).is_ok(), "{flags:#x}");
        let short = Bytes::new(ByteOrder::Little).raw(&[0xff; 16][..needed - 1]);
        assert_eq!(parse(flags, &short), Err(Error::Truncated), "{flags:#x}");
    }
}

#[test]
fn elsewhere_than_behind_the_header_it_is_refused() {
    let body = Bytes::new(ByteOrder::Little).u32(1000);
    for offset in [0, 4, BODY_AT - 1, BODY_AT + 16] {
        let read = HeaderExtension::parse(3, &body.bytes, offset);
        assert_eq!(read, Err(Error::HeaderExtensionMisplaced));
    }
    let message = [
        &[0; HEADER_BYTES][..],
        &[SubmessageId::PAD, 1, 0, 0],
        &[SubmessageId::HEADER_EXTENSION, 3, 4, 0, 0xff, 0, 0, 0],
        &[SubmessageId::PAD, 1, 0, 0],
    ]
    .concat();
    let read: Vec<_> = Submessages::new(&message, HEADER_BYTES).collect();
    assert_eq!(
        read,
        [
            Ok(Submessage::Pad),
            Err(Error::HeaderExtensionMisplaced),
            Ok(Submessage::Pad)
        ]
    );
}

#[test]
fn a_message_cannot_be_shorter_than_its_header_and_extension() {
    for order in ORDERS {
        let body = |bytes| Bytes::new(order).u32(bytes).raw(&[0; 4]);
        assert!(parse(0x0a, &body(32)).is_ok());
        assert_eq!(parse(0x0a, &body(31)), Err(Error::MessageLength));
        assert_eq!(parse(0x0a, &body(0)), Err(Error::MessageLength));
    }
}

#[test]
fn parameters_need_no_sentinel_and_end_at_one() {
    for order in ORDERS {
        let one = unknown_parameter(order, 0x0042);
        let ended = one.clone().u16(pid::SENTINEL).u16(0xffff).raw(&[1, 2, 3]);
        for body in [&one, &ended] {
            let list = parse(0x80, body).unwrap().parameters.unwrap();
            assert!(list.iter().map(|it| it.id).eq([0x0042]));
        }
        let empty = Bytes::new(order);
        let none = parse(0x80, &empty).unwrap().parameters.unwrap();
        assert_eq!(none.iter().count(), 0);
    }
}

#[test]
fn malformed_parameters_and_those_that_must_be_understood_invalidate_it() {
    for order in ORDERS {
        let cut = Bytes::new(order).u16(0x0042).u16(8).u32(7);
        assert_eq!(parse(0x80, &cut), Err(Error::Truncated));
        let half_a_head = Bytes::new(order).u16(0x0042);
        assert_eq!(parse(0x80, &half_a_head), Err(Error::Truncated));
        let odd = Bytes::new(order).u16(0x0042).u16(3).u32(7);
        assert_eq!(parse(0x80, &odd), Err(Error::InvalidParameter(0x0042)));
        let insisting = unknown_parameter(order, 0x4042);
        assert_eq!(parse(0x80, &insisting), Err(Error::MustUnderstand(0x0042)));
    }
}

/// Message with this extension, sealed, in front of an INFO_DST.
fn sealed(extension: HeaderExtension<'_>) -> Vec<u8> {
    let mut extension = extension;
    let mut buffer = [0xaa; 256];
    let mut message = MessageWriter::new(&mut buffer, &Header::new(PREFIX)).unwrap();
    message
        .header_extension(&extension)
        .unwrap()
        .info_destination(PREFIX)
        .unwrap();
    let length = message.len();
    extension.seal(&mut buffer[..length]);
    assert_eq!(extension.verify(&buffer[..length]), Ok(()));
    buffer[..length].to_vec()
}

/// Header extension of a message.
fn extension_of(message: &[u8]) -> Result<HeaderExtension<'_>, Error> {
    match Submessages::new(message, HEADER_BYTES).next() {
        Some(Ok(Submessage::HeaderExtension(extension))) => Ok(extension),
        Some(Err(error)) => Err(error),
        other => panic!("{other:?} in {message:02x?}"),
    }
}

fn with_checksum(kind: ChecksumKind) -> HeaderExtension<'static> {
    HeaderExtension {
        message_bytes: Some(0),
        checksum: Some(MessageChecksum::zero(kind)),
        ..HeaderExtension::default()
    }
}

#[test]
fn a_sealed_message_is_true_and_with_any_bit_changed_it_is_not() {
    for kind in KINDS {
        let message = sealed(with_checksum(kind));
        assert_eq!(extension_of(&message).unwrap().verify(&message), Ok(()));
        for bit in 0..message.len() * 8 {
            let mut damaged = message.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // Damage to the extension's own head makes it no extension, or one with other fields.
            let place = HEADER_BYTES..BODY_AT;
            if place.contains(&(bit / 8)) {
                continue;
            }
            let verified = extension_of(&damaged).and_then(|it| it.verify(&damaged));
            let refused = matches!(verified, Err(Error::Checksum | Error::MessageLength));
            assert!(refused, "{kind:?}, bit {bit}: {verified:?}");
        }
    }
}

#[test]
fn a_message_that_lost_its_end_or_found_another_is_not_as_long_as_it_says() {
    let length_alone = HeaderExtension {
        message_bytes: Some(0),
        ..HeaderExtension::default()
    };
    let message = sealed(length_alone);
    assert_eq!(extension_of(&message).unwrap().message_bytes, Some(44));
    let longer = [&message[..], &[0; 4]].concat();
    for damaged in [&message[..40], &longer] {
        let verified = extension_of(damaged).unwrap().verify(damaged);
        assert_eq!(verified, Err(Error::MessageLength));
    }
}

#[test]
fn the_checksum_is_that_of_the_standard_over_the_message_with_zeros_in_its_place() {
    let message = sealed(with_checksum(ChecksumKind::Md5));
    let mut zeroed = message.clone();
    zeroed[BODY_AT + 4..][..16].fill(0);
    let digest = <md5::Md5 as md5::Digest>::digest(&zeroed);
    assert_eq!(message[BODY_AT + 4..][..16], digest[..]);
}

#[test]
fn one_that_says_nothing_is_not_written() {
    // Its length would be 0, which means "until the end of the message".
    let nothing = HeaderExtension::default();
    assert_eq!(nothing.buffer_len(), 0);
    assert_eq!(nothing.emit(&mut []), 0);
    let message = sealed(nothing);
    assert_eq!(message.len(), HEADER_BYTES + 16);
}

#[test]
fn parameters_are_written_again_unless_their_byte_order_is_unknown() {
    for order in ORDERS {
        let body = unknown_parameter(order, 0x0042);
        let read = parse(0x80, &body).unwrap();
        let mut buffer = [0xaa; 32];
        let length = read.emit(&mut buffer);
        if order == ByteOrder::Big {
            assert_eq!(length, 0);
            continue;
        }
        assert_eq!(length, read.buffer_len());
        let again = HeaderExtension::parse(buffer[1], &buffer[4..length], BODY_AT);
        assert_eq!(again, Ok(read));
    }
}

fn checksum() -> impl Strategy<Value = MessageChecksum> {
    (0..3_usize).prop_map(|kind| MessageChecksum::zero(KINDS[kind]))
}

proptest! {
    #[test]
    fn any_extension_survives_the_way_there_and_back(
        has_length: bool,
        sent in option::of(any::<(u32, u32)>()),
        u_extension: Option<[u8; 4]>,
        w_extension: Option<[u8; 8]>,
        checksum in option::of(checksum()),
        parameters in option::of(vec((1_u16..0x3f00, vec(any::<u8>(), 0..12)), 0..4)),
    ) {
        let mut bytes = [0; 128];
        let mut list = ParameterWriter::new(&mut bytes);
        for (id, value) in parameters.iter().flatten() {
            list.put(id + 1, value);
        }
        list.finish().unwrap();
        let (list, _) = ParameterList::parse(&bytes, ByteOrder::Little).unwrap();
        let extension = HeaderExtension {
            message_bytes: has_length.then_some(0),
            sent: sent.map(|(seconds, fraction)| Timestamp { seconds, fraction }),
            u_extension,
            w_extension,
            checksum,
            parameters: parameters.map(|_| list),
        };
        let message = sealed(extension);
        prop_assert_eq!(message.len(), HEADER_BYTES + extension.buffer_len() + 16);
        if extension.buffer_len() > 0 {
            let read = extension_of(&message).unwrap();
            prop_assert_eq!(read.verify(&message), Ok(()));
            prop_assert_eq!(read.message_bytes, has_length.then_some(message.len() as u32));
            prop_assert_eq!(read.sent, extension.sent);
            prop_assert_eq!(read.u_extension, u_extension);
            prop_assert_eq!(read.w_extension, w_extension);
            prop_assert_eq!(read.parameters, extension.parameters);
            let kind = |checksum: MessageChecksum| checksum.kind();
            prop_assert_eq!(read.checksum.map(kind), checksum.map(kind));
        }
    }

    #[test]
    fn any_bytes_are_read_and_compared_without_panic(flags: u8, body in vec(any::<u8>(), 0..80)) {
        let mut message = vec![0; HEADER_BYTES];
        message.extend([SubmessageId::HEADER_EXTENSION, flags, 0, 0]);
        message.extend(&body);
        if let Ok(extension) = HeaderExtension::parse(flags, &body, BODY_AT) {
            let _ = extension.verify(&message);
            for length in 0..message.len() {
                let _ = extension.verify(&message[..length]);
            }
            let mut buffer = vec![0; extension.buffer_len()];
            prop_assert_eq!(extension.emit(&mut buffer), buffer.len());
        }
    }
}
