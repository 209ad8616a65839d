//! Which runs an ablation makes: every step beside every disturbance, through both arbiters, with
//! every payload, several times.
//!
//! What is compared is measured next to each other: the steps of one disturbance, arbiter and payload
//! follow each other, and each repetition begins with another step, so that no step is always the
//! one after a pause. Repetitions are the outermost round: what drifts on the machine drifts through
//! all of them.

use crate::cable::Arbiter;
use crate::report::{Disturbance, Publisher, Step};
use crate::scenario::plan;
use crate::scenario::rtt::Config;

/// What is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ablation {
    /// Remedies, each with those before it.
    pub steps: Vec<Step>,
    /// What goes on beside.
    pub disturbances: Vec<Option<Disturbance>>,
    /// How the link serves frames.
    pub arbiters: Vec<Arbiter>,
    /// Serialised sizes of the message.
    pub payloads: Vec<u32>,
    /// How often everything is measured.
    pub repetitions: u32,
    /// Pings a second.
    pub rate_hz: u32,
    /// How long each run lasts.
    pub seconds: u32,
}

impl Ablation {
    /// The disturbances that an ablation is about: those from outside of the participants.
    pub const DISTURBANCES: [Option<Disturbance>; 3] =
        [None, Some(Disturbance::Flood), Some(Disturbance::Storm)];

    /// All runs, in the order they are to be made in.
    pub fn rows(&self) -> Vec<Config> {
        let mut rows = Vec::new();
        for repetition in 1..=self.repetitions {
            for &payload_bytes in &self.payloads {
                for &disturbance in &self.disturbances {
                    for &arbiter in &self.arbiters {
                        for step in self.steps_of(repetition) {
                            let row = self.row(step, payload_bytes, disturbance);
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

    /// The steps, another one first in each repetition.
    fn steps_of(&self, repetition: u32) -> impl Iterator<Item = Step> {
        let first = (repetition as usize - 1) % self.steps.len().max(1);
        let steps = self.steps.iter().copied().cycle();
        steps.skip(first).take(self.steps.len())
    }

    fn row(&self, step: Step, payload_bytes: u32, disturbance: Option<Disturbance>) -> Config {
        let scenario = plan::scenario("udp", Publisher::Thread, payload_bytes, disturbance);
        let mut scenario = step.of(scenario);
        scenario.rate_hz = self.rate_hz;
        plan::config(scenario, self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Ablation {
        Ablation {
            steps: Step::ALL.to_vec(),
            disturbances: Ablation::DISTURBANCES.to_vec(),
            arbiters: vec![Arbiter::Fifo, Arbiter::Strict],
            payloads: vec![64, 512, 1024],
            repetitions: 3,
            rate_hz: 2_000,
            seconds: 5,
        }
    }

    #[test]
    fn everything_is_measured_as_often_as_asked_for() {
        let rows = all().rows();
        assert_eq!(rows.len(), 6 * 3 * 2 * 3 * 3);
        for repetition in 1..=3 {
            let of_repetition = rows.iter().filter(|row| row.repetition == repetition);
            assert_eq!(of_repetition.count(), rows.len() / 3);
        }
    }

    #[test]
    fn steps_stand_next_to_each_other_and_take_turns_at_being_first() {
        let rows = all().rows();
        for block in rows.chunks(6) {
            let first = &block[0];
            assert!(block.iter().all(|row| {
                row.cable.arbiter == first.cable.arbiter
                    && row.scenario.disturbance == first.scenario.disturbance
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
