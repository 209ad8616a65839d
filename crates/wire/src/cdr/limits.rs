//! Every bound of the CDR code, with its reason.

/// Most elements of a `Vec`, or bytes of a `String` without their NUL, in a member that states no
/// `#[topic(bound = N)]`.
///
/// `heapless` collections carry their bound in the type; the standard library's do not, and a
/// peer's length must never decide how much memory is taken. 64 Ki holds what fits in the largest
/// UDP datagram.
pub const DEFAULT_BOUND: usize = 64 * 1024;

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
