//! What one end of a run counted: its samples, the datagrams of their lane, and what its executor saw.

use std::collections::BTreeMap;

use isolane::{Level, Participant, Report};
use isolane_datapath::{Counted, Lane, Ledger};
use isolane_engine::WorkKind;
use serde::{Deserialize, Serialize};

use super::end::measured_level;
use super::inside::bulk::BulkCounts;

/// The datapath that reserves buffers, by name.
const XDP: &str = "xdp";

/// What one end's participant counted, at the end of a run. Samples are those of the measured topics;
/// datagrams are those of their lane, which in FIFO order is everybody's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndCounts {
    /// Samples accepted by `write`.
    pub written: u64,
    /// Of these, never sent: nobody was matched, pushed out of the history, or still filed.
    pub unsent: u64,
    /// Sent again because the reader asked for it.
    pub repaired: u64,
    /// Datagrams of the lane that the datapath took.
    pub sent: u64,
    /// Datagrams of the lane that it refused.
    pub send_refused: u64,
    /// Datagrams of the lane that were received.
    pub received: u64,
    /// Datagrams of the lane that were dropped on this host, for any reason that the datapath knows.
    pub receive_dropped: u64,
    /// Samples handed to the reader's callback.
    pub delivered: u64,
    /// Samples that came and were not of the type, too large, or found no room.
    pub rejected: u64,
    /// Samples that came again, or behind a younger one.
    pub duplicates: u64,
    /// Samples of writers that were not known (yet).
    pub unmatched: u64,
    /// Whether other topics use the lane too.
    pub is_lane_shared: bool,
    /// Priority inversions of the measured level, and of all levels.
    pub inversions: [u64; 2],
    /// Datagrams of the measured level that were judged, by the stamp they came with, for what had come
    /// before them: the others can show no inversion.
    pub judged: u64,
    /// Activations that came before something more critical because the kernel had stamped it and
    /// did not show it yet, of the measured level.
    pub kernel_late: u64,
    /// Announcements of peers taken in.
    pub announcements: u64,
    /// Where bulk samples went, if there were any.
    pub bulk: BulkCounts,
    /// Datagrams of the lane that were dropped on this host, by reason.
    pub drops: BTreeMap<String, u64>,
    /// What strangers sent to a level of this end, if it has a reader for that.
    pub strangers: Option<LaneCounts>,
    /// What a device's lane counted besides, by name: nothing where there is none.
    pub lane: BTreeMap<String, u64>,
    /// Looks that found fewer buffers free than are reserved for the most critical lane; `None` where
    /// nothing is reserved: sockets.
    pub reserve_touched: Option<u64>,
    /// Everything above that contradicts itself, in words. Empty, or the run is no result.
    pub faults: Vec<String>,
}

/// What reached a lane, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCounts {
    /// Datagrams handed on.
    pub received: u64,
    /// Datagrams that wait in a queue nobody looks at.
    pub pending: u64,
    /// Datagrams dropped, by reason.
    pub drops: BTreeMap<String, u64>,
}

impl LaneCounts {
    /// What a ledger says of a level's lane.
    fn of(ledger: &Ledger, lane: Lane) -> LaneCounts {
        let receive = &ledger.lane(lane).receive;
        LaneCounts {
            received: receive.received,
            pending: receive.pending,
            drops: drops(ledger, lane),
        }
    }

    /// All that reached it.
    pub fn arrived(&self) -> u64 {
        self.received + self.pending + self.drops.values().sum::<u64>()
    }
}

fn drops(ledger: &Ledger, lane: Lane) -> BTreeMap<String, u64> {
    let drops = ledger.lane(lane).receive.drops();
    drops
        .map(|(reason, count)| (reason.name().to_owned(), count))
        .collect()
}

impl EndCounts {
    /// What a participant has counted of its writers and readers of `topics`, and of what strangers sent to
    /// a level. `shared_lane` is the level whose lane all levels share, if they share one.
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
        // In a shared lane they come with everybody's.
        let of_strangers = strangers.filter(|_| !counts.is_lane_shared);
        counts.strangers =
            of_strangers.map(|level| LaneCounts::of(&report.datagrams, Lane::Level(level)));
        counts.take_samples(&report, topics);
        let measured = report.datagrams.lane(Lane::Level(lane));
        counts.take_executor(&report, measured.receive.unstamped);
        counts
    }

    /// Counts the datagrams of the measured lane, and balances those of all.
    fn take_lane(&mut self, level: Level, ledger: &Ledger, datapath: &str) {
        self.drops = drops(ledger, Lane::Level(level));
        if datapath == XDP {
            let touched = |lane| ledger.lane(lane).counts.get(Counted::ReserveTouched);
            self.reserve_touched = Some(Lane::ALL.into_iter().map(touched).sum());
        }
        let lane = ledger.lane(Lane::Level(level));
        let named = lane.counts.named();
        self.lane = named
            .map(|(what, count)| (what.name().to_owned(), count))
            .collect();
        self.sent = lane.transmit.sent;
        self.send_refused = lane.transmit.refused_total();
        self.received = lane.receive.received;
        self.receive_dropped = lane.receive.dropped_total();
        if let Err(imbalance) = ledger.balance() {
            self.faults.push(imbalance.to_string());
        }
    }

    /// Counts the samples of some topics, and balances those of all.
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

    /// `unstamped` datagrams of the measured lane came without a stamp.
    fn take_executor(&mut self, report: &Report, unstamped: u64) {
        let measured = report
            .levels
            .iter()
            .filter(|level| level.level == measured_level());
        for level in measured {
            self.inversions[0] += level.inversions;
            self.kernel_late += level.kernel_late;
            // One without a stamp counts as having come when it was seen: nothing came before it.
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
