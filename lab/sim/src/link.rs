//! What a link does to a datagram.

use std::time::Duration;

use crate::random::Random;

/// The behaviour of a link in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkConfig {
    /// The least time a datagram takes.
    pub delay: Duration,
    /// Up to how much more, evenly spread; where it exceeds the time between two datagrams the
    /// second may overtake the first.
    pub jitter: Duration,
    /// Probability that a datagram is lost.
    pub loss: f64,
    /// Probability that a datagram arrives a second time, with a delay of its own.
    pub duplication: f64,
    /// Probability that a datagram is held back by up to [`held_back`](Self::held_back) more.
    pub reordering: f64,
    /// How long at most one is held back.
    pub held_back: Duration,
}

impl Default for LinkConfig {
    /// Perfect: 50 µs, always, once, in order.
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
    /// A link that loses this part of all datagrams, doubles a tenth, and lets a fifth be
    /// overtaken by many.
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

    /// A link that loses this part of all datagrams, and does nothing else to them.
    #[must_use]
    pub fn losing(loss: f64) -> Self {
        Self {
            loss,
            ..Self::default()
        }
    }

    /// Decides over one datagram: when it arrives, and when a second time.
    pub(crate) fn fate(&self, random: &mut Random) -> Fate {
        // Always the same number of draws, so that a change of one probability changes nothing
        // else in a world.
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

/// What becomes of a datagram: how long each of its copies travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    /// `None`: lost.
    pub(crate) arrives: Option<Duration>,
    /// The copy the link made, if it made one; it may arrive where the original is lost.
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
