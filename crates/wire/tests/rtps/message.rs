//! Tests of the message header, and of finding the next submessage.

use isolane_wire::{
    Error,
    guid::GuidPrefix,
    message::{HEADER_BYTES, Header, Submessage, SubmessageId, Submessages, VERSION},
};

const HEADER: Header = Header {
    version: [2, 3],
    vendor: [1, 0x0f],
    prefix: GuidPrefix(*b"twelve bytes"),
};

/// Message with a header and these bytes.
fn message(submessages: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    assert_eq!(HEADER.emit(&mut bytes), HEADER_BYTES);
    bytes.extend_from_slice(submessages);
    bytes
}

/// Returns all submessages, each with the position of its end.
fn read(message: &[u8]) -> Vec<(Result<Submessage<'_>, Error>, usize)> {
    let mut submessages = Submessages::new(message, HEADER_BYTES);
    let mut found = Vec::new();
    while let Some(submessage) = submessages.next() {
        found.push((submessage, submessages.offset() - HEADER_BYTES));
    }
    found
}

const INFO_DST: [u8; 16] = *b"\x0e\x01\x0c\0twelve bytes";

fn info_destination() -> Submessage<'static> {
    Submessage::InfoDestination(HEADER.prefix)
}

#[test]
fn a_header_survives_the_way_there_and_back() {
    let bytes = message(&[]);
    assert_eq!(&bytes[..8], b"RTPS\x02\x03\x01\x0f");
    assert_eq!(Header::parse(&bytes), Ok(HEADER));
}

#[test]
fn a_datagram_of_another_protocol_is_recognised() {
    let mut bytes = message(&[]);
    bytes[3] = b'X';
    assert_eq!(Header::parse(&bytes), Err(Error::NotRtps));
    assert_eq!(Header::parse(b"HTTP"), Err(Error::NotRtps));
}

#[test]
fn later_minor_versions_are_read_and_other_major_versions_refused() {
    let mut bytes = message(&[]);
    bytes[5] = 9;
    assert_eq!(Header::parse(&bytes).unwrap().version, [2, 9]);
    for major in [0, 1, 3, 255] {
        bytes[4] = major;
        assert_eq!(Header::parse(&bytes), Err(Error::UnsupportedVersion(major)));
    }
}

#[test]
fn a_header_cut_off_is_truncated() {
    let bytes = message(&[]);
    for length in 0..HEADER_BYTES {
        assert_eq!(
            Header::parse(&bytes[..length]),
            Err(Error::Truncated),
            "{length}"
        );
    }
}

#[test]
fn our_own_header_names_our_version() {
    assert_eq!(Header::new(HEADER.prefix).version, VERSION);
}

#[test]
fn a_message_without_submessages_has_none() {
    assert_eq!(read(&message(&[])), []);
}

#[test]
fn submessages_follow_one_another_and_each_tells_where_it_ends() {
    let bytes = message(&[&INFO_DST[..], &[0x01, 0x01, 4, 0, 9, 9, 9, 9], &INFO_DST].concat());
    assert_eq!(
        read(&bytes),
        [
            (Ok(info_destination()), 16),
            (Ok(Submessage::Pad), 24),
            (Ok(info_destination()), 40)
        ]
    );
}

#[test]
fn reading_goes_on_from_an_offset_kept() {
    let bytes = message(&[INFO_DST, INFO_DST].concat());
    let mut submessages = Submessages::new(&bytes, HEADER_BYTES + 16);
    assert_eq!(submessages.next(), Some(Ok(info_destination())));
    assert_eq!(submessages.next(), None);
    assert_eq!(Submessages::new(&bytes, bytes.len()).next(), None);
    assert_eq!(Submessages::new(&bytes, usize::MAX).next(), None);
}

#[test]
fn the_length_field_follows_the_byte_order_of_its_submessage() {
    let mut big_endian = INFO_DST;
    big_endian[1..4].copy_from_slice(&[0, 0, 12]);
    assert_eq!(read(&message(&big_endian)), [(Ok(info_destination()), 16)]);
}

#[test]
fn length_0_means_to_the_end_of_the_message() {
    let mut last = INFO_DST;
    last[2] = 0;
    assert_eq!(
        read(&message(&[INFO_DST, last].concat())),
        [(Ok(info_destination()), 16), (Ok(info_destination()), 32)]
    );
    let vendors = [0x80, 0x01, 0, 0, 1, 2, 3, 4];
    let other = Submessage::Other {
        id: 0x80,
        flags: 1,
        body: &[1, 2, 3, 4],
    };
    assert_eq!(read(&message(&vendors)), [(Ok(other), 8)]);
}

#[test]
fn length_0_of_pad_and_info_ts_means_length_0() {
    let pad = [SubmessageId::PAD, 1, 0, 0];
    let no_timestamp = [SubmessageId::INFO_TS, 3, 0, 0];
    assert_eq!(
        read(&message(&[&pad[..], &no_timestamp, &INFO_DST].concat())),
        [
            (Ok(Submessage::Pad), 4),
            (Ok(Submessage::InfoTimestamp(None)), 8),
            (Ok(info_destination()), 24)
        ]
    );
}

#[test]
fn a_malformed_body_is_an_error_and_reading_goes_on_behind_it() {
    let short_heartbeat = [SubmessageId::HEARTBEAT, 1, 4, 0, 0, 0, 0, 0];
    assert_eq!(
        read(&message(&[&short_heartbeat[..], &INFO_DST].concat())),
        [(Err(Error::Truncated), 8), (Ok(info_destination()), 24)]
    );
}

#[test]
fn a_length_that_leaves_the_message_ends_it() {
    let mut too_long = INFO_DST;
    too_long[2] = 13;
    assert_eq!(
        read(&message(&[INFO_DST, too_long].concat())),
        [(Ok(info_destination()), 16), (Err(Error::Truncated), 32)]
    );
}

#[test]
fn a_header_cut_off_ends_the_message() {
    for rest in 1..4 {
        let bytes = message(&[&INFO_DST[..], &INFO_DST[..rest]].concat());
        assert_eq!(
            read(&bytes),
            [
                (Ok(info_destination()), 16),
                (Err(Error::Truncated), 16 + rest)
            ]
        );
    }
}

#[test]
fn unknown_submessages_are_handed_out_undecoded() {
    for id in [
        0x02,
        0x17,
        SubmessageId::FIRST_OF_SECURITY,
        0x34,
        SubmessageId::LAST_OF_SECURITY,
        0x7f,
        0x80,
        0xff,
    ] {
        let other = Submessage::Other {
            id,
            flags: 0x21,
            body: b"body",
        };
        let bytes = message(&[&[id, 0x21, 4, 0], &b"body"[..], &INFO_DST].concat());
        assert_eq!(read(&bytes), [(Ok(other), 8), (Ok(info_destination()), 24)]);
    }
}
