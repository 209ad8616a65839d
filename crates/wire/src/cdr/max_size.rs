//! The largest serialised key, and the largest serialised sample, of a type.

use super::encoder::padding;
use super::limits::{MAX_DEPTH, MAX_KEY_BYTES, MAX_MEASURED_BYTES};
use super::{CdrType, Extensibility, Kind};

/// Largest alignment in a key hash, which is XCDR2 (XTypes 1.3 §7.4.2).
const KEY_ALIGNMENT: usize = 4;

/// Largest alignment of both representations: that of XCDR1 (XTypes 1.3 §7.4.1).
const SAMPLE_ALIGNMENT: usize = 8;

/// Adds up the most bytes that a key or a sample can take, by walking its type as an
/// [`Encoder`](super::Encoder) walks a value.
///
/// Correct for strings and sequences of any length because a longer one never ends earlier, and the
/// end of what follows never moves back when its start moves on. For the same reason one walk of a sample
/// bounds both representations: it takes the alignment of XCDR1 and the DHEADERs of XCDR2.
#[derive(Clone, Copy, Debug)]
pub struct MaxSize {
    /// `None`: no limit, or beyond `limit`.
    end: Option<usize>,
    limit: usize,
    max_alignment: usize,
    /// A sample is measured, not a key.
    of_sample: bool,
    bound: Option<usize>,
    depth_left: u8,
}

impl MaxSize {
    /// The most bytes of the key of a type as a key hash is made of it, `None` if it has no limit or one beyond
    /// [`MAX_KEY_BYTES`].
    #[inline]
    pub fn of_key<T: CdrType>() -> Option<usize> {
        let mut size = Self::new(MAX_KEY_BYTES, KEY_ALIGNMENT, false);
        T::measure_key(&mut size);
        size.end
    }

    /// The most bytes of a value of a type in either representation, without encapsulation header, or a few
    /// more. `None` if it has no limit or one beyond [`MAX_MEASURED_BYTES`].
    pub fn of_sample<T: CdrType>() -> Option<usize> {
        let mut size = Self::new(MAX_MEASURED_BYTES, SAMPLE_ALIGNMENT, true);
        T::measure(&mut size);
        size.end
    }

    #[inline]
    const fn new(limit: usize, max_alignment: usize, of_sample: bool) -> Self {
        Self {
            end: Some(0),
            limit,
            max_alignment,
            of_sample,
            bound: None,
            depth_left: MAX_DEPTH,
        }
    }

    /// The bound that the member being measured states, if any.
    #[inline]
    pub const fn bound(&self) -> Option<usize> {
        self.bound
    }

    /// There is no limit.
    #[inline]
    pub const fn unbounded(&mut self) {
        self.end = None;
    }

    /// Adds `count` primitives of `bytes` each.
    #[inline]
    pub fn primitives(&mut self, bytes: usize, count: usize) {
        if count == 0 {
            return;
        }
        self.end = self
            .end
            .and_then(|end| {
                let start = end + padding(end, bytes.min(self.max_alignment));
                start.checked_add(bytes.checked_mul(count)?)
            })
            .filter(|end| *end <= self.limit);
    }

    /// Adds a string of at most `bound` bytes.
    #[inline]
    pub fn string(&mut self, bound: usize) {
        self.primitives(size_of::<u32>(), 1);
        self.primitives(1, bound.saturating_add(1));
    }

    /// Adds `count` elements of a collection.
    #[inline]
    pub fn elements<T: CdrType>(&mut self, count: usize) {
        if let Kind::Primitive { bytes } = T::KIND {
            self.primitives(bytes, count);
            return;
        }
        if self.of_sample {
            return self.sample_elements::<T>(count);
        }
        for _ in 0..count {
            // Every element adds a byte at least, so this ends soon even for a huge count.
            if self.end.is_none() {
                return;
            }
            T::measure_key(self);
        }
    }

    /// The same of a sample, of which each element is taken for one that begins at the largest alignment.
    fn sample_elements<T: CdrType>(&mut self, count: usize) {
        let mut one = Self {
            end: Some(0),
            ..*self
        };
        if count == 0 {
            return;
        }
        T::measure(&mut one);
        match one.end {
            Some(bytes) => {
                let stride = bytes.next_multiple_of(self.max_alignment);
                let all = stride.saturating_mul(count);
                let words = all / self.max_alignment;
                self.primitives(self.max_alignment, words);
            }
            None => self.unbounded(),
        }
    }

    /// Adds the DHEADER of a sample's structure, if the structure has one.
    #[inline]
    pub fn delimiter(&mut self, extensibility: Extensibility) {
        if extensibility == Extensibility::Appendable {
            self.primitives(size_of::<u32>(), 1);
        }
    }

    /// Adds a structure, whose members `measure` adds.
    #[inline]
    pub fn structure(&mut self, measure: impl FnOnce(&mut Self)) {
        let Some(depth_left) = self.depth_left.checked_sub(1) else {
            // Only a type that contains itself comes here.
            self.unbounded();
            return;
        };
        let outer = *self;
        self.depth_left = depth_left;
        measure(self);
        self.depth_left = outer.depth_left;
        self.bound = outer.bound;
    }

    /// Adds a member, with the bound it states.
    #[inline]
    pub fn member<T: CdrType>(&mut self, bound: Option<usize>) {
        if self.end.is_some() {
            self.bound = bound;
            match self.of_sample {
                true => T::measure(self),
                false => T::measure_key(self),
            }
        }
    }
}
