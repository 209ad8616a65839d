//! Where the samples of a run went: the ledgers of both ends and of the cable, balanced.
//!
//! One direction is a [`Flow`]: each sample given to `write` is, in the end, in the reader's callback
//! or in exactly one count with a name. The equations of [`Flow::check`] say so hop by hop, so
//! that a fault names the hop it is in.

use isolane::Participant;
use isolane_datapath::Lane;
use serde::{Deserialize, Serialize};

use super::end::measured_level;
use crate::cable::Passages;

/// What one end's participant counted, at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndCounts {
    /// Samples accepted by `write`.
    pub written: u64,
    /// Of these, never sent: nobody was matched, pushed out of the history, or still filed.
    pub unsent: u64,
    /// Sent again because the reader asked for it.
    pub repaired: u64,
    /// Datagrams of the measured level that the datapath took.
    pub sent: u64,
    /// Datagrams of the measured level that it refused.
    pub send_refused: u64,
    /// Datagrams of the measured level that were received.
    pub received: u64,
    /// Datagrams of the measured level that were dropped on this host, for any reason that the
    /// datapath knows.
    pub receive_dropped: u64,
    /// Samples handed to the reader's callback.
    pub delivered: u64,
    /// Samples that came and were not of the type, too large, or found no room.
    pub rejected: u64,
    /// Samples that came again, or behind a younger one.
    pub duplicates: u64,
    /// Samples of writers that were not known (yet).
    pub unmatched: u64,
    /// Everything above that contradicts itself, in words. Empty, or the run is no result.
    pub faults: Vec<String>,
}

impl EndCounts {
    /// What a participant with at most one writer and one reader has counted.
    pub(super) fn of(participant: &Participant) -> EndCounts {
        let report = participant.report();
        let mut counts = EndCounts {
            unmatched: report.counters.unmatched_data,
            ..EndCounts::default()
        };
        let lane = report.datagrams.lane(Lane::Level(measured_level()));
        counts.sent = lane.transmit.sent;
        counts.send_refused = lane.transmit.refused_total();
        counts.received = lane.receive.received;
        counts.receive_dropped = lane.receive.dropped_total();
        if let Err(imbalance) = report.balance() {
            counts.faults.push(imbalance.to_string());
        }
        for writer in &report.writers {
            let ledger = writer.ledger;
            counts.written += ledger.written;
            counts.unsent += ledger.unmatched + ledger.evicted_unsent + ledger.pending;
            counts.repaired += ledger.repaired;
            if !ledger.balances() {
                counts.fault("writer", &writer.topic, &ledger);
            }
        }
        for reader in &report.readers {
            let ledger = reader.ledger;
            counts.delivered += ledger.delivered;
            counts.rejected += ledger.rejected;
            counts.duplicates += ledger.duplicates;
            if !ledger.balances() {
                counts.fault("reader", &reader.topic, &ledger);
            }
        }
        counts
    }

    fn fault(&mut self, what: &str, topic: &str, ledger: &dyn std::fmt::Debug) {
        self.faults.push(format!(
            "the {what} of {topic} does not balance: {ledger:?}"
        ));
    }
}

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
        Flow {
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
        }
    }

    /// Whether each sample is accounted for exactly once.
    ///
    /// # Errors
    /// The first hop where it is not, with both numbers.
    pub fn check(&self) -> Result<(), String> {
        let leaves = self
            .cable
            .map_or(self.sent, |cable| cable.arrived - cable.dropped);
        let hops = [
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
                leaves,
                self.receive_dropped + self.received,
            ),
            (
                "received",
                self.received,
                self.duplicates + self.rejected + self.delivered,
            ),
        ];
        for (hop, came, accounted) in hops {
            if came != accounted {
                return Err(format!(
                    "{}: {came} samples were {hop}, {accounted} are accounted for",
                    self.topic
                ));
            }
        }
        Ok(())
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
        }
    }

    #[test]
    fn a_flow_balances_when_every_sample_has_one_place() {
        assert_eq!(balanced().check(), Ok(()));
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
        let made_up = Flow {
            delivered: 81,
            ..balanced()
        };
        assert!(made_up.check().unwrap_err().contains("received"));
    }
}
