//! Whether a message is what its header extension says it is (RTPS 2.5 §8.3.7).
//!
//! Looked at before anything else of a message, since one that was damaged on its way must not be believed in
//! any part. The time of sending is not used: source time stamps are believed as they are, and clocks that
//! differ are not corrected for. A checksum costs a pass over the datagram, and only where a peer sends one.

use isolane_wire::rtps::{HEADER_BYTES, Submessage, SubmessageId, Submessages};

/// Whether nothing in the message's extension speaks against it; without one, nothing does.
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
