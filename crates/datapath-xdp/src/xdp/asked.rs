//! Requested rate limits, kept until a classifier enforces them, and reused for lanes opened later.
//!
//! A participant's rate limits are set when it is created, before its endpoints open lanes. A request for a closed
//! lane, or for an interface without a device, is validated, stored, and in force before the lane's first frame
//! arrives. Where no device is available, the request is refused at once, or a [`Warning`](isolane_datapath::Warning)
//! reports it later. A level without a lane is counted once another level has one; until then a warning says so.

use isolane_datapath::{
    Datapath, InterfaceRateLimit, Lane, RateLimit, RateLimitError, RateLimitTarget,
};

use super::Xdp;
use super::device::Device;
use super::slots::Owner;
use super::warning;
use crate::classifier;

/// Last requested rate limits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    lanes: [Option<RateLimit>; Lane::COUNT],
    interface: Option<InterfaceRateLimit>,
}

impl Asked {
    /// Rate limit of a lane's own port and groups.
    pub(super) fn lane(&self, lane: Lane) -> Option<RateLimit> {
        self.lanes[lane.index()]
    }

    /// Rate limits of the interface; `None` if never requested.
    pub(super) fn interface(&self) -> Option<InterfaceRateLimit> {
        self.interface
    }

    fn is_anything(&self) -> bool {
        let interface = self.interface.unwrap_or_default();
        self.lanes.iter().any(Option::is_some)
            || interface.topics.is_some()
            || interface.foreign.is_some()
    }
}

impl Xdp {
    /// Protects a lane or a topic's flow, now or when the lane opens.
    pub(super) fn set_rate_limit_now_or_later(
        &mut self,
        what: RateLimitTarget,
        with: Option<RateLimit>,
    ) -> Result<(), RateLimitError> {
        self.can_count()?;
        if let Some(rate_limit) = &with {
            classifier::check_budget(&rate_limit.budget)?;
        }
        let is_closed = |lane: Lane| self.device().is_none() || self.udp.unicast(lane).is_empty();
        if let RateLimitTarget::Lane(lane) = what
            && is_closed(lane)
        {
            self.asked.lanes[lane.index()] = with;
            self.warn_waiting();
            return Ok(());
        }
        let device = self.device_mut().ok_or(RateLimitError::NoFlow)?;
        let owner = match what {
            RateLimitTarget::Lane(lane) => Owner { lane, topic: None },
            RateLimitTarget::Flow(flow) => {
                let topic = device.slots.topic(flow).ok_or(RateLimitError::NoFlow)?;
                Owner {
                    lane: topic.lane,
                    topic: Some(flow),
                }
            }
        };
        let Device {
            slots, classifier, ..
        } = device;
        if !slots.set_rate_limit(classifier, owner, with)? {
            return Err(RateLimitError::NoFlow);
        }
        if let RateLimitTarget::Lane(lane) = what {
            self.asked.lanes[lane.index()] = with;
        }
        self.note_rate_limits();
        Ok(())
    }

    /// Protects the interface, now or when its device opens.
    pub(super) fn set_interface_rate_limit_now_or_later(
        &mut self,
        with: InterfaceRateLimit,
    ) -> Result<(), RateLimitError> {
        self.can_count()?;
        classifier::check_interface(&with)?;
        if let Some(device) = self.device_mut() {
            device.classifier.set_interface_rate_limit(&with)?;
            self.note_rate_limits();
        }
        self.asked.interface = Some(with);
        self.warn_waiting();
        Ok(())
    }

    /// Checks that a device that can enforce budgets is open, or can still be opened.
    fn can_count(&self) -> Result<(), RateLimitError> {
        let way = self.way.as_ref().filter(|way| !way.is_gone);
        let is_wanted = |_: &&_| self.options.levels != 0;
        match way.filter(is_wanted) {
            Some(way) if way.device.is_some() || !way.is_refused => Ok(()),
            _ => Err(RateLimitError::NoLanes),
        }
    }

    /// Updates the replenishment after budgets may have been set.
    pub(super) fn note_rate_limits(&mut self) {
        if let Some(device) = self.device_mut() {
            device.note_rate_limits();
        }
        self.warn_replenisher();
    }

    /// Warns that requested budgets are not enforced yet, if levels are open and none of them has a lane.
    pub(super) fn warn_waiting(&mut self) {
        let Some(way) = self.way.as_deref().filter(|way| !way.is_gone) else {
            return;
        };
        let is_open = |lane: &Lane| lane.level().is_some() && !self.udp.unicast(*lane).is_empty();
        let waits = way.device.is_none() && !way.is_refused && self.asked.is_anything();
        if waits && Lane::ALL.iter().any(is_open) {
            let waiting = warning::budgets_wait(&way.interface);
            self.warn(waiting);
        }
    }

    /// Warns that requested budgets are not enforced, for a lane that has sockets only.
    pub(super) fn warn_not_limited(&mut self, lane: Lane) {
        let Some(way) = self.way.as_deref() else {
            return;
        };
        let warning = match way.device {
            None if self.asked.is_anything() => warning::no_budgets(&way.interface),
            Some(_) if self.asked.lane(lane).is_some() => {
                warning::no_budget_of(&way.interface, lane)
            }
            _ => return,
        };
        self.warn(warning);
    }
}
