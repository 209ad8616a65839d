//! How a participant's frames move, as the settings want it: the datapath, and what protects
//! receivers.

use std::num::NonZeroU32;
use std::time::Duration;

use isolane::{Budget, Builder, InterfaceProtection, Over, Participant, ProtectError};
use isolane_model::{OthersBudget, OverBudget};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::LaneSettings;
use crate::values::{LaneDatapath, ReceiveBudget};

/// Chooses the datapath.
pub(super) fn with_datapath(builder: Builder, lane: &LaneSettings) -> Result<Builder, Failure> {
    match lane.datapath.value {
        LaneDatapath::Udp | LaneDatapath::Auto => Ok(builder),
        LaneDatapath::Xdp => Err(Failure::new(
            ExitCode::MachineForbids,
            "there is no datapath xdp",
            "this build is without it",
        )),
    }
}

/// Protects all receivers together, if that is asked for. That the datapath cannot is told.
pub(super) fn protect(participant: &Participant, lane: &LaneSettings) -> Result<(), Failure> {
    let topics = lane.protect.topics.as_ref();
    let others = lane.protect.others.as_ref();
    if topics.is_none() && others.is_none() {
        return Ok(());
    }
    let of = |capacity: NonZeroU32, period: Duration| Budget { capacity, period };
    let protection = InterfaceProtection {
        flows: topics.map(|topics| {
            let budget = of(topics.capacity.value, topics.period.value);
            (budget, topics.reserved.value)
        }),
        others: others.map(
            |OthersBudget {
                 capacity, period, ..
             }| of(capacity.value, period.value),
        ),
    };
    match participant.protect_interface(protection) {
        Ok(()) => Ok(()),
        Err(error @ ProtectError::Unsupported { .. }) => {
            tell(format!(
                "note: what the description protects all receivers with is not enforced: {error}"
            ));
            Ok(())
        }
        Err(error) => Err(Failure::new(
            ExitCode::WrongUsage,
            "what protects all receivers cannot be set",
            error.to_string(),
        )),
    }
}

/// Tells which budgets of readers are not kept; other notes were told when the participant was made.
pub(super) fn tell_budgets(participant: &Participant) {
    let notes = participant.notes();
    let of_budgets = notes.iter().filter(|note| note.contains("is not enforced"));
    of_budgets.for_each(|note| tell(format!("note: {note}")));
}

/// A reader's budget.
pub(super) fn budget(budget: ReceiveBudget) -> Budget {
    Budget {
        capacity: budget.capacity,
        period: budget.period,
    }
}

/// What becomes of the rest.
pub(super) fn over(over: OverBudget) -> Over {
    match over {
        OverBudget::Drop => Over::Drop,
        OverBudget::Demote => Over::Demote,
    }
}
