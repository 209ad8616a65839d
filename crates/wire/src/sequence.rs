//! Sequence numbers, fragment numbers, and their sets.

use core::fmt;

use crate::{
    ByteOrder, Error,
    bitmap::{Bitmap, Offsets},
    bytes::{Reader, Writer},
};

/// Sequence number of a change in its writer's history; the first is 1 (RTPS 2.5 §8.3.5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub i64);

impl SequenceNumber {
    /// SEQUENCENUMBER_UNKNOWN (RTPS 2.5 §9.3.2.5).
    pub const UNKNOWN: Self = Self(-1 << 32);

    /// Returns the following number, saturating.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Plain number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Reads the high half, then the low half, each in the submessage's byte order.
    #[inline]
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let halves = *reader.array()?;
        Ok(Self(match reader.order() {
            ByteOrder::Big => i64::from_be_bytes(halves),
            ByteOrder::Little => i64::from_le_bytes(halves).rotate_left(32),
        }))
    }

    /// Reads a number that must be positive, as those of changes are.
    #[inline]
    pub(crate) fn read_positive(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let read = Self::read(reader)?;
        if read.0 < 1 {
            return Err(Error::InvalidSequenceNumber);
        }
        Ok(read)
    }

    #[inline]
    pub(crate) fn write(self, writer: &mut Writer<'_>) {
        writer.i32((self.0 >> 32) as i32);
        writer.u32(self.0 as u32);
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// Set of sequence numbers from a base to at most 255 above it (RTPS 2.5 §8.3.5.5).
///
/// In an ACKNACK, everything below the base is acknowledged and the members are missing. In a GAP, the
/// members are irrelevant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SequenceNumberSet {
    base: SequenceNumber,
    bits: Bitmap,
}

impl SequenceNumberSet {
    /// Creates an empty set at `base`.
    #[inline]
    #[must_use]
    pub fn new(base: SequenceNumber) -> Self {
        Self {
            base,
            bits: Bitmap::default(),
        }
    }

    /// Base: the number of the first bit.
    #[inline]
    #[must_use]
    pub fn base(&self) -> SequenceNumber {
        self.base
    }

    /// Width in bits, 0 to 256: one more than the distance from the base to the highest number ever inserted.
    #[inline]
    #[must_use]
    pub fn num_bits(&self) -> u32 {
        self.bits.len()
    }

    /// Returns true if the set has no members.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    #[inline]
    fn offset(&self, sequence: SequenceNumber) -> Option<u64> {
        u64::try_from(sequence.0.checked_sub(self.base.0)?).ok()
    }

    /// Inserts a number. Returns false without effect if it is below the base, or 256 or more above.
    #[inline]
    pub fn insert(&mut self, sequence: SequenceNumber) -> bool {
        self.offset(sequence)
            .is_some_and(|offset| self.bits.insert(offset))
    }

    /// Removes a number; the width is unchanged.
    #[inline]
    pub fn remove(&mut self, sequence: SequenceNumber) {
        if let Some(offset) = self.offset(sequence) {
            self.bits.remove(offset);
        }
    }

    /// Returns true if the number is a member.
    #[inline]
    #[must_use]
    pub fn contains(&self, sequence: SequenceNumber) -> bool {
        self.offset(sequence)
            .is_some_and(|offset| self.bits.contains(offset))
    }

    /// Iterates over the members in ascending order.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> SequenceNumbers {
        SequenceNumbers {
            base: self.base,
            offsets: self.bits.offsets(),
        }
    }

    #[inline]
    pub(crate) fn buffer_len(&self) -> usize {
        8 + self.bits.buffer_len()
    }

    /// Reads a set whose base is at least `lowest`.
    #[inline]
    pub(crate) fn read(reader: &mut Reader<'_>, lowest: i64) -> Result<Self, Error> {
        let base = SequenceNumber::read(reader)?;
        let bits = Bitmap::read(reader)?;
        if base.0 < lowest || base.0.checked_add(i64::from(bits.len())).is_none() {
            return Err(Error::InvalidSet);
        }
        Ok(Self { base, bits })
    }

    #[inline]
    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        self.base.write(writer);
        self.bits.write(writer);
    }
}

impl IntoIterator for &SequenceNumberSet {
    type Item = SequenceNumber;
    type IntoIter = SequenceNumbers;

    fn into_iter(self) -> SequenceNumbers {
        self.iter()
    }
}

/// Iterator of [`SequenceNumberSet::iter`].
#[derive(Debug, Clone)]
pub struct SequenceNumbers {
    base: SequenceNumber,
    offsets: Offsets,
}

impl Iterator for SequenceNumbers {
    type Item = SequenceNumber;

    #[inline]
    fn next(&mut self) -> Option<SequenceNumber> {
        let offset = self.offsets.next()?;
        Some(SequenceNumber(
            self.base.0.saturating_add(i64::from(offset)),
        ))
    }
}

/// Set of fragment numbers from a base to at most 255 above it; fragments count from 1 (RTPS 2.5 §8.3.5.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FragmentNumberSet {
    base: u32,
    bits: Bitmap,
}

impl FragmentNumberSet {
    /// Creates an empty set at `base`.
    #[must_use]
    pub fn new(base: u32) -> Self {
        Self {
            base,
            bits: Bitmap::default(),
        }
    }

    /// Base: the number of the first bit.
    #[must_use]
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Width in bits, 0 to 256.
    #[must_use]
    pub fn num_bits(&self) -> u32 {
        self.bits.len()
    }

    /// Returns true if the set has no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    fn offset(&self, fragment: u32) -> Option<u64> {
        fragment.checked_sub(self.base).map(u64::from)
    }

    /// Inserts a number. Returns false without effect if it is below the base, or 256 or more above.
    pub fn insert(&mut self, fragment: u32) -> bool {
        self.offset(fragment)
            .is_some_and(|offset| self.bits.insert(offset))
    }

    /// Removes a number; the width is unchanged.
    pub fn remove(&mut self, fragment: u32) {
        if let Some(offset) = self.offset(fragment) {
            self.bits.remove(offset);
        }
    }

    /// Returns true if the number is a member.
    #[must_use]
    pub fn contains(&self, fragment: u32) -> bool {
        self.offset(fragment)
            .is_some_and(|offset| self.bits.contains(offset))
    }

    /// Iterates over the members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let base = self.base;
        self.bits
            .offsets()
            .map(move |offset| base.saturating_add(offset))
    }

    pub(crate) fn buffer_len(&self) -> usize {
        4 + self.bits.buffer_len()
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let base = reader.u32()?;
        let bits = Bitmap::read(reader)?;
        if base < 1 || base.checked_add(bits.len()).is_none() {
            return Err(Error::InvalidSet);
        }
        Ok(Self { base, bits })
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.base);
        self.bits.write(writer);
    }
}
