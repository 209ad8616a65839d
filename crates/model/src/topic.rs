//! Topic settings, `[topic.NAME]`.

use core::fmt;
use core::num::NonZeroU32;
use core::str::FromStr;
use core::time::Duration;

use isolane_datapath::OverBudget;
use isolane_wire::{cdr::ENCAPSULATION_BYTES, level::Level};

use crate::limits::{
    DEFAULT_INSTANCES, DEFAULT_KEEP_ALL_BYTES, DEFAULT_KEEP_ALL_SAMPLES, MAX_SAMPLE_BYTES,
    MAX_SAMPLES, MAX_TOPIC_NAME_BYTES,
};
use crate::source::{Source, Sourced};
use crate::word::Word;

/// Topic, `[topic.NAME]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Topic {
    /// Topic name in discovery; unique in the system.
    pub name: Sourced<String>,
    /// Type name in discovery.
    pub type_name: Sourced<String>,
    /// True if the type has key members, so the topic has instances.
    pub keyed: Sourced<bool>,
    /// Criticality: TRANSPORT_PRIORITY, executor priority, port, lane, PCP and DSCP.
    pub level: Sourced<Level>,
    /// Minimum time between samples of one sender. If it is `None`, no bound can be computed for topics that this one
    /// can delay.
    pub period: Sourced<Option<Duration>>,
    /// Maximum time from a sample's arrival at the reader's host until its callback returns, or until it is taken. If
    /// the topic has a period, the QoS DEADLINE is the sum of period and deadline. A longer deadline gives a warning.
    pub deadline: Sourced<Option<Duration>>,
    /// Maximum serialized size of a sample, without the encapsulation header.
    pub max_bytes: Sourced<SampleBytes>,
    /// RELIABILITY (DDS 1.4 §2.2.3.14).
    pub reliability: Sourced<Reliability>,
    /// DURABILITY (DDS 1.4 §2.2.3.4).
    pub durability: Sourced<Durability>,
    /// HISTORY (DDS 1.4 §2.2.3.18).
    pub history: Sourced<History>,
    /// RESOURCE_LIMITS (DDS 1.4 §2.2.3.19): samples that each writer and reader reserves, at least the history depth.
    pub max_samples: Sourced<NonZeroU32>,
    /// Names of the described hosts that send: at least one, without duplicates.
    pub from: Sourced<Vec<String>>,
    /// Names of the described hosts that receive: at least one, without duplicates.
    pub to: Sourced<Vec<String>>,
    /// Maximum time that more urgent levels wait for a burst of the topic's level. `None`: the default of the level.
    pub burst_bound: Sourced<Option<Duration>>,
    /// Receive budget.
    pub budget: Option<Budget>,
}

/// Serialized size of a sample in bytes without its encapsulation header, 1 to [`MAX_SAMPLE_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleBytes(NonZeroU32);

impl SampleBytes {
    /// Creates a size; `None` for a number outside these bounds.
    pub const fn new(bytes: u32) -> Option<Self> {
        match NonZeroU32::new(bytes) {
            Some(bytes) if bytes.get() <= MAX_SAMPLE_BYTES => Some(Self(bytes)),
            _ => None,
        }
    }

    /// Number of bytes.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// RELIABILITY kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reliability {
    /// Lost samples are not sent again.
    BestEffort,
    /// Lost samples are sent again while they are in the writer's history.
    Reliable,
}

impl Word for Reliability {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("best-effort", Self::BestEffort),
        ("reliable", Self::Reliable),
    ];
}

/// DURABILITY kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Late-joining readers receive no earlier samples.
    #[default]
    Volatile,
    /// Late-joining readers receive the writer's history.
    TransientLocal,
}

impl Word for Durability {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("volatile", Self::Volatile),
        ("transient-local", Self::TransientLocal),
    ];
}

/// HISTORY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum History {
    /// The last samples of each instance, at most [`MAX_SAMPLES`].
    KeepLast(HistoryDepth),
    /// All samples, up to the topic's `max_samples`. Writes to a full history fail.
    KeepAll,
}

/// Maximum number of samples of each instance, 1 to [`MAX_SAMPLES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryDepth(NonZeroU32);

impl HistoryDepth {
    /// Depth 1, the standard's default.
    pub const ONE: Self = Self(NonZeroU32::MIN);

    /// Creates a depth; `None` for a number outside these bounds.
    pub const fn new(samples: u32) -> Option<Self> {
        match NonZeroU32::new(samples) {
            Some(samples) if samples.get() <= MAX_SAMPLES => Some(Self(samples)),
            _ => None,
        }
    }

    /// Number of samples.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl Default for History {
    fn default() -> Self {
        Self::KeepLast(HistoryDepth::ONE)
    }
}

impl History {
    /// Default number of samples to reserve, with the settings on which it depends. `max_bytes` is the maximum
    /// serialized size of a sample, without the encapsulation header.
    pub fn default_max_samples(self, keyed: bool, max_bytes: u32) -> Sourced<NonZeroU32> {
        let (samples, reason) = match self {
            Self::KeepAll => {
                let slot_bytes = max_bytes.saturating_add(ENCAPSULATION_BYTES as u32);
                let (min, max) = DEFAULT_KEEP_ALL_SAMPLES;
                let samples = (DEFAULT_KEEP_ALL_BYTES / slot_bytes).clamp(min, max);
                (samples, "history = \"all\" and max_bytes")
            }
            Self::KeepLast(depth) if keyed => {
                let samples = depth
                    .get()
                    .saturating_mul(DEFAULT_INSTANCES)
                    .min(MAX_SAMPLES);
                (samples, "history and several instances")
            }
            Self::KeepLast(depth) => (depth.get(), "history"),
        };
        let samples = NonZeroU32::new(samples).expect("a depth is at least one, the constants too");
        Sourced::new(samples, Source::DefaultFor(reason))
    }
}

/// The text is neither a depth nor `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryError;

impl fmt::Display for HistoryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "a history is a number of samples from 1 to {MAX_SAMPLES}, or all"
        )
    }
}

impl core::error::Error for HistoryError {}

impl FromStr for History {
    type Err = HistoryError;

    fn from_str(text: &str) -> Result<Self, HistoryError> {
        if text == "all" {
            return Ok(Self::KeepAll);
        }
        let depth = text.parse().ok().and_then(HistoryDepth::new);
        depth.map(Self::KeepLast).ok_or(HistoryError)
    }
}

impl fmt::Display for History {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepLast(depth) => depth.get().fmt(formatter),
            Self::KeepAll => formatter.write_str("all"),
        }
    }
}

/// Receive budget of a topic: a deferrable server whose capacity is a number of frames, replenished at the start of
/// each period.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Budget {
    /// Number of frames that may pass in one period.
    pub capacity: Sourced<NonZeroU32>,
    /// Period of the server.
    pub period: Sourced<Duration>,
    /// Treatment of excess frames.
    pub over: Sourced<OverBudget>,
}

impl Word for OverBudget {
    const WORDS: &'static [(&'static str, Self)] =
        &[("drop", Self::Drop), ("demote", Self::Demote)];
}

/// Error of a topic or type name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicNameError {
    /// The name is empty.
    Empty,
    /// The name is longer than [`MAX_TOPIC_NAME_BYTES`].
    TooLong,
    /// The name contains control characters.
    ControlCharacter,
}

impl fmt::Display for TopicNameError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => formatter.write_str("it is empty"),
            Self::TooLong => write!(formatter, "it is longer than {MAX_TOPIC_NAME_BYTES} bytes"),
            Self::ControlCharacter => formatter.write_str("it has control characters in it"),
        }
    }
}

impl core::error::Error for TopicNameError {}

/// Checks the name of a topic or type.
///
/// # Errors
/// A [`TopicNameError`] for an invalid name.
pub fn check_topic_name(name: &str) -> Result<(), TopicNameError> {
    if name.is_empty() {
        Err(TopicNameError::Empty)
    } else if name.len() > MAX_TOPIC_NAME_BYTES {
        Err(TopicNameError::TooLong)
    } else if name.chars().any(char::is_control) {
        Err(TopicNameError::ControlCharacter)
    } else {
        Ok(())
    }
}
