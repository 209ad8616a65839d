//! Conversion of datapath, placement and protection settings to the library's types.

use std::num::NonZeroU32;
use std::time::Duration;

use isolane::{
    AttachMode, BindMode, Budget, Builder, InterfaceRateLimit, Limits, Participant, RateLimitError,
    UdpOptions, Waiting, XdpOptions,
};
use isolane_model::{
    Datapath, OthersBudget, OverBudget, Scheduling, Xdp, XdpAttach, XdpMode, XdpWaiting,
};
use isolane_wire::level::Level;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::{BUSY_POLL, ENDPOINTS_PER_PARTICIPANT, MATCHES_PER_PARTICIPANT};
use crate::output::tell;
use crate::settings::LaneSettings;
use crate::values::ReceiveBudget;

/// Sets the datapath, and the waiting mode of the idle loop.
pub(super) fn with_datapath(mut builder: Builder, lane: &LaneSettings) -> Builder {
    if let Some(level) = lane.discovery_level.value {
        builder = builder.discovery_level(level);
    }
    let xdp = options(&lane.xdp);
    let builder = match lane.datapath.value {
        Datapath::Udp => return builder,
        Datapath::Auto => builder.datapaths(vec![Box::new(xdp), Box::new(UdpOptions)]),
        Datapath::Xdp => builder.datapath(xdp),
    };
    builder.waiting(match lane.xdp.waiting.value {
        XdpWaiting::Sleep => Waiting::Sleep,
        XdpWaiting::Spin | XdpWaiting::BusyPoll => Waiting::Spin,
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

/// Converts the lane settings to datapath options.
fn options(xdp: &Xdp) -> XdpOptions {
    let bit = |level: &Level| 1_u8 << level.get();
    let levels = xdp.levels.value.iter().map(bit);
    XdpOptions {
        levels: levels.fold(0, |all, level| all | level),
        queues: Level::ALL.map(|level| xdp.queue_of(level)),
        mode: match xdp.mode.value {
            XdpMode::Auto => BindMode::Auto,
            XdpMode::Copy => BindMode::Copy,
            XdpMode::ZeroCopy => BindMode::ZeroCopy,
        },
        attach: match xdp.attach.value {
            XdpAttach::Native => AttachMode::Native,
            XdpAttach::Generic => AttachMode::Generic,
        },
        receive_entries: [xdp.receive_entries.value.get(); 8],
        critical_reserve: xdp.critical_reserve.value,
        receive_frames: xdp.receive_frames.value.map(NonZeroU32::get),
        busy_poll: (xdp.waiting.value == XdpWaiting::BusyPoll).then_some(BUSY_POLL),
        vlan: xdp.vlan.value,
        ..XdpOptions::default()
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
