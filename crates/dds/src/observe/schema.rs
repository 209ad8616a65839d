//! Schema of the snapshots that leave the process.
//!
//! Times are in microseconds. Counts start with the participant. Missing values are `None`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts by name. Counts of reasons for a loss are omitted if zero.
pub type Counts = BTreeMap<String, u64>;

/// State of a participant at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Schema: [`SCHEMA`](super::SCHEMA).
    pub schema: String,
    /// Participant as a whole.
    pub participant: ParticipantSample,
    /// Jobs.
    pub jobs: Vec<JobSample>,
    /// Protocol work, by kind.
    pub work: Vec<WorkSample>,
    /// Priority inversions, by level.
    pub levels: Vec<LevelSample>,
    /// Datagrams, by lane.
    pub lanes: Vec<LaneSample>,
    /// Writers.
    pub writers: Vec<EndpointSample>,
    /// Readers.
    pub readers: Vec<EndpointSample>,
    /// Interfaces with a classifier.
    pub interfaces: Vec<InterfaceSample>,
    /// Flows of the classifier.
    pub flows: Vec<FlowSample>,
    /// Rings shared with the kernel.
    pub rings: Vec<RingSample>,
}

/// Participant as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParticipantSample {
    /// Process id in the process' own PID namespace.
    pub pid: u32,
    /// Number of the participant within its process.
    pub number: u32,
    /// Name in discovery.
    pub name: String,
    /// Domain id.
    pub domain: u32,
    /// GUID prefix.
    pub guid_prefix: String,
    /// Datapath in use.
    pub datapath: String,
    /// Time of the snapshot, on CLOCK_MONOTONIC.
    pub at_us: f64,
    /// Core on which the loop's thread runs.
    #[serde(default)]
    pub core: Option<u32>,
    /// CPU affinity of the loop's thread.
    #[serde(default)]
    pub allowed_cores: Vec<usize>,
    /// Scheduling policy, such as `SCHED_OTHER` or `SCHED_FIFO 70`; `None` if the system does not report it.
    #[serde(default)]
    pub policy: Option<String>,
    /// True if latencies and response times begin at the kernel's receive stamps ([`LatencySample`]).
    #[serde(default)]
    pub receive_stamps: bool,
    /// Number of discovered participants.
    pub participants: u64,
    /// Refused features, as sentences.
    pub notes: Vec<String>,
    /// GUIDs of ignored participants and endpoints.
    #[serde(default)]
    pub ignored: Vec<String>,
    /// Ignored topics.
    #[serde(default)]
    pub ignored_topics: Vec<String>,
    /// Counters of the RTPS participant.
    pub counters: Counts,
    /// Frames outside the pool.
    pub frames_out: u64,
    /// Frames outside the pool that are waiting for reception, or being read.
    pub frames_armed: u64,
    /// Frames outside the pool that are lent to threads of remote writers.
    pub frames_lent: u64,
    /// Number of times that protocol work found no frame.
    pub no_frame: u64,
    /// Lane whose ledger does not balance, and the difference; `None` unless there is a defect.
    pub imbalance: Option<String>,
    /// Observers refused because of the limit or their user.
    pub observers_refused: u64,
    /// Observers dropped because they did not read.
    pub observers_dropped: u64,
}

/// Job of the executor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSample {
    /// Name.
    pub name: String,
    /// Priority.
    pub priority: u8,
    /// Maximum number of items per activation.
    pub items: u16,
    /// Activations begun.
    pub activations: u64,
    /// Longest execution of an activation.
    pub execution_max_us: f64,
    /// Total execution of all activations.
    pub execution_total_us: f64,
    /// Longest time from release to finish.
    pub response_max_us: f64,
    /// Longest wait for a less urgent activation.
    pub blocking_max_us: f64,
}

/// Protocol work of one kind at one priority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkSample {
    /// Kind.
    pub kind: String,
    /// Priority.
    pub priority: u8,
    /// Steps done.
    pub steps: u64,
    /// Longest activation that ended with such a step.
    pub execution_max_us: f64,
}

/// Priority inversions of a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelSample {
    /// Level.
    pub level: u8,
    /// Datagrams checked for inversions.
    pub datagrams: u64,
    /// Priority inversions.
    pub inversions: u64,
    /// Less urgent activations that ran first because the kernel had not made the socket readable yet.
    pub kernel_late: u64,
    /// Longest such delay by the kernel.
    pub kernel_late_max_us: f64,
}

/// Datagrams of a lane: arrived = received + dropped + pending; offered = sent + refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneSample {
    /// Level of the lane; `None` for discovery.
    pub level: Option<u8>,
    /// Datagrams that reached the receiving end of the lane.
    pub arrived: u64,
    /// Datagrams passed to the RTPS participant.
    pub received: u64,
    /// Bytes of the datagrams passed to the RTPS participant.
    pub received_bytes: u64,
    /// Datagrams in a queue of the datapath.
    pub pending: u64,
    /// Calls that found no frame to receive into.
    pub starved: u64,
    /// Datagrams dropped, by reason.
    pub dropped: Counts,
    /// Datagrams offered for sending.
    pub offered: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of the datagrams sent.
    pub sent_bytes: u64,
    /// Datagrams refused, by reason.
    pub refused: Counts,
    /// Further counts of the lane's rings, by name; empty without rings.
    pub counts: Counts,
    /// Receive buffer in bytes that the kernel granted the lane's sockets.
    pub receive_buffer_bytes: Option<u64>,
}

/// Writer or reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointSample {
    /// Topic.
    pub topic: String,
    /// Level.
    pub level: u8,
    /// Number of matched remote endpoints.
    pub matched: u64,
    /// Ledger: account of all samples.
    pub ledger: Counts,
    /// Response deadline of a reader; `None` without one.
    #[serde(default)]
    pub deadline_us: Option<f64>,
    /// Samples that missed the response deadline; `None` without one.
    #[serde(default)]
    pub deadline_missed: Option<u64>,
    /// Longest excess over the response deadline.
    #[serde(default)]
    pub lateness_max_us: Option<f64>,
    /// Job that ran when the last missed deadline expired; `None` if none was missed, or no job ran.
    #[serde(default)]
    pub missed_during: Option<String>,
    /// Samples that a reader rejected because they are not of its type; `None` without any.
    #[serde(default)]
    pub refused: Option<RefusedSample>,
    /// Latencies of a reader's samples since the previous snapshot. `None` in the first snapshot after a time without
    /// observers, and of a writer.
    #[serde(default)]
    pub latency: Option<LatencySample>,
}

/// Latencies of the samples of a reader that were handled between two snapshots.
///
/// A latency begins at the kernel's receive stamp of the sample's datagram, the last datagram of a sample in fragments.
/// Without stamps, it begins when the loop sees the socket readable, or reads the datagram. It ends with the sample's
/// callback, or when the sample is taken; for a [`ReaderHandle`](crate::ReaderHandle), when the loop passes it on. Both
/// times are of this host's monotonic clock: the time in the network and at the writer is not part of it. The wait for
/// the repair of an earlier sample is part of it.
///
/// A percentile is that of the nearest rank, at most 3.2 % too high. With fewer than 100 samples, the 99th percentile
/// is the maximum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencySample {
    /// Time between the snapshots.
    pub interval_us: f64,
    /// Number of samples.
    pub samples: u64,
    /// Median; `None` without samples.
    pub median_us: Option<f64>,
    /// 99th percentile; `None` without samples.
    pub p99_us: Option<f64>,
    /// Maximum; `None` without samples.
    pub max_us: Option<f64>,
}

/// Samples that a reader rejected because their encapsulation or payload is not of its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusedSample {
    /// Number of samples of this writer that were rejected in succession.
    pub total: u64,
    /// Encapsulation identifier of the last rejected sample (RTPS 2.5 §10.2), if the type cannot have it; `None` if only
    /// its payload is not of the type.
    pub encapsulation: Option<u16>,
    /// GUID of the writer of the last rejected sample.
    pub writer: String,
}

/// Interface with a classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterfaceSample {
    /// Name.
    pub name: String,
    /// XDP mode, as read back from the kernel.
    pub mode: String,
    /// Tag of the XDP program.
    pub program_tag: String,
    /// Decisions about frames of no flow, by reason.
    pub decisions: Counts,
}

/// Flow of the classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowSample {
    /// Level of the flow's lane; `None` for discovery.
    pub level: Option<u8>,
    /// Topic of the reader that owns the flow; `None` if the readers of a level share the flow.
    pub topic: Option<String>,
    /// Destination address and port.
    pub destination: String,
    /// Budget in datagrams per period; `None` without a budget.
    pub capacity: Option<u32>,
    /// Period after which the budget is refilled.
    pub period_us: Option<f64>,
    /// Treatment of the excess: "drop" or "demote".
    pub over: Option<String>,
    /// Datagrams left in this period.
    pub left: Option<u32>,
    /// Decisions about the flow's frames, by reason.
    pub decisions: Counts,
}

/// Ring shared with the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RingSample {
    /// Kind: "fill", "completion", "receive" or "transmit".
    pub kind: String,
    /// Queue of the device.
    pub queue: u32,
    /// Level of the ring's lane; `None` if the ring belongs to the queue or to discovery.
    pub level: Option<u8>,
    /// Capacity in entries.
    pub entries: u32,
    /// Entries in use.
    pub used: u32,
    /// Number of times that the kernel found the ring full or empty, or an entry invalid.
    pub missed: u64,
}
