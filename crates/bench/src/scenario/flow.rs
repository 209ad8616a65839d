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
        };
        if from.is_lane_shared {
            flow.infer_from_samples();
        }
        flow
    }

    /// Where the lanes' counts are of all topics: this one's are what its samples leave open.
    fn infer_from_samples(&mut self) {
        self.shared_lane = Some(SharedLane {
            send_refused: self.send_refused,
            receive_dropped: self.receive_dropped,
        });
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
        of_hops + self.uncovered()
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
mod tests {
    use super::*;

    fn balanced() -> Flow {
        Flow {
            topic: "T".into(),
            offered: 100,
            refused: 1,
            written: 99,
            unsent: 2,
            send_refused: 3,
            sent: 94,
            cable: Some(CableFlow {
                arrived: 94,
                dropped: 10,
            }),
            receive_dropped: 4,
            received: 80,
            duplicates: 0,
            rejected: 0,
            delivered: 80,
            shared_lane: None,
        }
    }

    #[test]
    fn a_flow_balances_when_every_sample_has_one_place() {
        assert_eq!(balanced().check(), Ok(()));
        assert_eq!(balanced().unaccounted(), 0);
        let direct = Flow {
            cable: None,
            receive_dropped: 14,
            ..balanced()
        };
        assert_eq!(direct.check(), Ok(()));
    }

    #[test]
    fn a_sample_that_vanished_names_its_hop() {
        let vanished = Flow {
            received: 79,
            delivered: 79,
            ..balanced()
        };
        assert_eq!(
            vanished.check().unwrap_err(),
            "T: 84 samples were on their last way, 83 are accounted for"
        );
        assert_eq!(vanished.unaccounted(), 1);
        let made_up = Flow {
            delivered: 81,
            ..balanced()
        };
        assert!(made_up.check().unwrap_err().contains("received"));
        assert_eq!(made_up.unaccounted(), 1);
        let both = Flow {
            received: 79,
            ..balanced()
        };
        assert_eq!(both.unaccounted(), 2, "one vanished, another was made up");
    }

    /// Both ends with one lane for all: 500 other datagrams were sent, 3 of all refused, 4 dropped.
    fn through_a_shared_lane(delivered: u64) -> Flow {
        let from = EndCounts {
            written: 99,
            unsent: 2,
            sent: 594,
            send_refused: 3,
            is_lane_shared: true,
            ..EndCounts::default()
        };
        let to = EndCounts {
            received: 500,
            receive_dropped: 4,
            delivered,
            ..EndCounts::default()
        };
        let cable = CableFlow {
            arrived: 94,
            dropped: 10,
        };
        Flow::between("T", (100, 1), &from, &to, Some(cable))
    }

    #[test]
    fn in_a_shared_lane_samples_that_are_missing_are_among_its_drops() {
        let flow = through_a_shared_lane(80);
        assert_eq!(flow.check(), Ok(()));
        assert_eq!((flow.sent, flow.send_refused), (94, 3));
        assert_eq!((flow.received, flow.receive_dropped), (80, 4));
        assert_eq!(flow.unaccounted(), 0);
        assert_eq!(through_a_shared_lane(79).unaccounted(), 1);
        let vanished = through_a_shared_lane(79).check().unwrap_err();
        assert!(
            vanished.starts_with("T: 8 samples are missing"),
            "{vanished}"
        );
        let made_up = through_a_shared_lane(85).check().unwrap_err();
        assert!(made_up.contains("on their last way"), "{made_up}");
    }
}
