//! What can be wrong with a sample, or with the room for it.

use thiserror::Error;

/// Why a value could not be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CdrError {
    /// The buffer is shorter than the value. Give a larger one: the writer's maximum payload is too
    /// small for this sample.
    #[error("the buffer has no room for the serialised value")]
    NoRoom,
    /// The bytes end inside the value, or a length in them points past their end. Drop the sample.
    #[error("the serialised value ends too early")]
    Truncated,
    /// A string or sequence is longer than its type allows. Drop the sample, or raise the bound on
    /// both sides.
    #[error("a string or sequence exceeds the bound of its member, #[topic(bound = N)]")]
    BoundExceeded,
    /// A string has no NUL at its end, has one before its end, or is not UTF-8. Drop the sample.
    #[error("a string is not NUL-terminated UTF-8")]
    InvalidString,
    /// A boolean is neither 0 nor 1. Drop the sample.
    #[error("a boolean is neither 0 nor 1")]
    InvalidBoolean,
    /// No enumerator of the enumeration has this value: the writer's type is newer. Drop the
    /// sample.
    #[error("an enumeration has no enumerator of value {0}")]
    UnknownEnumerator(i32),
    /// The encapsulation header names a representation that isolane does not read. Drop the sample.
    #[error("the encapsulation identifier {0:#06x} is not supported")]
    UnknownEncapsulation(u16),
    /// The encapsulation says that the writer's type is appendable where this one is final, or final where it is
    /// appendable, and structures are nested in it. Declare both alike, `#[topic(appendable)]` or not.
    #[error("the writer's type is of another extensibility, and has nested structures")]
    OtherExtensibility,
    /// Structures are nested deeper than [`MAX_DEPTH`](super::limits::MAX_DEPTH). Drop the sample.
    #[error("structures are nested too deeply")]
    NestedTooDeep,
    /// The key is longer than [`MAX_KEY_BYTES`](super::limits::MAX_KEY_BYTES). Shorten it.
    #[error("the serialised key is too long to be hashed")]
    KeyTooLong,
}
