//! Every bound of the CDR code, with its reason.

/// Bound of a `Vec` or `String` in a member that states no `#[topic(bound = N)]`: none of its own.
///
/// A sample ends it: a length that goes beyond the sample's bytes is an error before memory is taken, and how long
/// samples are is bounded where they are received (`Qos::max_bytes`).
pub const UNBOUNDED: usize = usize::MAX;

/// Largest sample whose size is worked out from its type, in bytes: the largest that an endpoint takes.
pub const MAX_MEASURED_BYTES: usize = 16 << 20;

/// Deepest nesting of structures in one sample.
///
/// Only a type that contains itself through a `Vec` can be nested by the data rather than by its
/// declaration. The limit keeps the stack such a sample takes small; hand-written types stay far
/// below it.
pub const MAX_DEPTH: u8 = 32;

/// Longest serialised key, in bytes, of which a key hash is computed.
///
/// The key is laid out on the stack before MD5 sees it. Keys are names and numbers; 4 KiB is
/// generous, and small enough for the stack of a microcontroller's thread.
pub const MAX_KEY_BYTES: usize = 4096;

/// Serialised keys whose maximum is at most this, in bytes, use a smaller buffer for the hash:
/// clearing [`MAX_KEY_BYTES`] costs more than the hash of a short key.
pub const SHORT_KEY_BYTES: usize = 256;
