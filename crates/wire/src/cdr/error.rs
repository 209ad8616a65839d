//! CDR errors.

use thiserror::Error;

/// Error of encoding or decoding a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CdrError {
    /// The buffer is shorter than the value. Raise the writer's maximum payload.
    #[error("the buffer has no room for the serialised value")]
    NoRoom,
    /// The input ends inside the value, or a length points past its end. Drop the sample.
    #[error("the serialised value ends too early")]
    Truncated,
    /// A string or sequence is longer than its type allows. Drop the sample, or raise the bound on
    /// both sides.
    #[error("a string or sequence exceeds the bound of its member, #[topic(bound = N)]")]
    BoundExceeded,
    /// A string has no NUL at its end, contains another NUL, or is not UTF-8. Drop the sample.
    #[error("a string is not NUL-terminated UTF-8")]
    InvalidString,
    /// A boolean is neither 0 nor 1. Drop the sample.
    #[error("a boolean is neither 0 nor 1")]
    InvalidBoolean,
    /// No enumerator has this value; the writer's type may be newer. Drop the sample.
    #[error("an enumeration has no enumerator of value {0}")]
    UnknownEnumerator(i32),
    /// The encapsulation identifier names a representation that isolane does not support. Drop the sample.
    #[error("the encapsulation identifier {0:#06x} is not supported")]
    UnknownEncapsulation(u16),
    /// One of the writer's and the reader's types is appendable, the other final, and they have nested structures.
    /// Declare both types with `#[topic(appendable)]`, or both without.
    #[error("the writer's type is of another extensibility, and has nested structures")]
    OtherExtensibility,
    /// Structures are nested deeper than [`MAX_DEPTH`](super::limits::MAX_DEPTH). Drop the sample.
    #[error("structures are nested too deeply")]
    NestedTooDeep,
    /// The key is longer than [`MAX_KEY_BYTES`](super::limits::MAX_KEY_BYTES). Use a shorter key.
    #[error("the serialised key is too long to be hashed")]
    KeyTooLong,
}
