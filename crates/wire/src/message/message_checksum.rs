//! Checksum of a whole message in a HEADER_EXTENSION (RTPS 2.5 §9.4.2.15).
//!
//! Covers header, extension and everything after it, with the checksum field taken as zero. The standard's
//! form is always big-endian, so it is kept as bytes.

use crc::{CRC_32_ISCSI, CRC_64_XZ, Crc};
use md5::{Digest as _, Md5};

/// Checksum algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChecksumKind {
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// CRC-64/XZ.
    Crc64,
    /// MD5 digest. Detects corruption; no protection against attackers.
    Md5,
}

impl ChecksumKind {
    /// Flags C1 and C2 as a number (RTPS 2.5 Table 9.8).
    pub(super) const fn bits(self) -> u8 {
        match self {
            Self::Crc32c => 1,
            Self::Crc64 => 2,
            Self::Md5 => 3,
        }
    }

    pub(super) const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            1 => Some(Self::Crc32c),
            2 => Some(Self::Crc64),
            3 => Some(Self::Md5),
            _ => None,
        }
    }

    /// Size of the checksum in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Crc32c => 4,
            Self::Crc64 => 8,
            Self::Md5 => 16,
        }
    }
}

/// Message checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageChecksum {
    kind: ChecksumKind,
    /// Checksum, padded with zeros.
    value: [u8; Self::MAX_BYTES],
}

impl MessageChecksum {
    const MAX_BYTES: usize = 16;

    /// Creates a zero checksum, the field's value during computation.
    #[must_use]
    pub const fn zero(kind: ChecksumKind) -> Self {
        Self {
            kind,
            value: [0; Self::MAX_BYTES],
        }
    }

    /// Takes as many bytes as the kind has; further ones are ignored.
    pub(super) fn new(kind: ChecksumKind, bytes: &[u8]) -> Self {
        let mut checksum = Self::zero(kind);
        let places = &mut checksum.value[..kind.bytes()];
        for (place, byte) in places.iter_mut().zip(bytes) {
            *place = *byte;
        }
        checksum
    }

    /// Algorithm.
    #[must_use]
    pub const fn kind(&self) -> ChecksumKind {
        self.kind
    }

    /// Checksum in wire order.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.value[..self.kind.bytes()]
    }

    /// Computes the checksum of a message that has the field between `before` and `behind`.
    pub(super) fn of(kind: ChecksumKind, before: &[u8], behind: &[u8]) -> Self {
        let zero = Self::zero(kind);
        let parts = [before, zero.bytes(), behind];
        match kind {
            ChecksumKind::Crc32c => Self::new(kind, &crc_32c(parts).to_be_bytes()),
            ChecksumKind::Crc64 => Self::new(kind, &crc_64(parts).to_be_bytes()),
            ChecksumKind::Md5 => {
                let mut digest = Md5::new();
                for part in parts {
                    digest.update(part);
                }
                Self::new(kind, &digest.finalize())
            }
        }
    }
}

fn crc_32c(parts: [&[u8]; 3]) -> u32 {
    static ALGORITHM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
    let mut digest = ALGORITHM.digest();
    for part in parts {
        digest.update(part);
    }
    digest.finalize()
}

fn crc_64(parts: [&[u8]; 3]) -> u64 {
    static ALGORITHM: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);
    let mut digest = ALGORITHM.digest();
    for part in parts {
        digest.update(part);
    }
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: [u8; 9] = [0x33, 0x22, 0x55, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];

    #[test]
    fn the_examples_of_the_standard_come_out() {
        for (input, expected) in [
            (&[0; 4][..], 0x4867_4bc7),
            (&[0xff; 4], 0xffff_ffff),
            (&LONG, 0xb59c_a09b),
        ] {
            assert_eq!(crc_32c([input, &[], &[]]), expected);
        }
        for (input, expected) in [
            (&[0; 4][..], 0xf4a5_8635_1e1b_9f4b),
            (&[0xff; 4], 0xffff_ffff_0000_0000),
            (&LONG, 0x701e_ceb2_19a8_e5d5),
        ] {
            assert_eq!(crc_64([input, &[], &[]]), expected);
        }
    }

    #[test]
    fn its_own_bytes_count_as_zero() {
        for kind in [ChecksumKind::Crc32c, ChecksumKind::Crc64, ChecksumKind::Md5] {
            let zeros = MessageChecksum::zero(kind);
            let whole = [&b"before"[..], zeros.bytes(), b"behind"].concat();
            let between = MessageChecksum::of(kind, b"before", b"behind");
            let expected = match kind {
                ChecksumKind::Crc32c => crc_32c([&whole, &[], &[]]).to_be_bytes().to_vec(),
                ChecksumKind::Crc64 => crc_64([&whole, &[], &[]]).to_be_bytes().to_vec(),
                ChecksumKind::Md5 => Md5::digest(&whole).to_vec(),
            };
            assert_eq!(between.bytes(), expected);
        }
    }
}
