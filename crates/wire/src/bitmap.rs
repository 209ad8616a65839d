//! Bitmap of the sequence number and fragment number sets (RTPS 2.5 §9.4.2.6, §9.4.2.8).
//!
//! Offset 0 is the most significant bit of the first word. Parsing clears the bits at and above
//! `length`, so equal sets compare equal.

use crate::{
    Error,
    bytes::{Reader, Writer},
};

/// Maximum number of bits, set by the standard.
pub(crate) const MAX_BITS: u32 = 256;

const WORDS: usize = MAX_BITS as usize / 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Bitmap {
    words: [u32; WORDS],
    length: u16,
}

impl Bitmap {
    /// Number of bits on the wire (`numBits`).
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        u32::from(self.length)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Sets the bit at `offset`; returns false at or above [`MAX_BITS`].
    #[inline]
    pub(crate) fn insert(&mut self, offset: u64) -> bool {
        let Some((word, bit)) = position(offset) else {
            return false;
        };
        self.words[word] |= bit;
        self.length = self.length.max(offset as u16 + 1);
        true
    }

    /// Clears the bit at `offset`; the length is unchanged.
    #[inline]
    pub(crate) fn remove(&mut self, offset: u64) {
        if let Some((word, bit)) = position(offset) {
            self.words[word] &= !bit;
        }
    }

    #[inline]
    pub(crate) fn contains(&self, offset: u64) -> bool {
        position(offset).is_some_and(|(word, bit)| self.words[word] & bit != 0)
    }

    /// Returns the offsets of the set bits, in ascending order.
    #[inline]
    pub(crate) fn offsets(&self) -> Offsets {
        Offsets {
            words: self.words,
            index: 0,
        }
    }

    /// Size on the wire in bytes: `numBits` and the words of the bitmap.
    #[inline]
    pub(crate) fn buffer_len(&self) -> usize {
        4 + 4 * usize::from(self.length.div_ceil(32))
    }

    #[inline]
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
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
    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
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
pub(crate) struct Offsets {
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
