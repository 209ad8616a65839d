//! The form of what leaves the process.
//!
//! Times are in microseconds, counts are since the participant began; what there is not is `None`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts by name, those that are zero left out where a name says why something was lost.
pub type Counts = BTreeMap<String, u64>;

/// A participant at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SCHEMA`](super::SCHEMA).
    pub schema: String,
    /// The participant as a whole.
    pub participant: ParticipantSample,
    /// Its jobs.
    pub jobs: Vec<JobSample>,
    /// Protocol work, by kind.
    pub work: Vec<WorkSample>,
    /// Priority inversions, by level.
    pub levels: Vec<LevelSample>,
    /// Datagrams, by lane.
    pub lanes: Vec<LaneSample>,
    /// Its writers.
    pub writers: Vec<EndpointSample>,
    /// Its readers.
    pub readers: Vec<EndpointSample>,
    /// Interfaces with a classifier.
    pub interfaces: Vec<InterfaceSample>,
    /// Flows, as the classifier knows them.
    pub flows: Vec<FlowSample>,
    /// Rings shared with the kernel.
    pub rings: Vec<RingSample>,
}

/// A participant as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParticipantSample {
    /// Its process, as that process knows itself.
    pub pid: u32,
    /// Which of the process' participants.
    pub number: u32,
    /// Its name in discovery.
    pub name: String,
    /// Its domain.
    pub domain: u32,
    /// Its GUID prefix.
    pub guid_prefix: String,
    /// The datapath in use.
    pub datapath: String,
    /// When this was seen, on CLOCK_MONOTONIC.
    pub at_us: f64,
    /// Core that the loop's thread runs on.
    #[serde(default)]
    pub core: Option<u32>,
    /// Cores that it may run on.
    #[serde(default)]
    pub allowed_cores: Vec<usize>,
    /// Its scheduling policy: `SCHED_OTHER`, `SCHED_FIFO 70`; `None`: the system does not say.
    #[serde(default)]
    pub policy: Option<String>,
    /// Participants of others that are known.
    pub participants: u64,
    /// What it goes without, in sentences.
    pub notes: Vec<String>,
    /// Whom it ignores: GUIDs of participants and endpoints.
    #[serde(default)]
    pub ignored: Vec<String>,
    /// Topics it ignores.
    #[serde(default)]
    pub ignored_topics: Vec<String>,
    /// What the engine counted.
    pub counters: Counts,
    /// Frames not at home.
    pub frames_out: u64,
    /// Of these, armed for what arrives, or being read.
    pub frames_armed: u64,
    /// Of these, lent to the threads of remote writers.
    pub frames_lent: u64,
    /// How often protocol work found no frame.
    pub no_frame: u64,
    /// Which lane's ledger does not balance, and by how many; none should.
    pub imbalance: Option<String>,
    /// Observers turned away because there were enough, or of another user.
    pub observers_refused: u64,
    /// Observers dropped because they did not read.
    pub observers_dropped: u64,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSample {
    /// Its name.
    pub name: String,
    /// Its priority.
    pub priority: u8,
    /// Items one activation handles at most.
    pub items: u16,
    /// Activations begun.
    pub activations: u64,
    /// Longest activation.
    pub execution_max_us: f64,
    /// All activations together.
    pub execution_total_us: f64,
    /// Longest from release to finish.
    pub response_max_us: f64,
    /// Longest wait for a less urgent activation.
    pub blocking_max_us: f64,
}

/// One kind of protocol work at one priority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkSample {
    /// The kind.
    pub kind: String,
    /// The priority.
    pub priority: u8,
    /// Steps done.
    pub steps: u64,
    /// Longest activation that ended with one.
    pub execution_max_us: f64,
}

/// Priority inversions of a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelSample {
    /// The level.
    pub level: u8,
    /// Datagrams that were judged.
    pub datagrams: u64,
    /// Priority inversions.
    pub inversions: u64,
    /// Less urgent activations that came first because the kernel had not shown the datagram yet.
    pub kernel_late: u64,
    /// The longest of these.
    pub kernel_late_max_us: f64,
}

/// A lane's datagrams: arrived = received + dropped + pending; offered = sent + refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneSample {
    /// The lane's level; `None`: discovery's.
    pub level: Option<u8>,
    /// Datagrams that reached this end of it.
    pub arrived: u64,
    /// Datagrams handed on.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Datagrams in a queue of the datapath's own.
    pub pending: u64,
    /// Calls that found no frame to receive into.
    pub starved: u64,
    /// Datagrams dropped, by reason.
    pub dropped: Counts,
    /// Datagrams offered for sending.
    pub offered: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Datagrams refused, by reason.
    pub refused: Counts,
    /// What else its rings did, by name; empty where it has none.
    pub counts: Counts,
    /// Bytes the kernel keeps for what arrives at its sockets.
    pub receive_buffer_bytes: Option<u64>,
}

/// A writer or a reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointSample {
    /// Its topic.
    pub topic: String,
    /// Its level.
    pub level: u8,
    /// Endpoints of others it is matched with now.
    pub matched: u64,
    /// Its ledger: what became of its samples.
    pub ledger: Counts,
    /// A reader's response deadline; `None`: it has none.
    #[serde(default)]
    pub deadline_us: Option<f64>,
    /// Samples that missed it; `None`: it has none.
    #[serde(default)]
    pub deadline_missed: Option<u64>,
    /// Largest time beyond it.
    #[serde(default)]
    pub lateness_max_us: Option<f64>,
    /// Job that ran when the last missed deadline fell; `None`: none was missed, or no job ran.
    #[serde(default)]
    pub missed_during: Option<String>,
    /// Samples that a reader rejected for their encapsulation; `None`: none.
    #[serde(default)]
    pub refused: Option<RefusedSample>,
}

/// Samples that a reader rejected because its type cannot have their encapsulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusedSample {
    /// Samples rejected so far.
    pub total: u64,
    /// Identifier of the last one's encapsulation (RTPS 2.5 §10.2).
    pub encapsulation: u16,
    /// GUID of the last one's writer.
    pub writer: String,
}

/// An interface with a classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterfaceSample {
    /// Its name.
    pub name: String,
    /// The mode, as read back from the kernel.
    pub mode: String,
    /// The program's tag.
    pub program_tag: String,
    /// What was decided of frames of no flow, by reason.
    pub decisions: Counts,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowSample {
    /// Its lane's level; `None`: discovery's.
    pub level: Option<u8>,
    /// The topic of the reader whose own it is; `None`: all of its level share it.
    pub topic: Option<String>,
    /// Where it arrives.
    pub destination: String,
    /// Datagrams of its budget in each period; `None`: it has none.
    pub capacity: Option<u32>,
    /// When it is filled up again.
    pub period_us: Option<f64>,
    /// What becomes of the others: "drop" or "demote".
    pub over: Option<String>,
    /// Datagrams left in this period.
    pub left: Option<u32>,
    /// What was decided of its frames, by reason.
    pub decisions: Counts,
}

/// A ring shared with the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RingSample {
    /// "fill", "completion", "receive" or "transmit".
    pub kind: String,
    /// The device's queue.
    pub queue: u32,
    /// Its lane's level; `None`: the queue's, or discovery's.
    pub level: Option<u8>,
    /// Entries it has.
    pub entries: u32,
    /// Entries in use.
    pub used: u32,
    /// How often the kernel found it full, or empty, or an entry invalid.
    pub missed: u64,
}
