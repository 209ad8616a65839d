//! Tests of captured payloads of other implementations.

use isolane_wire::cdr::{
    Representation, key_hash, key_hash_of_payload, view_payload, write_key_payload, write_payload,
};

use crate::support::{ShapeType, read};

const BLUE_HASH: [u8; 16] = [
    0xca, 0xc2, 0x17, 0xc3, 0x18, 0x36, 0x3f, 0x8e, 0xf1, 0x16, 0x0e, 0xee, 0xde, 0xf9, 0xe8, 0x86,
];

/// Cyclone DDS 11.0.1 to Fast DDS: D_CDR2_LE, DHEADER of 28 bytes.
#[rustfmt::skip]
const CYCLONE: [u8; 36] = [
    0x00, 0x09, 0x00, 0x00, 0x1c, 0x00, 0x00, 0x00,
    0x05, 0x00, 0x00, 0x00, b'B', b'L', b'U', b'E', 0x00, 0x00, 0x00, 0x00,
    0x49, 0x00, 0x00, 0x00, 0x4a, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00,
];

/// Fast DDS 3.1.2 to Cyclone DDS.
#[rustfmt::skip]
const FAST: [u8; 36] = [
    0x00, 0x09, 0x00, 0x00, 0x1c, 0x00, 0x00, 0x00,
    0x05, 0x00, 0x00, 0x00, b'B', b'L', b'U', b'E', 0x00, 0x00, 0x00, 0x00,
    0x07, 0x00, 0x00, 0x00, 0x47, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00,
];

/// Cyclone DDS, XCDR1 (CDR_LE): the beginning of a sample of 100,000 bytes, with the sequence shortened to 8.
#[rustfmt::skip]
const CYCLONE_XCDR1: [u8; 40] = [
    0x00, 0x01, 0x00, 0x00,
    0x05, 0x00, 0x00, 0x00, b'B', b'L', b'U', b'E', 0x00, 0x00, 0x00, 0x00,
    0x1e, 0x00, 0x00, 0x00, 0x19, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
];

/// Cyclone DDS: the key in a dispose, with three bytes of padding, whose number is in the options.
#[rustfmt::skip]
const CYCLONE_KEY: [u8; 20] = [
    0x00, 0x09, 0x00, 0x03, 0x09, 0x00, 0x00, 0x00,
    0x05, 0x00, 0x00, 0x00, b'B', b'L', b'U', b'E', 0x00, 0x00, 0x00, 0x00,
];

fn written(value: &ShapeType, representation: Representation) -> Vec<u8> {
    let mut out = [0xaa; 512];
    let length = write_payload(value, representation, &mut out).unwrap();
    out[..length].to_vec()
}

#[test]
fn what_others_send_is_read_and_what_is_sent_is_the_same() {
    for (bytes, x, y) in [(CYCLONE, 0x49, 0x4a), (FAST, 7, 0x47)] {
        let value = ShapeType::new("BLUE", x, y, 5);
        assert_eq!(read(&bytes).as_ref(), Ok(&value));
        assert_eq!(written(&value, Representation::Xcdr2), bytes);
    }
    let mut value = ShapeType::new("BLUE", 30, 25, 20);
    value.additional_payload_size.resize(8, 255).unwrap();
    assert_eq!(read(&CYCLONE_XCDR1).as_ref(), Ok(&value));
    assert_eq!(written(&value, Representation::Xcdr1), CYCLONE_XCDR1);
}

#[test]
fn a_view_borrows_from_the_payload() {
    let view = view_payload::<ShapeType>(&CYCLONE_XCDR1).unwrap();
    assert_eq!(view.color, "BLUE");
    assert_eq!(view.color.as_ptr(), CYCLONE_XCDR1[8..].as_ptr());
    assert_eq!((view.x, view.y, view.shapesize), (30, 25, 20));
    let bytes = view.additional_payload_size.as_bytes();
    assert_eq!(bytes, [255; 8]);
    assert_eq!(bytes.as_ptr(), CYCLONE_XCDR1[32..].as_ptr());
}

#[test]
fn the_key_hash_is_the_one_that_fast_dds_sends() {
    let blue = ShapeType::new("BLUE", 1, 2, 3);
    assert_eq!(key_hash(&blue), Ok(BLUE_HASH));
    for sample in [&CYCLONE[..], &FAST, &CYCLONE_XCDR1] {
        assert_eq!(
            key_hash_of_payload::<ShapeType>(sample, false),
            Ok(BLUE_HASH)
        );
    }
    assert_eq!(
        key_hash_of_payload::<ShapeType>(&CYCLONE_KEY, true),
        Ok(BLUE_HASH)
    );
    // The second instance of the same capture.
    assert_eq!(
        key_hash(&ShapeType::new("BLUE1", 1, 2, 3)),
        Ok([
            0xe5, 0x66, 0xbd, 0xfa, 0xe6, 0xe4, 0x19, 0x71, 0x84, 0xed, 0x7e, 0xcc, 0xb9, 0xa5,
            0xe6, 0xc0
        ])
    );
}

#[test]
fn a_key_payload_is_the_one_that_cyclone_sends() {
    let mut out = [0xaa; 64];
    let blue = ShapeType::new("BLUE", 1, 2, 3);
    let length = write_key_payload(&blue, Representation::Xcdr2, &mut out).unwrap();
    assert_eq!(out[..length], CYCLONE_KEY);
}
