//! The key hash: sixteen bytes that name an instance.
//!
//! RTPS 2.5 §9.6.4.8 and XTypes 1.3 §7.6.8: the key members, in the order of their ids, are laid out
//! in big-endian XCDR2 as a final type. If no value of the type can need more than 16 bytes, they are
//! the hash, padded with zeros; otherwise their MD5 is.

use md5::{Digest, Md5};

use super::encoder::padding;
use super::limits::{MAX_DEPTH, MAX_KEY_BYTES, SHORT_KEY_BYTES};
use super::{CdrError, CdrType, Decoder, Encoder, Kind, TopicType};

/// Names an instance: all zeros for a topic without key.
pub type KeyHash = [u8; 16];

/// The key hash of a value; zeros for a type without key.
///
/// # Errors
/// [`CdrError::KeyTooLong`]; [`CdrError::BoundExceeded`] and [`CdrError::InvalidString`] as when
/// writing the value.
#[inline]
pub fn key_hash<T: TopicType>(value: &T) -> Result<KeyHash, CdrError> {
    hash::<T>(|encoder| value.encode_key(encoder))
}

/// The key hash of a payload with its encapsulation header: of a whole sample, or with `key_only` of
/// what a dispose or unregister carries. Zeros for a type without key.
///
/// # Errors
/// [`CdrError::KeyTooLong`], or whatever of [`CdrError`] is wrong with the payload.
#[inline]
pub fn key_hash_of_payload<T: TopicType>(
    payload: &[u8],
    key_only: bool,
) -> Result<KeyHash, CdrError> {
    let mut decoder = Decoder::of_payload(payload)?;
    if key_only {
        return decoder.lone_key(|source, decoder| {
            hash::<T>(|encoder| T::copy_key(source, decoder, encoder))
        });
    }
    hash::<T>(|encoder| T::skip_to_key(&mut decoder, encoder))
}

#[inline]
fn hash<T: TopicType>(
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Result<KeyHash, CdrError> {
    // Known at compile time for most types: one of the three arms remains.
    match T::max_key_bytes() {
        Some(0..=16) => {
            let mut hash = KeyHash::default();
            write(&mut Encoder::of_key_hash(&mut hash))?;
            Ok(hash)
        }
        Some(..=SHORT_KEY_BYTES) => digest::<SHORT_KEY_BYTES>(write),
        _ => digest::<MAX_KEY_BYTES>(write),
    }
}

#[inline]
fn digest<const ROOM: usize>(
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Result<KeyHash, CdrError> {
    let mut buffer = [0; ROOM];
    let mut encoder = Encoder::of_key_hash(&mut buffer);
    write(&mut encoder).map_err(|error| match error {
        CdrError::NoRoom => CdrError::KeyTooLong,
        other => other,
    })?;
    Ok(Md5::digest(encoder.written()).into())
}

/// Adds up the most bytes that a key can take, by walking its type as an [`Encoder`] of a key hash
/// walks a value.
///
/// Correct for strings and sequences of any length because a longer one never ends earlier, and the
/// end of what follows never moves back when its start moves on.
#[derive(Clone, Copy, Debug)]
pub struct KeySize {
    /// `None`: no limit, or beyond [`MAX_KEY_BYTES`].
    end: Option<usize>,
    bound: Option<usize>,
    depth_left: u8,
}

impl KeySize {
    /// The most bytes of the key of a type, `None` if it has no limit or one beyond
    /// [`MAX_KEY_BYTES`].
    #[inline]
    pub fn of<T: CdrType>() -> Option<usize> {
        let mut size = Self {
            end: Some(0),
            bound: None,
            depth_left: MAX_DEPTH,
        };
        T::measure_key(&mut size);
        size.end
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
                let start = end + padding(end, bytes.min(4));
                start.checked_add(bytes.checked_mul(count)?)
            })
            .filter(|end| *end <= MAX_KEY_BYTES);
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
        for _ in 0..count {
            // Every element adds a byte at least, so this ends soon even for a huge count.
            if self.end.is_none() {
                return;
            }
            T::measure_key(self);
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
            T::measure_key(self);
        }
    }
}
