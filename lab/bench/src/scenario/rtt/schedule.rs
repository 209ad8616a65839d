//! When each ping is due, and when it left.

use isolane::WriteError;

use super::EndConfig;
use crate::clock::now_ns;
use crate::record::{PingRecorder, nonce};
use crate::scenario::{ConfigError, RttMessage};

/// The pings of a run, in their order. Whoever publishes owns it, writes what is due, late if need be,
/// and never skips one: a sender that was held up shows in the round trips, which count from the
/// time that was meant.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    period_ns: u64,
    samples: u32,
    seed: u64,
    /// `None`: not yet.
    start_ns: Option<u64>,
    /// Reused for every ping.
    message: RttMessage,
    /// By id; reserved for all.
    sent_ns: Vec<u64>,
    refused: u64,
}

impl Schedule {
    pub(super) fn new(config: &EndConfig) -> Result<Schedule, ConfigError> {
        Ok(Schedule {
            period_ns: config.period_ns(),
            samples: config.samples,
            seed: config.seed,
            start_ns: None,
            message: RttMessage::of_size(config.payload_bytes)?,
            sent_ns: Vec::with_capacity(config.samples as usize),
            refused: 0,
        })
    }

    /// The first ping is due at that time.
    pub(super) fn start(&mut self, start_ns: u64) {
        self.start_ns = Some(start_ns);
    }

    /// When the next ping is due; `None` before the start and after the last.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let id = self.sent_ns.len() as u32;
        (id < self.samples).then_some(())?;
        Some(self.intended_ns(self.start_ns?, id))
    }

    /// Whether all are out.
    pub(super) fn is_over(&self) -> bool {
        self.sent_ns.len() as u32 >= self.samples
    }

    /// Stamps the next ping and gives it to `write`.
    pub(super) fn publish(&mut self, write: impl FnOnce(&RttMessage) -> Result<(), WriteError>) {
        let id = self.sent_ns.len() as u32;
        self.message.id = id;
        self.message.nonce = nonce(self.seed, id);
        self.sent_ns.push(now_ns());
        self.refused += u64::from(write(&self.message).is_err());
    }

    /// Pings given to `write`, and how many of these it refused.
    pub(super) fn offered_and_refused(&self) -> (u64, u64) {
        (self.sent_ns.len() as u64, self.refused)
    }

    /// Tells the recorder of the returns when each ping was meant to leave and left.
    pub(super) fn record_into(&self, recorder: &mut PingRecorder) {
        let Some(start_ns) = self.start_ns else {
            return;
        };
        for (id, &sent_ns) in (0..).zip(&self.sent_ns) {
            recorder.sent(id, self.intended_ns(start_ns, id), sent_ns);
        }
    }

    fn intended_ns(&self, start_ns: u64, id: u32) -> u64 {
        start_ns + u64::from(id) * self.period_ns
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;

    #[test]
    fn pings_are_due_a_period_apart_and_none_after_the_last() {
        let mut schedule = Schedule::new(&config(2)).unwrap();
        assert_eq!(schedule.due_ns(), None);
        schedule.start(1_000);
        assert_eq!(schedule.due_ns(), Some(1_000));
        schedule.publish(|message| {
            assert_eq!((message.id, message.nonce), (0, nonce(9, 0)));
            Ok(())
        });
        assert_eq!(schedule.due_ns(), Some(1_000 + 500_000));
        schedule.publish(|_| Err(WriteError::NoFrame));
        assert_eq!(schedule.due_ns(), None);
        assert!(schedule.is_over());
        assert_eq!(schedule.offered_and_refused(), (2, 1));
    }
}
