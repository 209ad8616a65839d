//! Topics of the simulated systems: one for each combination of policies that the protocol treats differently.

use isolane_sim::{Random, Sample, Topic};

/// Instances that a writer of a keyed topic writes. No two writers share one, so that no writer's last sample
/// is pushed out by another's.
pub(crate) const INSTANCES: u32 = 3;

/// A kind of topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reliable, VOLATILE, KEEP_ALL: writers wait for readers.
    Commands,
    /// Reliable, TRANSIENT_LOCAL, KEEP_ALL, with room for all that is ever written: a late joiner gets all of it.
    Journal,
    /// Reliable, TRANSIENT_LOCAL, KEEP_LAST, keyed, by multicast: a late joiner gets the last of each instance.
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

/// Samples of the journal: an ordeal writes fewer.
const JOURNAL_SAMPLES: u16 = 500;
/// Bytes of an image at most, in addition to those of the shortest sample.
const IMAGE_BYTES: u32 = 24_000;
/// Images that are kept of a writer.
const IMAGES: u16 = 2;
/// Samples that are kept of an instance of the state.
const STATES: u16 = 2;

impl Kind {
    /// The topic, as both ends have it.
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

    /// Whether a writer waits for its readers rather than give something up.
    pub(crate) fn keeps_all(self) -> bool {
        matches!(self, Kind::Commands | Kind::Journal)
    }

    /// Whether who comes late has what was written before.
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
