//! Conversion of a participant's report and its datapath's state into a snapshot.

use std::time::Duration;

use isolane_datapath::{
    FlowObservation, InterfaceObservation, Lane, Ledger, Observation, RingObservation,
    clock::monotonic_now,
};
use isolane_hostnet::napi::{Policy, Scheduling};
use isolane_rtps::{Counters, ReaderId, ReaderLedger, WriterLedger};

use super::{
    SCHEMA,
    schema::{
        Counts, EndpointSample, FlowSample, InterfaceSample, JobSample, LaneSample, LevelSample,
        ParticipantSample, RefusedSample, RingSample, Snapshot, WorkSample,
    },
};
use crate::{
    monitoring::LevelReport,
    participant::state::State,
    report::{EndpointReport, JobReport, Report, WorkReport},
};

/// Identity of a participant, and counts of its observers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identity {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) domain: u32,
    pub(crate) observers_refused: u64,
    pub(crate) observers_dropped: u64,
}

impl Snapshot {
    /// Creates a snapshot without latencies and without the state of the datapath. Returns also the reader of each item
    /// of [`readers`](Self::readers).
    pub(crate) fn of(state: &State, identity: &Identity) -> (Self, Vec<Option<ReaderId>>) {
        let report = Report::of(state);
        let readers = report.readers.iter().map(|report| report.reader).collect();
        let snapshot = Self {
            schema: SCHEMA.into(),
            participant: ParticipantSample::of(state, &report, identity),
            jobs: report.jobs.iter().map(JobSample::of).collect(),
            work: report.work.iter().map(WorkSample::of).collect(),
            levels: report.levels.iter().map(LevelSample::of).collect(),
            lanes: lanes(state, &report.datagrams),
            writers: endpoints(&report.writers, writer_counts),
            readers: endpoints(&report.readers, reader_counts),
            interfaces: Vec::new(),
            flows: Vec::new(),
            rings: Vec::new(),
        };
        (snapshot, readers)
    }

    /// Adds the state of the datapath.
    pub(crate) fn add_datapath(&mut self, state: &State) {
        let seen: Observation = state.io.datapath.observe();
        self.interfaces = seen.interfaces.into_iter().map(of_interface).collect();
        let flows = seen.flows.into_iter();
        self.flows = flows.map(|flow| of_flow(state, flow)).collect();
        self.rings = seen.rings.into_iter().map(of_ring).collect();
    }
}

impl ParticipantSample {
    fn of(state: &State, report: &Report, identity: &Identity) -> Self {
        // Thread 0 is the calling one, which runs the loop.
        let scheduling = Scheduling::of(0).ok();
        let cores = scheduling.as_ref().and_then(|of| of.cores.clone());
        let counted = |frames: usize| frames as u64;
        Self {
            pid: std::process::id(),
            number: identity.number,
            name: identity.name.clone(),
            domain: identity.domain,
            guid_prefix: state.protocol.guid_prefix().to_string(),
            datapath: state.io.datapath.name().into(),
            at_us: microseconds(monotonic_now().as_nanos()),
            core: u32::try_from(rustix::thread::sched_getcpu()).ok(),
            allowed_cores: cores.unwrap_or_default(),
            policy: scheduling.map(|of| policy(of.policy)),
            receive_stamps: state.io.capabilities.timestamps,
            participants: state.protocol.remote_participants().count() as u64,
            notes: state.warnings(),
            ignored: texts(state.protocol.ignored_entities()),
            ignored_topics: texts(state.protocol.ignored_topics()),
            counters: protocol_counts(&report.counters),
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

fn policy(policy: Policy) -> String {
    match policy {
        Policy::Ordinary => "SCHED_OTHER".into(),
        Policy::Fifo(priority) => format!("SCHED_FIFO {priority}"),
        Policy::RoundRobin(priority) => format!("SCHED_RR {priority}"),
        Policy::Other(number) => format!("policy {number}"),
    }
}

fn texts(all: impl Iterator<Item = impl ToString>) -> Vec<String> {
    all.map(|one| one.to_string()).collect()
}

impl JobSample {
    fn of(job: &JobReport) -> Self {
        let observed = &job.statistics;
        Self {
            name: job.name.clone(),
            priority: job.priority,
            items: job.items,
            activations: observed.activations,
            execution_max_us: microseconds(observed.execution_max_ns),
            execution_total_us: microseconds(observed.execution_total_ns),
            response_max_us: microseconds(observed.response_max_ns),
            blocking_max_us: microseconds(observed.blocking_max_ns),
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

/// Returns the lanes that are open or have moved datagrams.
fn lanes(state: &State, ledger: &Ledger) -> Vec<LaneSample> {
    let is_used = |lane: &Lane| {
        let counted = ledger.lane(*lane);
        let moved = counted.receive.arrived + counted.transmit.offered;
        moved > 0 || !state.io.datapath.unicast(*lane).is_empty()
    };
    let names = ledger.names();
    let used = Lane::ALL.into_iter().filter(is_used);
    used.map(|lane| {
        let of = ledger.lane(lane);
        let (receive, transmit) = (of.receive, of.transmit);
        let named = |(name, count): (&str, u64)| (name.to_owned(), count);
        let dropped = receive
            .drops()
            .map(|(reason, n)| (names.receive_drop(reason), n));
        let refused = transmit
            .refusals()
            .map(|(reason, n)| (names.refusal(reason), n));
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
                .events
                .counted()
                .map(|(event, n)| (names.event(event), n))
                .map(named)
                .collect(),
            receive_buffer_bytes: state.io.datapath.receive_buffer(lane).map(|n| n as u64),
        }
    })
    .collect()
}

fn endpoints<L>(reports: &[EndpointReport<L>], ledger: fn(&L) -> Counts) -> Vec<EndpointSample> {
    let duration = |duration: Duration| duration.as_secs_f64() * 1e6;
    let sample = |report: &EndpointReport<L>| {
        let response = report.response.as_ref();
        let during = response.and_then(|response| response.missed_during.as_ref());
        let mut ledger = ledger(&report.ledger);
        if report.silent > 0 {
            ledger.insert("silent_readers".into(), report.silent as u64);
        }
        EndpointSample {
            topic: report.topic.clone(),
            level: report.level.get(),
            matched: report.matched as u64,
            ledger,
            deadline_us: response.map(|response| duration(response.deadline)),
            deadline_missed: response.map(|response| response.missed),
            lateness_max_us: response.map(|response| duration(response.lateness_max)),
            missed_during: during.map(|job| job.as_str().to_owned()),
            refused: report.refused.map(|refused| RefusedSample {
                total: refused.total,
                encapsulation: refused.identifier.map(|identifier| identifier.0),
                writer: refused.writer.to_string(),
            }),
            latency: None,
        }
    };
    reports.iter().map(sample).collect()
}

/// Generates a public function that returns all fields of a ledger by their names.
macro_rules! counts_of {
    ($(#[$doc:meta])* $name:ident($Ledger:ident) {
        $($field:ident),* $(,)?
    }) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(ledger: &$Ledger) -> Counts {
            let $Ledger { $($field),* } = *ledger;
            counts(&[$((stringify!($field), $field)),*])
        }
    };
}

counts_of! {
    /// Counts of a writer by their keys in the schema `isolane/observe/3`.
    writer_counts(WriterLedger) {
        written, set_ends, sent, unmatched, content_filtered, evicted_unsent,
        expired_unsent, pending, replaced, expired, refused, repaired, history, gaps, heartbeats,
        fragments, fragments_repaired,
    }
}

counts_of! {
    /// Counts of a reader by their keys in the schema `isolane/observe/3`.
    reader_counts(ReaderLedger) {
        accounted, delivered, available, lost, irrelevant, evicted, rejected, too_large, expired,
        time_filtered, held, not_owner, content_filtered, outdated,
        incomplete, in_sets, set_ends, unregistered, purged, waiting, duplicates, deferred, skipped,
    }
}

counts_of! {
    /// Counts of the RTPS participant by their keys in the schema `isolane/observe/3`.
    protocol_counts(Counters) {
        messages, malformed_messages, malformed_submessages, skipped_submessages, for_others,
        unmatched_data, unmatched_acknacks, malformed_announcements, announcements_dropped,
        participants_refused, endpoints_refused, matches_refused, shares_exceeded,
        participants_displaced, destinations_full, buffer_too_small, leases_expired,
        leases_shortened, instance_ends_unseen, answers_withheld, unvalidated_limited,
        discovery_limited, answers_elsewhere, readers_unvalidated, readers_silent,
        samples_unreadable, expired_on_arrival, samples_too_large, unwatched, octets_cut,
        announcements_replaced, announcements_ignored, fragments_unused, assemblies_refused,
        assemblies_dropped, groups_unnumbered, static_disagreements, static_impostors,
        jumps_doubted,
    }
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
    let rate_limit = seen.rate_limit;
    FlowSample {
        level: level_of(seen.lane),
        topic: seen.flow.and_then(|flow| state.topic_of_flow(flow)),
        destination: seen.destination.to_string(),
        capacity: rate_limit.map(|rate_limit| rate_limit.budget.capacity.get()),
        period_us: rate_limit.map(|rate_limit| rate_limit.budget.period.as_secs_f64() * 1e6),
        over: rate_limit.map(|rate_limit| crate::rate_limit::word(rate_limit.over).into()),
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
