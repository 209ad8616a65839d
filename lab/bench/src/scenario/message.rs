//! Message of round-trip and throughput runs.

use isolane::TopicType;
use isolane::limits::MAX_DATAGRAM_SAMPLE_BYTES;

use super::ConfigError;

/// Message with `id`, `nonce` and padding up to the measured size. Reports call its serialised size, without the
/// encapsulation header, `payload_bytes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, TopicType)]
#[topic(final_)]
pub struct RttMessage {
    /// Message number, from 0.
    pub id: u32,
    /// Nonce of the id, which distinguishes the message from other data: see [`nonce`](crate::record::nonce).
    pub nonce: u32,
    /// Zeros.
    #[topic(bound = 1_048_576)]
    pub padding: Vec<u8>,
}

impl RttMessage {
    /// Size of a message without padding: id, nonce, and the padding's length.
    pub const MIN_BYTES: u32 = 12;
    /// Size of the encapsulation header in front of the message.
    const HEADER_BYTES: usize = 4;

    /// Maximum size in one datagram.
    pub const MAX_BYTES: u32 = MAX_DATAGRAM_SAMPLE_BYTES as u32 - Self::HEADER_BYTES as u32;

    /// Creates a message with a serialised size of `payload_bytes`.
    pub fn of_size(payload_bytes: u32) -> Result<RttMessage, ConfigError> {
        Self::check_size(payload_bytes, Self::MAX_BYTES)?;
        Ok(Self::padded_to(payload_bytes))
    }

    /// Creates a message of any size, including fragmented ones.
    pub(super) fn padded_to(payload_bytes: u32) -> RttMessage {
        RttMessage {
            id: 0,
            nonce: 0,
            padding: vec![0; payload_bytes.saturating_sub(Self::MIN_BYTES) as usize],
        }
    }

    /// Checks the size against the minimum and `most`.
    pub(super) fn check_size(payload_bytes: u32, most: u32) -> Result<(), ConfigError> {
        if (Self::MIN_BYTES..=most).contains(&payload_bytes) {
            return Ok(());
        }
        Err(ConfigError::Payload {
            bytes: payload_bytes,
            least: Self::MIN_BYTES,
            most,
        })
    }

    /// Bytes an endpoint must reserve per sample of that size (RTPS pads to four bytes).
    pub(super) fn max_bytes(payload_bytes: u32) -> usize {
        (Self::HEADER_BYTES + payload_bytes as usize).next_multiple_of(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolane::Representation;
    use isolane::types::write_payload;

    #[test]
    fn a_message_has_the_size_that_was_asked_for() {
        for size in [12, 13, 64, 512, 1024, 1399] {
            let message = RttMessage::of_size(size).unwrap();
            let mut payload = [0; 2048];
            let length = write_payload(&message, Representation::Xcdr1, &mut payload).unwrap();
            assert_eq!(length, RttMessage::max_bytes(size));
            // The low bits of the options give the padding's length (XTypes 1.3 §7.6.3.1.2).
            let padding = usize::from(payload[3] & 3);
            assert_eq!(length - padding - 4, size as usize);
        }
    }

    #[test]
    fn a_mebibyte_can_be_written() {
        let message = RttMessage::padded_to(1 << 20);
        let mut payload = vec![0; RttMessage::max_bytes(1 << 20)];
        let length = write_payload(&message, Representation::Xcdr1, &mut payload);
        assert_eq!(length.map_err(|error| error.to_string()), Ok(payload.len()));
    }

    #[test]
    fn a_message_that_does_not_fit_is_refused() {
        assert!(RttMessage::of_size(11).is_err());
        assert!(RttMessage::of_size(RttMessage::MAX_BYTES).is_ok());
        assert!(RttMessage::of_size(RttMessage::MAX_BYTES + 1).is_err());
    }
}
