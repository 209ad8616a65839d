//! State of all participants at one time, with rates computed from two snapshots. Each sample is one line of the JSON
//! form (`--json`).

use std::time::SystemTime;

use isolane::observe::{Counts, EndpointSample, FlowSample, JobSample, LaneSample, Snapshot};
use serde::Serialize;

use super::discovery::Connection;

/// State of all observed participants at one time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) schema: &'static str,
    /// Time in RFC 3339 format.
    pub(crate) at: String,
    pub(crate) participants: Vec<Seen>,
    /// Reason why there are no participants.
    pub(crate) why_none: Option<&'static str>,
}

/// Observed participant.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Seen {
    /// Process id in the PID namespace of `top`.
    pub(crate) pid: u32,
    /// Number of the participant within the process.
    pub(crate) number: u32,
    pub(crate) program: Option<String>,
    pub(crate) user_id: Option<u32>,
    /// Reason why no new snapshot arrives.
    pub(crate) problem: Option<String>,
    pub(crate) snapshot: Option<Snapshot>,
    /// Rates between the last two snapshots; `None` before the second snapshot.
    pub(crate) rates: Option<Rates>,
}

/// Explanation why no participant was found.
pub(crate) const WHY_NONE: &str = "no observable participant runs in this network namespace. Observable \
    are `isolane pub` and `sub`, and programs built with Builder::observable(true). For another network namespace: ip \
    netns exec NAME isolane top (a container has its own)";

impl Sample {
    pub(super) fn new(participants: Vec<Seen>) -> Self {
        let now = humantime::format_rfc3339_millis(SystemTime::now());
        Self {
            schema: "isolane/top/3",
            at: now.to_string(),
            why_none: participants.is_empty().then_some(WHY_NONE),
            participants,
        }
    }

    /// Returns whether every participant has rates.
    pub(crate) fn has_rates(&self) -> bool {
        let mut all = self.participants.iter();
        all.all(|seen| seen.rates.is_some())
    }

    /// Returns whether any participant has a snapshot.
    pub(crate) fn has_snapshot(&self) -> bool {
        let mut all = self.participants.iter();
        all.any(|seen| seen.snapshot.is_some())
    }
}

impl Seen {
    pub(super) fn of(connection: &Connection) -> Self {
        let process = connection.process.as_ref();
        let both = connection.before.as_ref().zip(connection.latest.as_ref());
        Self {
            pid: process.map_or(connection.address.pid, |process| process.pid),
            number: connection.address.number,
            program: process.and_then(|process| process.program.clone()),
            user_id: process.map(|process| process.user_id),
            problem: connection.problem(),
            snapshot: connection.latest.clone(),
            rates: both.and_then(|(before, now)| Rates::between(before, now)),
        }
    }

    /// Most critical level in use; 0 if unknown. Participants are shown in the order of this level.
    pub(super) fn highest_level(&self) -> u8 {
        let lanes = self.snapshot.iter().flat_map(|snapshot| &snapshot.lanes);
        lanes.filter_map(|lane| lane.level).max().unwrap_or(0)
    }
}

/// Rates per second. Each list has the order of the snapshot's list of the same name.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rates {
    /// Time between the snapshots, in microseconds.
    pub(crate) interval_us: f64,
    pub(crate) lanes: Vec<LaneRates>,
    pub(crate) jobs: Vec<JobRates>,
    /// Written samples per second.
    pub(crate) writers: Vec<Option<f64>>,
    /// Delivered samples per second.
    pub(crate) readers: Vec<Option<f64>>,
    /// Classified frames per second.
    pub(crate) flows: Vec<Option<f64>>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct LaneRates {
    pub(crate) received_per_s: Option<f64>,
    pub(crate) received_bits_per_s: Option<f64>,
    pub(crate) sent_per_s: Option<f64>,
    pub(crate) sent_bits_per_s: Option<f64>,
    pub(crate) dropped_per_s: Option<f64>,
    pub(crate) refused_per_s: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct JobRates {
    pub(crate) activations_per_s: Option<f64>,
    /// Share of the time of one core, 1 if the job runs all the time.
    pub(crate) share: Option<f64>,
}

impl Rates {
    /// Rates between two snapshots. `None` if the snapshots are of different participants with the same address, or if
    /// no time has passed between them.
    pub(crate) fn between(before: &Snapshot, now: &Snapshot) -> Option<Self> {
        let is_same = before.participant.guid_prefix == now.participant.guid_prefix;
        let interval_us = now.participant.at_us - before.participant.at_us;
        if !is_same || interval_us <= 0.0 {
            return None;
        }
        let per_s = PerSecond(1e6 / interval_us);
        let lanes = now.lanes.iter().map(|lane| {
            let former = before.lanes.iter().find(|other| other.level == lane.level);
            LaneRates::between(&per_s, former, lane)
        });
        let jobs = now.jobs.iter().map(|job| {
            let same =
                |other: &&JobSample| (&other.name, other.priority) == (&job.name, job.priority);
            JobRates::between(&per_s, before.jobs.iter().find(same), job)
        });
        Some(Self {
            interval_us,
            lanes: lanes.collect(),
            jobs: jobs.collect(),
            writers: endpoints(&per_s, &before.writers, &now.writers, "written"),
            readers: endpoints(&per_s, &before.readers, &now.readers, "delivered"),
            flows: flows(&per_s, &before.flows, &now.flows),
        })
    }
}

/// Factor that converts a difference of two counts to a rate per second.
struct PerSecond(f64);

impl PerSecond {
    /// Rate of a count; `None` if there is no earlier count, or if the count was reset.
    fn of(&self, before: Option<u64>, now: u64) -> Option<f64> {
        let more = now.checked_sub(before?)?;
        Some(more as f64 * self.0)
    }
}

impl LaneRates {
    fn between(per_s: &PerSecond, before: Option<&LaneSample>, now: &LaneSample) -> Self {
        let of = |count: fn(&LaneSample) -> u64| per_s.of(before.map(count), count(now));
        let bits = |rate: Option<f64>| rate.map(|bytes| bytes * 8.0);
        Self {
            received_per_s: of(|lane| lane.received),
            received_bits_per_s: bits(of(|lane| lane.received_bytes)),
            sent_per_s: of(|lane| lane.sent),
            sent_bits_per_s: bits(of(|lane| lane.sent_bytes)),
            dropped_per_s: of(|lane| sum(&lane.dropped)),
            refused_per_s: of(|lane| sum(&lane.refused)),
        }
    }
}

impl JobRates {
    fn between(per_s: &PerSecond, before: Option<&JobSample>, now: &JobSample) -> Self {
        let worked_us = before.map(|job| now.execution_total_us - job.execution_total_us);
        Self {
            activations_per_s: per_s.of(before.map(|job| job.activations), now.activations),
            share: worked_us
                .filter(|us| *us >= 0.0)
                .map(|us| us * per_s.0 / 1e6),
        }
    }
}

/// Rates of endpoints. Endpoints have no names, so an endpoint is compared with the one at the same position, if both
/// have the same topic.
fn endpoints(
    per_s: &PerSecond,
    before: &[EndpointSample],
    now: &[EndpointSample],
    counted: &str,
) -> Vec<Option<f64>> {
    let count = |endpoint: &EndpointSample| endpoint.ledger.get(counted).copied();
    let rate = |(place, endpoint): (usize, &EndpointSample)| {
        let former = before.get(place)?;
        let is_same = former.topic == endpoint.topic;
        per_s.of(count(former).filter(|_| is_same), count(endpoint)?)
    };
    now.iter().enumerate().map(rate).collect()
}

fn flows(per_s: &PerSecond, before: &[FlowSample], now: &[FlowSample]) -> Vec<Option<f64>> {
    let rate = |flow: &FlowSample| {
        let former = before
            .iter()
            .find(|other| other.destination == flow.destination && other.topic == flow.topic)?;
        per_s.of(Some(sum(&former.decisions)), sum(&flow.decisions))
    };
    now.iter().map(rate).collect()
}

pub(crate) fn sum(counts: &Counts) -> u64 {
    counts.values().sum()
}
