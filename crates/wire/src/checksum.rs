//! Internet checksum (RFC 1071) of IPv4 headers and UDP datagrams.
//!
//! Frames from a virtual interface often have a *partial* checksum: the field holds only the sum over the
//! pseudo header, and hardware is expected to add the rest. Code that forwards such a frame to a physical
//! link, or to a receiver that verifies checksums, must finish it with [`complete`].

use crate::{Error, ipv4::PROTOCOL_UDP};

/// Running ones' complement sum of 16-bit words.
///
/// The sum is computed over little-endian 64-bit words. Since 2⁶⁴ is 1 modulo 2¹⁶ - 1, a carry counts as 1, and
/// the folded result equals the sum of 16-bit words. Swapping the bytes of all words swaps the bytes of the
/// sum (RFC 1071 §2). So the bytes of the result are swapped, not those of the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes. An odd number of bytes is padded with a zero byte, so only the last part of the data may have one.
    #[inline]
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        let (fours, rest) = bytes.as_chunks::<32>();
        let mut sum = fours.iter().fold(self, |sum, four| sum.with_words(four));
        // The remainder splits into at most one block of 16, one of 8, and fewer than 8 bytes.
        let (pairs, rest) = rest.as_chunks::<16>();
        if let Some(pair) = pairs.first() {
            sum = sum.with_words(pair);
        }
        let (words, rest) = rest.as_chunks::<8>();
        if let Some(word) = words.first() {
            sum = sum.with_words(word);
        }
        let last = match bytes.last_chunk::<8>() {
            // The bytes of the last word that were already added are shifted out. Without a rest, a single shift by 64
            // would overflow, so there are two shifts.
            Some(last) => u64::from_le_bytes(*last) >> (8 * (7 - rest.len())) >> 8,
            None => word_of(rest),
        };
        Self(add(sum.0, last))
    }

    /// Adds whole 64-bit words with an add-with-carry chain.
    #[inline]
    fn with_words(self, bytes: &[u8]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let (mut sum, mut carry) = (self.0, false);
        for word in words {
            (sum, carry) = sum.carrying_add(u64::from_le_bytes(*word), carry);
        }
        // This cannot overflow. An addition yields all ones and a carry only if a carry went in. None goes in at first.
        Self(sum + u64::from(carry))
    }

    /// Adds one 16-bit word.
    #[inline]
    #[must_use]
    pub fn with_u16(self, word: u16) -> Self {
        Self(add(self.0, word.swap_bytes().into()))
    }

    /// Returns the sum, folded to 16 bits.
    #[inline]
    #[must_use]
    pub fn fold(self) -> u16 {
        // The upper half now holds the sum of both halves and the carry out of the lower one.
        let sum = (self.0.wrapping_add(self.0.rotate_left(32)) >> 32) as u32;
        let sum = (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16;
        sum.swap_bytes()
    }

    /// Returns the checksum: the complement of the sum. It is zero if the data includes its own valid checksum.
    #[inline]
    #[must_use]
    pub fn complement(self) -> u16 {
        !self.fold()
    }
}

/// Little-endian word of fewer than eight bytes, padded with zeros.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    let place = |(place, byte): (usize, &u8)| u64::from(*byte) << (8 * place);
    bytes.iter().enumerate().map(place).sum()
}

/// Ones' complement addition: the carry is added back.
#[inline]
const fn add(a: u64, b: u64) -> u64 {
    let (sum, carries) = a.overflowing_add(b);
    sum + carries as u64
}

/// Sum over the pseudo header of a UDP checksum (RFC 768).
#[inline]
#[must_use]
pub fn udp_pseudo_header(source: [u8; 4], destination: [u8; 4], datagram_len: u16) -> Sum {
    let addresses = [source, destination].map(|address| u64::from(u32::from_le_bytes(address)));
    Sum(addresses[0] + addresses[1])
        .with_u16(u16::from(PROTOCOL_UDP))
        .with_u16(datagram_len)
}

/// Finishes a partial checksum: sums `frame` from `start` to its end, including the partial sum, and writes the
/// complement at `start + offset`. Both positions are in bytes, as in `virtio_net_hdr`. The frame must not have
/// trailing padding. A result of 0 becomes 0xffff, because 0 means "no checksum" in UDP.
///
/// # Errors
/// [`Error::MalformedHeader`] if the field lies outside the frame; the frame is unchanged.
pub fn complete(frame: &mut [u8], start: usize, offset: usize) -> Result<(), Error> {
    let covered = frame.get_mut(start..).ok_or(Error::MalformedHeader)?;
    let checksum = match Sum::default().with(covered).complement() {
        0 => 0xffff,
        checksum => checksum,
    };
    covered
        .get_mut(offset..)
        .and_then(<[u8]>::first_chunk_mut::<2>)
        .map(|field| *field = checksum.to_be_bytes())
        .ok_or(Error::MalformedHeader)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_rfc_1071_adds_up() {
        let sum = Sum::default().with(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.fold(), 0xddf2);
        assert_eq!(sum.complement(), 0x220d);
    }

    #[test]
    fn an_odd_length_is_padded_with_a_zero() {
        for length in 0..9 {
            let mut bytes = [0xab; 12];
            bytes[length..].fill(0);
            let padded = length.next_multiple_of(2);
            assert_eq!(
                Sum::default().with(&bytes[..length]).fold(),
                Sum::default().with(&bytes[..padded]).fold(),
                "{length} bytes"
            );
        }
    }

    /// Word-by-word sum of RFC 1071 §1.
    fn reference(bytes: &[u8]) -> u16 {
        let words = bytes.chunks(2).map(|word| {
            let [high, low] = [word[0], word.get(1).copied().unwrap_or(0)];
            u32::from(u16::from_be_bytes([high, low]))
        });
        words.fold(0, |sum, word| {
            let sum = sum + word;
            (sum & 0xffff) + (sum >> 16)
        }) as u16
    }

    #[test]
    fn every_length_adds_up_as_word_by_word() {
        let bytes: [u8; 200] = core::array::from_fn(|place| (place * 151 + 200) as u8);
        for start in 0..9 {
            for length in 0..bytes.len() - start {
                let part = &bytes[start..start + length];
                let sum = Sum::default().with(part).fold();
                assert_eq!(sum, reference(part), "{length} bytes from {start}");
            }
        }
        for byte in [0, 0xff] {
            let sum = Sum::default().with(&[byte; 4_000]);
            assert_eq!(sum.fold(), u16::from_be_bytes([byte; 2]), "{byte:#x}");
        }
    }

    proptest! {
        /// Bytes with all bits set produce the most carries.
        #[test]
        fn any_bytes_add_up_as_word_by_word(
            bytes in vec(prop_oneof![Just(0), Just(0xff), any::<u8>()], 0..400),
            start in 0_usize..8,
            before in 0_usize..40,
        ) {
            let bytes = bytes.get(start..).unwrap_or_default();
            let sum = Sum::default().with(bytes);
            prop_assert_eq!(sum.fold(), reference(bytes));
            // The data is added in two parts, the first of which consists of whole words.
            let (front, behind) = bytes.split_at((2 * before).min(bytes.len() & !1));
            let parts = Sum::default().with(front).with(behind);
            prop_assert_eq!(parts.fold(), sum.fold());
            let word = reference(front);
            prop_assert_eq!(Sum::default().with_u16(word).with(behind).fold(), sum.fold());
        }
    }

    #[test]
    fn any_number_of_parts_adds_up_without_overflow() {
        let part = [0xff; 64];
        let mut sum = Sum::default();
        for _ in 0..100_000 {
            sum = sum.with(&part).with_u16(0xffff);
        }
        assert_eq!(sum.fold(), 0xffff);
    }

    #[test]
    fn a_field_outside_the_frame_is_refused() {
        let mut frame = [1, 2, 3, 4];
        assert_eq!(complete(&mut frame, 5, 0), Err(Error::MalformedHeader));
        assert_eq!(complete(&mut frame, 2, 1), Err(Error::MalformedHeader));
        assert_eq!(
            complete(&mut frame, 0, usize::MAX),
            Err(Error::MalformedHeader)
        );
        assert_eq!(frame, [1, 2, 3, 4]);
        assert_eq!(complete(&mut frame, 2, 0), Ok(()));
    }
}
