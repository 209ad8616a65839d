//! Tests of ParticipantMessageData, which asserts the liveliness of participants.

use isolane_wire::{BufferTooSmall, Error, builtin_data::ParticipantMessage};
use proptest::{collection::vec, prelude::*};

use crate::support::PREFIX;

const ALIVE: ParticipantMessage<'_> = ParticipantMessage {
    participant: PREFIX,
    kind: ParticipantMessage::KIND_AUTOMATIC_LIVELINESS,
    data: &[],
};

#[test]
fn it_is_a_prefix_a_kind_and_data_in_either_byte_order() {
    for (encapsulation, length) in [([0, 0], [0, 0, 0, 2]), ([0, 1], [2, 0, 0, 0])] {
        let payload = [
            &encapsulation[..],
            &[0, 0],
            &PREFIX.0,
            &[0, 0, 0, 2],
            &length,
            b"hi",
            &[0, 0],
        ]
        .concat();
        let expected = ParticipantMessage {
            kind: ParticipantMessage::KIND_MANUAL_LIVELINESS,
            data: b"hi",
            ..ALIVE
        };
        assert_eq!(ParticipantMessage::parse(&payload), Ok(expected));
    }
}

#[test]
fn one_cut_anywhere_is_truncated() {
    let sent = ParticipantMessage {
        data: b"data",
        ..ALIVE
    };
    let mut payload = [0; 28];
    assert_eq!(sent.emit(&mut payload), Ok(28));
    for length in 0..28 {
        let cut = ParticipantMessage::parse(&payload[..length]);
        assert_eq!(cut, Err(Error::Truncated), "{length} bytes");
        let room = &mut [0; 28][..length];
        assert_eq!(sent.emit(room), Err(BufferTooSmall));
    }
}

#[test]
fn a_payload_of_another_form_is_refused() {
    let mut payload = [0; 24];
    ALIVE.emit(&mut payload).unwrap();
    payload[1] = 3;
    let refused = Err(Error::UnknownEncapsulation(3));
    assert_eq!(ParticipantMessage::parse(&payload), refused);
}

proptest! {
    #[test]
    fn any_message_survives_the_way_there_and_back(kind: [u8; 4], data in vec(any::<u8>(), 0..200)) {
        let sent = ParticipantMessage { participant: PREFIX, kind, data: &data };
        let mut payload = vec![0xaa; sent.buffer_len()];
        prop_assert_eq!(sent.emit(&mut payload), Ok(payload.len()));
        prop_assert_eq!(ParticipantMessage::parse(&payload), Ok(sent));
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..60)) {
        let _ = ParticipantMessage::parse(&bytes);
        let _ = ParticipantMessage::parse(&[&[0, 1, 0, 0], &bytes[..]].concat());
    }
}
