//! Errors of parsing and emitting.

use thiserror::Error;

/// Parse error. The receiver drops and counts the smallest unit that contains the invalid bytes (a
/// submessage, an announcement, a frame), and continues after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The input ends inside the fixed part, or is shorter than a length field says.
    #[error("the bytes end too early")]
    Truncated,
    /// The datagram does not begin with `RTPS`: it belongs to another protocol.
    #[error("this is not an RTPS message")]
    NotRtps,
    /// The major protocol version is not supported (RTPS 2.5 §8.3.6.3).
    #[error("RTPS version {0}.x is not supported")]
    UnsupportedVersion(u8),
    /// A sequence number is not positive where it must be, or a range is reversed.
    #[error("a sequence number is out of its range")]
    InvalidSequenceNumber,
    /// A set of sequence or fragment numbers starts below 1, is too wide, or overflows the number range.
    #[error("a set of sequence or fragment numbers is not valid")]
    InvalidSet,
    /// Fragment numbers or sizes contradict each other or the size of the payload.
    #[error("the fragment numbers or sizes contradict each other")]
    InvalidFragment,
    /// Submessage flags exclude each other.
    #[error("the flags {0:#04x} exclude each other")]
    InvalidFlags(u8),
    /// A parameter's length is not a multiple of four, or its value is invalid for its type.
    #[error("parameter {0:#06x} has an invalid value")]
    InvalidParameter(u16),
    /// A mandatory parameter of an announcement is absent.
    #[error("parameter {0:#06x} is missing")]
    MissingParameter(u16),
    /// The must-understand flag is set on a parameter that isolane does not know (RTPS 2.5 §9.4.2.11).
    #[error("parameter {0:#06x} must be understood and is not known")]
    MustUnderstand(u16),
    /// A name or list in this parameter is longer than the bound in [`limits`](crate::limits).
    #[error("parameter {0:#06x} exceeds its bound")]
    BoundExceeded(u16),
    /// The encapsulation identifier is not valid for this payload.
    #[error("the encapsulation identifier {0:#06x} cannot stand here")]
    UnknownEncapsulation(u16),
    /// A version, length or offset field of a frame header is invalid.
    #[error("a field of the header is malformed")]
    MalformedHeader,
    /// The packet is an IP fragment; the kernel reassembles it and delivers the whole packet.
    #[error("the packet is an IP fragment")]
    Fragment,
    /// A header extension does not directly follow the message header (RTPS 2.5 §8.3.7.3).
    #[error("a header extension stands elsewhere than behind the header")]
    HeaderExtensionMisplaced,
    /// The message length differs from the one in its header extension.
    #[error("the message is not as long as it says")]
    MessageLength,
    /// A checksum is wrong.
    #[error("the checksum is wrong")]
    Checksum,
}

/// The buffer is too small; nothing was written. Flush the buffer and retry, or use a larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the buffer is too small")]
pub struct BufferTooSmall;
