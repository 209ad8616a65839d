//! Type of the samples: `lab/interop/measured/Message.idl`.

use isolane::TopicType;

/// Id, nonce, and padding up to the measured size.
#[derive(Debug, Default, TopicType)]
#[topic(final_)]
pub(crate) struct Message {
    pub(crate) id: u32,
    pub(crate) nonce: u32,
    pub(crate) padding: Vec<u8>,
}

/// Size of id, nonce and the padding's length.
pub(crate) const MIN_BYTES: usize = 12;
/// Size of the encapsulation header.
const HEADER_BYTES: usize = 4;

impl Message {
    /// Creates a message of this serialised size, without encapsulation header.
    pub(crate) fn of_size(payload_bytes: usize) -> Self {
        Self {
            id: 0,
            nonce: 0,
            padding: vec![0; payload_bytes - MIN_BYTES],
        }
    }
}

/// Returns the reserved size of a sample, which RTPS pads to four bytes.
pub(crate) fn max_bytes(payload_bytes: usize) -> usize {
    (HEADER_BYTES + payload_bytes).next_multiple_of(4)
}
