//! Schedule of an ablation: every step with every disturbance, arbiter and payload, repeated.
//!
//! Runs to be compared are adjacent: the steps of one disturbance, arbiter and payload follow each other. Each
//! repetition begins with a different step, so that no step always follows a pause. Repetitions are the outermost loop,
//! so that drift of the machine affects all combinations.

use super::plan;
use super::rtt::Config;
use crate::cable::Arbiter;
use crate::report::{Disturbance, Publisher, Step};

/// Disturbance during a run of an ablation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Disturbing traffic from outside the participants.
    pub disturbance: Option<Disturbance>,
    /// True when the traffic is addressed to a bulk reader of the participants. Bulk lanes and their budgets exist for
    /// this case.
    pub is_read: bool,
}

impl Condition {
    /// All disturbances of an ablation.
    pub const ALL: [Condition; 4] = [
        Condition::foreign(None),
        Condition::foreign(Some(Disturbance::Flood)),
        Condition::foreign(Some(Disturbance::Storm)),
        Condition::READ_FLOOD,
    ];

    /// Flood received by a bulk reader of the participants.
    pub const READ_FLOOD: Condition = Condition {
        disturbance: Some(Disturbance::Flood),
        is_read: true,
    };

    /// No disturbance, or one that no participant reads.
    pub const fn foreign(disturbance: Option<Disturbance>) -> Condition {
        Condition {
            disturbance,
            is_read: false,
        }
    }
}

/// Parameters of an ablation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ablation {
    /// Steps, each with the remedies of those before it.
    pub steps: Vec<Step>,
    /// Disturbances.
    pub conditions: Vec<Condition>,
    /// Arbiters of the link.
    pub arbiters: Vec<Arbiter>,
    /// Serialised sizes of the message, in bytes.
    pub payloads: Vec<u32>,
    /// Number of repetitions.
    pub repetitions: u32,
    /// Pings per second.
    pub rate_hz: u32,
    /// Duration of each run in seconds.
    pub seconds: u32,
}

impl Ablation {
    /// All runs in order.
    pub fn rows(&self) -> Vec<Config> {
        let mut rows = Vec::new();
        for repetition in 1..=self.repetitions {
            for &payload_bytes in &self.payloads {
                for &condition in &self.conditions {
                    for &arbiter in &self.arbiters {
                        for step in self.steps_of(repetition) {
                            let row = self.row(step, payload_bytes, condition);
                            rows.push(Config {
                                repetition,
                                ..row.through(arbiter)
                            });
                        }
                    }
                }
            }
        }
        rows
    }

    /// Steps of a repetition, rotated by one in each.
    fn steps_of(&self, repetition: u32) -> impl Iterator<Item = Step> {
        let first = (repetition as usize - 1) % self.steps.len().max(1);
        let steps = self.steps.iter().copied().cycle();
        steps.skip(first).take(self.steps.len())
    }

    fn row(&self, step: Step, payload_bytes: u32, condition: Condition) -> Config {
        let disturbance = condition.disturbance;
        let scenario = plan::scenario("udp", Publisher::Thread, payload_bytes, disturbance);
        let mut scenario = step.of(scenario);
        scenario.rate_hz = self.rate_hz;
        let row = plan::config(scenario, self.seconds);
        match condition.is_read {
            true => row.read_as_bulk(),
            false => row,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Ablation {
        Ablation {
            steps: Step::ALL.to_vec(),
            conditions: Condition::ALL.to_vec(),
            arbiters: vec![Arbiter::Fifo, Arbiter::Strict],
            payloads: vec![64, 512, 1024],
            repetitions: 3,
            rate_hz: 2_000,
            seconds: 5,
        }
    }

    #[test]
    fn everything_is_measured_as_often_as_requested() {
        let rows = all().rows();
        assert_eq!(rows.len(), 7 * 4 * 2 * 3 * 3);
        for repetition in 1..=3 {
            let of_repetition = rows.iter().filter(|row| row.repetition == repetition);
            assert_eq!(of_repetition.count(), rows.len() / 3);
        }
    }

    #[test]
    fn steps_stand_next_to_each_other_and_take_turns_at_being_first() {
        let rows = all().rows();
        for block in rows.chunks(Step::ALL.len()) {
            let first = &block[0];
            assert!(block.iter().all(|row| {
                row.cable.arbiter == first.cable.arbiter
                    && row.scenario.disturbance == first.scenario.disturbance
                    && row.bulk_reader == first.bulk_reader
                    && row.scenario.payload_bytes == first.scenario.payload_bytes
            }));
        }
        let firsts: Vec<&[crate::report::Stage]> = rows
            .chunks(rows.len() / 3)
            .map(|repetition| repetition[0].scenario.stages.as_slice())
            .collect();
        assert_ne!(firsts[0], firsts[1]);
        assert_eq!(rows[0].scenario.order, crate::report::Order::Fifo);
    }
}
