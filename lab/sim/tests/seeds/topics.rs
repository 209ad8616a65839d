//! Topics of the simulated systems: one for each combination of policies that the protocol treats differently.

use isolane_sim::{Random, Sample, Topic};

/// Number of instances that a writer of a keyed topic writes. No two writers share one, so no writer replaces another's
/// last sample.
pub(crate) const INSTANCES: u32 = 3;

/// Kind of topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reliable, VOLATILE, KEEP_ALL: writers wait for readers.
    Commands,
    /// Reliable, TRANSIENT_LOCAL, KEEP_ALL, with room for all samples: a late joiner gets all of them.
    Journal,
    /// Reliable, TRANSIENT_LOCAL, KEEP_LAST, keyed, by multicast: a late joiner gets the last samples of each instance.
    State,
    /// Reliable, KEEP_LAST, keyed, in fragments.
    Images,
    /// Best effort, KEEP_LAST, keyed.
    Ticks,
}

pub(crate) const KINDS: [Kind; 5] = [
    Kind::Commands,
    Kind::Journal,
    Kind::State,
    Kind::Images,
    Kind::Ticks,
];

/// Capacity of a journal's history; no system writes as many samples.
const JOURNAL_SAMPLES: u16 = 500;
/// Maximum padding of an image, in bytes.
const IMAGE_BYTES: u32 = 24_000;
/// Number of images that a writer keeps.
const IMAGES: u16 = 2;
/// Number of samples of a state's instance that are kept.
const STATES: u16 = 2;

impl Kind {
    /// The topic, equal at both ends.
    pub(crate) fn topic(self) -> Topic {
        match self {
            Kind::Commands => Topic::new("Commands").reliable().keep_all(48).level(6),
            Kind::Journal => Topic::new("Journal")
                .reliable()
                .transient_local()
                .keep_all(JOURNAL_SAMPLES)
                .level(2),
            Kind::State => Topic::new("State")
                .reliable()
                .transient_local()
                .keep_last(STATES)
                .keyed()
                .max_instances(64)
                .multicast()
                .level(4),
            Kind::Images => Topic::new("Images")
                .reliable()
                .keep_last(IMAGES)
                .keyed()
                .max_instances(32)
                .max_payload_bytes(20 + IMAGE_BYTES as usize)
                .level(1),
            Kind::Ticks => Topic::new("Ticks").keep_last(8).keyed().level(7),
        }
    }

    pub(crate) fn is_reliable(self) -> bool {
        self != Kind::Ticks
    }

    /// Returns whether a writer waits for its readers instead of replacing samples.
    pub(crate) fn keeps_all(self) -> bool {
        matches!(self, Kind::Commands | Kind::Journal)
    }

    /// Returns whether late joiners get samples written before.
    pub(crate) fn has_history(self) -> bool {
        matches!(self, Kind::Journal | Kind::State)
    }

    /// Samples of a writer that has written up to `from`, `instances` being those from `key` on.
    pub(crate) fn samples(
        self,
        count: u64,
        from: u64,
        key: u32,
        chance: &mut Random,
    ) -> Vec<Sample> {
        let sample = |value| match self {
            Kind::Commands | Kind::Journal => Sample::value(value),
            Kind::Ticks => Sample::keyed(key, value),
            Kind::State => {
                let key = key + chance.below(u64::from(INSTANCES)) as u32;
                match chance.below(12) {
                    0 => Sample::dispose(key),
                    1 => Sample::unregister(key),
                    _ => Sample::keyed(key, value),
                }
            }
            Kind::Images => {
                let padding = chance.below(u64::from(IMAGE_BYTES / 4)) as u32 * 4;
                let is_long = chance.chance(0.7);
                Sample::keyed(key, value).padded(if is_long { padding } else { 0 })
            }
        };
        (from + 1..=from + count).map(sample).collect()
    }

    /// The last samples of a writer: one of each instance.
    pub(crate) fn last_samples(self, from: u64, key: u32) -> Vec<Sample> {
        let padding = if self == Kind::Images { IMAGE_BYTES } else { 0 };
        let keys = if self == Kind::State { INSTANCES } else { 1 };
        let key = if self.keeps_all() { 0 } else { key };
        (0..keys)
            .map(|at| Sample::keyed(key + at, from + 1 + u64::from(at)).padded(padding))
            .collect()
    }
}
