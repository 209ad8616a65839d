//! Sample type of all topics of a world.
//!
//! In IDL `struct Sample { @key unsigned long key; unsigned long long value; }`, as little-endian XCDR1; the key is 0
//! in a topic without key. The encoding is hand-written, because participants and world handle payloads as bytes.

use isolane_rtps::{ChangeKind, WriteSample};
use isolane_wire::{
    cdr::{CdrError, KeyHash},
    time::Timestamp,
};

/// Encapsulation header: CDR_LE, no options.
const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];

/// Size of a payload without padding in bytes: encapsulation, key, alignment, value.
pub(crate) const SAMPLE_BYTES: usize = 20;

/// Size of a key payload in bytes.
pub(crate) const KEY_BYTES: usize = 8;

/// Value of an instance, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sample {
    /// Kind of change: a value, or the end of the instance.
    pub kind: ChangeKind,
    /// Key of the instance.
    pub key: u32,
    /// Value; 0 for an end.
    pub value: u64,
    /// Additional payload bytes, to exceed a limit.
    pub padding: u32,
}

impl Sample {
    /// Creates a value of instance 0, or of a topic without key.
    #[must_use]
    pub const fn value(value: u64) -> Self {
        Self::keyed(0, value)
    }

    /// Creates a value of an instance.
    #[must_use]
    pub const fn keyed(key: u32, value: u64) -> Self {
        Self {
            kind: ChangeKind::Alive,
            key,
            value,
            padding: 0,
        }
    }

    /// Creates a dispose of an instance.
    #[must_use]
    pub const fn dispose(key: u32) -> Self {
        Self {
            kind: ChangeKind::Dispose,
            ..Self::keyed(key, 0)
        }
    }

    /// Creates an unregister of an instance.
    #[must_use]
    pub const fn unregister(key: u32) -> Self {
        Self {
            kind: ChangeKind::Unregister,
            ..Self::keyed(key, 0)
        }
    }

    /// Adds `padding` bytes, a multiple of four.
    #[must_use]
    pub const fn padded(self, padding: u32) -> Self {
        Self { padding, ..self }
    }

    /// Payload with its encapsulation header.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SAMPLE_BYTES + self.padding as usize);
        bytes.extend(ENCAPSULATION);
        bytes.extend(self.key.to_le_bytes());
        if self.kind == ChangeKind::Alive {
            bytes.extend([0; 4]);
            bytes.extend(self.value.to_le_bytes());
            let value = self.value;
            bytes.extend((0..self.padding).map(|place| fill(value, place)));
        }
        bytes
    }

    /// Parses a change's payload; `None` if it is not of this type.
    #[must_use]
    pub fn parse(kind: ChangeKind, payload: &[u8]) -> Option<Self> {
        let key = u32::from_le_bytes(payload.get(4..KEY_BYTES)?.try_into().ok()?);
        if payload.get(..4)? != ENCAPSULATION {
            return None;
        }
        let (value, padding) = if kind == ChangeKind::Alive {
            let value = u64::from_le_bytes(payload.get(12..SAMPLE_BYTES)?.try_into().ok()?);
            let padding = &payload[SAMPLE_BYTES..];
            let is_filled = |(place, byte): (u32, &u8)| *byte == fill(value, place);
            if !(0..).zip(padding).all(is_filled) {
                return None;
            }
            (value, padding.len() as u32)
        } else {
            (0, 0)
        };
        Some(Self {
            kind,
            key,
            value,
            padding,
        })
    }

    pub(crate) fn to_write(self, is_keyed: bool, timestamp: Timestamp) -> WriteSample {
        WriteSample {
            kind: self.kind,
            key_hash: is_keyed.then(|| key_hash(self.key)),
            timestamp,
        }
    }
}

/// Padding byte at a position, different for positions that a bug could confuse.
fn fill(value: u64, place: u32) -> u8 {
    let mixed = (value as u32 ^ place).wrapping_mul(0x9e37_79b1);
    (mixed >> 24) as u8
}

/// Key hash: the big-endian key padded with zeros, because it is at most 16 bytes long (RTPS 2.5 §9.6.4.8).
pub(crate) fn key_hash(key: u32) -> KeyHash {
    let mut hash = [0; 16];
    hash[..4].copy_from_slice(&key.to_be_bytes());
    hash
}

/// Computes the key hash of a payload, for the participant.
///
/// # Errors
/// [`CdrError::Truncated`] if the payload is not of this type.
pub fn key_of(payload: &[u8], key_only: bool) -> Result<KeyHash, CdrError> {
    let kind = if key_only {
        ChangeKind::Dispose
    } else {
        ChangeKind::Alive
    };
    let sample = Sample::parse(kind, payload).ok_or(CdrError::Truncated)?;
    Ok(key_hash(sample.key))
}

/// Writes the key payload of a sample.
pub(crate) fn key_payload(payload: &[u8], out: &mut [u8]) -> Option<usize> {
    let key = payload.get(..KEY_BYTES)?;
    out.get_mut(..KEY_BYTES)?.copy_from_slice(key);
    Some(KEY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_survives_the_way_to_bytes_and_back() {
        for sample in [
            Sample::keyed(7, 1 << 40),
            Sample::value(3).padded(8),
            Sample::keyed(4, 5).padded(100_000),
            Sample::dispose(9),
            Sample::unregister(9),
        ] {
            assert_eq!(Sample::parse(sample.kind, &sample.payload()), Some(sample));
        }
    }
}
