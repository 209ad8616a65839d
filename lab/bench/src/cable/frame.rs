//! Frame inspection: offloaded checksum, traffic class, UDP destination port, and timestamps of round-trip messages.
//!
//! The timestamps separate the cable's share of a round trip from the hosts' share. The cable identifies a message by
//! its id and nonce and keeps the timestamps in a table. It writes nothing into frames.

use isolane_wire::checksum;
use isolane_wire::ethernet::{EtherType, Frame};
use isolane_wire::ipv4::{PROTOCOL_UDP, Packet};
use isolane_wire::udp::Datagram;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::limits::MAX_SAMPLES;
use crate::record::{Stamp, nonce, stamp};

/// Completes a checksum that the sender offloaded to its device. `position` holds the sum over the pseudo-header; the
/// bytes from `start` on are still to be added (virtio 1.2 §5.1.6.2). Returns false, without a change, if a position
/// lies outside the frame.
pub(super) fn complete_checksum(frame: &mut [u8], start: usize, position: usize) -> bool {
    let offset = position.checked_sub(start);
    offset.is_some_and(|offset| checksum::complete(frame, start, offset).is_ok())
}

/// Traffic class for a strict arbiter, 0 to 7 (most urgent): the priority code point of the outermost tag, else the
/// class selector of an IPv4 packet or fragment, else 0.
pub(super) fn class(frame: &[u8]) -> u8 {
    let Ok(frame) = Frame::new_checked(frame) else {
        return 0;
    };
    let class = frame.pcp().or_else(|| Some(ipv4(&frame)?.class_selector()));
    class.unwrap_or(0)
}

/// Destination port and payload of a frame that carries a whole UDP datagram in IPv4, behind at most two VLAN tags.
/// Returns `None` for fragments.
pub(super) fn udp(frame: &[u8]) -> Option<(u16, &[u8])> {
    let packet = ipv4(&Frame::new_checked(frame).ok()?)?;
    if packet.protocol() != PROTOCOL_UDP || packet.is_fragment() {
        return None;
    }
    // Short frames may be padded behind the packet; the payload excludes the padding.
    let datagram = Datagram::new_checked(packet.payload()).ok()?;
    Some((datagram.destination_port(), datagram.payload()))
}

fn ipv4<'a>(frame: &Frame<&'a [u8]>) -> Option<Packet<&'a [u8]>> {
    if frame.ether_type() != EtherType::IPV4 {
        return None;
    }
    Packet::new_checked(frame.payload()).ok()
}

/// Selection of timestamped messages: UDP datagrams that end with a serialised RTT message (`id: u32, nonce: u32,
/// padding`, little-endian) of this size and with the right nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// Serialised size of the message in bytes, without the encapsulation header.
    pub payload_bytes: u32,
    /// Exclusive upper bound of the ids.
    pub samples: u32,
    /// Seed of the nonces.
    pub seed: u64,
}

/// Timestamps of one direction, indexed by message id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passages {
    /// Time the frame was read from the sending host, in nanoseconds.
    pub arrived_ns: Vec<Stamp>,
    /// Time the frame was handed to the receiving host, in nanoseconds.
    pub sent_ns: Vec<Stamp>,
}

impl Passages {
    /// Time that message `id` spent in the cable, in nanoseconds; `None` if it did not leave the cable.
    pub fn duration_ns(&self, id: usize) -> Option<u64> {
        let arrived = (*self.arrived_ns.get(id)?)?;
        let sent = (*self.sent_ns.get(id)?)?;
        sent.get().checked_sub(arrived.get())
    }
}

/// Timestamp recorder of one direction.
#[derive(Debug)]
pub(super) struct Observer {
    observe: Observe,
    passages: Passages,
}

impl Observer {
    /// Reserves the memory for all timestamps.
    pub(super) fn new(observe: Observe) -> Result<Observer, ConfigError> {
        if observe.samples > MAX_SAMPLES {
            return Err(ConfigError::TooManySamples(observe.samples));
        }
        let none = || vec![None; observe.samples as usize];
        Ok(Observer {
            observe,
            passages: Passages {
                arrived_ns: none(),
                sent_ns: none(),
            },
        })
    }

    /// Id of the RTT message in a UDP payload, if it holds one.
    fn identify(&self, payload: &[u8]) -> Option<u32> {
        // Serialised data is padded to four bytes at the end of its submessage (RTPS 2.5 §9.4.5.4).
        let size = (self.observe.payload_bytes as usize).next_multiple_of(4);
        let message = payload.get(payload.len().checked_sub(size)?..)?;
        let id = u32::from_le_bytes(message.get(0..4)?.try_into().ok()?);
        let claimed = u32::from_le_bytes(message.get(4..8)?.try_into().ok()?);
        (id < self.observe.samples && claimed == nonce(self.observe.seed, id)).then_some(id)
    }

    pub(super) fn arrived(&mut self, payload: &[u8], now_ns: u64) {
        if let Some(id) = self.identify(payload) {
            self.passages.arrived_ns[id as usize].get_or_insert(stamp(now_ns));
        }
    }

    pub(super) fn sent(&mut self, payload: &[u8], now_ns: u64) {
        if let Some(id) = self.identify(payload) {
            self.passages.sent_ns[id as usize].get_or_insert(stamp(now_ns));
        }
    }

    pub(super) fn into_passages(self) -> Passages {
        self.passages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Frame from 10.78.0.1:4000 to 10.78.0.2:7401 with payload "abc". Its UDP checksum field holds the sum over the
    /// pseudo-header only (checksum offload).
    fn datagram() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
        frame.extend([0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend([10, 78, 0, 1, 10, 78, 0, 2]);
        // 0a4e + 0001 + 0a4e + 0002 + 0011 + 000b
        frame.extend([0x0f, 0xa0, 0x1c, 0xe9, 0, 11, 0x14, 0xbb]);
        frame.extend(b"abc");
        frame
    }

    /// Sum over pseudo-header and datagram; 0xffff means a valid checksum.
    fn verify(frame: &[u8]) -> u16 {
        let mut covered = frame[26..34].to_vec();
        covered.extend([0, 17]);
        covered.extend(&frame[38..40]);
        covered.extend(&frame[34..]);
        let mut sum: u32 = 0;
        for word in covered.chunks(2) {
            sum += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn an_unfinished_checksum_is_finished() {
        let mut frame = datagram();
        assert_ne!(verify(&frame), 0xffff);
        assert!(complete_checksum(&mut frame, 34, 40));
        assert_eq!(verify(&frame), 0xffff);
    }

    #[test]
    fn a_checksum_outside_the_frame_changes_nothing() {
        let mut frame = datagram();
        assert!(!complete_checksum(&mut frame, 34, 44));
        assert!(!complete_checksum(&mut frame, 46, 40));
        assert_eq!(frame, datagram());
    }

    #[test]
    fn the_port_is_found_with_and_without_tags() {
        let plain = datagram();
        assert_eq!(udp(&plain), Some((7401, &b"abc"[..])));
        let mut tagged = plain.clone();
        tagged.splice(12..12, [0x88, 0xa8, 0, 5, 0x81, 0x00, 0xe0, 7]);
        assert_eq!(udp(&tagged), Some((7401, &b"abc"[..])));
    }

    #[test]
    fn padding_behind_a_short_datagram_is_no_payload() {
        let mut padded = datagram();
        padded.resize(60, 0xff);
        assert_eq!(udp(&padded), Some((7401, &b"abc"[..])));
    }

    #[test]
    fn the_class_is_the_outer_tags_else_the_code_points_else_the_lowest() {
        let mut plain = datagram();
        assert_eq!(class(&plain), 0);
        // DSCP 46 (expedited forwarding) belongs to class 5.
        plain[15] = 46 << 2;
        assert_eq!(class(&plain), 5);
        let mut fragment = plain.clone();
        fragment[20] = 0x20;
        assert_eq!(class(&fragment), 5);
        let mut tagged = plain.clone();
        tagged.splice(12..12, [0x88, 0xa8, 0x60, 5, 0x81, 0x00, 0xe0, 7]);
        assert_eq!(class(&tagged), 3);
        // An ARP request, a truncated packet, half a header.
        plain[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(class(&plain), 0);
        assert_eq!(class(&datagram()[..30]), 0);
        assert_eq!(class(&[0; 13]), 0);
    }

    #[test]
    fn a_fragment_has_no_port() {
        let mut frame = datagram();
        frame[20] = 0x20;
        assert_eq!(udp(&frame), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(frame in prop::collection::vec(any::<u8>(), 0..80), start: u16, position: u16) {
            let _ = udp(&frame);
            assert!(class(&frame) < 8);
            complete_checksum(&mut frame.clone(), start.into(), position.into());
        }
    }

    const OBSERVE: Observe = Observe {
        payload_bytes: 62,
        samples: 10,
        seed: 5,
    };

    /// RTPS headers, then the message, then padding to four bytes.
    fn message(id: u32, nonce: u32) -> Vec<u8> {
        let mut bytes = vec![0xee; 60];
        bytes.extend(id.to_le_bytes());
        bytes.extend(nonce.to_le_bytes());
        bytes.resize(60 + 64, 0);
        bytes
    }

    #[test]
    fn a_message_is_known_by_id_and_nonce_and_stamped_once() {
        let mut observer = Observer::new(OBSERVE).unwrap();
        let message = message(3, nonce(5, 3));
        observer.arrived(&message, 100);
        observer.arrived(&message, 150);
        observer.sent(&message, 300);
        let passages = observer.into_passages();
        assert_eq!(passages.duration_ns(3), Some(200));
        assert_eq!(passages.duration_ns(4), None);
    }

    #[test]
    fn other_traffic_leaves_no_stamp() {
        let mut observer = Observer::new(OBSERVE).unwrap();
        observer.arrived(&message(3, nonce(5, 3) ^ 1), 100);
        observer.arrived(&message(10, nonce(5, 10)), 100);
        observer.arrived(&[0; 1024], 100);
        observer.arrived(&[], 100);
        assert!(
            observer
                .into_passages()
                .arrived_ns
                .iter()
                .all(Option::is_none)
        );
    }
}
