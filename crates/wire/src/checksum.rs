//! The Internet checksum (RFC 1071), of IPv4 headers and of UDP datagrams.
//!
//! Frames that a virtual interface hands over often have a *partial* checksum: the sender left in
//! the field the sum over the pseudo header, and counted on hardware to add the rest. Who passes
//! such a frame on to a real wire, or to a receiver that looks, must finish it: [`complete`].

use crate::{Error, ipv4::PROTOCOL_UDP};

/// A sum of 16-bit words in ones' complement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes, padded with a zero to whole words: only the last part of the whole may have an
    /// odd length.
    #[inline]
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        // Words four times as wide add up to the same, for 2⁶⁴ is 1 modulo 2¹⁶ - 1; a carry out of
        // them is 1 again. Words with their bytes swapped add up to the sum with its bytes swapped
        // (RFC 1071 §2), so the order of this machine serves, and only the sum is turned. Carries
        // gather in a word of their own, which takes two instructions a word, and come in at the end.
        let (fours, rest) = bytes.as_chunks::<32>();
        let mut wide = 0_u128;
        for four in fours {
            let (words, _) = four.as_chunks::<8>();
            for word in words {
                wide += u128::from(u64::from_ne_bytes(*word));
            }
        }
        // What is left is one word each of sixteen, eight and fewer bytes, as many as there are.
        let (pairs, rest) = rest.as_chunks::<16>();
        if let Some(pair) = pairs.first() {
            let (words, _) = pair.as_chunks::<8>();
            for word in words {
                wide += u128::from(u64::from_ne_bytes(*word));
            }
        }
        let (words, rest) = rest.as_chunks::<8>();
        if let Some(word) = words.first() {
            wide += u128::from(u64::from_ne_bytes(*word));
        }
        let sum = add(add(wide as u64, (wide >> 64) as u64), sum_of_rest(rest));
        let sum = (sum >> 32) + (sum & 0xffff_ffff);
        // Folded, so that any number of calls stays below 2⁶⁴.
        Self(self.0 + u64::from(u16::from_be(Self(sum).fold())))
    }

    /// Adds one word.
    #[inline]
    #[must_use]
    pub fn with_u16(self, word: u16) -> Self {
        Self(self.0 + u64::from(word))
    }

    /// The sum, folded to sixteen bits.
    #[inline]
    #[must_use]
    pub fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }

    /// The checksum: the complement of the sum. Over bytes that hold their own valid checksum it is
    /// zero.
    #[inline]
    #[must_use]
    pub fn complement(self) -> u16 {
        !self.fold()
    }
}

/// Of less than eight bytes, in the order of this machine: one word each of four and two bytes and
/// one, as many as there are, which is cheaper than a padded copy. No carry: it stays below 2³³.
#[inline]
fn sum_of_rest(bytes: &[u8]) -> u64 {
    let (fours, rest) = bytes.as_chunks::<4>();
    let (twos, rest) = rest.as_chunks::<2>();
    let mut sum = 0;
    if let Some(&four) = fours.first() {
        sum = u64::from(u32::from_ne_bytes(four));
    }
    if let Some(&two) = twos.first() {
        sum += u64::from(u16::from_ne_bytes(two));
    }
    if let Some(&last) = rest.first() {
        sum += u64::from(u16::from_ne_bytes([last, 0]));
    }
    sum
}

/// Adds in ones' complement: what is carried out comes in again.
#[inline]
const fn add(a: u64, b: u64) -> u64 {
    let (sum, carries) = a.overflowing_add(b);
    sum + carries as u64
}

/// The sum over the pseudo header that a UDP checksum covers besides the datagram (RFC 768).
#[inline]
#[must_use]
pub fn udp_pseudo_header(source: [u8; 4], destination: [u8; 4], datagram_len: u16) -> Sum {
    let addresses = [source, destination].map(|address| u64::from(u32::from_be_bytes(address)));
    Sum(addresses[0] + addresses[1])
        .with_u16(u16::from(PROTOCOL_UDP))
        .with_u16(datagram_len)
}

/// Finishes a partial checksum: sums `frame` from `start` to its end, with the partial sum in it,
/// and writes the complement at `start + offset`. Both are in bytes, as in `virtio_net_hdr`; the
/// frame must have no padding at its end. A result of 0 becomes 0xffff, since 0 would mean "none"
/// in UDP.
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

    #[test]
    fn every_length_adds_up_as_word_by_word() {
        let bytes: [u8; 200] = core::array::from_fn(|place| (place * 151 + 200) as u8);
        for start in 0..9 {
            for length in 0..bytes.len() - start {
                let part = &bytes[start..start + length];
                let words = part.chunks(2).map(|word| {
                    let [high, low] = [word[0], word.get(1).copied().unwrap_or(0)];
                    u16::from_be_bytes([high, low])
                });
                let expected = words.fold(Sum::default(), Sum::with_u16);
                assert_eq!(
                    Sum::default().with(part).fold(),
                    expected.fold(),
                    "{length}"
                );
            }
        }
        for byte in [0, 0xff] {
            let sum = Sum::default().with(&[byte; 4_000]);
            assert_eq!(sum.fold(), u16::from_be_bytes([byte; 2]), "{byte:#x}");
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
