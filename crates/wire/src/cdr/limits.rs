//! Bounds of the CDR code, each with its reason.

/// Bound of a `Vec` or `String` member without `#[topic(bound = N)]`.
///
/// The size of the sample bounds such a member. A length beyond the sample's bytes is an error before any
/// allocation, and the receiver limits the size of samples (`Qos::max_bytes`).
pub const UNBOUNDED: usize = usize::MAX;

/// Maximum sample size that is computed from a type, in bytes. It is the largest sample size of an endpoint.
pub const MAX_MEASURED_BYTES: usize = 16 << 20;

/// Maximum nesting of structures in one sample.
///
/// The limit bounds the stack that decoding uses. Only a type that contains itself, through a `Vec`, can have samples
/// of any depth; all other types are far below the limit.
pub const MAX_DEPTH: u8 = 32;

/// Maximum length in bytes of a serialized key whose hash is computed.
///
/// The key is serialized on the stack before MD5 is computed. 4 KiB is more than names and numbers need, and fits
/// the stack of a microcontroller's thread.
pub const MAX_KEY_BYTES: usize = 4096;

/// Maximum length of a short key, in bytes. Short keys are hashed in a smaller buffer, because clearing a buffer of
/// [`MAX_KEY_BYTES`] takes longer than hashing a short key.
pub const SHORT_KEY_BYTES: usize = 256;
