//! Messages with a header extension: length, send time and checksum.

use isolane_rtps::Counters;
use isolane_sim::{ReaderHandle, Sample, World};
use isolane_wire::{
    message::{ChecksumKind, HEADER_BYTES, HeaderExtension, MessageChecksum},
    qos::DurabilityKind,
    time::Timestamp,
};

use super::a_reader;
use crate::peer::{Peer, WRITER, head};

const KINDS: [ChecksumKind; 3] = [ChecksumKind::Crc32c, ChecksumKind::Crc64, ChecksumKind::Md5];

fn extension(kind: ChecksumKind) -> HeaderExtension<'static> {
    HeaderExtension {
        message_bytes: Some(0),
        sent: Some(Timestamp::from_nanos(1_000_000_000)),
        checksum: Some(MessageChecksum::zero(kind)),
        ..HeaderExtension::default()
    }
}

/// Datagram with a sealed header extension and sample 1.
fn sample(peer: &Peer, mut extension: HeaderExtension<'_>) -> Vec<u8> {
    let payload = Sample::value(1).payload();
    let mut datagram = peer.datagram(|message| {
        message
            .header_extension(&extension)?
            .data(&head(WRITER, 1), &payload)
            .map(drop)
    });
    extension.seal(&mut datagram);
    datagram
}

fn counters(world: &World, peer: &Peer) -> Counters {
    *world.protocol(peer.target).counters()
}

fn reader() -> (World, Peer, ReaderHandle) {
    a_reader(DurabilityKind::Volatile)
}

#[test]
fn a_message_that_is_what_it_says_is_taken() {
    for kind in KINDS {
        let (mut world, peer, reader) = reader();
        let datagram = sample(&peer, extension(kind));
        peer.say_bytes(&mut world, &datagram);
        peer.heartbeat(&mut world, (1, 1), 1);
        assert_eq!(world.values(reader), [1], "{kind:?}");
        let counters = counters(&world, &peer);
        assert_eq!(counters.malformed_messages, 0);
        assert_eq!(counters.skipped_submessages, 0);
    }
}

#[test]
fn when_a_message_was_sent_is_not_when_its_sample_was_written() {
    let (mut world, peer, reader) = reader();
    let datagram = sample(&peer, extension(ChecksumKind::Crc32c));
    peer.say_bytes(&mut world, &datagram);
    peer.heartbeat(&mut world, (1, 1), 1);
    let [received] = world.received(reader) else {
        panic!("one sample came");
    };
    assert_eq!(received.info.source_timestamp, None);
}

#[test]
fn a_message_that_was_damaged_anywhere_is_not_believed_in_any_part() {
    for kind in KINDS {
        let (mut world, peer, reader) = reader();
        let before = counters(&world, &peer);
        let datagram = sample(&peer, extension(kind));
        // All bytes except the extension's identifier and flags: a change of these makes it another submessage, or one
        // without a checksum.
        let places = (0..HEADER_BYTES).chain(HEADER_BYTES + 2..datagram.len());
        for place in places {
            let mut damaged = datagram.clone();
            damaged[place] ^= 0x20;
            peer.say_bytes(&mut world, &damaged);
        }
        let counters = counters(&world, &peer);
        assert_eq!(counters.messages, before.messages, "{kind:?}");
        assert_eq!(
            counters.malformed_messages,
            datagram.len() as u64 - 2,
            "{kind:?}"
        );
        peer.heartbeat(&mut world, (1, 1), 1);
        assert_eq!(peer.last_acknack(&world), Some((1, vec![1])));
        assert!(world.values(reader).is_empty());
    }
}

#[test]
fn a_message_that_was_cut_is_not_believed_either() {
    let (mut world, peer, reader) = reader();
    let length_alone = HeaderExtension {
        message_bytes: Some(0),
        ..HeaderExtension::default()
    };
    let datagram = sample(&peer, length_alone);
    let longer = [&datagram[..], &datagram[HEADER_BYTES..]].concat();
    peer.say_bytes(&mut world, &longer);
    peer.say_bytes(&mut world, &datagram[..datagram.len() - 4]);
    peer.heartbeat(&mut world, (1, 1), 1);
    assert_eq!(counters(&world, &peer).malformed_messages, 2);
    assert!(world.values(reader).is_empty());
}

#[test]
fn an_extension_that_stands_elsewhere_is_malformed_and_the_rest_is_read() {
    let (mut world, peer, reader) = reader();
    let payload = Sample::value(1).payload();
    let datagram = peer.datagram(|message| {
        message
            .info_timestamp(Timestamp::ZERO)?
            .header_extension(&extension(ChecksumKind::Md5))?
            .data(&head(WRITER, 1), &payload)
            .map(drop)
    });
    peer.say_bytes(&mut world, &datagram);
    peer.heartbeat(&mut world, (1, 1), 1);
    assert_eq!(counters(&world, &peer).malformed_submessages, 1);
    assert_eq!(world.values(reader), [1]);
}
