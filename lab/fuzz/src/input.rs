//! Conversion of bytes to choices, and of choices to bytes.
//!
//! [`Input`] accepts any bytes; bytes beyond the end are read as zero. It reads from the front, byte by byte, so
//! [`Script`] can write the bytes that [`Input`] reads. This is how seeds are made from captured messages.

use arbitrary::{Arbitrary, Unstructured};

/// Reader of choices from the front of bytes.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: Unstructured<'a>,
}

impl<'a> Input<'a> {
    /// Creates a reader of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes: Unstructured::new(bytes),
        }
    }

    /// Returns whether all bytes were read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Reads a little-endian number; zero beyond the end.
    pub fn any<T: Arbitrary<'a> + Default>(&mut self) -> T {
        // A number cannot fail, because missing bytes are zero.
        self.bytes.arbitrary().unwrap_or_default()
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> u8 {
        self.any()
    }

    /// Reads one byte; true if it is odd.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Reads an index below `length` from one byte; 0 if `length` is 0.
    pub fn index(&mut self, length: usize) -> usize {
        usize::from(self.byte()) % length.max(1)
    }

    /// Reads one byte, and returns the element of `of` that it selects.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// Reads a length from two bytes, then that many bytes, but at most `most` and at most the rest of the input.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let wanted = usize::from(self.any::<u16>());
        let length = wanted.min(most).min(self.bytes.len());
        self.bytes.bytes(length).unwrap_or_default()
    }
}

/// Writer of the bytes that [`Input`] reads.
#[derive(Debug, Default, Clone)]
pub struct Script {
    bytes: Vec<u8>,
}

impl Script {
    /// Returns the written bytes.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Number of bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes bytes.
    pub fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Writes a length and bytes as [`Input::bytes`] reads them, at most 65,535 bytes.
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
