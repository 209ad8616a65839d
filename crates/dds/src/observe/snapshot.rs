//! What there is to be seen of a participant at one moment, in the form that leaves the process.
//!
//! Times are in microseconds, counts are since the participant began; what there is not is `None`.

use std::collections::BTreeMap;

use isolane_datapath::{
    Datapath, FlowObservation, InterfaceObservation, Lane, Ledger, Observation, RingObservation,
    clock::monotonic_now,
};
use isolane_engine::{ReaderLedger, WriterLedger};
use serde::{Deserialize, Serialize};

use super::SCHEMA;
use crate::{
    report::{EndpointReport, JobReport, Report, WorkReport},
    state::State,
    waits::LevelReport,
};

/// Counts by name, those that are zero left out where a name says why something was lost.
pub type Counts = BTreeMap<String, u64>;

/// A participant at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SCHEMA`].
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
    /// Participants of others that are known.
    pub participants: u64,
    /// What it goes without, in sentences.
    pub notes: Vec<String>,
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
    /// Deadlines that fell before it had finished.
    pub deadline_misses: u64,
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

/// What a participant is called, and who looks at it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identity {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) domain: u32,
    pub(crate) observers_refused: u64,
    pub(crate) observers_dropped: u64,
}

impl Snapshot {
    /// Everything but what the datapath does at this moment.
    pub(crate) fn of(state: &State, identity: &Identity) -> Self {
        let report = Report::of(state);
        Self {
            schema: SCHEMA.into(),
            participant: ParticipantSample::of(state, &report, identity),
            jobs: report.jobs.iter().map(JobSample::of).collect(),
            work: report.work.iter().map(WorkSample::of).collect(),
            levels: report.levels.iter().map(LevelSample::of).collect(),
            lanes: lanes(state, &report.datagrams),
            writers: endpoints(&report.writers, of_writer),
            readers: endpoints(&report.readers, of_reader),
            interfaces: Vec::new(),
            flows: Vec::new(),
            rings: Vec::new(),
        }
    }

    /// Adds what the datapath does at this moment.
    pub(crate) fn look_at_datapath(&mut self, state: &State) {
        let seen: Observation = state.transport.observe();
        self.interfaces = seen.interfaces.into_iter().map(of_interface).collect();
        let flows = seen.flows.into_iter();
        self.flows = flows.map(|flow| of_flow(state, flow)).collect();
        self.rings = seen.rings.into_iter().map(of_ring).collect();
    }
}

impl ParticipantSample {
    fn of(state: &State, report: &Report, identity: &Identity) -> Self {
        let counted = |frames: usize| frames as u64;
        Self {
            pid: std::process::id(),
            number: identity.number,
            name: identity.name.clone(),
            domain: identity.domain,
            guid_prefix: state.engine.guid_prefix().to_string(),
            datapath: state.transport.name().into(),
            at_us: microseconds(monotonic_now().as_nanos()),
            participants: state.engine.remote_participants().count() as u64,
            notes: state.notes(),
            counters: counters(report),
            frames_out: counted(report.frames_out),
            frames_armed: counted(report.frames_armed),
            frames_lent: counted(report.frames_lent),
            no_frame: report.no_frame,
            imbalance: report.balance().err().map(|error| error.to_string()),
            observers_refused: identity.observers_refused,
            observers_dropped: identity.observers_dropped,
        }
    }
}

impl JobSample {
    fn of(job: &JobReport) -> Self {
        let observed = &job.observed;
        Self {
            name: job.name.clone(),
            priority: job.priority,
            items: job.items,
            activations: observed.activations,
            execution_max_us: microseconds(observed.execution_max_ns),
            execution_total_us: microseconds(observed.execution_total_ns),
            response_max_us: microseconds(observed.response_max_ns),
            blocking_max_us: microseconds(observed.blocking_max_ns),
            deadline_misses: observed.deadline_misses,
        }
    }
}

impl WorkSample {
    fn of(work: &WorkReport) -> Self {
        Self {
            kind: work.kind.name().into(),
            priority: work.priority,
            steps: work.steps,
            execution_max_us: microseconds(work.execution_max_ns),
        }
    }
}

impl LevelSample {
    fn of(level: &LevelReport) -> Self {
        Self {
            level: level.level.get(),
            datagrams: level.datagrams,
            inversions: level.inversions,
            kernel_late: level.kernel_late,
            kernel_late_max_us: microseconds(level.kernel_late_max_ns),
        }
    }
}

/// The lanes that have seen anything, or are open to.
fn lanes(state: &State, ledger: &Ledger) -> Vec<LaneSample> {
    let is_used = |lane: &Lane| {
        let counted = ledger.lane(*lane);
        let moved = counted.receive.arrived + counted.transmit.offered;
        moved > 0 || !state.transport.unicast(*lane).is_empty()
    };
    let used = Lane::ALL.into_iter().filter(is_used);
    used.map(|lane| {
        let of = ledger.lane(lane);
        let (receive, transmit) = (of.receive, of.transmit);
        let named = |(name, count): (&str, u64)| (name.to_owned(), count);
        let dropped = receive.drops().map(|(reason, n)| (reason.name(), n));
        let refused = transmit.refusals().map(|(reason, n)| (reason.name(), n));
        LaneSample {
            level: level_of(lane),
            arrived: receive.arrived,
            received: receive.received,
            received_bytes: receive.received_bytes,
            pending: receive.pending,
            starved: receive.starved,
            dropped: dropped.map(named).collect(),
            offered: transmit.offered,
            sent: transmit.sent,
            sent_bytes: transmit.sent_bytes,
            refused: refused.map(named).collect(),
            counts: of
                .counts
                .named()
                .map(|(what, n)| (what.name(), n))
                .map(named)
                .collect(),
            receive_buffer_bytes: state.transport.receive_buffer(lane).map(|n| n as u64),
        }
    })
    .collect()
}

fn endpoints<L>(reports: &[EndpointReport<L>], ledger: fn(&L) -> Counts) -> Vec<EndpointSample> {
    let sample = |report: &EndpointReport<L>| EndpointSample {
        topic: report.topic.clone(),
        level: report.level.get(),
        matched: report.matched as u64,
        ledger: ledger(&report.ledger),
    };
    reports.iter().map(sample).collect()
}

fn of_writer(ledger: &WriterLedger) -> Counts {
    let WriterLedger {
        written,
        sent,
        unmatched,
        evicted_unsent,
        pending,
        replaced,
        refused,
        repaired,
        history,
        gaps,
        heartbeats,
    } = *ledger;
    counts(&[
        ("written", written),
        ("sent", sent),
        ("unmatched", unmatched),
        ("evicted_unsent", evicted_unsent),
        ("pending", pending),
        ("replaced", replaced),
        ("refused", refused),
        ("repaired", repaired),
        ("history", history),
        ("gaps", gaps),
        ("heartbeats", heartbeats),
    ])
}

fn of_reader(ledger: &ReaderLedger) -> Counts {
    let ReaderLedger {
        accounted,
        delivered,
        available,
        lost,
        evicted,
        rejected,
        waiting,
        duplicates,
        deferred,
        skipped,
    } = *ledger;
    counts(&[
        ("accounted", accounted),
        ("delivered", delivered),
        ("available", available),
        ("lost", lost),
        ("evicted", evicted),
        ("rejected", rejected),
        ("waiting", waiting),
        ("duplicates", duplicates),
        ("deferred", deferred),
        ("skipped", skipped),
    ])
}

fn counters(report: &Report) -> Counts {
    let counters = &report.counters;
    counts(&[
        ("messages", counters.messages),
        ("malformed_messages", counters.malformed_messages),
        ("malformed_submessages", counters.malformed_submessages),
        ("skipped_submessages", counters.skipped_submessages),
        ("for_others", counters.for_others),
        ("unmatched_data", counters.unmatched_data),
        ("unmatched_acknacks", counters.unmatched_acknacks),
        ("malformed_announcements", counters.malformed_announcements),
        ("announcements_dropped", counters.announcements_dropped),
        ("participants_refused", counters.participants_refused),
        ("endpoints_refused", counters.endpoints_refused),
        ("matches_refused", counters.matches_refused),
        ("destinations_full", counters.destinations_full),
        ("buffer_too_small", counters.buffer_too_small),
        ("leases_expired", counters.leases_expired),
        ("leases_shortened", counters.leases_shortened),
        ("instance_ends_unseen", counters.instance_ends_unseen),
        ("answers_withheld", counters.answers_withheld),
        ("readers_silent", counters.readers_silent),
    ])
}

fn of_interface(seen: InterfaceObservation) -> InterfaceSample {
    InterfaceSample {
        name: seen.name,
        mode: seen.mode,
        program_tag: seen.program_tag,
        decisions: counts(&seen.decisions),
    }
}

fn of_flow(state: &State, seen: FlowObservation) -> FlowSample {
    let protection = seen.protection;
    FlowSample {
        level: level_of(seen.lane),
        topic: seen.flow.and_then(|flow| state.topic_of_flow(flow)),
        destination: seen.destination.to_string(),
        capacity: protection.map(|protection| protection.budget.capacity.get()),
        period_us: protection.map(|protection| protection.budget.period.as_secs_f64() * 1e6),
        over: protection.map(|protection| crate::protection::word(protection.over).into()),
        left: seen.left,
        decisions: counts(&seen.decisions),
    }
}

fn of_ring(seen: RingObservation) -> RingSample {
    RingSample {
        kind: seen.kind.into(),
        queue: seen.queue,
        level: seen.lane.and_then(level_of),
        entries: seen.entries,
        used: seen.used,
        missed: seen.missed,
    }
}

fn level_of(lane: Lane) -> Option<u8> {
    lane.level().map(isolane_wire::level::Level::get)
}

fn counts(named: &[(&str, u64)]) -> Counts {
    let owned = |&(name, count): &(&str, u64)| (name.to_owned(), count);
    named.iter().map(owned).collect()
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}
