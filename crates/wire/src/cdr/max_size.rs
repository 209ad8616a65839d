//! Maximum serialized size of a type's samples and keys.

use super::encode::padding;
use super::limits::{MAX_DEPTH, MAX_KEY_BYTES, MAX_MEASURED_BYTES};
use super::{CdrType, ENCAPSULATION_BYTES, ElementKind, Extensibility, Representation, TopicType};

/// Part of a value to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The whole value.
    Sample,
    /// The key members.
    Key,
    /// The key as input of the key hash: without DHEADERs of structures.
    KeyHash,
}

/// Accumulates the maximum size of a sample or key. It visits the members of the type in the order in which an
/// [`Encoder`](super::Encoder) writes them.
///
/// Each string and sequence counts with its bound. The sum is the maximum, because a longer member never makes the
/// end position of a later member smaller.
#[derive(Clone, Copy, Debug)]
pub struct MaxSize {
    /// Maximum end position; `None` if unbounded or above `limit`.
    end: Option<usize>,
    limit: usize,
    representation: Representation,
    part: Part,
    /// Largest alignment added so far.
    alignment: usize,
    bound: Option<usize>,
    depth_left: u8,
}

impl MaxSize {
    /// Returns the maximum size in bytes of a type's key as input of the key hash; `None` if unbounded or above
    /// [`MAX_KEY_BYTES`].
    #[inline]
    pub fn of_key<T: CdrType>() -> Option<usize> {
        Self::of::<T>(Part::KeyHash, Representation::Xcdr2, MAX_KEY_BYTES)
    }

    /// Returns an upper bound in bytes of a value's size in both representations, without encapsulation header. `None`
    /// if unbounded or above [`MAX_MEASURED_BYTES`].
    pub fn of_sample<T: CdrType>() -> Option<usize> {
        Self::of_payload::<T>(Part::Sample)
    }

    /// Returns an upper bound in bytes of the size of a type's key in a dispose or unregister.
    pub fn of_key_payload<T: CdrType>() -> Option<usize> {
        Self::of_payload::<T>(Part::Key)
    }

    fn of_payload<T: CdrType>(part: Part) -> Option<usize> {
        let of = |representation| Self::of::<T>(part, representation, MAX_MEASURED_BYTES);
        Some(of(Representation::Xcdr1)?.max(of(Representation::Xcdr2)?))
    }

    #[inline]
    fn of<T: CdrType>(part: Part, representation: Representation, limit: usize) -> Option<usize> {
        let mut size = Self {
            end: Some(0),
            limit,
            representation,
            part,
            alignment: 1,
            bound: None,
            depth_left: MAX_DEPTH,
        };
        size.value::<T>();
        size.end
    }

    /// Bound that the member being measured states, if any.
    #[inline]
    pub const fn bound(&self) -> Option<usize> {
        self.bound
    }

    /// Marks the size as unbounded.
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
        let alignment = bytes.min(self.representation.max_alignment());
        self.alignment = self.alignment.max(alignment);
        self.end = self
            .end
            .and_then(|end| {
                let start = end + padding(end, alignment);
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
        if let ElementKind::Primitive { bytes } = T::KIND {
            self.primitives(bytes, count);
            return;
        }
        if self.part != Part::KeyHash {
            return self.payload_elements::<T>(count);
        }
        for _ in 0..count {
            // Every element adds at least a byte, so the limit ends this loop early for a huge count.
            if self.end.is_none() {
                return;
            }
            T::measure_key(self);
        }
    }

    /// Adds `count` elements of a payload, each rounded up to a multiple of its largest alignment.
    fn payload_elements<T: CdrType>(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let mut one = Self {
            end: Some(0),
            alignment: 1,
            ..*self
        };
        one.value::<T>();
        match one.end {
            Some(bytes) => {
                let stride = bytes.next_multiple_of(one.alignment);
                let all = stride.saturating_mul(count);
                self.primitives(one.alignment, all / one.alignment);
            }
            None => self.unbounded(),
        }
    }

    /// Adds a value or its key.
    fn value<T: CdrType>(&mut self) {
        match self.part {
            Part::Sample => T::measure(self),
            Part::Key | Part::KeyHash => T::measure_key(self),
        }
    }

    /// Adds the DHEADER of a structure, if the structure has one.
    #[inline]
    pub fn delimiter(&mut self, extensibility: Extensibility) {
        let is_appendable = extensibility == Extensibility::Appendable;
        self.collection(is_appendable && self.part != Part::KeyHash);
    }

    /// Adds the DHEADER of a collection if `needs_delimiter` and the representation is XCDR2.
    #[inline]
    pub fn collection(&mut self, needs_delimiter: bool) {
        if needs_delimiter && self.representation == Representation::Xcdr2 {
            self.primitives(size_of::<u32>(), 1);
        }
    }

    /// Adds a structure; `measure` adds its members.
    #[inline]
    pub fn structure(&mut self, measure: impl FnOnce(&mut Self)) {
        let Some(depth_left) = self.depth_left.checked_sub(1) else {
            // Only a type that contains itself reaches this depth.
            self.unbounded();
            return;
        };
        let outer = *self;
        self.depth_left = depth_left;
        measure(self);
        self.depth_left = outer.depth_left;
        self.bound = outer.bound;
    }

    /// Adds a member with its stated bound.
    #[inline]
    pub fn member<T: CdrType>(&mut self, bound: Option<usize>) {
        if self.end.is_some() {
            self.bound = bound;
            self.value::<T>();
        }
    }
}

/// Returns the maximum payload size in bytes of a type's samples in both representations, including the
/// encapsulation header. `None` if a string or sequence is unbounded, or the size is above
/// [`MAX_MEASURED_BYTES`](super::limits::MAX_MEASURED_BYTES).
pub fn max_payload_bytes<T: TopicType>() -> Option<usize> {
    let bytes = MaxSize::of_sample::<T>()?;
    Some(ENCAPSULATION_BYTES + bytes.next_multiple_of(4))
}

/// Returns the maximum size of a type's key payload, as [`write_key_payload`](super::write_key_payload) writes it.
pub fn max_key_payload_bytes<T: TopicType>() -> Option<usize> {
    let bytes = match T::KEYED {
        true => MaxSize::of_key_payload::<T>()?,
        false => 0,
    };
    Some(ENCAPSULATION_BYTES + bytes.next_multiple_of(4))
}
