//! Counts of one end of a run: its samples, the datagrams of their lane, and its executor.

use std::collections::BTreeMap;

use isolane::{Level, Participant, Report};
use isolane_datapath::{Lane, Ledger};
use isolane_datapath_xdp::xdp::counters;
use isolane_rtps::WorkKind;
use serde::{Deserialize, Serialize};

use super::end::measured_level;
use super::inside::bulk::BulkCounts;

/// Name of the datapath that reserves buffers.
const XDP: &str = "xdp";

/// Counts of one end's participant at the end of a run. Samples are those of the measured topics; datagrams are those
/// of their lane, which all topics share in FIFO order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndCounts {
    /// Samples accepted by `write`.
    pub written: u64,
    /// Written samples never sent: no matched reader, evicted from the history, or still pending.
    pub unsent: u64,
    /// Samples retransmitted on the reader's request.
    pub repaired: u64,
    /// Datagrams of the lane that the datapath accepted.
    pub sent: u64,
    /// Datagrams of the lane that the datapath refused.
    pub send_refused: u64,
    /// Datagrams of the lane that were received.
    pub received: u64,
    /// Datagrams of the lane dropped on this host, for any reason the datapath counts.
    pub receive_dropped: u64,
    /// Samples passed to the reader's callback.
    pub delivered: u64,
    /// Received samples of another type, too large, or without room.
    pub rejected: u64,
    /// Received samples that were repeated, or older than a received one.
    pub duplicates: u64,
    /// Samples of writers that were not (yet) matched.
    pub unmatched: u64,
    /// True when other topics use the lane too.
    pub is_lane_shared: bool,
    /// Priority inversions of the measured level, and of all levels.
    pub inversions: [u64; 2],
    /// Datagrams of the measured level whose receive timestamp allowed the check for inversions.
    pub judged: u64,
    /// Activations of the measured level that preceded a more critical datagram which the kernel had stamped but not
    /// yet delivered.
    pub kernel_late: u64,
    /// Discovery announcements of peers processed.
    pub announcements: u64,
    /// Bulk sample counts.
    pub bulk: BulkCounts,
    /// Datagrams of the lane dropped on this host, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Foreign traffic to a level of this end, if it has a reader for it.
    pub strangers: Option<LaneCounts>,
    /// Further counts of a device's lane, by name; empty for other datapaths.
    pub lane: BTreeMap<String, u64>,
    /// Polls that found fewer free buffers than are reserved for the most critical lane; `None` for sockets, which
    /// reserve none.
    pub reserve_touched: Option<u64>,
    /// Ledger contradictions as text. Any entry invalidates the run.
    pub faults: Vec<String>,
}

/// Datagrams that reached a lane, and their outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCounts {
    /// Datagrams delivered.
    pub received: u64,
    /// Datagrams in a queue that is not polled.
    pub pending: u64,
    /// Datagrams dropped, by reason.
    pub drops: BTreeMap<String, u64>,
}

impl LaneCounts {
    /// Counts of a level's lane in a ledger.
    fn of(ledger: &Ledger, lane: Lane) -> LaneCounts {
        let receive = &ledger.lane(lane).receive;
        LaneCounts {
            received: receive.received,
            pending: receive.pending,
            drops: drops(ledger, lane),
        }
    }

    /// All datagrams that reached the lane.
    pub fn arrived(&self) -> u64 {
        self.received + self.pending + self.drops.values().sum::<u64>()
    }
}

fn drops(ledger: &Ledger, lane: Lane) -> BTreeMap<String, u64> {
    let drops = ledger.lane(lane).receive.drops();
    drops
        .map(|(reason, count)| (ledger.names().receive_drop(reason).to_owned(), count))
        .collect()
}

impl EndCounts {
    /// Counts of a participant's writers and readers of `topics`, and of foreign traffic to the level `strangers`.
    /// `shared_lane` is the level whose lane all levels share, if they do.
    pub(super) fn of(
        participant: &Participant,
        shared_lane: Option<Level>,
        topics: &[&str],
        strangers: Option<Level>,
    ) -> EndCounts {
        let report = participant.report();
        let mut counts = EndCounts {
            unmatched: report.counters.unmatched_data,
            is_lane_shared: shared_lane.is_some(),
            bulk: BulkCounts::of(&report),
            ..EndCounts::default()
        };
        let lane = shared_lane.unwrap_or_else(measured_level);
        counts.take_lane(lane, &report.datagrams, participant.datapath());
        // In a shared lane, foreign traffic cannot be separated.
        let of_strangers = strangers.filter(|_| !counts.is_lane_shared);
        counts.strangers =
            of_strangers.map(|level| LaneCounts::of(&report.datagrams, Lane::Level(level)));
        counts.take_samples(&report, topics);
        let measured = report.datagrams.lane(Lane::Level(lane));
        counts.take_executor(&report, measured.receive.unstamped);
        counts
    }

    /// Counts the datagrams of the measured lane, and checks the balance of all lanes.
    fn take_lane(&mut self, level: Level, ledger: &Ledger, datapath: &str) {
        self.drops = drops(ledger, Lane::Level(level));
        if datapath == XDP {
            let touched = |lane| ledger.lane(lane).events.get(counters::RESERVE_TOUCHED);
            self.reserve_touched = Some(Lane::ALL.into_iter().map(touched).sum());
        }
        let lane = ledger.lane(Lane::Level(level));
        let events = lane.events.counted();
        self.lane = events
            .map(|(event, count)| (ledger.names().event(event).to_owned(), count))
            .collect();
        self.sent = lane.transmit.sent;
        self.send_refused = lane.transmit.refused_total();
        self.received = lane.receive.received;
        self.receive_dropped = lane.receive.dropped_total();
        if let Err(imbalance) = ledger.balance() {
            self.faults.push(imbalance.to_string());
        }
    }

    /// Counts the samples of `topics`, and checks the balance of all endpoints.
    fn take_samples(&mut self, report: &Report, topics: &[&str]) {
        for writer in &report.writers {
            let ledger = writer.ledger;
            if topics.contains(&writer.topic.as_str()) {
                self.written += ledger.written;
                self.unsent += ledger.unmatched + ledger.evicted_unsent + ledger.pending;
                self.repaired += ledger.repaired;
            }
            if !ledger.balances() {
                self.fault("writer", &writer.topic, &ledger);
            }
        }
        for reader in &report.readers {
            let ledger = reader.ledger;
            if topics.contains(&reader.topic.as_str()) {
                self.delivered += ledger.delivered;
                self.rejected += ledger.rejected + ledger.too_large;
                self.duplicates += ledger.duplicates;
            }
            if !ledger.balances() {
                self.fault("reader", &reader.topic, &ledger);
            }
        }
    }

    /// Counts the executor's inversions; `unstamped` datagrams of the measured lane had no timestamp.
    fn take_executor(&mut self, report: &Report, unstamped: u64) {
        let measured = report
            .levels
            .iter()
            .filter(|level| level.level == measured_level());
        for level in measured {
            self.inversions[0] += level.inversions;
            self.kernel_late += level.kernel_late;
            // A datagram without a timestamp counts as arrived when polled and shows no inversion.
            self.judged += level.datagrams.saturating_sub(unstamped);
        }
        self.inversions[1] = report.inversions();
        let discovery = report.work.iter();
        let discovery = discovery.filter(|work| work.kind == WorkKind::Discovery);
        self.announcements = discovery.map(|work| work.steps).sum();
    }

    fn fault(&mut self, what: &str, topic: &str, ledger: &dyn std::fmt::Debug) {
        self.faults.push(format!(
            "the {what} of {topic} does not balance: {ledger:?}"
        ));
    }
}
