//! Sequence numbers, and sets of sequence or fragment numbers.

use core::fmt;

use crate::{
    ByteOrder, Error,
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

    /// Returns the plain number.
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

    /// Reads a number that must be positive, as the sequence number of a change.
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

/// Number in a [`NumberSet`].
pub trait Number: Copy + sealed::Sealed {
    /// Distance from `base` to this number; `None` if the number is below the base.
    fn offset_from(self, base: Self) -> Option<u64>;

    /// Number `offset` above this one, saturating.
    fn at_offset(self, offset: u32) -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::SequenceNumber {}
    impl Sealed for u32 {}
}

impl Number for SequenceNumber {
    #[inline]
    fn offset_from(self, base: Self) -> Option<u64> {
        u64::try_from(self.0.checked_sub(base.0)?).ok()
    }

    #[inline]
    fn at_offset(self, offset: u32) -> Self {
        Self(self.0.saturating_add(i64::from(offset)))
    }
}

impl Number for u32 {
    #[inline]
    fn offset_from(self, base: Self) -> Option<u64> {
        self.checked_sub(base).map(u64::from)
    }

    #[inline]
    fn at_offset(self, offset: u32) -> Self {
        self.saturating_add(offset)
    }
}

/// Set of numbers from a base to at most 255 above the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NumberSet<N> {
    base: N,
    bits: Bitmap,
}

/// Set of sequence numbers (RTPS 2.5 §8.3.5.5).
///
/// In an ACKNACK, everything below the base is acknowledged and the members are missing. In a GAP, the
/// members are irrelevant.
pub type SequenceNumberSet = NumberSet<SequenceNumber>;

/// Set of fragment numbers; fragments count from 1 (RTPS 2.5 §8.3.5.7).
pub type FragmentNumberSet = NumberSet<u32>;

impl<N: Number> NumberSet<N> {
    /// Creates an empty set at `base`.
    #[inline]
    #[must_use]
    pub fn new(base: N) -> Self {
        Self {
            base,
            bits: Bitmap::default(),
        }
    }

    /// Base: the number of the first bit.
    #[inline]
    #[must_use]
    pub fn base(&self) -> N {
        self.base
    }

    /// Number of bits, 0 to 256: one more than the distance from the base to the highest number ever inserted.
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

    /// Inserts a number. Returns false, without inserting it, if it is below the base, or 256 or more above the base.
    #[inline]
    pub fn insert(&mut self, number: N) -> bool {
        number
            .offset_from(self.base)
            .is_some_and(|offset| self.bits.insert(offset))
    }

    /// Removes a number; the number of bits is unchanged.
    #[inline]
    pub fn remove(&mut self, number: N) {
        if let Some(offset) = number.offset_from(self.base) {
            self.bits.remove(offset);
        }
    }

    /// Returns true if the number is a member.
    #[inline]
    #[must_use]
    pub fn contains(&self, number: N) -> bool {
        number
            .offset_from(self.base)
            .is_some_and(|offset| self.bits.contains(offset))
    }

    /// Iterates over the members in ascending order.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> Numbers<N> {
        Numbers {
            base: self.base,
            offsets: self.bits.offsets(),
        }
    }

    #[inline]
    pub(crate) fn buffer_len(&self) -> usize {
        // Sequence numbers and fragment numbers are as large on the wire as in memory.
        size_of::<N>() + self.bits.buffer_len()
    }
}

impl SequenceNumberSet {
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

impl FragmentNumberSet {
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

impl<N: Number> IntoIterator for &NumberSet<N> {
    type Item = N;
    type IntoIter = Numbers<N>;

    fn into_iter(self) -> Numbers<N> {
        self.iter()
    }
}

/// Iterator of [`NumberSet::iter`].
#[derive(Debug, Clone)]
pub struct Numbers<N> {
    base: N,
    offsets: Offsets,
}

impl<N: Number> Iterator for Numbers<N> {
    type Item = N;

    #[inline]
    fn next(&mut self) -> Option<N> {
        Some(self.base.at_offset(self.offsets.next()?))
    }
}

/// Maximum number of bits, set by the standard.
const MAX_BITS: u32 = 256;

const WORDS: usize = MAX_BITS as usize / 32;

/// Bitmap of a set on the wire (RTPS 2.5 §9.4.2.6, §9.4.2.8). Offset 0 is the most significant bit of the first word.
/// Parsing clears the bits at and above `length`, so equal sets compare equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Bitmap {
    words: [u32; WORDS],
    length: u16,
}

impl Bitmap {
    /// Number of bits on the wire (`numBits`).
    #[inline]
    fn len(&self) -> u32 {
        u32::from(self.length)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Sets the bit at `offset`; returns false at or above [`MAX_BITS`].
    #[inline]
    fn insert(&mut self, offset: u64) -> bool {
        let Some((word, bit)) = position(offset) else {
            return false;
        };
        self.words[word] |= bit;
        self.length = self.length.max(offset as u16 + 1);
        true
    }

    /// Clears the bit at `offset`; the number of bits is unchanged.
    #[inline]
    fn remove(&mut self, offset: u64) {
        if let Some((word, bit)) = position(offset) {
            self.words[word] &= !bit;
        }
    }

    #[inline]
    fn contains(&self, offset: u64) -> bool {
        position(offset).is_some_and(|(word, bit)| self.words[word] & bit != 0)
    }

    /// Returns the offsets of the set bits, in ascending order.
    #[inline]
    fn offsets(&self) -> Offsets {
        Offsets {
            words: self.words,
            index: 0,
        }
    }

    /// Size on the wire in bytes: `numBits` and the words of the bitmap.
    #[inline]
    fn buffer_len(&self) -> usize {
        4 + 4 * usize::from(self.length.div_ceil(32))
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let length = reader.u32()?;
        if length > MAX_BITS {
            return Err(Error::InvalidSet);
        }
        let mut words = [0; WORDS];
        let used = length.div_ceil(32) as usize;
        for word in &mut words[..used] {
            *word = reader.u32()?;
        }
        if length % 32 != 0 {
            words[used - 1] &= u32::MAX << (32 - length % 32);
        }
        Ok(Self {
            words,
            length: length as u16,
        })
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.len());
        for word in &self.words[..usize::from(self.length.div_ceil(32))] {
            writer.u32(*word);
        }
    }
}

/// Word index and bit mask of `offset`; `None` beyond the bitmap.
#[inline]
fn position(offset: u64) -> Option<(usize, u32)> {
    (offset < u64::from(MAX_BITS)).then(|| ((offset / 32) as usize, 1 << (31 - offset % 32)))
}

#[derive(Debug, Clone)]
struct Offsets {
    words: [u32; WORDS],
    index: usize,
}

impl Iterator for Offsets {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        while let Some(word) = self.words.get_mut(self.index) {
            if *word != 0 {
                let leading = word.leading_zeros();
                *word &= !(1 << (31 - leading));
                return Some(self.index as u32 * 32 + leading);
            }
            self.index += 1;
        }
        None
    }
}
