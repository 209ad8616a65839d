//! A job between what is measured and bulk, which takes all the time that the one leaves the other: the
//! executor never gets to the lane of bulk, so what comes in there stays in its ring or socket.
//!
//! It is what a user has who computes too much at a middle level. This one sleeps instead, which is the
//! same to its executor, since no activation is interrupted: both ends are on one core, and one that
//! computed all the time under SCHED_FIFO would keep the other from running.

use std::thread;
use std::time::Duration;

use isolane::{Level, Participant, Timer};

use super::EndConfig;
use crate::scenario::end::EndError;

/// Above bulk, below what is measured.
const LEVEL: u8 = 4;
/// How long an activation takes: less than a period of the round trips, which wait for one.
const ACTIVATION: Duration = Duration::from_micros(250);
/// It is due again before it has ended.
const PERIOD: Duration = Duration::from_micros(100);

/// The job, if the end has one.
pub(super) struct Between(Option<Timer>);

impl Between {
    /// From now on it goes on, if nobody is to drain bulk.
    pub(super) fn begin(
        participant: &Participant,
        config: &EndConfig,
    ) -> Result<Between, EndError> {
        if !config.starves_bulk() {
            return Ok(Between(None));
        }
        let level = Level::clamp(LEVEL.into());
        let timer = participant.create_timer(
            "busy between",
            level,
            PERIOD,
            Duration::ZERO,
            |_release| {
                thread::sleep(ACTIVATION);
            },
        )?;
        Ok(Between(Some(timer)))
    }

    /// What waits is drained from now on.
    pub(super) fn end(self, participant: &Participant) {
        if let Some(timer) = self.0 {
            participant.stop_timer(timer);
        }
    }
}
