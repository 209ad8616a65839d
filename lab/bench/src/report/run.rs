//! Run of a result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Cable, Counter, Counters, Of, RunSettings, SystemActivity};
use crate::experiment::Cell;
use crate::process::Note;
use crate::record::{Distribution, OneWay, Rounds, Shape, Window, window_p99_median_us};
use crate::scenario::flow::{Flow, LaneCounts};
use crate::scenario::transport::{BulkReader, Policing};
use crate::statistics::Statistics;
use crate::traffic_source::Target;
use crate::{background_load, cable, multicast_load};

/// Settings and results of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Number of the run in its scenario file, from 1; 0 for a run without a file.
    #[serde(default)]
    pub number: u32,
    /// Index of its block in the file.
    #[serde(default)]
    pub block: Option<usize>,
    /// Values that the file sets.
    #[serde(default)]
    pub cell: Option<Cell>,
    /// Settings of the run, which are members of the run in JSON.
    #[serde(flatten)]
    pub settings: RunSettings,
    /// True when there was a disturbance.
    pub interference: bool,
    /// Pings scheduled, or samples of a stream written.
    pub samples: u64,
    /// Pings without a pong, or samples of a stream not delivered. Percentiles do not include them, so read both
    /// together.
    pub lost: u64,
    /// Pings sent more than half a period late.
    pub late_sends: u64,
    /// Messages that arrived twice.
    pub duplicates: u64,
    /// Link of this run.
    pub cable: Option<Cable>,
    /// Cores of the run's parts.
    pub cores: Option<RunCores>,
    /// Round-trip time, from the scheduled time of sending.
    pub rtt_us: Statistics,
    /// Forward delay, from the scheduled time of sending.
    pub owd_us: Statistics,
    /// Components of the returned round trips with their clock, or the reason why there are none.
    #[serde(default = "not_recorded")]
    pub one_way: OneWay,
    /// Round-trip time without the cable's share.
    pub host_us: Statistics,
    /// Cable's share of the round trip.
    pub cable_us: Statistics,
    /// Median of the p99s of one-second windows.
    pub window_p99_median_us: Option<f64>,
    /// Statistics of each second.
    pub windows: Windows,
    /// Histograms of the series above, for figures.
    pub distribution: Distributions,
    /// Box plot and time series of the round trips, for figures; null if none returned.
    #[serde(default)]
    pub shape: Option<Shape>,
    /// Priority inversions: less urgent work before the measured samples.
    pub inversions: Inversions,
    /// Activations of less urgent jobs that began before a measured sample was delivered, although the kernel had
    /// already stamped it. The executor could not know of the sample, so these are no priority inversions.
    pub kernel_late: Counted,
    /// Work that a disturbance inside the participants caused.
    pub disturbed: Option<Disturbed>,
    /// Maximum lateness of the sender's timer, in microseconds.
    pub sender_late_max_us: Option<f64>,
    /// Maximum lateness of the cable's timer, in microseconds.
    pub cable_late_max_us: Option<f64>,
    /// Configured flood; the ledger states what it achieved.
    pub flood: Option<BackgroundLoadSettings>,
    /// Configured storm; the ledger states what it achieved.
    pub storm: Option<MulticastLoadSettings>,
    /// Number of the repetition of this run, from 1.
    pub repetition: u32,
    /// Durations of the run's phases; null without hosts.
    pub took_s: Option<Took>,
    /// Activity of the system while the round trips were measured; null in memory.
    #[serde(default)]
    pub system: Option<SystemActivity>,
    /// Policing of the receivers at both ends.
    pub policing: Policing,
    /// Reader of the flood's or storm's traffic to the bulk level.
    pub bulk_reader: Option<BulkReader>,
    /// Lane counts of both ends.
    pub lanes: Option<Lanes>,
    /// Accounting of all frames of the run.
    pub ledger: Option<Ledger>,
    /// Accounting of each topic's samples.
    pub flows: Vec<Flow>,
    /// Stream of a throughput run, which has no round trips.
    #[serde(default)]
    pub stream: Option<Stream>,
    /// Isolation counters.
    #[serde(default = "Counter::unknown")]
    pub counters: Counters,
    /// Reason why this run is invalid, if it is.
    pub invalid: Option<String>,
    /// Reason why this run is not as its block expects; null if it is, and if the block expects nothing.
    #[serde(default)]
    pub unexpected: Option<String>,
    /// Steps the machine did not allow.
    pub notes: Vec<Note>,
    /// Remarks on how to read this run.
    pub remarks: Vec<String>,
}

/// Result of a throughput run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Description of the path between the ends.
    pub link: String,
    /// Samples accepted by `write`.
    pub samples_written: u64,
    /// Samples received by the readers' callbacks; the sum over all readers.
    pub samples_delivered: u64,
    /// Samples written and not delivered, summed over all readers.
    pub samples_lost: u64,
    /// Sample rate at a reader, from its first to its last sample; the mean of all readers.
    pub samples_per_s: Option<f64>,
    /// Payload rate at a reader, in 10^6 bit/s.
    pub mbit_per_s: Option<f64>,
    /// Samples that `write` refused; null if the writer's program does not print it.
    #[serde(default)]
    pub refused: Option<u64>,
    /// Number of times a full history blocked the writer; null for a system under test, as are the next three.
    pub writer_waits: Option<u64>,
    /// Samples retransmitted on the reader's request.
    pub repaired: Option<u64>,
    /// Datagrams dropped on the reader's host, a cause of retransmissions. A segmented burst counts as one.
    pub receive_dropped: Option<u64>,
    /// Datagrams the reader received by a lane; null over sockets.
    pub received_by_lane: Option<u64>,
    /// Segmented bursts that the writer sent; null for a system under test, as is the next.
    #[serde(default)]
    pub segmented: Option<u64>,
    /// Bursts that the kernel handed to the readers in one piece.
    #[serde(default)]
    pub coalesced: Option<u64>,
    /// Share of the CPU time of the run's cores that a hypervisor took, 0 to 1; null if unknown.
    #[serde(default)]
    pub stolen: Option<f64>,
    /// Resources of the writer.
    pub writer: EndUsage,
    /// Resources of the reader; of several, those of all for each sample delivered, and the memory of the largest. Of
    /// several readers of a system under test, those of the first.
    pub reader: EndUsage,
}

/// Resources of an end of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndUsage {
    /// User and system time of the process for each sample, in microseconds.
    pub cpu_us_per_sample: Option<f64>,
    /// Resident memory in bytes.
    pub resident_bytes: Option<u64>,
    /// Number of threads.
    pub threads: Option<u64>,
}

/// Durations of a run's phases, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// Set-up until both ends have discovered each other.
    pub set_up: f64,
    /// Time until the disturbance is active.
    pub settle: f64,
    /// Time from the first ping until the last pong has returned or is lost.
    pub measure: f64,
    /// Time until all parts have reported.
    pub finish: f64,
}

/// Cores of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCores {
    /// Core of the ping end.
    pub ping: usize,
    /// Core of the pong end.
    pub pong: usize,
    /// Core of the cable, and of a flood's or storm's senders.
    pub cable: usize,
    /// Core of the hosts' receive work.
    pub receive_work: usize,
}

/// Lane counts of both ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lanes {
    /// Lanes of the ping end.
    pub ping: EndLanes,
    /// Lanes of the pong end.
    pub pong: EndLanes,
}

/// Lane counts of an end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndLanes {
    /// Datagrams of the measured level dropped on this host, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Further counts of the measured level's device lane, by name; empty without a device lane.
    pub counts: BTreeMap<String, u64>,
    /// Foreign traffic to the bulk level, if the level has a reader.
    pub foreign: Option<LaneCounts>,
    /// Polls that found fewer free buffers than are reserved for the most critical lane; null where none are reserved.
    pub reserve_touched: Option<u64>,
    /// Bulk samples of the other end that were still in a reader's cache after the run.
    #[serde(default)]
    pub bulk_kept: u64,
}

/// One-second windows of a run's series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Windows {
    /// Windows of the round trip.
    pub rtt_us: Vec<Window>,
    /// Windows of the hosts' share.
    pub host_us: Vec<Window>,
}

/// Histograms of a run's series; null without samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distributions {
    /// Round trip.
    pub rtt_us: Option<Distribution>,
    /// Forward delay.
    pub owd_us: Option<Distribution>,
    /// Hosts' share.
    pub host_us: Option<Distribution>,
    /// Cable's share.
    pub cable_us: Option<Distribution>,
}

/// Configured flood.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundLoadSettings {
    /// Wire rate in each direction as a multiple of the cable's.
    pub factor: f64,
    /// UDP payload of each datagram, in bytes.
    pub payload_bytes: u32,
    /// Receivers the datagrams were addressed to.
    pub target: Target,
}

/// Configured storm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MulticastLoadSettings {
    /// Frames per second in each direction.
    pub frames_per_s: f64,
    /// UDP payload of each datagram, in bytes.
    pub payload_bytes: u32,
    /// Sockets on each host that received each frame.
    pub sockets: u16,
    /// Receivers the datagrams were addressed to.
    pub target: Target,
}

/// Datagrams of a run, hop by hop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Both directions of the cable.
    pub cable: CableLedger,
    /// Both directions of the flood, if there was one.
    pub flood: Option<background_load::Report>,
    /// Both directions of the storm, if there was one.
    pub storm: Option<multicast_load::Report>,
}

/// Cable's part of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CableLedger {
    /// Direction from host A to host B.
    pub a_to_b: cable::DirectionReport,
    /// Direction from host B to host A.
    pub b_to_a: cable::DirectionReport,
}

impl CableLedger {
    pub(super) fn ingress_drops(&self) -> u64 {
        self.a_to_b.ingress_drops + self.b_to_a.ingress_drops
    }
}

impl Run {
    /// Creates a run from its merged timestamps and the cable's report.
    pub fn new(settings: &RunSettings, rounds: &Rounds, cable: Option<&cable::Report>) -> Run {
        let invalid = cable.and_then(|cable| cable.validate().err());
        let one_way = rounds.one_way();
        let owd_ns = match one_way.refused {
            None => rounds.owd_ns(),
            Some(_) => Vec::new(),
        };
        let windows = Windows {
            rtt_us: rounds.rtt_windows(),
            host_us: rounds.host_windows(),
        };
        Run {
            settings: settings.clone(),
            interference: settings.disturbance.is_some(),
            samples: rounds.samples(),
            lost: rounds.lost(),
            late_sends: rounds.late_sends(),
            duplicates: rounds.duplicates(),
            rtt_us: Statistics::of(rounds.rtt_ns()),
            owd_us: Statistics::of(owd_ns.clone()),
            one_way,
            host_us: Statistics::of(rounds.host_ns()),
            cable_us: Statistics::of(rounds.cable_ns()),
            window_p99_median_us: window_p99_median_us(&windows.rtt_us),
            windows,
            distribution: Distributions {
                rtt_us: Distribution::of(&rounds.rtt_ns()),
                owd_us: Distribution::of(&owd_ns),
                host_us: Distribution::of(&rounds.host_ns()),
                cable_us: Distribution::of(&rounds.cable_ns()),
            },
            shape: Shape::of(rounds),
            sender_late_max_us: rounds.sender_late_max_us(),
            cable_late_max_us: cable.map(|cable| cable.late_max_us),
            repetition: 1,
            counters: Counter::unknown(),
            invalid: invalid.map(|invalid| invalid.to_string()),
            notes: cable.map(|cable| cable.notes.clone()).unwrap_or_default(),
            ledger: cable.map(|cable| Ledger {
                cable: CableLedger {
                    a_to_b: cable.a_to_b,
                    b_to_a: cable.b_to_a,
                },
                flood: None,
                storm: None,
            }),
            ..Run::default()
        }
    }
}

/// Default for results of versions that did not record these components.
fn not_recorded() -> OneWay {
    OneWay {
        refused: Some(
            "no one-way delays, because this result is from a version that did not record them"
                .to_owned(),
        ),
        ..OneWay::default()
    }
}

impl Run {
    /// Arbiter of the link; `None` without a link.
    pub fn arbiter(&self) -> Option<cable::Arbiter> {
        self.cable.as_ref().map(|cable| cable.arbiter)
    }

    /// Value of an isolation counter.
    pub fn counter(&self, counter: Counter) -> Option<u64> {
        *self.counters.get(&counter)?
    }

    /// Statistics of a part of the round trip.
    pub fn part(&self, of: Of) -> Option<&Statistics> {
        match of {
            Of::Rtt => Some(&self.rtt_us),
            Of::Host => Some(&self.host_us),
            Of::Stream => None,
        }
    }

    /// Label of the run, if its scenario gives it one.
    pub fn label(&self) -> Option<&str> {
        self.cell.as_ref()?.label.as_deref()
    }
}

/// Counts of a disturbance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbed {
    /// Endpoints created.
    pub endpoints_joined: Option<u64>,
    /// Endpoints deleted.
    pub endpoints_left: Option<u64>,
    /// Announcements processed by the ping end, including its peers' first ones.
    pub announcements_ping: Option<u64>,
    /// Announcements processed by the pong end, including its peers' first ones.
    pub announcements_pong: Option<u64>,
    /// Serialised size of a bulk sample, in bytes.
    pub bulk_payload_bytes: Option<u32>,
    /// Bulk samples written.
    pub bulk_written: Option<u64>,
    /// True when all bulk samples were acknowledged at the end.
    pub bulk_acknowledged: Option<bool>,
    /// Bulk samples passed to the reader's callback.
    pub bulk_delivered: Option<u64>,
    /// Bulk samples retransmitted.
    pub bulk_repaired: Option<u64>,
    /// Datagrams of bulk samples lost by the cable's seeded loss.
    pub bulk_lost: Option<u64>,
    /// Achieved rate per second: announcements at the end that processed fewer, or bulk samples delivered.
    pub achieved_per_s: f64,
    /// Minimum rate per second for a valid run.
    pub least_per_s: f64,
    /// True when the minimum was reached and, with losses, samples were retransmitted.
    pub enough: bool,
}

/// Count at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Count at the ping end.
    pub ping: u64,
    /// Count at the pong end.
    pub pong: u64,
    /// Sum of both.
    pub total: u64,
}

impl Counted {
    /// Creates the counts of both ends.
    pub fn new(ping: u64, pong: u64) -> Counted {
        Counted {
            ping,
            pong,
            total: ping + pong,
        }
    }
}

/// Priority inversions of a run: activations of less urgent jobs that began while a more urgent sample waited, not
/// counting the activation already running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inversions {
    /// Inversions of the measured samples at the ping end.
    pub ping: u64,
    /// Inversions of the measured samples at the pong end.
    pub pong: u64,
    /// Inversions of the measured samples at both ends.
    pub total: u64,
    /// Inversions of samples of all levels at both ends.
    pub all_levels: u64,
    /// Datagrams of the measured samples with a timestamp. Without any, the other counts are meaningless.
    #[serde(default)]
    pub judged: Counted,
}
