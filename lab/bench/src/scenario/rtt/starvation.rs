//! Busy job at a level between measured and bulk traffic. It takes all the time the measured level leaves, so that the
//! executor never drains the bulk lane, and its datagrams stay in the ring or socket.
//!
//! It emulates an application that computes too much at a middle level. The job sleeps instead, which is equivalent for
//! its executor because activations are not pre-empted. Both ends share a core, and one that computed all the time
//! under SCHED_FIFO would starve the other.

use std::thread;
use std::time::Duration;

use isolane::{Level, Participant, Timer};

use super::EndConfig;
use crate::scenario::end::EndError;

/// Level above bulk and below the measured one.
const LEVEL: u8 = 4;
/// Duration of an activation, below the round trips' period, because they wait for one.
const ACTIVATION: Duration = Duration::from_micros(250);
/// Period shorter than an activation, so that the job is always due.
const PERIOD: Duration = Duration::from_micros(100);

/// Timer of the job, if the end has one.
pub(super) struct Starvation(Option<Timer>);

impl Starvation {
    /// Starts the job if bulk must not be drained.
    pub(super) fn begin(
        participant: &Participant,
        config: &EndConfig,
    ) -> Result<Starvation, EndError> {
        if !config.starves_bulk() {
            return Ok(Starvation(None));
        }
        let level = Level::clamp(LEVEL.into());
        let timer = participant.create_timer(
            "busy middle level",
            level,
            PERIOD,
            Duration::ZERO,
            |_release| {
                thread::sleep(ACTIVATION);
            },
        )?;
        Ok(Starvation(Some(timer)))
    }

    /// Stops the job, so that waiting bulk is drained.
    pub(super) fn end(self, participant: &Participant) {
        if let Some(timer) = self.0 {
            participant.stop_timer(timer);
        }
    }
}
