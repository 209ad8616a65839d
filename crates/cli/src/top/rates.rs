//! Rates per second between two snapshots.

use isolane::observe::{Counts, EndpointSample, FlowSample, JobSample, LaneSample, Snapshot};
use serde::Serialize;

/// Rates, each list in the order of the snapshot's.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rates {
    /// Time between the snapshots, in microseconds.
    pub(crate) interval_us: f64,
    pub(crate) lanes: Vec<LaneRates>,
    pub(crate) jobs: Vec<JobRates>,
    /// Samples written.
    pub(crate) writers: Vec<Option<f64>>,
    /// Samples delivered.
    pub(crate) readers: Vec<Option<f64>>,
    /// Frames classified.
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
    /// Share of one core's time.
    pub(crate) share: Option<f64>,
}

impl Rates {
    /// Rates between two snapshots. `None` if they are of different participants with the same address, or of the same
    /// time.
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

/// Factor from a difference of counts to a rate per second.
struct PerSecond(f64);

impl PerSecond {
    /// Rate of a count; `None` if it is new, or was reset.
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

/// Rates of endpoints, which have no names: they are matched by position, as long as the topics agree.
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
