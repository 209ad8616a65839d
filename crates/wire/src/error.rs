//! What can be wrong with bytes, or with the room for them.

use thiserror::Error;

/// Why bytes were not understood. Whatever the reason, the receiver drops the smallest unit that
/// holds them (a submessage, an announcement, a frame), counts it, and goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end before the fixed part, or before a length in them says.
    #[error("the bytes end too early")]
    Truncated,
    /// The datagram does not begin with `RTPS`: it belongs to another protocol.
    #[error("this is not an RTPS message")]
    NotRtps,
    /// Another major version of the protocol; the message cannot be read (RTPS 2.5 §8.3.6.3).
    #[error("RTPS version {0}.x is not supported")]
    UnsupportedVersion(u8),
    /// A sequence number that must be positive is not, or a range runs backwards.
    #[error("a sequence number is out of its range")]
    InvalidSequenceNumber,
    /// A set of sequence or fragment numbers starts below 1, is too wide, or leaves the number range.
    #[error("a set of sequence or fragment numbers is not valid")]
    InvalidSet,
    /// Fragment numbers or sizes contradict each other or the size of the payload.
    #[error("the fragment numbers or sizes contradict each other")]
    InvalidFragment,
    /// Flags of a submessage that exclude each other.
    #[error("the flags {0:#04x} exclude each other")]
    InvalidFlags(u8),
    /// A parameter's length is not a multiple of four, or its value is not one of its type.
    #[error("parameter {0:#06x} has an invalid value")]
    InvalidParameter(u16),
    /// A parameter without which the announcement means nothing is absent.
    #[error("parameter {0:#06x} is missing")]
    MissingParameter(u16),
    /// The sender insists on a parameter that isolane does not know (RTPS 2.5 §9.4.2.11).
    #[error("parameter {0:#06x} must be understood and is not known")]
    MustUnderstand(u16),
    /// A name or list in this parameter is longer than the bound in [`limits`](crate::limits).
    #[error("parameter {0:#06x} exceeds its bound")]
    BoundExceeded(u16),
    /// The encapsulation identifier is not one that can stand here.
    #[error("the encapsulation identifier {0:#06x} cannot stand here")]
    UnknownEncapsulation(u16),
    /// A version, length or offset field of a frame header has a value that cannot be.
    #[error("a field of the header is malformed")]
    MalformedHeader,
    /// A part of an IP packet; the kernel puts it together and hands it over as a whole.
    #[error("the packet is an IP fragment")]
    Fragment,
    /// A header extension that does not follow the message's header (RTPS 2.5 §8.3.7.3).
    #[error("a header extension stands elsewhere than behind the header")]
    Misplaced,
    /// The message is not as long as its header extension says.
    #[error("the message is not as long as it says")]
    MessageLength,
    /// A checksum does not fit the bytes it covers.
    #[error("the checksum is wrong")]
    Checksum,
}

/// The buffer cannot hold what was to be written; nothing of it was. Flush what the buffer holds
/// and try again, or take a larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the buffer is too small")]
pub struct BufferTooSmall;
