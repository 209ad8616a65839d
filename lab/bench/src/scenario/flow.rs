//! Where the samples of a run went: the ledgers of both ends and of the cable, balanced.
//!
//! One direction is a [`Flow`]: each sample given to `write` is, in the end, in the reader's callback
//! or in exactly one count with a name. The equations of [`Flow::check`] say so hop by hop, so
//! that a fault names the hop it is in.

use serde::{Deserialize, Serialize};

use crate::cable::Passages;

pub use super::counts::{EndCounts, LaneCounts};

/// What the cable saw of one direction's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CableFlow {
    /// Messages that came in.
    pub arrived: u64,
    /// Of these, messages that did not go out: queue full, lost on purpose, refused by the kernel.
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

/// One direction's best-effort samples, from `write` to the callback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The topic.
    pub topic: String,
    /// Given to `write`.
    pub offered: u64,
    /// Refused by it, with an error.
    pub refused: u64,
    /// Accepted.
    pub written: u64,
    /// Never sent.
    pub unsent: u64,
    /// Refused by the sender's datapath.
    pub send_refused: u64,
    /// Taken by it.
    pub sent: u64,
    /// Seen by the cable, where there is one.
    pub cable: Option<CableFlow>,
    /// Dropped on the receiving host.
    pub receive_dropped: u64,
    /// Received as datagrams.
    pub received: u64,
    /// Came again.
    pub duplicates: u64,
    /// Not taken in.
    pub rejected: u64,
    /// Handed to the callback.
    pub delivered: u64,
    /// Where others used the same lanes: then `send_refused` and `receive_dropped` are the samples that
    /// are missing, which these must cover.
    pub shared_lane: Option<SharedLane>,
    /// Where a datagram is not a sample: what became of the datagrams. Then `sent`, `send_refused`, `received` and
    /// `receive_dropped` follow from the samples, and what is missing must be covered by lost datagrams.
    #[serde(default)]
    pub datagrams: Option<Datagrams>,
}

/// Datagrams of a topic whose samples share them, or leave in several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Taken by the sender's datapath.
    pub sent: u64,
    /// Refused by it.
    pub send_refused: u64,
    /// Received.
    pub received: u64,
    /// Dropped on the receiving host.
    pub receive_dropped: u64,
    /// Samples that go with one that is lost, at most.
    pub most_samples: u64,
}

/// Datagrams of all topics that share a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLane {
    /// Refused by the sender's datapath.
    pub send_refused: u64,
    /// Dropped on the receiving host.
    pub receive_dropped: u64,
}

impl Flow {
    /// The flow of `topic` from one end to the other; `offered` samples were given to `write`,
    /// which refused some.
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
                receive_dropped: flow.receive_dropped,
            });
            flow.infer_from_samples();
        }
        flow
    }

    /// The same without a cable, of samples that share datagrams or leave in several: with one that is lost go
    /// `most_samples` at most.
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
            receive_dropped: to.receive_dropped,
            most_samples,
        });
        flow.infer_from_samples();
        flow
    }

    /// Where the lanes' counts are not of this topic's samples: its own are what the samples leave open.
    fn infer_from_samples(&mut self) {
        let handed_over = self.written.saturating_sub(self.unsent);
        self.sent = self.cable.map_or(handed_over, |cable| cable.arrived);
        self.send_refused = handed_over.saturating_sub(self.sent);
        self.received = self.duplicates + self.rejected + self.delivered;
        self.receive_dropped = self.leaving().saturating_sub(self.received);
    }

    /// What is on its last way to the receiving host.
    fn leaving(&self) -> u64 {
        self.cable
            .map_or(self.sent, |cable| cable.arrived - cable.dropped)
    }

    /// The hops of the way: what came to each, and what is accounted for there.
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

    /// Samples that are in no count with a name, or in one too many, hop by hop: what is missing at one
    /// is not made up for by what another has too much. 0 where [`check`](Self::check) finds nothing.
    pub fn unaccounted(&self) -> u64 {
        let hops = self.hops().into_iter();
        let of_hops: u64 = hops.map(|(_, came, named)| came.abs_diff(named)).sum();
        of_hops + self.uncovered() + self.uncovered_by_datagrams()
    }

    /// Whether each sample is accounted for exactly once.
    ///
    /// # Errors
    /// The first hop where it is not, with both numbers.
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

    /// Samples that are missing where a lane is shared and are not among the lane's named drops.
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
            // Without a cable in between nobody saw which of the two it was.
            None => (refused + dropped).saturating_sub(lane.send_refused + lane.receive_dropped),
        }
    }

    /// Samples that are missing and went with no datagram that is known to be lost.
    fn uncovered_by_datagrams(&self) -> u64 {
        let Some(datagrams) = self.datagrams else {
            return 0;
        };
        let lost = datagrams.send_refused + datagrams.receive_dropped;
        let missing = self.send_refused + self.receive_dropped;
        missing.saturating_sub(lost.saturating_mul(datagrams.most_samples))
    }

    /// Where a datagram is not a sample, each datagram has one place, and samples are missing with those alone that
    /// are lost.
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

    /// Samples that are missing where a lane is shared must be among the lane's named drops.
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

#[cfg(test)]
mod tests;
