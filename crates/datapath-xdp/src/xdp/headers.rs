//! Where the payload of a received frame lies, and who sent it.
//!
//! The classifier has looked at the same headers, and is not believed: between its look and this one
//! lies memory that others write to.

use std::ops::Range;

use isolane_datapath::ReceiveDrop;
use isolane_wire::ethernet::{EtherType, Frame};
use isolane_wire::ipv4::{PROTOCOL_UDP, Packet};
use isolane_wire::locator::Locator;
use isolane_wire::udp::{Datagram, HEADER_BYTES};

use crate::egress::{Judgement, Partial, judge};

/// A datagram in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its payload, as a range of the frame.
    pub(super) payload: Range<usize>,
    pub(super) from: Locator,
    pub(super) checksum: Judgement,
}

/// Finds the datagram in a frame, its checksum judged unless `partial` is `None`.
pub(super) fn find(bytes: &[u8], partial: Option<Partial>) -> Result<Found, ReceiveDrop> {
    let malformed = |_| ReceiveDrop::Malformed;
    let frame = Frame::new_checked(bytes).map_err(malformed)?;
    if frame.ether_type() != EtherType::IPV4 {
        return Err(ReceiveDrop::Malformed);
    }
    let ip_at = frame.header_len();
    let packet = Packet::new_checked(frame.payload()).map_err(malformed)?;
    if packet.protocol() != PROTOCOL_UDP || packet.is_fragment() {
        return Err(ReceiveDrop::Malformed);
    }
    let datagram_bytes = packet.payload();
    let datagram = Datagram::new_checked(datagram_bytes).map_err(malformed)?;
    let (source, destination) = (packet.source(), packet.destination());
    let checksum = match partial {
        None => Judgement::None,
        Some(_) if !packet.has_valid_checksum() => Judgement::Wrong,
        Some(partial) => {
            let whole = &datagram_bytes[..datagram.total_len()];
            judge(source, destination, whole, partial)
        }
    };
    if checksum == Judgement::Wrong {
        return Err(ReceiveDrop::Checksum);
    }
    let start = ip_at + packet.header_len() + HEADER_BYTES;
    Ok(Found {
        payload: start..start + datagram.payload().len(),
        from: Locator::udpv4(source, datagram.source_port()),
        checksum,
    })
}

#[cfg(test)]
mod tests {
    use isolane_wire::ethernet::MacAddress;
    use isolane_wire::level::Level;

    use super::*;
    use crate::egress::{Device, Flow, Template, UdpChecksum};

    const LOOK: Option<Partial> = Some(Partial::Unexpected);

    /// A frame as a lane sends it.
    fn frame(vlan: Option<u16>, payload: &[u8], checksum: UdpChecksum) -> Vec<u8> {
        let device = Device {
            destination_mac: MacAddress([2, 0, 0, 0, 0, 2]),
            source_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            source: [10, 0, 0, 1],
            destination: [10, 0, 0, 2],
            vlan,
            mtu_bytes: 1_500,
        };
        let flow = Flow {
            destination: [10, 0, 0, 2],
            destination_port: 7_411,
            source_port: 40_000,
            level: Level::ALL[7],
        };
        let mut buffer = [&[0; 64], payload].concat();
        let end = buffer.len();
        let start = Template::new(&device, &flow).emit(&mut buffer, 64..end, checksum);
        buffer.split_off(start)
    }

    #[test]
    fn what_a_lane_sends_a_lane_finds_again() {
        for (vlan, header_bytes) in [(None, 42), (Some(5), 46)] {
            for payload in [&b""[..], b"x", &[7; 1_400]] {
                let found = find(&frame(vlan, payload, UdpChecksum::Made), LOOK).unwrap();
                assert_eq!(found.payload, header_bytes..header_bytes + payload.len());
                assert_eq!(found.from, Locator::udpv4([10, 0, 0, 1], 40_000));
                assert_eq!(found.checksum, Judgement::Valid);
            }
        }
        let without = frame(None, b"payload", UdpChecksum::None);
        assert_eq!(find(&without, LOOK).unwrap().checksum, Judgement::None);
    }

    #[test]
    fn padding_behind_a_short_datagram_is_not_part_of_it() {
        let mut padded = frame(None, b"abc", UdpChecksum::Made);
        padded.resize(60, 0xff);
        assert_eq!(find(&padded, LOOK).unwrap().payload, 42..45);
    }

    #[test]
    fn a_changed_byte_anywhere_is_found() {
        let whole = frame(None, &[0x5a; 100], UdpChecksum::Made);
        for place in 14..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0x10;
            let dropped = find(&changed, LOOK).unwrap_err();
            let named = [ReceiveDrop::Checksum, ReceiveDrop::Malformed];
            assert!(named.contains(&dropped), "byte {place}: {dropped:?}");
        }
    }

    #[test]
    fn no_length_is_believed() {
        let whole = frame(Some(0), &[1; 40], UdpChecksum::Made);
        for length in 0..whole.len() {
            let dropped = find(&whole[..length], LOOK).unwrap_err();
            assert_eq!(dropped, ReceiveDrop::Malformed, "{length} bytes");
        }
    }
}
