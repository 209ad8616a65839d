//! Due times and sending times of pings.

use isolane::WriteError;

use super::EndConfig;
use crate::clock::now_ns;
use crate::record::{PingRecorder, nonce};
use crate::scenario::{ConfigError, RttMessage};

/// Schedule of a run's pings. The publisher writes every due ping, even if late, and skips none: a delayed sender shows
/// in the round trips, which start at the due time.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    period_ns: u64,
    samples: u32,
    seed: u64,
    /// Start time; `None` before the start.
    start_ns: Option<u64>,
    /// Message reused for every ping.
    message: RttMessage,
    /// Sending times by id, with reserved memory.
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

    /// Starts the schedule with the first ping due at `start_ns`.
    pub(super) fn start(&mut self, start_ns: u64) {
        self.start_ns = Some(start_ns);
    }

    /// Due time of the next ping; `None` before the start and after the last.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let id = self.sent_ns.len() as u32;
        (id < self.samples).then_some(())?;
        Some(self.intended_ns(self.start_ns?, id))
    }

    /// Returns whether all pings were sent.
    pub(super) fn is_over(&self) -> bool {
        self.sent_ns.len() as u32 >= self.samples
    }

    /// Timestamps the next ping and gives it to `write`.
    pub(super) fn publish(&mut self, write: impl FnOnce(&RttMessage) -> Result<(), WriteError>) {
        let id = self.sent_ns.len() as u32;
        self.message.id = id;
        self.message.nonce = nonce(self.seed, id);
        self.sent_ns.push(now_ns());
        self.refused += u64::from(write(&self.message).is_err());
    }

    /// Pings given to `write`, and those that it refused.
    pub(super) fn offered_and_refused(&self) -> (u64, u64) {
        (self.sent_ns.len() as u64, self.refused)
    }

    /// Copies due and sending times into the ping recorder.
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
