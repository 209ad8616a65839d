//! Keys of instances: key hashes, and key payloads of a dispose or unregister.
//!
//! For a key hash, the key members are serialized in the order of their ids, in big-endian XCDR2 as a final type
//! (RTPS 2.5 §9.6.4.8, XTypes 1.3 §7.6.8). If no key of the type can be longer than 16 bytes, the hash is the
//! serialized key, padded with zeros. Otherwise the hash is the MD5 of the serialized key.

use md5::{Digest, Md5};

use super::encode::encapsulate;
use super::limits::{MAX_KEY_BYTES, SHORT_KEY_BYTES};
use super::{ByteOrder, CdrError, Decoder, Encapsulation, Encoder, Representation, TopicType};

/// Form of the data from which a key is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A whole sample: other members are skipped.
    Sample,
    /// A serialized key.
    Key,
    /// A key as input of the key hash: without DHEADERs of structures.
    Hash,
}

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
        return decoder.key_payload(|source, decoder| {
            hash::<T>(|encoder| T::copy_key(source, decoder, encoder))
        });
    }
    hash::<T>(|encoder| T::copy_key(KeySource::Sample, &mut decoder, encoder))
}

#[inline]
fn hash<T: TopicType>(
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Result<KeyHash, CdrError> {
    // For most types `max_key_bytes` is a constant, so the compiler keeps one of the three arms.
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

/// Writes the payload of a dispose or unregister: a sample's key with its encapsulation header. Returns the number
/// of bytes. For a type without key, it writes the header alone and returns 4.
///
/// # Errors
/// Those of [`CdrType::encode`](super::CdrType::encode).
#[inline]
pub fn write_key_payload<T: TopicType>(
    value: &T,
    representation: Representation,
    out: &mut [u8],
) -> Result<usize, CdrError> {
    encapsulate(representation, T::EXTENSIBILITY, out, |encoder| {
        value.encode_key(encoder)
    })
}

/// Writes the key of a serialized sample to `out`, as [`write_key_payload`] does in the payload's representation.
/// Returns the number of bytes.
///
/// # Errors
/// The decoding error of an invalid payload; [`CdrError::NoRoom`].
pub fn write_key_of_payload<T: TopicType>(
    payload: &[u8],
    out: &mut [u8],
) -> Result<usize, CdrError> {
    let (encapsulation, _) = Encapsulation::split(payload)?;
    let mut decoder = Decoder::of_payload(payload)?;
    encapsulate(
        encapsulation.representation,
        T::EXTENSIBILITY,
        out,
        |encoder| T::copy_key(KeySource::Sample, &mut decoder, encoder),
    )
}

/// Reads the key of a payload: a whole sample or, with `key_only`, the serialized key of a dispose or
/// unregister. Returns a value whose other members are [initial](super::CdrType::initial).
///
/// # Errors
/// The decoding error of an invalid payload.
pub fn read_key<T: TopicType>(payload: &[u8], key_only: bool) -> Result<T, CdrError> {
    if !T::KEYED {
        return Ok(T::initial());
    }
    let mut decoder = Decoder::of_payload(payload)?;
    match key_only {
        true => decoder.key_payload(T::decode_key),
        false => T::decode_key(KeySource::Sample, &mut decoder),
    }
}

/// Reads the key from a key hash, as a value whose other members are [initial](super::CdrType::initial). `None` if
/// keys of this type can be longer than a hash; the hash is then an MD5 digest.
///
/// # Errors
/// The decoding error of an invalid hash.
pub fn read_key_hash<T: TopicType>(hash: &KeyHash) -> Option<Result<T, CdrError>> {
    if T::max_key_bytes()? > hash.len() {
        return None;
    }
    if !T::KEYED {
        return Some(Ok(T::initial()));
    }
    let mut decoder = Decoder::new(hash, Representation::Xcdr2, ByteOrder::Big);
    Some(T::decode_key(KeySource::Hash, &mut decoder))
}
