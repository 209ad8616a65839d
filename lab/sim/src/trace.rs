//! One-line descriptions of datagrams, and a hash of them.

use std::fmt::Write;

use isolane_wire::{
    locator::Locator,
    message::{HEADER_BYTES, Header, Submessage, Submessages},
    time::Instant,
};

use crate::node::NodeId;

/// Offset basis of FNV-1a with 64 bits.
pub(crate) const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues an FNV-1a hash with a datagram sent to one locator.
pub(crate) fn hash(start: u64, now: Instant, from: NodeId, to: Locator, bytes: &[u8]) -> u64 {
    let time = now.as_nanos().to_le_bytes();
    let from = (from.0 as u64).to_le_bytes();
    let length = (bytes.len() as u64).to_le_bytes();
    let (kind, port) = (to.kind.to_le_bytes(), to.port.to_le_bytes());
    let parts: [&[u8]; 7] = [&time, &from, &kind, &port, &to.address, &length, bytes];
    parts.into_iter().flatten().fold(start, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Describes a datagram.
pub(crate) fn tell(bytes: &[u8]) -> String {
    let Ok(header) = Header::parse(bytes) else {
        return format!("{} bytes that are not RTPS", bytes.len());
    };
    let mut text = format!("{}", header.prefix);
    for submessage in Submessages::new(bytes, HEADER_BYTES) {
        // Writing to a string does not fail.
        let _ = match submessage {
            Ok(submessage) => tell_one(&mut text, &submessage),
            Err(error) => write!(text, " | {error}"),
        };
    }
    text
}

fn tell_one(text: &mut String, submessage: &Submessage<'_>) -> std::fmt::Result {
    match submessage {
        Submessage::InfoTimestamp(_) | Submessage::Pad => Ok(()),
        Submessage::InfoDestination(prefix) => write!(text, " | to {prefix}"),
        Submessage::Data(data) => write!(
            text,
            " | DATA {} -> {} #{} {:?} {} bytes",
            data.writer,
            data.reader,
            data.sequence,
            data.payload,
            data.bytes.len()
        ),
        Submessage::Heartbeat(beat) => write!(
            text,
            " | HEARTBEAT {} {}..={} count {}{}",
            beat.writer,
            beat.first,
            beat.last,
            beat.count,
            if beat.is_final { " final" } else { "" }
        ),
        Submessage::AckNack(ack) => write!(
            text,
            " | ACKNACK {} -> {} below {} lacks {:?} count {}{}",
            ack.reader,
            ack.writer,
            ack.state.base(),
            ack.state.iter().map(|s| s.get()).collect::<Vec<_>>(),
            ack.count,
            if ack.is_final { " final" } else { "" }
        ),
        Submessage::Gap(gap) => write!(
            text,
            " | GAP {} -> {} {}..{} and {:?}",
            gap.writer,
            gap.reader,
            gap.start,
            gap.list.base(),
            gap.list.iter().map(|s| s.get()).collect::<Vec<_>>()
        ),
        Submessage::DataFrag(part) => write!(
            text,
            " | DATA_FRAG {} -> {} #{} fragments {} and {} behind it, of {}",
            part.writer,
            part.reader,
            part.sequence,
            part.first_fragment,
            part.fragments - 1,
            part.total_fragments()
        ),
        Submessage::NackFrag(nack) => write!(
            text,
            " | NACK_FRAG {} -> {} #{} lacks {:?} count {}",
            nack.reader,
            nack.writer,
            nack.sequence,
            nack.state.iter().collect::<Vec<_>>(),
            nack.count
        ),
        other => write!(text, " | {other:?}"),
    }
}
