//! Choices from bytes, and bytes from choices.
//!
//! [`Input`] makes sense of any bytes: what is beyond their end reads as zero. It takes everything
//! from the front, byte by byte, so that [`Script`] can write what it reads: that is how seeds are
//! made of real conversations.

use arbitrary::{Arbitrary, Unstructured};

/// Reads choices from the front of bytes.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: Unstructured<'a>,
}

impl<'a> Input<'a> {
    /// Over all of them.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes: Unstructured::new(bytes),
        }
    }

    /// Whether all are read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A number, little-endian, zero beyond the end.
    pub fn any<T: Arbitrary<'a> + Default>(&mut self) -> T {
        // Numbers never fail: missing bytes are zero.
        self.bytes.arbitrary().unwrap_or_default()
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.any()
    }

    /// Whether the next byte is odd.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A place in something of this length, 0 if it is empty; from one byte.
    pub fn index(&mut self, length: usize) -> usize {
        usize::from(self.byte()) % length.max(1)
    }

    /// One of these; from one byte.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// So many bytes as the next two say, no more than `most` and than there are.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let wanted = usize::from(self.any::<u16>());
        let length = wanted.min(most).min(self.bytes.len());
        self.bytes.bytes(length).unwrap_or_default()
    }
}

/// Writes what [`Input`] reads.
#[derive(Debug, Default, Clone)]
pub struct Script {
    bytes: Vec<u8>,
}

impl Script {
    /// What was written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Single bytes.
    pub fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// What [`Input::bytes`] reads; cut where the length has no room.
    pub fn put_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.put(&length.to_le_bytes())
            .put(&bytes[..usize::from(length)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_reads_what_a_script_wrote() {
        let mut script = Script::default();
        script.put(&[7, 1]).put_bytes(b"abc").put(&[9]);
        let bytes = script.finish();
        let mut input = Input::new(&bytes);
        assert_eq!((input.byte(), input.flag()), (7, true));
        assert_eq!(input.bytes(100), b"abc");
        assert_eq!(input.byte(), 9);
        assert!(input.is_empty());
    }

    #[test]
    fn beyond_the_end_everything_is_zero() {
        let mut input = Input::new(&[5]);
        assert_eq!(input.any::<u32>(), 5);
        assert_eq!((input.byte(), input.any::<i64>()), (0, 0));
        assert_eq!(input.bytes(10), b"");
        assert_eq!(input.pick(&[3, 4]), 3);
    }
}
