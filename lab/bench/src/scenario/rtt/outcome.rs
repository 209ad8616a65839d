//! Result of a round-trip run: merged timestamps, balanced ledgers, judged disturbances.

use super::beside::Achieved;
use super::fault::fault_of;
use super::run::Config;
use super::{PING_TOPIC, PONG_TOPIC, PingReport, PongReport};
use crate::cable::{self, RoundPassages};
use crate::process::Note;
use crate::record::Rounds;
use crate::report::{
    Cable, Counted, Disturbance, Disturbed, EndLanes, FloodAsked, Inversions, Lanes, Place, Run,
    RunCores, StormAsked, Took,
};
use crate::scenario::ScenarioError;
use crate::scenario::flow::{CableFlow, Flow};
use crate::scenario::inside::bulk::{self, BulkCounts, BulkKind};
use crate::scenario::inside::{REPAIR_LOSS, joining};

/// Result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Entry for the report.
    pub run: Run,
    /// Durations of all returned round trips in nanoseconds, for a histogram.
    pub rtt_ns: Vec<u64>,
}

/// Reports of the parts of a run.
pub(super) struct Parts {
    pub(super) ping: PingReport,
    pub(super) pong: PongReport,
    pub(super) passages: Option<RoundPassages>,
    pub(super) cable: Option<cable::Report>,
    pub(super) achieved: Achieved,
    pub(super) cores: Option<RunCores>,
    pub(super) notes: Vec<Note>,
    pub(super) took: Option<Took>,
}

impl Parts {
    /// Parts of a run with two ends and nothing else.
    pub(super) fn of_ends(ping: PingReport, pong: PongReport) -> Parts {
        Parts {
            ping,
            pong,
            passages: None,
            cable: None,
            achieved: Achieved::default(),
            cores: None,
            notes: Vec::new(),
            took: None,
        }
    }

    /// Flows of the pings and of the pongs.
    fn flows(&self) -> [Flow; 2] {
        let passages = self.passages.as_ref();
        let a_to_b = passages.map(|passages| CableFlow::of(&passages.a_to_b));
        let b_to_a = passages.map(|passages| CableFlow::of(&passages.b_to_a));
        let (ping, pong) = (&self.ping, &self.pong);
        let (pings, pongs) = ((ping.offered, ping.refused), (pong.offered, pong.refused));
        [
            Flow::between(PING_TOPIC, pings, &ping.counts, &pong.counts, a_to_b),
            Flow::between(PONG_TOPIC, pongs, &pong.counts, &ping.counts, b_to_a),
        ]
    }

    fn inversions(&self) -> Inversions {
        let ([ping, ping_all], [pong, pong_all]) =
            (self.ping.counts.inversions, self.pong.counts.inversions);
        Inversions {
            ping,
            pong,
            total: ping + pong,
            all_levels: ping_all + pong_all,
            judged: Counted::new(self.ping.counts.judged, self.pong.counts.judged),
        }
    }

    /// Achievement of an inside disturbance within `seconds`.
    fn disturbed(&self, disturbance: Disturbance, seconds: u32) -> Option<Disturbed> {
        match disturbance {
            Disturbance::Joining => Some(self.disturbed_by_joining(seconds)),
            Disturbance::Bulk => Some(self.disturbed_by_bulk(BulkKind::Small, seconds)),
            Disturbance::Large => Some(self.disturbed_by_bulk(BulkKind::Large, seconds)),
            Disturbance::Repair => {
                let mut disturbed = self.disturbed_by_bulk(BulkKind::Small, seconds);
                let written = disturbed.bulk_written.unwrap_or(0) as f64;
                let repaired = disturbed.bulk_repaired.unwrap_or(0) as f64;
                disturbed.enough &= repaired >= written * REPAIR_LOSS / 2.0;
                Some(disturbed)
            }
            // The ledger states what these achieved.
            Disturbance::Flood | Disturbance::Storm => None,
        }
    }

    fn disturbed_by_joining(&self, seconds: u32) -> Disturbed {
        let (ping, pong) = (
            self.ping.counts.announcements,
            self.pong.counts.announcements,
        );
        let per_s = ping.min(pong) as f64 / f64::from(seconds);
        Disturbed {
            endpoints_joined: self.achieved.joining.map(|joining| joining.joined),
            endpoints_left: self.achieved.joining.map(|joining| joining.left),
            announcements_ping: Some(ping),
            announcements_pong: Some(pong),
            achieved_per_s: per_s,
            least_per_s: joining::LEAST_PER_S,
            enough: per_s >= joining::LEAST_PER_S,
            ..Disturbed::default()
        }
    }

    fn disturbed_by_bulk(&self, kind: BulkKind, seconds: u32) -> Disturbed {
        let ends = [&self.ping.counts.bulk, &self.pong.counts.bulk];
        let both = |count: fn(&BulkCounts) -> u64| ends.into_iter().map(count).sum::<u64>();
        let delivered = both(|end| end.delivered);
        let per_s = delivered as f64 / f64::from(seconds);
        let lost = self.cable.as_ref().map(|cable| {
            let directions = [&cable.a_to_b, &cable.b_to_a];
            directions.map(|one| one.frames.dropped_loss).iter().sum()
        });
        let acknowledged = [self.ping.bulk_acknowledged, self.pong.bulk_acknowledged];
        Disturbed {
            bulk_payload_bytes: Some(kind.payload_bytes()),
            bulk_written: Some(both(|end| end.written)),
            bulk_acknowledged: Some(acknowledged == [Some(true); 2]),
            bulk_delivered: Some(delivered),
            bulk_repaired: Some(both(|end| end.repaired)),
            bulk_lost: lost,
            achieved_per_s: per_s,
            least_per_s: kind.least_per_s(),
            enough: per_s >= kind.least_per_s(),
            ..Disturbed::default()
        }
    }

    /// Reports reliable bulk samples that were written and not delivered.
    fn bulk_fault(&self) -> Option<String> {
        let (ping, pong) = (&self.ping, &self.pong);
        let (of_ping, of_pong) = (ping.counts.bulk, pong.counts.bulk);
        let ways = [
            (bulk::TOPIC_THERE, ping.bulk_acknowledged, of_ping, of_pong),
            (bulk::TOPIC_BACK, pong.bulk_acknowledged, of_pong, of_ping),
        ];
        ways.into_iter().find_map(|(topic, acknowledged, writer, reader)| {
            let is_whole = acknowledged? && reader.delivered == writer.written;
            (!is_whole).then(|| {
                format!(
                    "{topic}: {} samples were written reliably, {} delivered, {} dropped by name; all \
                     acknowledged: {acknowledged:?}",
                    writer.written, reader.delivered, reader.dropped
                )
            })
        })
    }
}

/// Merges the timestamps, balances the ledgers and summarises the run.
pub(super) fn outcome(config: &Config, parts: Parts) -> Result<Outcome, ScenarioError> {
    let flows = parts.flows();
    let inversions = parts.inversions();
    let kernel_late = Counted::new(parts.ping.counts.kernel_late, parts.pong.counts.kernel_late);
    let disturbance = config.scenario.disturbance;
    let disturbed = disturbance.and_then(|one| parts.disturbed(one, config.seconds));
    let bulk_fault = parts.bulk_fault();
    let faults = [&parts.ping.counts.faults[..], &parts.pong.counts.faults[..]].concat();
    let period_ns = config.scenario.period_ns();
    let lanes = Lanes {
        ping: EndLanes::of(&parts.ping.counts),
        pong: EndLanes::of(&parts.pong.counts),
    };
    let (ping, pong) = (parts.ping.recorder, parts.pong.recorder);
    let clocks = [&parts.ping.clock, &parts.pong.clock];
    let rounds = Rounds::merge(ping, pong, parts.passages, period_ns, clocks)?;
    let mut run = Run::new(&config.scenario, &rounds, parts.cable.as_ref());
    run.policing = config.policing;
    run.bulk_reader = config.bulk_reader;
    run.flows = flows.to_vec();
    run.lanes = Some(lanes);
    run.disturbed = disturbed;
    if let Some(ledger) = &mut run.ledger {
        ledger.flood = parts.achieved.flood;
        ledger.storm = parts.achieved.storm;
    }
    let of_cable = run.invalid.take();
    run.invalid = of_cable
        .or_else(|| faults.into_iter().next())
        .or_else(|| flows.iter().find_map(|flow| flow.check().err()))
        .or(bulk_fault)
        .or_else(|| fault_of(config, &run));
    run.flood = (disturbance == Some(Disturbance::Flood)).then_some(FloodAsked {
        factor: config.flood.factor,
        payload_bytes: config.flood.payload_bytes,
        target: config.flood.target,
    });
    run.storm = (disturbance == Some(Disturbance::Storm)).then_some(StormAsked {
        frames_per_s: config.storm.frames_per_s,
        payload_bytes: config.storm.payload_bytes,
        sockets: config.storm.sockets,
        target: config.storm.target,
    });
    run.repetition = config.repetition;
    run.took_s = parts.took;
    run.cable = parts.cable.map(|report| Cable {
        ingress_drops: report.ingress_drops(),
        ..Cable::of(&config.cable)
    });
    run.cores = parts.cores;
    run.inversions = inversions;
    run.kernel_late = kernel_late;
    run.remarks = remarks(config);
    // Children report the same refusals several times.
    for note in parts.notes {
        if !run.notes.contains(&note) {
            run.notes.push(note);
        }
    }
    Ok(Outcome {
        run,
        rtt_ns: rounds.rtt_ns(),
    })
}

/// Remarks on how to read a run.
fn remarks(config: &Config) -> Vec<String> {
    let mut remarks = Vec::new();
    match config.place {
        Place::Link => {}
        Place::Devices => remarks.push(
            "The hosts have devices of the machine, joined by what is between them; no cable of ours stamps \
             what passes. All of the round trip is the hosts'."
                .to_owned(),
        ),
        Place::FastLink => remarks.push(format!(
            "This run is about the executor: the link is fast and serves frames as they came, and each \
             end has a core of its own. What the executor is answerable for is host_us; cable_us is \
             the link's ({} Mbit/s, the same for both orders of jobs).",
            config.cable.bits_per_s / 1_000_000
        )),
        Place::Pair => remarks.push(
            "This run is about the executor: a veth pair joins the hosts, without a cable, and each end \
             has a core of its own. All of the round trip is the hosts'."
                .to_owned(),
        ),
    }
    if let Some(bytes) = config.cable.loss.min_payload_bytes {
        remarks.push(format!(
            "Losses ({} of 100) are of UDP datagrams with at least {bytes} bytes: bulk samples, first and \
             repeated, and nothing else, in either order of jobs. In FIFO order all topics share a \
             port, so the size tells them apart.",
            config.cable.loss.probability * 100.0
        ));
    }
    remarks
}
