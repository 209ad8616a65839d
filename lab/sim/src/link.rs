//! Link model: delay, loss, duplication and reordering.

use std::time::Duration;

use crate::random::Random;

/// Behaviour of a link in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkConfig {
    /// Minimum delay.
    pub delay: Duration,
    /// Maximum additional delay, uniformly distributed. If it exceeds the time between two datagrams, the second may
    /// overtake the first.
    pub jitter: Duration,
    /// Loss probability.
    pub loss: f64,
    /// Duplication probability; the duplicate has a separate delay.
    pub duplication: f64,
    /// Probability of an additional delay up to [`held_back`](Self::held_back).
    pub reordering: f64,
    /// Maximum additional delay of a reordered datagram.
    pub held_back: Duration,
}

impl Default for LinkConfig {
    /// Perfect link: 50 µs, no loss, no duplicates, in order.
    fn default() -> Self {
        Self {
            delay: Duration::from_micros(50),
            jitter: Duration::ZERO,
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            held_back: Duration::ZERO,
        }
    }
}

impl LinkConfig {
    /// Creates a link that loses this part of all datagrams, duplicates a tenth, and delays a fifth so long that many
    /// others overtake the delayed ones.
    #[must_use]
    pub fn lossy(loss: f64) -> Self {
        Self {
            jitter: Duration::from_micros(200),
            loss,
            duplication: 0.1,
            reordering: 0.2,
            held_back: Duration::from_millis(5),
            ..Self::default()
        }
    }

    /// Creates a link that only loses this part of all datagrams.
    #[must_use]
    pub fn losing(loss: f64) -> Self {
        Self {
            loss,
            ..Self::default()
        }
    }

    /// Draws the outcome of a datagram.
    pub(crate) fn fate(&self, random: &mut Random) -> Fate {
        // Always the same number of draws, so that changing one probability does not affect anything else.
        let is_lost = random.chance(self.loss);
        let is_doubled = random.chance(self.duplication);
        let (first, second) = (self.travel(random), self.travel(random));
        Fate {
            arrives: (!is_lost).then_some(first),
            arrives_again: is_doubled.then_some(second),
        }
    }

    fn travel(&self, random: &mut Random) -> Duration {
        let jitter = random.up_to(self.jitter);
        let is_held_back = random.chance(self.reordering);
        let held_back = random.up_to(self.held_back);
        self.delay
            + jitter
            + if is_held_back {
                held_back
            } else {
                Duration::ZERO
            }
    }
}

/// Outcome of a datagram: the delays of its copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    /// Delay of the original; `None` if lost.
    pub(crate) arrives: Option<Duration>,
    /// Delay of the duplicate, if any; it may arrive although the original is lost.
    pub(crate) arrives_again: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_link_delivers_once_after_its_delay() {
        let fate = LinkConfig::default().fate(&mut Random::new(1));
        assert_eq!(fate.arrives, Some(Duration::from_micros(50)));
        assert_eq!(fate.arrives_again, None);
    }

    #[test]
    fn a_lossy_link_does_each_of_its_mischiefs() {
        let link = LinkConfig::lossy(0.3);
        let mut random = Random::new(1);
        let fates: Vec<_> = (0..1_000).map(|_| link.fate(&mut random)).collect();
        assert!(fates.iter().any(|fate| fate.arrives.is_none()));
        assert!(fates.iter().any(|fate| fate.arrives_again.is_some()));
        let overtaken = |pair: &[Fate]| pair[0].arrives > pair[1].arrives;
        assert!(fates.windows(2).any(overtaken));
    }
}
