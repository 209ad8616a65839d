//! Bounds of the CDR code, each with its reason.

/// Bound of a `Vec` or `String` member without `#[topic(bound = N)]`.
///
/// The sample itself bounds it: a length beyond the sample's bytes is an error before any allocation, and the
/// receiver limits the size of samples (`Qos::max_bytes`).
pub const UNBOUNDED: usize = usize::MAX;

/// Maximum sample size computed from a type, in bytes: the largest that an endpoint accepts.
pub const MAX_MEASURED_BYTES: usize = 16 << 20;

/// Maximum nesting of structures in one sample.
///
/// Only a type that contains itself through a `Vec` is nested by its data. The limit bounds the stack that
/// decoding uses; hand-written types are far below it.
pub const MAX_DEPTH: u8 = 32;

/// Maximum length of a serialized key whose hash is computed, in bytes.
///
/// The key is serialized on the stack before MD5. Keys are names and numbers; 4 KiB is generous, and fits
/// the stack of a microcontroller's thread.
pub const MAX_KEY_BYTES: usize = 4096;

/// Maximum length of a short key, in bytes. Short keys use a smaller buffer for the hash: clearing
/// [`MAX_KEY_BYTES`] costs more than hashing a short key.
pub const SHORT_KEY_BYTES: usize = 256;
