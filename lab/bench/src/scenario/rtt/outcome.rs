//! Result of a round-trip run: merged timestamps, balanced ledgers, judged disturbances.
//!
//! A run with balanced samples may still be invalid, for these reasons: a weak disturbance, an unused lane, or
//! unaccounted foreign traffic.

use super::run::{Achieved, Config};
use super::{PING_TOPIC, PONG_TOPIC, PingReport, PongReport};
use crate::cable::{self, RoundPassages, wire_bytes};
use crate::limits::MESSAGE_HEADS_BYTES;
use crate::multicast_load;
use crate::process::Note;
use crate::record::Rounds;
use crate::report::{
    BackgroundLoadSettings, Cable, Counted, Counter, Disturbance, Disturbed, EndLanes, Inversions,
    Lanes, Ledger, MulticastLoadSettings, Place, Run, RunCores, SystemActivity, Took, unique,
};
use crate::scenario::ScenarioError;
use crate::scenario::flow::{CableFlow, Flow};
use crate::scenario::in_process_load::{self, BulkCounts, BulkKind, HISTORY_SAMPLES, REPAIR_LOSS};
use crate::scenario::program::PROGRAM;
use crate::scenario::throughput::Reliability;
use crate::scenario::transport::{BY_LANE, BulkReader, LEAST_BY_LANE, Transport};

/// Result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Entry for the report.
    pub run: Run,
    /// Timestamps of all round trips.
    pub rounds: Rounds,
}

impl Outcome {
    /// Result of a run without round trips.
    pub fn of_stream(run: Run) -> Outcome {
        Outcome {
            run,
            rounds: Rounds::none(),
        }
    }
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
    pub(super) system: Option<SystemActivity>,
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
            system: None,
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

    /// Work that a disturbance inside the participants caused within `seconds`.
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
            // The run's ledger has the counts of these disturbances.
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
            least_per_s: in_process_load::LEAST_PER_S,
            enough: per_s >= in_process_load::LEAST_PER_S,
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
            (
                in_process_load::TOPIC_THERE,
                ping.bulk_acknowledged,
                of_ping,
                of_pong,
            ),
            (
                in_process_load::TOPIC_BACK,
                pong.bulk_acknowledged,
                of_pong,
                of_ping,
            ),
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
    let disturbance = config.settings.disturbance;
    let disturbed = disturbance.and_then(|one| parts.disturbed(one, config.cell.seconds));
    let bulk_fault = parts.bulk_fault();
    let faults = [&parts.ping.counts.faults[..], &parts.pong.counts.faults[..]].concat();
    let period_ns = config.settings.period_ns();
    let lanes = Lanes {
        ping: parts.ping.counts.lanes.clone(),
        pong: parts.pong.counts.lanes.clone(),
    };
    let (ping, pong) = (parts.ping.recorder, parts.pong.recorder);
    let clocks = [&parts.ping.clock, &parts.pong.clock];
    let rounds = Rounds::merge(ping, pong, parts.passages, period_ns, clocks)?;
    let mut run = Run::new(&config.settings, &rounds, parts.cable.as_ref());
    run.policing = config.policing;
    run.bulk_reader = config.bulk_reader;
    // A system under test has no counts, and its program chooses the datapath.
    let flows = match config.system {
        Some(_) => &[],
        None => &flows[..],
    };
    if config.system.is_some() {
        PROGRAM.clone_into(&mut run.settings.datapath);
    }
    // A reliable topic's repairs are in no balance of single datagrams.
    let is_balanced = config.reliability == Reliability::BestEffort;
    run.flows = flows.to_vec();
    run.lanes = config.system.is_none().then_some(lanes);
    run.disturbed = disturbed;
    if let Some(ledger) = &mut run.ledger {
        ledger.flood = parts.achieved.flood;
        ledger.storm = parts.achieved.storm;
    }
    run.flood = (disturbance == Some(Disturbance::Flood)).then_some(BackgroundLoadSettings {
        factor: config.flood.factor,
        payload_bytes: config.flood.payload_bytes,
        target: config.flood.target,
    });
    let of_cable = run.invalid.take();
    run.invalid = of_cable
        .or_else(|| faults.into_iter().next())
        .or_else(|| {
            let mut balanced = flows.iter().filter(|_| is_balanced);
            balanced.find_map(|flow| flow.check().err())
        })
        .or(bulk_fault)
        .or_else(|| fault_of(config, &run));
    run.storm = (disturbance == Some(Disturbance::Storm)).then_some(MulticastLoadSettings {
        frames_per_s: config.storm.frames_per_s,
        payload_bytes: config.storm.payload_bytes,
        sockets: config.storm.sockets,
        target: config.storm.target,
    });
    run.repetition = config.repetition;
    run.took_s = parts.took;
    run.system = parts.system;
    run.cable = parts.cable.map(|report| Cable {
        ingress_drops: report.ingress_drops(),
        ..Cable::of(&config.cable)
    });
    run.cores = parts.cores;
    run.inversions = inversions;
    run.counters = Counter::all_of(&run);
    run.kernel_late = kernel_late;
    run.remarks = remarks(config);
    // Children report the same refusals several times.
    run.notes = unique([run.notes, parts.notes].concat());
    Ok(Outcome { run, rounds })
}

/// Remarks on how to read a run.
fn remarks(config: &Config) -> Vec<String> {
    let mut remarks = Vec::new();
    match config.cell.place() {
        Place::Link => {}
        Place::Devices => remarks.push(
            "Runs between devices of the machine: isolane's link does not connect them and takes no timestamps. The \
             hosts' share is the whole round trip."
                .to_owned(),
        ),
        Place::FastLink => remarks.push(format!(
            "Runs of the executor have a link of {} Mbit/s that sends frames in the order of arrival, and a core for \
             each end. host_us is the hosts' share, which the order of jobs can change; cable_us is that of the link.",
            config.cable.bits_per_s / 1_000_000
        )),
        Place::Pair => remarks.push(
            "Runs over a veth pair have no link of isolane, and a core for each end. The hosts' share is the whole \
             round trip."
                .to_owned(),
        ),
    }
    if let Some(bytes) = config.cable.loss.min_payload_bytes {
        remarks.push(format!(
            "Runs with repairs lose {} of 100 UDP datagrams of at least {bytes} bytes. Only bulk samples are so \
             large. In FIFO order all topics share a port, so only the size distinguishes them.",
            config.cable.loss.probability * 100.0
        ));
    }
    remarks
}

/// Minimum share of the configured rate that a storm must reach. Steps are compared under the same storm, and the
/// measured times grow with its rate: a storm that is weaker by a fifth already looks like an improvement. The senders
/// are not on the hosts' core, so they reach the full rate unless the machine stalls.
const LEAST_OF_STORM: f64 = 0.8;

/// Maximum share of the link that round trips may fill. Beyond it, round trips wait for each other, and the run
/// measures the link's queue.
const MOST_OF_LINK: f64 = 0.8;

/// Returns the first reason for which the run is invalid, if any.
pub(super) fn fault_of(config: &Config, run: &Run) -> Option<String> {
    let storm = run.ledger.as_ref().and_then(|ledger| ledger.storm.as_ref());
    filled_link(config)
        .or_else(|| run.disturbed.as_ref().and_then(too_little))
        .or_else(|| storm.and_then(|storm| weak_storm(config, storm)))
        .or_else(|| miscounted_flood(run))
        .or_else(|| weak_flood(run))
        .or_else(|| drained_bulk(config, run))
        .or_else(|| unused_lane(config, run))
        .or_else(|| foreign_traffic(run))
}

/// Reports round trips that fill the cable.
fn filled_link(config: &Config) -> Option<String> {
    let has_hosts = ["udp", "xdp"].contains(&config.settings.datapath.as_str());
    if !has_hosts || !matches!(config.cell.place(), Place::Link | Place::FastLink) {
        return None;
    }
    let frame_bytes = u64::from(MESSAGE_HEADS_BYTES + config.settings.payload_bytes);
    let bits_per_s = wire_bytes(frame_bytes) * 8 * u64::from(config.settings.rate_hz);
    let share = bits_per_s as f64 / config.cable.bits_per_s as f64;
    (share > MOST_OF_LINK).then(|| {
        format!(
            "the round trips fill {:.0} % of the link (at most {:.0} % are a result): choose a lower rate, smaller \
             samples or a faster link",
            share * 100.0,
            MOST_OF_LINK * 100.0
        )
    })
}

fn too_little(disturbed: &Disturbed) -> Option<String> {
    (!disturbed.enough).then(|| {
        format!(
            "the disturbance achieved {:.0} a second (at least {:.0} are wanted) and {} repairs: too \
             little to show anything",
            disturbed.achieved_per_s,
            disturbed.least_per_s,
            disturbed.bulk_repaired.unwrap_or(0)
        )
    })
}

/// Reports a weak storm, or contradictory counts of its sockets.
fn weak_storm(config: &Config, storm: &multicast_load::Report) -> Option<String> {
    let (reached, asked) = (storm.least_frames_per_s(), config.storm.frames_per_s);
    let is_weak = reached < asked * LEAST_OF_STORM;
    let weak = is_weak.then(|| {
        format!(
            "the storm reached {reached:.0} frames a second, {asked:.0} were wanted: too little to show \
             anything"
        )
    });
    storm.check().err().or(weak)
}

/// Minimum share of its configured rate that a flood must reach, in each direction.
const LEAST_OF_FLOOD: f64 = 0.95;

/// Reports a flood that did not reach its rate.
pub(crate) fn weak_flood(run: &Run) -> Option<String> {
    let flood = run.ledger.as_ref()?.flood.as_ref()?;
    let (reached, asked) = (
        flood.a_to_b.factor.min(flood.b_to_a.factor),
        run.flood?.factor,
    );
    (reached < asked * LEAST_OF_FLOOD).then(|| {
        format!(
            "the flood reached {reached:.2} times the link's rate instead of {asked:.2}; a run is valid from {:.2}",
            asked * LEAST_OF_FLOOD
        )
    })
}

/// Reports a bulk reader or lane that was to be full and was not.
fn drained_bulk(config: &Config, run: &Run) -> Option<String> {
    let full: &[&str] = match config.transport {
        Transport::Udp => &["kernel_overflow"],
        Transport::Xdp(lanes) if !lanes.overcommits => &["ring_full"],
        // The ring never fills, because the buffer pool is exhausted first.
        Transport::Xdp(lanes) if lanes.recycles => &["recycled_driver", "recycled_queue"],
        Transport::Xdp(_) => &["fill_empty"],
    };
    let dropped = |end: &EndLanes| -> u64 {
        let drops = end.foreign.iter().flat_map(|foreign| &foreign.drops);
        let of_full = drops.filter(|(name, _)| full.contains(&name.as_str()));
        of_full.map(|(_, count)| count).sum()
    };
    let lanes = run.lanes.as_ref()?;
    let ends = [&lanes.ping, &lanes.pong];
    let (left, least) = match config.bulk_reader? {
        BulkReader::Drains => return None,
        BulkReader::Keeps => (ends.map(|end| end.bulk_kept), HISTORY_SAMPLES.into()),
        BulkReader::DoesNotDrain => (ends.map(dropped), 1),
    };
    let [ping, pong] = left;
    (ping.min(pong) < least).then(|| {
        format!(
            "bulk was drained although its reader was to be full: {ping} and {pong} datagrams or samples were left or \
             dropped at the ends, at least {least} are required"
        )
    })
}

/// Reports a flood whose counts contradict each other or the cable's.
fn miscounted_flood(run: &Run) -> Option<String> {
    let Ledger { cable, flood, .. } = run.ledger.as_ref()?;
    let relayed = [&cable.a_to_b.frames, &cable.b_to_a.frames];
    flood.as_ref()?.check(relayed).err()
}

/// Reports a run over lanes whose samples arrived by kernel sockets.
fn unused_lane(config: &Config, run: &Run) -> Option<String> {
    let (Transport::Xdp(_), Some(lanes)) = (config.transport, &run.lanes) else {
        return None;
    };
    let [pings, pongs] = &run.flows[..] else {
        return None;
    };
    let ends = [
        ("pong", pings.received, &lanes.pong),
        ("ping", pongs.received, &lanes.ping),
    ];
    ends.into_iter().find_map(|(end, received, lanes)| {
        let by_lane = lanes.counts.get(BY_LANE).copied().unwrap_or(0);
        let is_used = by_lane as f64 >= received as f64 * LEAST_BY_LANE;
        (!is_used).then(|| {
            format!(
                "only {by_lane} of {received} datagrams came to the {end} end by its lane: these are \
                 numbers of sockets"
            )
        })
    })
}

/// Reports foreign traffic to a level of the pong end that neither arrived nor was dropped by name. The ping end is not
/// checked, because it ends before the senders stop.
fn foreign_traffic(run: &Run) -> Option<String> {
    let ledger = run.ledger.as_ref()?;
    let EndLanes { foreign, .. } = &run.lanes.as_ref()?.pong;
    let arrived = foreign.as_ref()?.arrived();
    let flood = ledger.flood.as_ref().map(|flood| flood.a_to_b.sent);
    let sent = flood.or_else(|| ledger.storm.as_ref().map(|storm| storm.a_to_b.sent))?;
    let frames = ledger.cable.a_to_b.frames;
    let measured = run.flows.first()?.cable?;
    let dropped = frames.arrived - frames.sent - measured.dropped;
    // Announcements and similar frames are included in the cable's counts.
    let others = frames.arrived.saturating_sub(sent + measured.arrived);
    let missing = sent as i64 - dropped as i64 - arrived as i64;
    let is_balanced = -(others as i64) <= missing && missing <= 0;
    (!is_balanced).then(|| {
        format!(
            "foreign senders sent {sent} datagrams to the level of bulk; the cable dropped {dropped}, {arrived} \
             reached it or were dropped by name: {missing} are not accounted for ({others} other frames)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::flow::LaneCounts;

    #[test]
    fn round_trips_that_fill_the_link_are_no_result() {
        let cell = crate::experiment::Cell {
            payload_bytes: 1_024,
            ..Default::default()
        };
        let mut config = cell.round_trips();
        // 2,000 frames of 1,024 + 102 + 24 bytes per second are 18.4 Mbit/s.
        config.cable.bits_per_s = 40_000_000;
        assert_eq!(filled_link(&config), None);
        let mut run = Run::new(&config.settings, &Rounds::none(), None);
        assert_eq!(fault_of(&config, &run), None);
        config.cable.bits_per_s = 20_000_000;
        let reason = filled_link(&config).expect("92 % of the link");
        assert!(reason.contains("fill 92 % of the link"), "{reason}");
        assert_eq!(fault_of(&config, &run).as_ref(), Some(&reason));
        config.settings.datapath = "memory".into();
        assert_eq!(filled_link(&config), None, "there is no link");
        config.settings.datapath = "udp".into();
        run.disturbed = Some(Disturbed::default());
        assert_eq!(
            fault_of(&config, &run),
            Some(reason),
            "the first reason is the link"
        );
        config.cell.place = Some(Place::Devices);
        assert_eq!(
            filled_link(&config),
            None,
            "the rate of a device is not known"
        );
    }

    #[test]
    fn a_reader_that_is_to_be_full_leaves_bulk_at_both_ends() {
        let history = HISTORY_SAMPLES.into();
        for (bulk_reader, least) in [
            (BulkReader::Drains, 0),
            (BulkReader::Keeps, history),
            (BulkReader::DoesNotDrain, 1),
        ] {
            let cell = crate::experiment::Cell {
                disturbance: crate::experiment::Load::ReadFlood,
                bulk_reader,
                ..Default::default()
            };
            let config = cell.round_trips();
            let end = |count| EndLanes {
                bulk_kept: count,
                foreign: Some(LaneCounts {
                    drops: [("kernel_overflow".to_owned(), count)].into(),
                    ..LaneCounts::default()
                }),
                ..EndLanes::default()
            };
            let mut run = Run::new(&config.settings, &Rounds::none(), None);
            let mut is_full = |count| {
                let (ping, pong) = (end(history), end(count));
                run.lanes = Some(Lanes { ping, pong });
                drained_bulk(&config, &run).is_none()
            };
            assert!(is_full(least));
            assert!(least == 0 || !is_full(least - 1));
        }
    }
}
