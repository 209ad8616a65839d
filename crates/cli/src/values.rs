//! Value types of the command line. Parsing checks their bounds.

use std::fmt;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use isolane_bench::limits::MAX_RTT_MESSAGE_BYTES;
use isolane_model::limits::{MAX_BUDGET_PERIOD, MIN_BUDGET_PERIOD};
use isolane_model::{DurationError, OverBudget, Word, format_duration, parse_duration};
use isolane_wire::level::Level;

use crate::limits::{MAX_PAYLOAD_BYTES, MAX_SECONDS, MIN_PAYLOAD_BYTES};

/// Parses a number of seconds.
pub(crate) fn seconds() -> impl TypedValueParser<Value = Duration> {
    let number = clap::value_parser!(u32).range(1..=MAX_SECONDS);
    number.map(|number| Duration::from_secs(number.into()))
}

pub(crate) fn count() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..)
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| match error {
        DurationError::Zero => format!("{error}: leave the option out if there is none"),
        error => format!("{error}: {}", error.help()),
    })
}

pub(crate) fn level(text: &str) -> Result<Level, String> {
    let level = text.parse().ok().and_then(Level::new);
    level.ok_or_else(|| String::from("a level is a number from 0 to 7, 7 the most critical"))
}

/// Parses one of the words of `W`, with shell completion and suggestions for misspelt words. The help of each option
/// explains its words.
pub(crate) fn word<W: Word + Send + Sync>() -> impl TypedValueParser<Value = W> {
    one_of(W::WORDS)
}

/// Parses one of `words`, with completion and suggestions as [`word`].
pub(crate) fn one_of<T: Copy + Send + Sync>(
    words: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words.iter().map(|(word, _)| *word)).map(|given| {
        let known = words.iter().find(|(word, _)| *word == given);
        known.expect("the parser lets only these through").1
    })
}

/// Address to which SPDP announcements are sent by unicast (`--peer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: Ipv4Addr,
    /// Port; `None`: the discovery ports of the domain's first participants (RTPS 2.5 §9.6.2.3).
    pub(crate) port: Option<u16>,
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, port) = match text.split_once(':') {
            Some((address, port)) => (address, Some(port.parse().ok().filter(|port| *port != 0))),
            None => (text, None),
        };
        match (address.parse(), port) {
            (Ok(address), None) => Ok(Self {
                address,
                port: None,
            }),
            (Ok(address), Some(Some(port))) => Ok(Self {
                address,
                port: Some(port),
            }),
            _ => Err(String::from(
                "write an IPv4 address, or one with a port: 10.0.0.2:7410",
            )),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(formatter, "{}:{port}", self.address),
            None => write!(formatter, "{}", self.address),
        }
    }
}

/// Datapath measured by `demo` and `bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeasuredDatapath {
    /// Kernel sockets.
    Udp,
    /// AF_XDP.
    Xdp,
    /// Memory shared by participants of one process.
    Memory,
}

impl Word for MeasuredDatapath {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("udp", Self::Udp),
        ("xdp", Self::Xdp),
        ("memory", Self::Memory),
    ];
}

/// Receive budget of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveBudget {
    /// Datagrams per period.
    pub(crate) capacity: NonZeroU32,
    pub(crate) period: Duration,
    pub(crate) over: OverBudget,
}

impl FromStr for ReceiveBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('/');
        let capacity = parts.next().and_then(|number| number.parse().ok());
        let period = parts.next().map(parse_duration);
        let over = match parts.next() {
            Some(word) => OverBudget::from_word(word),
            None => Some(OverBudget::default()),
        };
        match (capacity, period, over, parts.next()) {
            (Some(capacity), Some(Ok(period)), Some(over), None) => {
                let bounds = MIN_BUDGET_PERIOD..=MAX_BUDGET_PERIOD;
                bounds
                    .contains(&period)
                    .then_some(Self {
                        capacity,
                        period,
                        over,
                    })
                    .ok_or_else(|| {
                        let bounds = [MIN_BUDGET_PERIOD, MAX_BUDGET_PERIOD].map(format_duration);
                        format!("a budget's period is from {} to {}", bounds[0], bounds[1])
                    })
            }
            _ => Err(String::from(
                "write datagrams and the period, and the action for others: 20/10ms, 20/10ms/demote",
            )),
        }
    }
}

impl fmt::Display for ReceiveBudget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (period, over) = (format_duration(self.period), self.over.word());
        write!(formatter, "{}/{period}/{over}", self.capacity)
    }
}

/// Destination of JSON output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    StandardOutput,
    File(PathBuf),
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err(String::from("name a file, or - for standard output")),
            "-" | "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Ok(Self::StandardOutput),
            file => Ok(Self::File(PathBuf::from(file))),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardOutput => formatter.write_str("-"),
            Self::File(path) => path.display().fmt(formatter),
        }
    }
}

/// Parses the payload size of a round-trip measurement, in bytes without the encapsulation header. A message of this
/// size fits one Ethernet frame in both directions.
pub(crate) fn payload_of_round_trip(text: &str) -> Result<u32, String> {
    payload(text, MAX_RTT_MESSAGE_BYTES)
}

/// Parses the payload size of a throughput measurement, in bytes without the encapsulation header.
pub(crate) fn payload_of_sample(text: &str) -> Result<u32, String> {
    payload(text, MAX_PAYLOAD_BYTES)
}

fn payload(text: &str, most: u32) -> Result<u32, String> {
    let bytes = text.parse().ok();
    let bytes = bytes.filter(|bytes| (MIN_PAYLOAD_BYTES..=most).contains(bytes));
    bytes.ok_or_else(|| format!("a payload has {MIN_PAYLOAD_BYTES} to {most} bytes here"))
}

/// Data representation of samples (XTypes 1.3 §7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    Xcdr1,
    Xcdr2,
}

impl Word for Representation {
    const WORDS: &'static [(&'static str, Self)] =
        &[("xcdr1", Self::Xcdr1), ("xcdr2", Self::Xcdr2)];
}
