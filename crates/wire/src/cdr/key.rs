//! Key hash of an instance.
//!
//! RTPS 2.5 §9.6.4.8 and XTypes 1.3 §7.6.8: the key members, in the order of their ids, are serialized in
//! big-endian XCDR2 as a final type. If no value of the type can need more than 16 bytes, these bytes
//! padded with zeros are the hash; otherwise the hash is their MD5.

use md5::{Digest, Md5};

use super::limits::{MAX_KEY_BYTES, SHORT_KEY_BYTES};
use super::{CdrError, Decoder, Encoder, TopicType};

/// Key hash of an instance: zeros for a topic without key.
pub type KeyHash = [u8; 16];

/// Computes the key hash of a value; zeros for a type without key.
///
/// # Errors
/// [`CdrError::KeyTooLong`]; [`CdrError::BoundExceeded`] and [`CdrError::InvalidString`] as in encoding.
#[inline]
pub fn key_hash<T: TopicType>(value: &T) -> Result<KeyHash, CdrError> {
    hash::<T>(|encoder| value.encode_key(encoder))
}

/// Computes the key hash of a payload with its encapsulation header: a whole sample or, with `key_only`, the
/// serialized key of a dispose or unregister. Zeros for a type without key.
///
/// # Errors
/// [`CdrError::KeyTooLong`], or the decoding error of an invalid payload.
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
    // A constant for most types: the compiler keeps one of the three arms.
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
