//! Timestamps of round-trip messages in the cable, which separate the cable's share of a round trip from the hosts'.
//!
//! The cable identifies a message by its id and nonce and keeps the timestamps in a table. It writes nothing into
//! frames.

use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::limits::MAX_SAMPLES;
use crate::record::{Stamp, nonce, stamp};

/// Selection of timestamped messages: UDP datagrams that end with a serialised RTT message (`id: u32, nonce: u32,
/// padding`, little-endian) of this size and with the right nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// Serialised size of the message in bytes, without the encapsulation header.
    pub payload_bytes: u32,
    /// Exclusive upper bound of the ids.
    pub samples: u32,
    /// Seed of the nonces.
    pub seed: u64,
}

/// Timestamps of one direction, indexed by message id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passages {
    /// Time the frame was read from the sending host, in nanoseconds.
    pub arrived_ns: Vec<Stamp>,
    /// Time the frame was handed to the receiving host, in nanoseconds.
    pub sent_ns: Vec<Stamp>,
}

impl Passages {
    /// Time that message `id` spent in the cable, if it left.
    pub fn duration_ns(&self, id: u32) -> Option<u64> {
        let arrived = (*self.arrived_ns.get(id as usize)?)?;
        let sent = (*self.sent_ns.get(id as usize)?)?;
        sent.get().checked_sub(arrived.get())
    }
}

/// Timestamp recorder of one direction.
#[derive(Debug)]
pub(super) struct Observer {
    observe: Observe,
    passages: Passages,
}

impl Observer {
    /// Reserves the memory for all timestamps.
    pub(super) fn new(observe: Observe) -> Result<Observer, ConfigError> {
        if observe.samples > MAX_SAMPLES {
            return Err(ConfigError::TooManySamples {
                samples: observe.samples,
            });
        }
        let none = || vec![None; observe.samples as usize];
        Ok(Observer {
            observe,
            passages: Passages {
                arrived_ns: none(),
                sent_ns: none(),
            },
        })
    }

    /// Id of the RTT message in a UDP payload, if it holds one.
    fn identify(&self, payload: &[u8]) -> Option<u32> {
        // Serialised data is padded to four bytes at the end of its submessage (RTPS 2.5 §9.4.5.4).
        let size = (self.observe.payload_bytes as usize).next_multiple_of(4);
        let message = payload.get(payload.len().checked_sub(size)?..)?;
        let id = u32::from_le_bytes(message.get(0..4)?.try_into().ok()?);
        let claimed = u32::from_le_bytes(message.get(4..8)?.try_into().ok()?);
        (id < self.observe.samples && claimed == nonce(self.observe.seed, id)).then_some(id)
    }

    pub(super) fn arrived(&mut self, payload: &[u8], now_ns: u64) {
        if let Some(id) = self.identify(payload) {
            self.passages.arrived_ns[id as usize].get_or_insert(stamp(now_ns));
        }
    }

    pub(super) fn sent(&mut self, payload: &[u8], now_ns: u64) {
        if let Some(id) = self.identify(payload) {
            self.passages.sent_ns[id as usize].get_or_insert(stamp(now_ns));
        }
    }

    pub(super) fn into_passages(self) -> Passages {
        self.passages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBSERVE: Observe = Observe {
        payload_bytes: 62,
        samples: 10,
        seed: 5,
    };

    /// RTPS headers, then the message, then padding to four bytes.
    fn datagram(id: u32, nonce: u32) -> Vec<u8> {
        let mut bytes = vec![0xee; 60];
        bytes.extend(id.to_le_bytes());
        bytes.extend(nonce.to_le_bytes());
        bytes.resize(60 + 64, 0);
        bytes
    }

    #[test]
    fn a_message_is_known_by_id_and_nonce_and_stamped_once() {
        let mut observer = Observer::new(OBSERVE).unwrap();
        let message = datagram(3, nonce(5, 3));
        observer.arrived(&message, 100);
        observer.arrived(&message, 150);
        observer.sent(&message, 300);
        let passages = observer.into_passages();
        assert_eq!(passages.duration_ns(3), Some(200));
        assert_eq!(passages.duration_ns(4), None);
    }

    #[test]
    fn other_traffic_leaves_no_stamp() {
        let mut observer = Observer::new(OBSERVE).unwrap();
        observer.arrived(&datagram(3, nonce(5, 3) ^ 1), 100);
        observer.arrived(&datagram(10, nonce(5, 10)), 100);
        observer.arrived(&[0; 1024], 100);
        observer.arrived(&[], 100);
        assert!(
            observer
                .into_passages()
                .arrived_ns
                .iter()
                .all(Option::is_none)
        );
    }
}
