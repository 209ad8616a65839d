//! One run of a result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::disturbed::{Counted, Disturbed, Inversions};
use super::{Cable, Disturbance, Order, Publisher, ReceiveWork, Scenario, Stage};
use crate::cable;
use crate::flood;
use crate::process::Note;
use crate::record::{Distribution, OneWay, Rounds, Statistics, Window, window_p99_median_us};
use crate::scenario::flow::{EndCounts, Flow, LaneCounts};
use crate::scenario::transport::{BulkReader, Policing};
use crate::storm;
use crate::target::Target;

/// One run: a scenario and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// See [`Scenario`].
    pub datapath: String,
    /// See [`Scenario`].
    pub stages: Vec<Stage>,
    /// See [`Scenario`].
    pub receive_work: ReceiveWork,
    /// See [`Scenario`].
    pub publisher: Publisher,
    /// See [`Scenario`].
    pub order: Order,
    /// See [`Scenario`].
    pub disturbance: Option<Disturbance>,
    /// Whether there was a disturbance.
    pub interference: bool,
    /// See [`Scenario`].
    pub payload_bytes: u32,
    /// See [`Scenario`].
    pub rate_hz: u32,
    /// Pings scheduled.
    pub samples: u64,
    /// Pings without a pong. They are in no percentile: read those with this number beside them.
    pub lost: u64,
    /// Pings sent more than half a period late.
    pub late_sends: u64,
    /// Messages that arrived twice.
    pub duplicates: u64,
    /// The link of this run.
    pub cable: Option<Cable>,
    /// Where its parts ran.
    pub cores: Option<RunCores>,
    /// The round trip, from the intended time of sending.
    pub rtt_us: Statistics,
    /// The way there, from the intended time of sending.
    pub owd_us: Statistics,
    /// What the round trips that came back consist of, by whose clock; or why that cannot be told.
    #[serde(default = "not_told")]
    pub one_way: OneWay,
    /// The round trip without the cable's part.
    pub host_us: Statistics,
    /// The cable's part of the round trip.
    pub cable_us: Statistics,
    /// The median of one-second windows' p99.
    pub window_p99_median_us: Option<f64>,
    /// The run second by second.
    pub windows: Windows,
    /// The series above as counts, for pictures.
    pub distribution: Distributions,
    /// Less urgent work that came before the measured samples.
    pub inversions: Inversions,
    /// Less urgent work that came before a measured sample because the kernel had it and did not show
    /// it yet: no decision of the executor.
    pub kernel_late: Counted,
    /// What a disturbance inside the participants achieved.
    pub disturbed: Option<Disturbed>,
    /// How late the sender's timer was at most.
    pub sender_late_max_us: Option<f64>,
    /// How late the cable's timer was at most.
    pub cable_late_max_us: Option<f64>,
    /// What the analysis promised.
    pub bound_us: Option<f64>,
    /// The flood that was asked for; what it reached is in the ledger.
    pub flood: Option<FloodAsked>,
    /// The storm that was asked for; what it reached is in the ledger.
    pub storm: Option<StormAsked>,
    /// Which of the repetitions of the same run this is, from 1.
    pub repetition: u32,
    /// What the run took, beside what it measured; null where there were no hosts.
    pub took_s: Option<Took>,
    /// What receivers were protected with at both ends.
    pub policing: Policing,
    /// Who read what a flood or a storm sent to the level of bulk.
    pub bulk_reader: Option<BulkReader>,
    /// What the lanes of both ends counted.
    pub lanes: Option<Lanes>,
    /// Where all frames of the run went.
    pub ledger: Option<Ledger>,
    /// Where the samples of each topic went.
    pub flows: Vec<Flow>,
    /// Why this run is no result, if it is none.
    pub invalid: Option<String>,
    /// What the machine did not allow.
    pub notes: Vec<Note>,
    /// How this run is to be read.
    pub remarks: Vec<String>,
}

/// Where the time of a run went, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// Until both ends had found each other.
    pub set_up: f64,
    /// Until what disturbs did so.
    pub settle: f64,
    /// From the first ping until no pong was waited for any more.
    pub measure: f64,
    /// Until every part had handed back what it counted.
    pub finish: f64,
}

/// The cores of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCores {
    /// The ping end.
    pub ping: usize,
    /// The pong end.
    pub pong: usize,
    /// The cable, and the senders of a flood or a storm.
    pub cable: usize,
    /// The hosts' receive work.
    pub receive_work: usize,
}

/// The lanes of both ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lanes {
    /// Of the ping end.
    pub ping: EndLanes,
    /// Of the pong end.
    pub pong: EndLanes,
}

/// The lanes of an end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndLanes {
    /// Datagrams of the measured level that were dropped on this host, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// What a device's lane of that level counted besides, by name: nothing where there is none.
    pub counts: BTreeMap<String, u64>,
    /// What strangers sent to the level of bulk, where somebody reads there.
    pub strangers: Option<LaneCounts>,
    /// Looks that found fewer buffers free than are reserved for the most critical lane; null where
    /// nothing is reserved.
    pub reserve_touched: Option<u64>,
    /// Bulk samples of the other end that lay in a reader's cache in the end.
    #[serde(default)]
    pub bulk_kept: u64,
}

impl EndLanes {
    /// What an end counted.
    pub(crate) fn of(counts: &EndCounts) -> EndLanes {
        EndLanes {
            dropped: counts.drops.clone(),
            counts: counts.lane.clone(),
            strangers: counts.strangers.clone(),
            reserve_touched: counts.reserve_touched,
            bulk_kept: counts.bulk.kept,
        }
    }
}

/// One-second windows of a run's series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Windows {
    /// Of the round trip.
    pub rtt_us: Vec<Window>,
    /// Of the hosts' part.
    pub host_us: Vec<Window>,
}

/// A run's series as counts; null for one without samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distributions {
    /// The round trip.
    pub rtt_us: Option<Distribution>,
    /// The way there.
    pub owd_us: Option<Distribution>,
    /// The hosts' part.
    pub host_us: Option<Distribution>,
    /// The cable's part.
    pub cable_us: Option<Distribution>,
}

/// What a flood was to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloodAsked {
    /// Its wire rate each way, in multiples of the cable's.
    pub factor: f64,
    /// UDP payload of each of its datagrams.
    pub payload_bytes: u32,
    /// Whose bulk it was.
    pub target: Target,
}

/// What a storm was to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StormAsked {
    /// Frames a second, each way.
    pub frames_per_s: f64,
    /// UDP payload of each of its datagrams.
    pub payload_bytes: u32,
    /// Sockets on each host that each frame was for.
    pub sockets: u16,
    /// Whose bulk it was.
    pub target: Target,
}

/// The datagrams of a run, hop by hop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The cable's both directions.
    pub cable: CableLedger,
    /// The flood's both directions, if there was one.
    pub flood: Option<flood::Report>,
    /// The storm's both directions, if there was one.
    pub storm: Option<storm::Report>,
}

/// The cable's part of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CableLedger {
    /// From host A to host B.
    pub a_to_b: cable::DirectionReport,
    /// From host B to host A.
    pub b_to_a: cable::DirectionReport,
}

impl CableLedger {
    pub(super) fn ingress_drops(&self) -> u64 {
        self.a_to_b.ingress_drops + self.b_to_a.ingress_drops
    }
}

impl Run {
    /// The run of a scenario from its merged stamps and the cable's report.
    pub fn new(scenario: &Scenario, rounds: &Rounds, cable: Option<&cable::Report>) -> Run {
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
            datapath: scenario.datapath.clone(),
            stages: scenario.stages.clone(),
            receive_work: scenario.receive_work,
            publisher: scenario.publisher,
            order: scenario.order,
            disturbance: scenario.disturbance,
            interference: scenario.disturbance.is_some(),
            payload_bytes: scenario.payload_bytes,
            rate_hz: scenario.rate_hz,
            samples: rounds.samples(),
            lost: rounds.lost(),
            late_sends: rounds.late_sends(),
            duplicates: rounds.duplicates(),
            cable: None,
            cores: None,
            rtt_us: rounds.rtt_us(),
            owd_us: Statistics::of(owd_ns.clone()),
            one_way,
            host_us: rounds.host_us(),
            cable_us: rounds.cable_us(),
            window_p99_median_us: window_p99_median_us(&windows.rtt_us),
            windows,
            distribution: Distributions {
                rtt_us: Distribution::of(&rounds.rtt_ns()),
                owd_us: Distribution::of(&owd_ns),
                host_us: Distribution::of(&rounds.host_ns()),
                cable_us: Distribution::of(&rounds.cable_ns()),
            },
            inversions: Inversions::default(),
            kernel_late: Counted::default(),
            disturbed: None,
            sender_late_max_us: rounds.sender_late_max_us(),
            cable_late_max_us: cable.map(|cable| cable.late_max_us),
            bound_us: scenario.bound_us,
            flood: None,
            storm: None,
            repetition: 1,
            took_s: None,
            policing: Policing::default(),
            bulk_reader: None,
            lanes: None,
            flows: Vec::new(),
            invalid: invalid.map(|invalid| invalid.to_string()),
            notes: cable.map(|cable| cable.notes.clone()).unwrap_or_default(),
            remarks: Vec::new(),
            ledger: cable.map(|cable| Ledger {
                cable: CableLedger {
                    a_to_b: cable.a_to_b,
                    b_to_a: cable.b_to_a,
                },
                flood: None,
                storm: None,
            }),
        }
    }
}

/// Results of before there were these parts.
fn not_told() -> OneWay {
    OneWay {
        clock: None,
        refused: Some(
            "no one-way delays: this result is of a version that did not tell them".to_owned(),
        ),
        rounds: 0,
        there_us: Statistics::default(),
        turnaround_us: Statistics::default(),
        back_us: Statistics::default(),
    }
}

impl Run {
    /// Which arbiter served the link; `None` where there was no link.
    pub fn arbiter(&self) -> Option<cable::Arbiter> {
        self.cable.as_ref().map(|cable| cable.arbiter)
    }

    /// Whether two runs went through the same link but for its losses, in the same places.
    pub(super) fn is_on_link_of(&self, other: &Run) -> bool {
        let link = |run: &Run| {
            run.cable
                .as_ref()
                .map(|cable| (cable.bits_per_s, cable.queue_frames))
        };
        link(self) == link(other) && self.cores == other.cores
    }
}
