//! Sample accounting of a run: the ledgers of both ends and of the cable, balanced.
//!
//! One direction is a [`Flow`]: each sample given to `write` ends in the reader's callback or in exactly one named
//! count. [`Flow::check`] verifies this hop by hop, so that a fault names its hop.

use std::collections::BTreeMap;

use isolane::{Level, Participant, Report};
use isolane_datapath::limits::MAX_SEGMENTS;
use isolane_datapath::{Event, Lane, Ledger, ReceiveDrop};
use isolane_datapath_xdp::xdp::counters;
use isolane_rtps::WorkKind;
use serde::{Deserialize, Serialize};

use super::end::measured_level;
use super::in_process_load::BulkCounts;
use crate::cable::Passages;
use crate::report::EndLanes;

/// Messages of one direction seen by the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CableFlow {
    /// Messages that arrived at the cable.
    pub arrived: u64,
    /// Arrived messages that did not leave: queue full, seeded loss, or refused by the kernel.
    pub dropped: u64,
}

impl CableFlow {
    /// Counts the stamps of one direction.
    pub fn of(passages: &Passages) -> CableFlow {
        let count = |stamps: &[crate::record::Stamp]| stamps.iter().flatten().count() as u64;
        let arrived = count(&passages.arrived_ns);
        CableFlow {
            arrived,
            dropped: arrived.saturating_sub(count(&passages.sent_ns)),
        }
    }
}

/// Best-effort samples of one direction, from `write` to the callback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Topic name.
    pub topic: String,
    /// Samples given to `write`.
    pub offered: u64,
    /// Samples that `write` refused with an error.
    pub refused: u64,
    /// Samples that `write` accepted.
    pub written: u64,
    /// Samples never sent.
    pub unsent: u64,
    /// Samples the sender's datapath refused.
    pub send_refused: u64,
    /// Samples the sender's datapath accepted.
    pub sent: u64,
    /// Counts of the cable, if there is one.
    pub cable: Option<CableFlow>,
    /// Samples dropped on the receiving host.
    pub receive_dropped: u64,
    /// Samples received as datagrams.
    pub received: u64,
    /// Repeated samples.
    pub duplicates: u64,
    /// Rejected samples.
    pub rejected: u64,
    /// Samples passed to the callback.
    pub delivered: u64,
    /// Drops of the lane, if other topics share it. In that case, `send_refused` and `receive_dropped` are the missing
    /// samples, and the lane's drops must cover them.
    pub shared_lane: Option<SharedLane>,
    /// Datagram counts where a datagram is not exactly one sample. In that case, `sent`, `send_refused`, `received` and
    /// `receive_dropped` follow from the samples, and lost datagrams must cover the missing ones.
    #[serde(default)]
    pub datagrams: Option<Datagrams>,
}

/// Datagrams of a topic whose samples are combined or fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Datagrams the sender's datapath accepted.
    pub sent: u64,
    /// Datagrams the sender's datapath refused.
    pub send_refused: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams dropped on the receiving host.
    pub receive_dropped: u64,
    /// Maximum number of samples lost with one datagram.
    pub most_samples: u64,
}

/// Datagrams of all topics that share a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLane {
    /// Datagrams the sender's datapath refused.
    pub send_refused: u64,
    /// Datagrams dropped on the receiving host.
    pub receive_dropped: u64,
}

impl Flow {
    /// Flow of `topic` between two ends; `write` was given `offered` samples and refused some.
    pub fn between(
        topic: &str,
        (offered, refused): (u64, u64),
        from: &EndCounts,
        to: &EndCounts,
        cable: Option<CableFlow>,
    ) -> Flow {
        let mut flow = Flow {
            topic: topic.to_owned(),
            offered,
            refused,
            written: from.written,
            unsent: from.unsent,
            send_refused: from.send_refused,
            sent: from.sent,
            cable,
            receive_dropped: to.receive_dropped,
            received: to.received,
            duplicates: to.duplicates,
            rejected: to.rejected,
            delivered: to.delivered,
            shared_lane: None,
            datagrams: None,
        };
        if from.is_lane_shared {
            flow.shared_lane = Some(SharedLane {
                send_refused: flow.send_refused,
                receive_dropped: to.receive_dropped.max(to.receive_dropped_max),
            });
            flow.infer_from_samples();
        } else {
            flow.receive_dropped = to.dropped_of(flow.leaving());
        }
        flow
    }

    /// Flow without a cable, of samples that are combined or fragmented; a lost datagram loses at most `most_samples`.
    pub fn in_datagrams(
        topic: &str,
        offered: (u64, u64),
        from: &EndCounts,
        to: &EndCounts,
        most_samples: u64,
    ) -> Flow {
        let mut flow = Flow::between(topic, offered, from, to, None);
        flow.datagrams = Some(Datagrams {
            sent: from.sent,
            send_refused: from.send_refused,
            received: to.received,
            receive_dropped: to.dropped_of(from.sent),
            most_samples,
        });
        flow.infer_from_samples();
        flow
    }

    /// Derives the datagram counts from the samples, for a lane whose own counts do not give them.
    fn infer_from_samples(&mut self) {
        let handed_over = self.written.saturating_sub(self.unsent);
        self.sent = self.cable.map_or(handed_over, |cable| cable.arrived);
        self.send_refused = handed_over.saturating_sub(self.sent);
        self.received = self.duplicates + self.rejected + self.delivered;
        self.receive_dropped = self.leaving().saturating_sub(self.received);
    }

    /// Samples on the last hop to the receiving host.
    fn leaving(&self) -> u64 {
        self.cable
            .map_or(self.sent, |cable| cable.arrived - cable.dropped)
    }

    /// Hops of the flow as (name, samples that reached it, samples accounted for).
    fn hops(&self) -> [(&'static str, u64, u64); 5] {
        [
            ("given to write", self.offered, self.refused + self.written),
            (
                "written",
                self.written,
                self.unsent + self.send_refused + self.sent,
            ),
            (
                "sent to the cable",
                self.sent,
                self.cable.map_or(self.sent, |cable| cable.arrived),
            ),
            (
                "on their last way",
                self.leaving(),
                self.receive_dropped + self.received,
            ),
            (
                "received",
                self.received,
                self.duplicates + self.rejected + self.delivered,
            ),
        ]
    }

    /// Sum of the imbalances of all hops; an excess at one hop does not offset a deficit at another. 0 if
    /// [`check`](Self::check) succeeds.
    pub fn unaccounted(&self) -> u64 {
        let hops = self.hops().into_iter();
        let of_hops: u64 = hops.map(|(_, came, named)| came.abs_diff(named)).sum();
        of_hops + self.uncovered() + self.uncovered_by_datagrams()
    }

    /// Checks that each sample is accounted for exactly once.
    ///
    /// # Errors
    /// The first unbalanced hop, with both numbers.
    pub fn check(&self) -> Result<(), String> {
        for (hop, came, accounted) in self.hops() {
            if came != accounted {
                return Err(format!(
                    "{}: {came} samples were {hop}, {accounted} are accounted for",
                    self.topic
                ));
            }
        }
        self.check_datagrams()?;
        self.check_shared_lane()
    }

    /// Missing samples that a shared lane's named drops do not cover.
    fn uncovered(&self) -> u64 {
        let Some(lane) = self.shared_lane else {
            return 0;
        };
        let (refused, dropped) = (self.send_refused, self.receive_dropped);
        match self.cable {
            Some(_) => {
                let refused = refused.saturating_sub(lane.send_refused);
                refused + dropped.saturating_sub(lane.receive_dropped)
            }
            // Without a cable, refused and dropped samples cannot be told apart.
            None => (refused + dropped).saturating_sub(lane.send_refused + lane.receive_dropped),
        }
    }

    /// Missing samples that lost datagrams do not cover.
    fn uncovered_by_datagrams(&self) -> u64 {
        let Some(datagrams) = self.datagrams else {
            return 0;
        };
        let lost = datagrams.send_refused + datagrams.receive_dropped;
        let missing = self.send_refused + self.receive_dropped;
        missing.saturating_sub(lost.saturating_mul(datagrams.most_samples))
    }

    /// Checks that datagrams balance, and that lost datagrams cover the missing samples.
    fn check_datagrams(&self) -> Result<(), String> {
        let Some(datagrams) = self.datagrams else {
            return Ok(());
        };
        let Datagrams {
            sent,
            received,
            receive_dropped,
            ..
        } = datagrams;
        if sent != received + receive_dropped {
            return Err(format!(
                "{}: {sent} datagrams were sent, {} are accounted for",
                self.topic,
                received + receive_dropped
            ));
        }
        match self.uncovered_by_datagrams() {
            0 => Ok(()),
            _ => Err(format!(
                "{}: {} samples are missing, {} datagrams were refused and {receive_dropped} dropped, of {} samples at most",
                self.topic,
                self.send_refused + self.receive_dropped,
                datagrams.send_refused,
                datagrams.most_samples,
            )),
        }
    }

    /// Checks that a shared lane's named drops cover the missing samples.
    fn check_shared_lane(&self) -> Result<(), String> {
        let (Some(lane), 1..) = (self.shared_lane, self.uncovered()) else {
            return Ok(());
        };
        let missing = self.send_refused + self.receive_dropped;
        Err(format!(
            "{}: {missing} samples are missing, of all topics {} were refused and {} dropped",
            self.topic, lane.send_refused, lane.receive_dropped
        ))
    }
}

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
    /// Datagrams of the lane dropped on this host, for any reason the datapath counts. A segmented burst that the kernel
    /// drops counts as one datagram.
    pub receive_dropped: u64,
    /// Maximum number of datagrams dropped on this host, if each dropped packet was a full segmented burst.
    pub receive_dropped_max: u64,
    /// Segmented bursts of the lane that were sent.
    pub segmented: u64,
    /// Bursts of the lane that the kernel handed over in one piece.
    pub coalesced: u64,
    /// Samples passed to the reader's callback.
    pub delivered: u64,
    /// Received samples of another type, too large, or without room.
    pub rejected: u64,
    /// Received samples that were repeated, or older than a received one.
    pub duplicates: u64,
    /// True when other topics use the lane too.
    pub is_lane_shared: bool,
    /// Priority inversions of the measured level, and of all levels.
    pub inversions: [u64; 2],
    /// Datagrams of the measured level whose receive timestamp allowed the check for inversions.
    pub judged: u64,
    /// Activations of less urgent jobs before a datagram of the measured level that the kernel had stamped but not yet
    /// delivered.
    pub kernel_late: u64,
    /// Discovery announcements of peers processed.
    pub announcements: u64,
    /// Bulk sample counts.
    pub bulk: BulkCounts,
    /// Counts of the lanes.
    pub lanes: EndLanes,
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
    /// Dropped datagrams, of `arrived` on this host: the missing ones, within the bounds of the counts.
    fn dropped_of(&self, arrived: u64) -> u64 {
        let missing = arrived.saturating_sub(self.received);
        self.receive_dropped
            .max(missing.min(self.receive_dropped_max))
    }

    /// Counts of a participant's writers and readers of `topics`, and of foreign traffic to the level `foreign`.
    /// `shared_lane` is the level whose lane all levels share, if they do.
    pub(super) fn of(
        participant: &Participant,
        shared_lane: Option<Level>,
        topics: &[&str],
        foreign: Option<Level>,
    ) -> EndCounts {
        let report = participant.report();
        let mut counts = EndCounts {
            is_lane_shared: shared_lane.is_some(),
            bulk: BulkCounts::of(&report),
            ..EndCounts::default()
        };
        counts.lanes.bulk_kept = counts.bulk.kept;
        let lane = shared_lane.unwrap_or_else(measured_level);
        counts.take_lane(lane, &report.datagrams, participant.datapath());
        // In a shared lane, foreign traffic cannot be separated.
        let of_foreign = foreign.filter(|_| !counts.is_lane_shared);
        counts.lanes.foreign =
            of_foreign.map(|level| LaneCounts::of(&report.datagrams, Lane::Level(level)));
        counts.take_samples(&report, topics);
        let measured = report.datagrams.lane(Lane::Level(lane));
        counts.take_executor(&report, measured.receive.unstamped);
        counts
    }

    /// Counts the datagrams of the measured lane, and checks the balance of all lanes.
    fn take_lane(&mut self, level: Level, ledger: &Ledger, datapath: &str) {
        self.lanes.dropped = drops(ledger, Lane::Level(level));
        let events = &ledger.lane(Lane::Level(level)).events;
        self.segmented = events.get(Event::SEGMENTED);
        self.coalesced = events.get(Event::COALESCED);
        if datapath == XDP {
            let touched = |lane| ledger.lane(lane).events.get(counters::RESERVE_TOUCHED);
            self.lanes.reserve_touched = Some(Lane::ALL.into_iter().map(touched).sum());
        }
        let lane = ledger.lane(Lane::Level(level));
        let events = lane.events.counted();
        self.lanes.counts = events
            .map(|(event, count)| (ledger.names().event(event).to_owned(), count))
            .collect();
        self.sent = lane.transmit.sent;
        self.send_refused = lane.transmit.refused_total();
        self.received = lane.receive.received;
        self.receive_dropped = lane.receive.dropped_total();
        let of_kernel = lane.receive.dropped(ReceiveDrop::KERNEL_OVERFLOW);
        self.receive_dropped_max = match lane.events.get(Event::COALESCED) {
            0 => self.receive_dropped,
            _ => self.receive_dropped + of_kernel * (MAX_SEGMENTS as u64 - 1),
        };
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

#[cfg(test)]
mod tests;
