//! A token bucket: so many bytes a second, and so many at once.

use core::time::Duration;

use isolane_wire::time::Instant;

/// What may be sent at a rate, with one second's worth at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenBucket {
    ns_per_kib: u64,
    /// When all that was sent so far would have left at the rate.
    paid_until: Instant,
}

/// Time whose bytes may leave at once.
const BURST: Duration = Duration::from_secs(1);

impl TokenBucket {
    /// A full bucket for a rate, of 1 KiB a second at least.
    pub(crate) fn new(bytes_per_s: u64) -> Self {
        Self {
            ns_per_kib: (1024 * 1_000_000_000) / bytes_per_s.max(1024),
            paid_until: Instant::new(0),
        }
    }

    /// Takes the tokens of a datagram. False: there are too few, and none are taken.
    pub(crate) fn take(&mut self, now: Instant, bytes: usize) -> bool {
        let paid = self.paid_until.max(now) + self.time_of(bytes);
        let fits = paid <= now + BURST;
        if fits {
            self.paid_until = paid;
        }
        fits
    }

    /// Takes the tokens of what was sent, also those that are not there yet. False: none are left.
    pub(crate) fn pay(&mut self, now: Instant, bytes: usize) -> bool {
        self.paid_until = self.paid_until.max(now) + self.time_of(bytes);
        self.paid_until < now + BURST
    }

    /// When tokens for some datagrams will be there again: a sixteenth of a second's.
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

    /// Datagrams of 100 bytes that get tokens at a time, out of very many.
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
        // What was not used for a long time is not kept.
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
