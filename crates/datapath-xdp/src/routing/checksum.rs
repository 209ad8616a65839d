//! Validation of a received datagram's UDP checksum.
//!
//! A frame that never crossed a wire may carry a partial checksum. Where a kernel socket sends through veth or tap, the
//! kernel defers the payload sum to absent hardware. The field then holds the sum over the pseudo header alone.

use isolane_wire::checksum::udp_pseudo_header;
use isolane_wire::udp;

/// Result of validating a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumState {
    /// The checksum matches the datagram.
    Valid,
    /// The datagram has no checksum (field 0).
    None,
    /// The checksum covers the pseudo header only (checksum offload); the payload is not verified.
    Partial,
    /// The checksum does not match, or the datagram is shorter than its header.
    Wrong,
}

/// Whether partial checksums are expected of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partial {
    /// A partial checksum is usual (veth, tap). It is checked first: a match avoids reading the payload.
    Expected,
    /// A partial checksum is a fault, as on a physical wire. The full sum is checked first.
    Unexpected,
}

/// Validates the checksum of `datagram`: the UDP header and the payload, in the length that the IPv4 header gives.
///
/// In one of 65,536 datagrams, the full checksum and the partial one are equal. The result is then the form that is
/// checked first ([`Partial`]).
#[inline]
#[must_use]
pub fn verify(
    source: [u8; 4],
    destination: [u8; 4],
    datagram: &[u8],
    partial: Partial,
) -> ChecksumState {
    let Some(field) = datagram
        .get(udp::CHECKSUM_OFFSET..)
        .and_then(<[u8]>::first_chunk::<2>)
    else {
        return ChecksumState::Wrong;
    };
    let field = u16::from_be_bytes(*field);
    if field == 0 {
        return ChecksumState::None;
    }
    // Longer datagrams do not exist: the IPv4 length has 16 bits.
    let Ok(length) = u16::try_from(datagram.len()) else {
        return ChecksumState::Wrong;
    };
    let pseudo_header = udp_pseudo_header(source, destination, length);
    let is_partial = || field == pseudo_header.fold();
    let is_valid = || pseudo_header.with(datagram).complement() == 0;
    match partial {
        Partial::Expected if is_partial() => ChecksumState::Partial,
        _ if is_valid() => ChecksumState::Valid,
        Partial::Unexpected if is_partial() => ChecksumState::Partial,
        _ => ChecksumState::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: [u8; 4] = [10, 0, 0, 1];
    const DESTINATION: [u8; 4] = [10, 0, 0, 2];

    fn datagram(checksum: u16) -> Vec<u8> {
        let mut bytes = vec![0; udp::HEADER_BYTES];
        udp::Repr {
            source_port: 1,
            destination_port: 2,
            payload_len: 5,
        }
        .emit(&mut bytes);
        bytes.extend_from_slice(b"hello");
        bytes[6..8].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    fn both(bytes: &[u8]) -> [ChecksumState; 2] {
        [Partial::Expected, Partial::Unexpected]
            .map(|partial| verify(SOURCE, DESTINATION, bytes, partial))
    }

    fn whole() -> u16 {
        udp_pseudo_header(SOURCE, DESTINATION, 13)
            .with(&datagram(0))
            .complement()
    }

    #[test]
    fn each_kind_differs_from_the_others() {
        let partial = udp_pseudo_header(SOURCE, DESTINATION, 13).fold();
        assert_eq!(both(&datagram(whole())), [ChecksumState::Valid; 2]);
        assert_eq!(both(&datagram(0)), [ChecksumState::None; 2]);
        assert_eq!(both(&datagram(partial)), [ChecksumState::Partial; 2]);
        assert_eq!(both(&datagram(whole() ^ 0x0400)), [ChecksumState::Wrong; 2]);
    }

    #[test]
    fn one_wrong_bit_anywhere_is_seen() {
        let bytes = datagram(whole());
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(both(&changed)[1], ChecksumState::Valid, "bit {bit}");
        }
        assert_eq!(
            verify([10, 0, 0, 3], DESTINATION, &bytes, Partial::Unexpected),
            ChecksumState::Wrong,
            "addresses are covered"
        );
    }

    #[test]
    fn what_is_shorter_than_a_header_is_wrong() {
        for length in 0..udp::HEADER_BYTES {
            assert_eq!(
                both(&datagram(whole())[..length]),
                [ChecksumState::Wrong; 2]
            );
        }
    }
}
