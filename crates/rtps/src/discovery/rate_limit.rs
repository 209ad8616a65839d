//! Rate limit of discovery traffic.
//!
//! SEDP sends at most [`discovery_bytes_per_s`](crate::ParticipantConfig::discovery_bytes_per_s): data, history,
//! repairs, HEARTBEATs and ACKNACKs together. Work beyond the limit stays filed until a timer releases it. SPDP and
//! liveliness messages renew leases and are exempt.
//!
//! A token bucket allows a rate in bytes per second, with a burst of one second.

use core::time::Duration;

use isolane_wire::time::Instant;

use crate::{
    participant::LocalParticipant,
    work::{Destinations, Work},
    work_queue::Timer,
};

impl LocalParticipant {
    /// Charges sent bytes to the rate limit. When the limit is exceeded, limited work is held until the timer fires.
    pub(crate) fn pay_for_discovery(&mut self, now: Instant, work: &Work) {
        let copies = match &work.to {
            Destinations::Writer(writer) => self.destinations(*writer).len(),
            Destinations::Announce => self.announce_to().len(),
            Destinations::Subset(_, places) => places.count_ones() as usize,
            Destinations::Listed(listed) => listed.len(),
        };
        if work.bytes > 0 && !self.discovery.rate.pay(now, work.bytes * copies) {
            self.shared.work_queue.hold_limited(true);
            let at = self.discovery.rate.filled_again();
            self.shared.timers.arm(Timer::DiscoveryRate, at);
        }
    }
}

/// Token bucket, stored as the time up to which its rate is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenBucket {
    ns_per_kib: u64,
    /// Time at which all bytes sent so far would have left at the rate.
    paid_until: Instant,
}

/// Burst, as the time in which the rate refills it.
const BURST: Duration = Duration::from_secs(1);

impl TokenBucket {
    /// Creates a full bucket for a rate of at least 1 KiB per second.
    pub(crate) fn new(bytes_per_s: u64) -> Self {
        Self {
            ns_per_kib: (1024 * 1_000_000_000) / bytes_per_s.max(1024),
            paid_until: Instant::new(0),
        }
    }

    /// Takes the tokens of a datagram. Returns false, and takes none, if there are too few.
    pub(crate) fn take(&mut self, now: Instant, bytes: usize) -> bool {
        let paid = self.paid_until.max(now) + self.time_of(bytes);
        let fits = paid <= now + BURST;
        if fits {
            self.paid_until = paid;
        }
        fits
    }

    /// Takes the tokens of a datagram already sent, even if there are too few. Returns false if none are left.
    pub(crate) fn pay(&mut self, now: Instant, bytes: usize) -> bool {
        self.paid_until = self.paid_until.max(now) + self.time_of(bytes);
        self.paid_until < now + BURST
    }

    /// Returns when a sixteenth of the burst will be available again, enough for some datagrams.
    pub(crate) fn filled_again(&self) -> Instant {
        let until_ns = self.paid_until.as_nanos() + BURST.as_nanos() as u64 / 16;
        Instant::new(until_ns.saturating_sub(BURST.as_nanos() as u64))
    }

    fn time_of(&self, bytes: usize) -> Duration {
        Duration::from_nanos(bytes as u64 * self.ns_per_kib / 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Returns how many datagrams of 100 bytes get tokens at this time.
    fn taken(bucket: &mut TokenBucket, at_ns: u64) -> usize {
        let all = 0..100_000;
        all.take_while(|_| bucket.take(Instant::new(at_ns), 100))
            .count()
    }

    #[test]
    fn a_seconds_worth_leaves_at_once_and_then_the_rate_holds() {
        let mut bucket = TokenBucket::new(64_000);
        assert!((635..=640).contains(&taken(&mut bucket, SECOND)));
        assert!((158..=161).contains(&taken(&mut bucket, SECOND + SECOND / 4)));
        assert_eq!(taken(&mut bucket, SECOND + SECOND / 4), 0);
        // Unused tokens do not accumulate beyond the burst.
        assert!((635..=640).contains(&taken(&mut bucket, 60 * SECOND)));
    }

    #[test]
    fn what_was_sent_without_tokens_is_paid_for_later() {
        let mut bucket = TokenBucket::new(64_000);
        let now = Instant::new(SECOND);
        assert!(bucket.pay(now, 63_000));
        assert!(!bucket.pay(now, 17_000));
        let ms = bucket.filled_again().saturating_since(now).as_millis();
        assert!((310..=315).contains(&ms), "{ms} ms");
        assert!(bucket.pay(bucket.filled_again(), 3_900));
        assert!(!bucket.pay(bucket.filled_again(), 100_000));
    }
}
