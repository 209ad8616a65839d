//! Value types of the command line, validated when parsed.

use std::fmt;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use isolane_bench::cable::Arbiter;
use isolane_bench::limits::MAX_RTT_MESSAGE_BYTES;
use isolane_bench::report;
use isolane_bench::scenario::plan::Part;
use isolane_model::limits::{MAX_BUDGET_PERIOD, MIN_BUDGET_PERIOD};
use isolane_model::{OverBudget, SampleBytes, Word, format_duration, parse_duration};

use crate::limits::{MAX_PAYLOAD_BYTES, MIN_PAYLOAD_BYTES};

/// Unicast discovery address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: Ipv4Addr,
    /// Port; `None`: the standard ports of a domain's first participants (RTPS 2.5 §9.6.2.3).
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
    /// Memory of one process.
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
                "write datagrams and the period, and what becomes of others: 20/10ms, 20/10ms/demote",
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

/// Payload of a measurement: the serialised size in bytes without the encapsulation header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadBytes(SampleBytes);

impl PayloadBytes {
    /// Payload of 64 bytes: a control value with its timestamp.
    pub(crate) const SMALL: Self = Self(SampleBytes::new(64).expect("it fits"));
    pub(crate) const MEDIUM: Self = Self(SampleBytes::new(1024).expect("it fits"));
    /// Payloads of paper 000.
    pub(crate) const OF_PAPER: [Self; 3] = [
        Self::SMALL,
        Self(SampleBytes::new(512).expect("it fits")),
        Self::MEDIUM,
    ];

    pub(crate) fn get(self) -> u32 {
        self.0.get()
    }
}

impl PayloadBytes {
    /// Parses a payload that fits one frame in both directions.
    pub(crate) fn of_round_trip(text: &str) -> Result<Self, String> {
        Self::parse(text, MAX_RTT_MESSAGE_BYTES)
    }

    /// Parses a payload that fits one sample.
    pub(crate) fn of_sample(text: &str) -> Result<Self, String> {
        Self::parse(text, MAX_PAYLOAD_BYTES)
    }

    fn parse(text: &str, most: u32) -> Result<Self, String> {
        text.parse()
            .ok()
            .filter(|bytes| (MIN_PAYLOAD_BYTES..=most).contains(bytes))
            .and_then(SampleBytes::new)
            .map(Self)
            .ok_or_else(|| format!("a payload has {MIN_PAYLOAD_BYTES} to {most} bytes here"))
    }
}

/// Types supported by `pub` and `sub`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleType {
    /// `ShapeType`, the common demonstration type of DDS implementations.
    Shape,
}

impl SampleType {
    /// Type name announced in discovery.
    pub(crate) fn announced_name(self) -> &'static str {
        match self {
            Self::Shape => "ShapeType",
        }
    }
}

impl Word for SampleType {
    const WORDS: &'static [(&'static str, Self)] = &[("shape", Self::Shape)];
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

/// Format of an exported plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportFormat {
    Tuned,
    Systemd,
    Shell,
}

impl Word for ExportFormat {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("tuned", Self::Tuned),
        ("systemd", Self::Systemd),
        ("sh", Self::Shell),
    ];
}

impl From<ExportFormat> for isolane_tune::Format {
    fn from(format: ExportFormat) -> Self {
        match format {
            ExportFormat::Tuned => Self::Tuned,
            ExportFormat::Systemd => Self::Systemd,
            ExportFormat::Shell => Self::Shell,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disturbance {
    None,
    /// 25 UDP streams in each direction through the cable.
    Flood,
    /// A flood to a bulk reader of the participants.
    ReadFlood,
    /// Multicast delivered to hundreds of sockets on each host.
    Storm,
    /// Endpoints created and deleted.
    Joining,
    /// A reliable bulk topic in the same participants.
    Bulk,
    /// The bulk topic with losses and retransmissions.
    Repair,
    /// A reliable topic of large samples in the same participants.
    Large,
}

impl Word for Disturbance {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", Self::None),
        ("flood", Self::Flood),
        ("read-flood", Self::ReadFlood),
        ("storm", Self::Storm),
        ("joining", Self::Joining),
        ("bulk", Self::Bulk),
        ("repair", Self::Repair),
        ("large", Self::Large),
    ];
}

impl Disturbance {
    /// Disturbances of an ablation.
    pub(crate) const OF_ABLATION: [Self; 4] =
        [Self::None, Self::Flood, Self::Storm, Self::ReadFlood];

    /// Returns whether participants read the disturbing traffic as bulk.
    pub(crate) fn is_read(self) -> bool {
        self == Self::ReadFlood
    }

    /// Disturbance in results.
    pub(crate) fn in_report(self) -> Option<report::Disturbance> {
        match self {
            Self::None => None,
            Self::Flood | Self::ReadFlood => Some(report::Disturbance::Flood),
            Self::Storm => Some(report::Disturbance::Storm),
            Self::Joining => Some(report::Disturbance::Joining),
            Self::Bulk => Some(report::Disturbance::Bulk),
            Self::Repair => Some(report::Disturbance::Repair),
            Self::Large => Some(report::Disturbance::Large),
        }
    }
}

/// Arbiter of the link between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkArbiter {
    Fifo,
    Strict,
}

impl Word for LinkArbiter {
    const WORDS: &'static [(&'static str, Self)] =
        &[("fifo", Self::Fifo), ("strict", Self::Strict)];
}

impl LinkArbiter {
    pub(crate) const ALL: [Self; 2] = [Self::Fifo, Self::Strict];

    pub(crate) fn in_cable(self) -> Arbiter {
        match self {
            Self::Fifo => Arbiter::Fifo,
            Self::Strict => Arbiter::Strict,
        }
    }
}

/// Order in which an executor runs ready jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobOrder {
    Priority,
    Fifo,
}

impl Word for JobOrder {
    const WORDS: &'static [(&'static str, Self)] =
        &[("priority", Self::Priority), ("fifo", Self::Fifo)];
}

impl JobOrder {
    pub(crate) fn in_report(self) -> report::Order {
        match self {
            Self::Priority => report::Order::Priority,
            Self::Fifo => report::Order::Fifo,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoPart {
    Link,
    Arbiter,
    Lane,
    Executor,
}

impl Word for DemoPart {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("link", Self::Link),
        ("arbiter", Self::Arbiter),
        ("lane", Self::Lane),
        ("executor", Self::Executor),
    ];
}

impl DemoPart {
    /// All parts in display order.
    pub(crate) const ALL: [Self; 4] = [Self::Link, Self::Arbiter, Self::Lane, Self::Executor];

    pub(crate) fn in_plan(self) -> Part {
        match self {
            Self::Link => Part::Link,
            Self::Arbiter => Part::Arbiter,
            Self::Lane => Part::Lane,
            Self::Executor => Part::Executor,
        }
    }
}
