//! Target `rtps`: RTPS messages. Parsed submessages must obey the validity clauses of RTPS 2.5 §8.3.8. If they are
//! written and read again, they must be unchanged. Parsing must end within as many steps as there are bytes.
//!
//! This file has a second parser of sets, bit by bit, for comparison with the one under test.

use isolane_wire::{
    message::{
        AckNack, Data, DataFrag, Gap, HEADER_BYTES, Header, HeaderExtension, Heartbeat,
        HeartbeatFrag, InfoReply, InfoReplyIp4, NackFrag, PayloadKind, SUBMESSAGE_HEADER_BYTES,
        Submessage, Submessages,
    },
    sequence::{FragmentNumberSet, SequenceNumberSet},
};

use super::discovery::read_list;

/// Maximum number of bits of a set (RTPS 2.5 §8.3.5.5, §8.3.5.7).
const MAX_BITS: u64 = 256;

/// Runs the target on a message.
pub fn rtps(message: &[u8]) {
    if let Ok(header) = Header::parse(message) {
        assert!(message.starts_with(b"RTPS"));
        let mut written = [0; HEADER_BYTES];
        header.emit(&mut written);
        assert_eq!(&written[..], &message[..HEADER_BYTES]);
    }
    let mut submessages = Submessages::new(message, HEADER_BYTES);
    let mut steps = 0;
    loop {
        let start = submessages.offset();
        let Some(submessage) = submessages.next() else {
            break;
        };
        steps += 1;
        let end = submessages.offset();
        assert!(start < end && end <= message.len(), "no step forward");
        if let Ok(submessage) = submessage {
            // The iterator has checked that the submessage is complete.
            let body = &message[start + SUBMESSAGE_HEADER_BYTES..end];
            check(&submessage, message, message[start + 1], body);
        }
    }
    assert!(steps <= message.len() / SUBMESSAGE_HEADER_BYTES + 1);
}

fn check(submessage: &Submessage<'_>, message: &[u8], flags: u8, body: &[u8]) {
    let mut buffer = [0; 2048];
    match submessage {
        Submessage::AckNack(acknack) => {
            assert!(acknack.state.base().get() >= 0);
            check_sequence_set(&acknack.state, flags, &body[8..]);
            let length = acknack.emit(&mut buffer);
            assert_eq!(length, acknack.buffer_len());
            let again = AckNack::parse(buffer[1], &buffer[SUBMESSAGE_HEADER_BYTES..length]);
            assert_eq!(again.as_ref(), Ok(acknack));
        }
        Submessage::Gap(gap) => {
            assert!(gap.start.get() >= 1 && gap.list.base().get() >= 1);
            check_sequence_set(&gap.list, flags, &body[16..]);
            let length = gap.emit(&mut buffer);
            assert_eq!(length, gap.buffer_len());
            let again = Gap::parse(buffer[1], &buffer[SUBMESSAGE_HEADER_BYTES..length]);
            assert_eq!(again.as_ref(), Ok(gap));
        }
        Submessage::Heartbeat(heartbeat) => {
            let (first, last) = (heartbeat.first.get(), heartbeat.last.get());
            assert!(first >= 1 && last >= first - 1, "{first}..={last}");
            let length = heartbeat.emit(&mut buffer);
            let again = Heartbeat::parse(buffer[1], &buffer[SUBMESSAGE_HEADER_BYTES..length]);
            assert_eq!(again.as_ref(), Ok(heartbeat));
        }
        Submessage::HeartbeatFrag(heartbeat) => {
            assert!(heartbeat.sequence.get() >= 1 && heartbeat.last_fragment >= 1);
            let length = heartbeat.emit(&mut buffer);
            let again = HeartbeatFrag::parse(buffer[1], &buffer[SUBMESSAGE_HEADER_BYTES..length]);
            assert_eq!(again.as_ref(), Ok(heartbeat));
        }
        Submessage::NackFrag(nack) => {
            assert!(nack.sequence.get() >= 1 && nack.state.base() >= 1);
            check_fragment_set(&nack.state, flags, &body[16..]);
            let length = nack.emit(&mut buffer);
            let again = NackFrag::parse(buffer[1], &buffer[SUBMESSAGE_HEADER_BYTES..length]);
            assert_eq!(again.as_ref(), Ok(nack));
        }
        Submessage::Data(data) => check_data(data, message),
        Submessage::DataFrag(data) => check_fragments(data, message),
        Submessage::InfoReply(reply) => check_reply(reply, body),
        Submessage::InfoReplyIp4(reply) => {
            let length = reply.emit(&mut buffer);
            let again = InfoReplyIp4::parse(buffer[1], &buffer[SUBMESSAGE_HEADER_BYTES..length]);
            assert_eq!(again.as_ref(), Ok(reply));
        }
        Submessage::HeaderExtension(extension) => check_extension(extension, message),
        Submessage::InfoTimestamp(_)
        | Submessage::InfoSource(_)
        | Submessage::InfoDestination(_)
        | Submessage::Pad
        | Submessage::Other { .. } => {}
    }
}

fn check_data(data: &Data<'_>, message: &[u8]) {
    assert!(data.sequence.get() >= 1);
    assert!(message[data.payload_offset..].starts_with(data.bytes));
    assert!(data.payload != PayloadKind::None || data.bytes.is_empty());
    if let Some(list) = &data.inline_qos {
        read_list(list);
    }
    let _ = (data.status_info(), data.key_hash());
}

fn check_fragments(data: &DataFrag<'_>, message: &[u8]) {
    assert!(data.sequence.get() >= 1 && data.first_fragment >= 1);
    assert!(data.fragments >= 1 && data.fragment_size >= 1);
    assert!(u32::from(data.fragment_size) <= data.sample_size);
    let last = u64::from(data.first_fragment) + u64::from(data.fragments) - 1;
    assert!(last <= u64::from(data.total_fragments()));
    assert!(message[data.payload_offset..].starts_with(data.bytes));
    let end = data.sample_offset() + data.bytes.len();
    assert!(!data.bytes.is_empty() && end <= data.sample_size as usize);
    // Only the sample's last fragment may be shorter.
    let is_last = last == u64::from(data.total_fragments());
    let full = usize::from(data.fragments) * usize::from(data.fragment_size);
    assert!(data.bytes.len() == full || (is_last && end == data.sample_size as usize));
    if let Some(list) = &data.inline_qos {
        read_list(list);
    }
    let _ = (data.status_info(), data.key_hash());
}

fn check_reply(reply: &InfoReply<'_>, body: &[u8]) {
    let lists = [Some(reply.unicast), reply.multicast];
    let locators: usize = lists.iter().flatten().map(|list| list.iter().count()).sum();
    assert!(locators * 24 <= body.len());
    let mut buffer = vec![0; reply.buffer_len()];
    let length = reply.emit(&mut buffer);
    let again = InfoReply::parse(buffer[1], &buffer[SUBMESSAGE_HEADER_BYTES..length]);
    let again = again.expect("what was written is read");
    assert!(again.unicast.iter().eq(reply.unicast.iter()));
}

/// Checks that a sealed extension is verified, and that its checksum is wrong after a byte of the header has changed.
fn check_extension(extension: &HeaderExtension<'_>, message: &[u8]) {
    let _ = extension.verify(message);
    if let Some(list) = &extension.parameters {
        read_list(list);
    }
    let mut written = vec![0; HEADER_BYTES + extension.buffer_len()];
    written[..HEADER_BYTES].copy_from_slice(&message[..HEADER_BYTES]);
    extension.emit(&mut written[HEADER_BYTES..]);
    let mut sealed = *extension;
    sealed.seal(&mut written);
    let again = Submessages::new(&written, HEADER_BYTES).next();
    let Some(Ok(Submessage::HeaderExtension(again))) = again else {
        assert_eq!(extension.buffer_len(), 0, "it was written, and is not read");
        return;
    };
    assert_eq!(again.verify(&written), Ok(()));
    assert_eq!(again.sent, extension.sent);
    if again.checksum.is_some() {
        let at = message.len() % HEADER_BYTES;
        let mut damaged = written.clone();
        damaged[at] ^= 1;
        assert!(again.verify(&damaged).is_err(), "byte {at} is not covered");
    }
}

/// Reads the 32-bit word `index` of a body.
fn number(flags: u8, bytes: &[u8], index: usize) -> u32 {
    let bytes = bytes[4 * index..][..4].try_into().expect("four bytes");
    if flags & 1 == 0 {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    }
}

/// Returns the offsets of a bitmap's set bits. A bitmap is the number of bits, then words whose first bit is the most
/// significant one (RTPS 2.5 §9.4.2.6).
fn offsets(flags: u8, bitmap: &[u8]) -> Vec<u64> {
    let bits = u64::from(number(flags, bitmap, 0));
    assert!(bits <= MAX_BITS, "a set of {bits} bits");
    (0..bits)
        .filter(|bit| {
            let word = number(flags, bitmap, 1 + (bit / 32) as usize);
            word & (1 << (31 - bit % 32)) != 0
        })
        .collect()
}

fn check_sequence_set(set: &SequenceNumberSet, flags: u8, bytes: &[u8]) {
    let base =
        (u64::from(number(flags, bytes, 0)) << 32 | u64::from(number(flags, bytes, 1))) as i64;
    assert_eq!(set.base().get(), base);
    let members: Vec<i64> = offsets(flags, &bytes[8..])
        .into_iter()
        .map(|offset| {
            base.checked_add(offset as i64)
                .expect("the set stays in the range")
        })
        .collect();
    let read: Vec<i64> = set.iter().map(|member| member.get()).collect();
    assert_eq!(
        read, members,
        "the parser under test and the parser of this file read different members"
    );
    assert_eq!(set.is_empty(), members.is_empty());
    let mut rebuilt = SequenceNumberSet::new(set.base());
    for member in set {
        assert!(set.contains(member) && rebuilt.insert(member));
    }
    assert!(rebuilt.iter().eq(set.iter()));
}

fn check_fragment_set(set: &FragmentNumberSet, flags: u8, bytes: &[u8]) {
    let base = number(flags, bytes, 0);
    assert_eq!(set.base(), base);
    let members: Vec<u64> = offsets(flags, &bytes[4..])
        .into_iter()
        .map(|offset| u64::from(base) + offset)
        .collect();
    let read: Vec<u64> = set.iter().map(u64::from).collect();
    assert_eq!(
        read, members,
        "the parser under test and the parser of this file read different members"
    );
    assert!(set.iter().all(|member| set.contains(member)));
}
