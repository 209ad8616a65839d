//! Validation of a message by its header extension (RTPS 2.5 §8.3.7).
//!
//! It comes before any other processing, since a damaged message must not be trusted in any part. The send timestamp is
//! not used: source timestamps are not corrected for clock differences. A checksum costs one pass over the datagram,
//! only if the peer sends one.

use isolane_wire::rtps::{HEADER_BYTES, Submessage, SubmessageId, Submessages};

/// Returns whether the message is consistent with its header extension; true without one.
#[inline]
pub(super) fn is_true(message: &[u8]) -> bool {
    message.get(HEADER_BYTES) != Some(&SubmessageId::HEADER_EXTENSION) || holds(message)
}

#[cold]
fn holds(message: &[u8]) -> bool {
    match Submessages::new(message, HEADER_BYTES).next() {
        Some(Ok(Submessage::HeaderExtension(extension))) => extension.verify(message).is_ok(),
        _ => false,
    }
}
