//! A topic of the system: who sends it to whom, how urgent it is, and what memory it needs.

use core::fmt;
use core::num::NonZeroU32;
use core::str::FromStr;
use core::time::Duration;

use isolane_wire::level::Level;

use crate::limits::{
    DEFAULT_INSTANCES, DEFAULT_KEEP_ALL_SAMPLES, MAX_SAMPLE_BYTES, MAX_SAMPLES,
    MAX_TOPIC_NAME_BYTES,
};
use crate::source::{Source, Sourced};
use crate::word::Word;

/// A topic, `[topic.NAME]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Topic {
    /// Its name, as discovery announces it. Unique in the system.
    pub name: Sourced<String>,
    /// Its type's name, as discovery announces it.
    pub type_name: Sourced<String>,
    /// Whether the type has key members, so that the topic has instances.
    pub keyed: Sourced<bool>,
    /// How critical it is: TRANSPORT_PRIORITY, executor priority, port, lane, PCP and DSCP.
    pub level: Sourced<Level>,
    /// Shortest time between two samples of one sender; `None` if nothing is known, and then no
    /// bound can be computed for topics it can delay.
    pub period: Sourced<Option<Duration>>,
    /// Longest time from a sample's arrival at the reader's host to the end of its callback, or until it is
    /// taken. With a period, QoS DEADLINE of writers and readers is the sum of both. It may exceed the period,
    /// which earns a warning.
    pub deadline: Sourced<Option<Duration>>,
    /// Largest serialised sample, without the encapsulation header.
    pub max_bytes: Sourced<SampleBytes>,
    /// RELIABILITY (DDS 1.4 §2.2.3.14).
    pub reliability: Sourced<Reliability>,
    /// DURABILITY (DDS 1.4 §2.2.3.4).
    pub durability: Sourced<Durability>,
    /// HISTORY (DDS 1.4 §2.2.3.18).
    pub history: Sourced<History>,
    /// RESOURCE_LIMITS (DDS 1.4 §2.2.3.19): samples reserved before start, at each end. Never
    /// below the depth of the history.
    pub max_samples: Sourced<NonZeroU32>,
    /// The hosts that send it: at least one, each once, each described.
    pub from: Sourced<Vec<String>>,
    /// The hosts that receive it: at least one, each once, each described.
    pub to: Sourced<Vec<String>>,
    /// What receivers are protected with.
    pub budget: Option<Budget>,
}

/// Bytes of a serialised sample without its encapsulation header, 1 to [`MAX_SAMPLE_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleBytes(NonZeroU32);

impl SampleBytes {
    /// A sample's size, if a datagram carries it.
    pub const fn new(bytes: u32) -> Option<Self> {
        match NonZeroU32::new(bytes) {
            Some(bytes) if bytes.get() <= MAX_SAMPLE_BYTES => Some(Self(bytes)),
            _ => None,
        }
    }

    /// The number of bytes.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// Whether lost samples are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reliability {
    /// A lost sample is lost.
    BestEffort,
    /// A lost sample is sent again as long as the history holds it.
    Reliable,
}

impl Word for Reliability {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("best-effort", Self::BestEffort),
        ("reliable", Self::Reliable),
    ];
}

/// Whether readers that join late get what was written before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// They get what is written from then on.
    #[default]
    Volatile,
    /// They get what the writer's history holds.
    TransientLocal,
}

impl Word for Durability {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("volatile", Self::Volatile),
        ("transient-local", Self::TransientLocal),
    ];
}

/// How many samples of an instance are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum History {
    /// The last so many, at most [`MAX_SAMPLES`].
    KeepLast(HistoryDepth),
    /// All, up to the topic's `max_samples`: beyond it, writing fails.
    KeepAll,
}

/// Samples of an instance that are kept, 1 to [`MAX_SAMPLES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryDepth(NonZeroU32);

impl HistoryDepth {
    /// The last sample only, the standard's default.
    pub const ONE: Self = Self(NonZeroU32::MIN);

    /// A depth, if it is within bounds.
    pub const fn new(samples: u32) -> Option<Self> {
        match NonZeroU32::new(samples) {
            Some(samples) if samples.get() <= MAX_SAMPLES => Some(Self(samples)),
            _ => None,
        }
    }

    /// The number of samples.
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
    /// The samples to reserve when nobody says how many, and why so many.
    pub fn default_max_samples(self, keyed: bool) -> Sourced<NonZeroU32> {
        let (samples, reason) = match self {
            Self::KeepAll => (DEFAULT_KEEP_ALL_SAMPLES, "history = \"all\""),
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

/// What a receiver spends on a topic at most: so many frames a period, whatever arrives. It is
/// kept by a deferrable server, which fills up again at every period's end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Budget {
    /// Frames let through in one period.
    pub capacity: Sourced<NonZeroU32>,
    /// The server's period.
    pub period: Sourced<Duration>,
    /// What happens to the others.
    pub over: Sourced<OverBudget>,
}

/// What happens to a frame beyond the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OverBudget {
    /// It is dropped and counted.
    #[default]
    Drop,
    /// It is handled at level 0 and counted.
    Demote,
}

impl Word for OverBudget {
    const WORDS: &'static [(&'static str, Self)] =
        &[("drop", Self::Drop), ("demote", Self::Demote)];
}

/// Why a text cannot be the name of a topic or type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicNameError {
    /// It is empty.
    Empty,
    /// It is longer than [`MAX_TOPIC_NAME_BYTES`].
    TooLong,
    /// It has control characters in it.
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

/// Whether a text can be the name of a topic or type.
///
/// # Errors
/// Why it cannot.
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
