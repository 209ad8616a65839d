//! INFO_TS, INFO_DST, INFO_SRC, INFO_REPLY, INFO_REPLY_IP4.

use isolane_wire::{
    ByteOrder, Error,
    guid::GuidPrefix,
    locator::Locator,
    message::{InfoDestination, InfoReply, InfoReplyIp4, InfoSource, InfoTimestamp, Submessage},
    time::Timestamp,
};

use crate::bytes::{Bytes, ORDERS, reread};

const PREFIX: GuidPrefix = GuidPrefix(*b"twelve bytes");

#[test]
fn a_timestamp_is_read_in_either_byte_order() {
    for order in ORDERS {
        let body = Bytes::new(order).u32(0x0102_0304).u32(0x8000_0000);
        let parse = |flags| InfoTimestamp::parse(body.flags(flags), &body.bytes);
        let expected = Timestamp {
            seconds: 0x0102_0304,
            fraction: 0x8000_0000,
        };
        assert_eq!(parse(0), Ok(InfoTimestamp(Some(expected))));
        assert_eq!(parse(2), Ok(InfoTimestamp(None)));
    }
}

#[test]
fn a_timestamp_is_taken_back_by_the_flag_or_by_the_invalid_time() {
    let body = Bytes::new(ByteOrder::Little).u32(u32::MAX).u32(u32::MAX);
    let invalid = InfoTimestamp::parse(body.flags(0), &body.bytes);
    assert_eq!(invalid, Ok(InfoTimestamp(None)));
    assert_eq!(InfoTimestamp::parse(3, &[]), Ok(InfoTimestamp(None)));
}

#[test]
fn a_timestamp_cut_off_is_truncated() {
    assert_eq!(InfoTimestamp::parse(1, &[0; 7]), Err(Error::Truncated));
}

#[test]
fn timestamps_survive_the_way_there_and_back() {
    for sent in [None, Some(Timestamp::from_nanos(1_700_000_000_123_456_789))] {
        let submessage = InfoTimestamp(sent);
        let mut buffer = [0xaa; 12];
        let length = submessage.emit(&mut buffer);
        assert_eq!(length, submessage.buffer_len());
        assert_eq!(reread(&buffer[..length]), Submessage::InfoTimestamp(sent));
    }
}

#[test]
fn a_destination_has_no_byte_order() {
    for order in ORDERS {
        let body = Bytes::new(order).raw(&PREFIX.0);
        let parsed = InfoDestination::parse(body.flags(0), &body.bytes);
        assert_eq!(parsed, Ok(InfoDestination(PREFIX)));
    }
    assert_eq!(InfoDestination::parse(1, &[0; 11]), Err(Error::Truncated));
    let mut buffer = [0xaa; 16];
    assert_eq!(InfoDestination(PREFIX).emit(&mut buffer), 16);
    assert_eq!(reread(&buffer), Submessage::InfoDestination(PREFIX));
}

#[test]
fn a_source_is_version_vendor_and_prefix() {
    let expected = InfoSource {
        version: [2, 4],
        vendor: [1, 0x0f],
        prefix: PREFIX,
    };
    for order in ORDERS {
        let body = Bytes::new(order)
            .raw(&[0xaa; 4])
            .raw(&[2, 4, 1, 0x0f])
            .raw(&PREFIX.0);
        assert_eq!(InfoSource::parse(body.flags(0), &body.bytes), Ok(expected));
        let short = &body.bytes[..19];
        assert_eq!(
            InfoSource::parse(body.flags(0), short),
            Err(Error::Truncated)
        );
    }
    let mut buffer = [0xaa; 24];
    assert_eq!(expected.emit(&mut buffer), 24);
    assert_eq!(reread(&buffer), Submessage::InfoSource(expected));
}

fn locator(bytes: Bytes, locator: Locator) -> Bytes {
    bytes
        .u32(locator.kind as u32)
        .u32(locator.port)
        .raw(&locator.address)
}

#[test]
fn a_reply_has_one_list_or_two_in_either_byte_order() {
    let unicast = [Locator::udpv4([10, 0, 0, 1], 7411), Locator::INVALID];
    let multicast = [Locator::udpv4([239, 255, 0, 1], 7401)];
    for order in ORDERS {
        let body = unicast.into_iter().fold(Bytes::new(order).u32(2), locator);
        let reply = InfoReply::parse(body.flags(0), &body.bytes).unwrap();
        assert!(reply.unicast.iter().eq(unicast) && !reply.unicast.is_empty());
        assert_eq!(reply.multicast, None);
        let mut buffer = [0xaa; 100];
        let length = reply.emit(&mut buffer);
        let Submessage::InfoReply(again) = reread(&buffer[..length]) else {
            panic!("{reply:?} reads as something else");
        };
        assert!(again.unicast.iter().eq(unicast) && again.multicast.is_none());

        let body = multicast.into_iter().fold(body.u32(1), locator);
        let reply = InfoReply::parse(body.flags(2), &body.bytes).unwrap();
        assert!(reply.unicast.iter().eq(unicast));
        assert!(reply.multicast.unwrap().iter().eq(multicast));

        let mut buffer = [0xaa; 100];
        let length = reply.emit(&mut buffer);
        assert_eq!(length, reply.buffer_len());
        let Submessage::InfoReply(again) = reread(&buffer[..length]) else {
            panic!("{reply:?} reads as something else");
        };
        assert!(again.unicast.iter().eq(unicast));
        assert!(again.multicast.unwrap().iter().eq(multicast));
    }
}

#[test]
fn a_list_of_locators_longer_than_the_body_is_truncated() {
    for order in ORDERS {
        for count in [2, u32::MAX] {
            let body = locator(Bytes::new(order).u32(count), Locator::INVALID);
            let parsed = InfoReply::parse(body.flags(0), &body.bytes);
            assert_eq!(parsed, Err(Error::Truncated), "{count} locators");
        }
    }
}

#[test]
fn a_reply_of_ipv4_has_one_place_or_two_whose_address_is_a_number() {
    let unicast = Locator::udpv4([10, 0, 0, 1], 7411);
    let group = Locator::udpv4([239, 255, 0, 1], 7401);
    for order in ORDERS {
        let body = Bytes::new(order).u32(0x0a00_0001).u32(7411);
        let alone = InfoReplyIp4 {
            unicast,
            multicast: None,
        };
        assert_eq!(InfoReplyIp4::parse(body.flags(0), &body.bytes), Ok(alone));
        let refused = Err(Error::Truncated);
        assert_eq!(InfoReplyIp4::parse(body.flags(2), &body.bytes), refused);
        let body = body.u32(0xefff_0001).u32(7401);
        let both = InfoReplyIp4 {
            multicast: Some(group),
            ..alone
        };
        assert_eq!(InfoReplyIp4::parse(body.flags(2), &body.bytes), Ok(both));
        for sent in [alone, both] {
            let mut buffer = [0xaa; 20];
            let length = sent.emit(&mut buffer);
            assert_eq!(length, sent.buffer_len());
            assert_eq!(reread(&buffer[..length]), Submessage::InfoReplyIp4(sent));
        }
    }
}
