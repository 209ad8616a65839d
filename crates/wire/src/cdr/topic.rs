//! Topic types, and their samples as serialized payloads.

use super::encapsulation::ENCAPSULATION_BYTES;
use super::{
    ByteOrder, CdrError, CdrType, Decoder, Encapsulation, Encoder, Extensibility, KeyHash,
    KeySource, MaxSize, Representation,
};

/// Structure whose values are the samples of a topic. Implemented by `#[derive(TopicType)]`.
///
/// [`CdrType`] defines the encoding; nested structures implement only that.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the type of a topic",
    note = "put #[derive(TopicType)] on the struct; enumerations, numbers and collections can only be members"
)]
pub trait TopicType: CdrType {
    /// Type name that discovery compares, for example `vehicle::BrakePressure`.
    const TYPE_NAME: &'static str;

    /// True if members are marked as key: the topic then has an instance for each key value.
    const KEYED: bool;

    /// Extensibility of the type.
    const EXTENSIBILITY: Extensibility;

    /// Writes the key members in the order of their ids, which is the order of declaration. Writes nothing for a
    /// type without key.
    ///
    /// # Errors
    /// Those of [`CdrType::encode`].
    #[inline]
    fn encode_key(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        if Self::KEYED {
            self.encode_as_key(encoder)
        } else {
            Ok(())
        }
    }

    /// Reads a whole sample and writes its key, encoded as by [`encode_key`](Self::encode_key).
    ///
    /// # Errors
    /// Those of reading and writing.
    #[inline]
    fn skip_to_key(decoder: &mut Decoder<'_>, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        if Self::KEYED {
            Self::transcribe_key(KeySource::Sample, decoder, encoder)
        } else {
            Ok(())
        }
    }

    /// Reads a key and writes it, encoded as by [`encode_key`](Self::encode_key).
    ///
    /// # Errors
    /// Those of reading and writing.
    #[inline]
    fn copy_key(
        source: KeySource,
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        if Self::KEYED {
            Self::transcribe_key(source, decoder, encoder)
        } else {
            Ok(())
        }
    }

    /// Returns the maximum size of a key in big-endian XCDR2, as used for the key hash. `None` if unbounded or
    /// beyond [`MAX_KEY_BYTES`](super::limits::MAX_KEY_BYTES).
    #[inline]
    fn max_key_bytes() -> Option<usize> {
        if Self::KEYED {
            MaxSize::of_key::<Self>()
        } else {
            Some(0)
        }
    }
}

/// Returns the maximum payload size of a type's samples in either representation, including the encapsulation
/// header. `None` if a string or sequence is unbounded, or the size is beyond
/// [`MAX_MEASURED_BYTES`](super::limits::MAX_MEASURED_BYTES).
pub fn max_payload_bytes<T: TopicType>() -> Option<usize> {
    let bytes = MaxSize::of_sample::<T>()?;
    Some(ENCAPSULATION_BYTES + bytes.next_multiple_of(4))
}

/// Returns the maximum size of a type's key payload, as [`write_key_payload`] writes it.
pub fn max_key_payload_bytes<T: TopicType>() -> Option<usize> {
    let bytes = match T::KEYED {
        true => MaxSize::of_key_payload::<T>()?,
        false => 0,
    };
    Some(ENCAPSULATION_BYTES + bytes.next_multiple_of(4))
}

/// Writes a sample with its encapsulation header, little-endian, padded to a multiple of 4 bytes. Returns the
/// number of bytes.
///
/// # Errors
/// Those of [`CdrType::encode`].
#[inline]
pub fn write_payload<T: TopicType>(
    value: &T,
    representation: Representation,
    out: &mut [u8],
) -> Result<usize, CdrError> {
    encapsulate(representation, T::EXTENSIBILITY, out, |encoder| {
        value.encode(encoder)
    })
}

/// Writes a sample's key with its encapsulation header, as a dispose or unregister carries it. Returns the
/// number of bytes; 4, the header alone, for a type without key.
///
/// # Errors
/// Those of [`CdrType::encode`].
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

/// Extracts the key of a serialized sample into `out`, encoded as by [`write_key_payload`] in the payload's
/// representation. Returns the number of bytes.
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
        |encoder| T::skip_to_key(&mut decoder, encoder),
    )
}

/// Reads a sample in place: strings and collections borrow from `payload`.
///
/// # Errors
/// The decoding error of an invalid payload.
#[inline]
pub fn view_payload<T: TopicType>(payload: &[u8]) -> Result<T::View<'_>, CdrError> {
    T::view(&mut Decoder::of_payload(payload)?)
}

/// Reads a sample as an owned value.
///
/// # Errors
/// The decoding error of an invalid payload.
#[inline]
pub fn read_payload<T: TopicType>(payload: &[u8]) -> Result<T, CdrError> {
    T::decode(&mut Decoder::of_payload(payload)?)
}

/// Reads a sample into `value`, reusing its allocations. After an error `value` is valid but mixes parts of
/// both samples.
///
/// # Errors
/// The decoding error of an invalid payload.
#[inline]
pub fn read_payload_into<T: TopicType>(payload: &[u8], value: &mut T) -> Result<(), CdrError> {
    value.decode_into(&mut Decoder::of_payload(payload)?)
}

/// Reads the key of a payload: a whole sample or, with `key_only`, the serialized key of a dispose or
/// unregister. Returns a value whose other members are [initial](CdrType::initial).
///
/// # Errors
/// The decoding error of an invalid payload.
pub fn read_key<T: TopicType>(payload: &[u8], key_only: bool) -> Result<T, CdrError> {
    if !T::KEYED {
        return Ok(T::initial());
    }
    let mut decoder = Decoder::of_payload(payload)?;
    match key_only {
        true => decoder.lone_key(T::decode_key),
        false => T::decode_key(KeySource::Sample, &mut decoder),
    }
}

/// Reads the key from a key hash, as a value whose other members are [initial](CdrType::initial). `None` if
/// keys of this type can be longer than a hash, which is then an MD5 digest.
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

#[inline]
fn encapsulate(
    representation: Representation,
    extensibility: Extensibility,
    out: &mut [u8],
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Result<usize, CdrError> {
    let (header, body) = out
        .split_first_chunk_mut::<ENCAPSULATION_BYTES>()
        .ok_or(CdrError::NoRoom)?;
    let order = ByteOrder::Little;
    let mut encoder = Encoder::new(body, representation, order);
    write(&mut encoder)?;
    let end = encoder.position();
    encoder.align(4)?;
    let padding = (encoder.position() - end) as u8;
    *header = Encapsulation::of(representation, extensibility, order).header(padding);
    Ok(ENCAPSULATION_BYTES + encoder.position())
}
