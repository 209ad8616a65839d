//! Conversion of datapath, placement and protection settings to the library's types.

use std::num::NonZeroU32;
use std::time::Duration;

use isolane::{
    Budget, Builder, DatapathKind, InterfaceRateLimit, Limits, Participant, RateLimitError, Waiting,
};
use isolane_model::{DatapathChoice, DatapathSettings, OthersBudget, OverBudget, Scheduling};

use crate::datapaths::kinds;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::{ENDPOINTS_PER_PARTICIPANT, MATCHES_PER_PARTICIPANT};
use crate::output::tell;
use crate::settings::LaneSettings;
use crate::values::ReceiveBudget;

/// Sets the datapath, and the waiting mode of the idle loop.
pub(super) fn with_datapath(mut builder: Builder, lane: &LaneSettings) -> Builder {
    if let Some(level) = lane.discovery_level.value {
        builder = builder.discovery_level(level);
    }
    let is_chosen = |kind: &&&dyn DatapathKind| match lane.datapath.value {
        DatapathChoice::Auto => true,
        DatapathChoice::Named(name) => kind.name() == name,
    };
    let chosen = kinds().iter().filter(is_chosen);
    let factories = chosen.map(|kind| {
        let settings = lane.datapaths.iter();
        let mut settings = settings.filter(|it| it.kind().name() == kind.name());
        let options = settings.next().map(DatapathSettings::options);
        let configured = kind.configure(&options.unwrap_or_default());
        configured.expect("description and command line were checked")
    });
    let builder = builder.datapaths(factories.collect());
    builder.waiting(match lane.waiting.value {
        isolane_model::Waiting::Sleep => Waiting::Sleep,
        isolane_model::Waiting::Spin => Waiting::Spin,
    })
}

/// Sets the core and priority of the loop's thread and locks memory, as described for the host.
pub(super) fn with_placement(mut builder: Builder, lane: &LaneSettings) -> Builder {
    let Some(placement) = &lane.placement else {
        return builder;
    };
    if let Some(core) = placement.core.value {
        builder = builder.core(core);
    }
    if let Some(priority) = placement.priority.value {
        builder = builder.realtime(priority);
    }
    builder
        .lock_memory(placement.lock_memory.value)
        .require_placement(placement.scheduling.value == Scheduling::Required)
}

/// Table limits for remote participants: the configured maximum, else `usual`.
pub(super) fn limits(lane: &LaneSettings, usual: u32) -> Limits {
    let participants = lane.max_participants.value.unwrap_or(usual);
    let places = |of_each: u32| u16::try_from(participants * of_each).unwrap_or(u16::MAX);
    Limits {
        participants: places(1),
        remote_endpoints: places(ENDPOINTS_PER_PARTICIPANT),
        matches: places(MATCHES_PER_PARTICIPANT),
        fixed_memory: lane.fixed_memory,
        sample_bytes: lane.sample_memory.value.get() as usize,
        ..Limits::default()
    }
}

/// Applies the common protection of all receivers, if configured. It precedes the first endpoint, so that the first
/// datagram is already policed. A datapath without support is reported.
pub(super) fn protect(participant: &Participant, lane: &LaneSettings) -> Result<(), Failure> {
    let topics = lane.protect.topics.as_ref();
    let others = lane.protect.others.as_ref();
    if topics.is_none() && others.is_none() {
        return Ok(());
    }
    let of = |capacity: NonZeroU32, period: Duration| Budget { capacity, period };
    let protection = InterfaceRateLimit {
        topics: topics.map(|topics| {
            let budget = of(topics.capacity.value, topics.period.value);
            (budget, topics.reserved.value)
        }),
        foreign: others.map(
            |OthersBudget {
                 capacity, period, ..
             }| of(capacity.value, period.value),
        ),
    };
    match participant.set_interface_limit(protection) {
        Ok(()) => Ok(()),
        Err(error @ (RateLimitError::Unsupported { .. } | RateLimitError::NoLanes)) => {
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

pub(super) fn budget(budget: ReceiveBudget) -> Budget {
    Budget {
        capacity: budget.capacity,
        period: budget.period,
    }
}

/// Converts the action for datagrams over budget.
pub(super) fn over(over: OverBudget) -> isolane::OverBudget {
    match over {
        OverBudget::Drop => isolane::OverBudget::Drop,
        OverBudget::Demote => isolane::OverBudget::Demote,
    }
}
