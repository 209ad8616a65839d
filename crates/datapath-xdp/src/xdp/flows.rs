//! Flows of lanes: the classifier's slots, ports of topics, and requested rate limits.
//!
//! A participant's rate limits are set when it is created, before its endpoints open lanes. A limit for a closed lane,
//! or for an interface without a device, is validated and stored. It takes effect before the lane's first frame
//! arrives. If no device can be opened, the limit is refused at once, or a [`Warning`](isolane_datapath::Warning)
//! reports later that it is not enforced. The budget of a level without a lane is enforced once another level has a
//! lane; a warning says so until then.

use isolane_datapath::{
    Datapath, FlowId, InterfaceRateLimit, Lane, RateLimit, RateLimitError, RateLimitTarget,
    ReceiveDrop,
};
use isolane_wire::level::Level;

use super::device::Device;
use super::error::XdpError;
use super::{Xdp, warning};
use crate::classifier::{
    self, Classifier, Counts, Flow, FlowCounts, FlowReason, FlowSlot, RedirectAction,
};
use crate::limits::{MAX_FLOWS, MAX_TOPIC_FLOWS};
use crate::xdp::counters;

/// Owner of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) lane: Lane,
    /// Topic with a dedicated port; `None` for the lane's own port and group.
    pub(super) topic: Option<FlowId>,
}

struct Slot {
    owner: Option<Owner>,
    flow: Option<Flow>,
    /// Counters of the slot when its flow was registered: the classifier does not reset them.
    before: FlowCounts,
}

/// Port of a topic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Topic {
    pub(super) lane: Lane,
    /// Index of the socket within the lane.
    pub(super) socket: usize,
}

/// Table of slots and topics.
pub(super) struct Slots {
    slots: Vec<Slot>,
    topics: Vec<Option<Topic>>,
}

/// Drop reasons of flows, with their counters in the ledger.
const DROPS: [(FlowReason, ReceiveDrop); 3] = [
    (FlowReason::OverBudget, counters::BUDGET),
    (FlowReason::OverInterface, counters::INTERFACE_BUDGET),
    (FlowReason::Recycled, counters::RECYCLED_DRIVER),
];

impl Slots {
    pub(super) fn new() -> Slots {
        let free = || Slot {
            owner: None,
            flow: None,
            before: FlowCounts::default(),
        };
        Slots {
            slots: std::iter::repeat_with(free).take(MAX_FLOWS).collect(),
            topics: Vec::new(),
        }
    }

    /// Registers flows of one owner: all or none.
    pub(super) fn add(
        &mut self,
        classifier: &mut Classifier,
        owner: Owner,
        flows: &[Flow],
    ) -> Result<(), XdpError> {
        let counts = classifier.counts();
        for flow in flows {
            let free = self.slots.iter().position(|slot| slot.owner.is_none());
            // Without a free slot, the classifier reports the error.
            let number = FlowSlot(free.unwrap_or(MAX_FLOWS) as u8);
            if let Err(error) = classifier.set_flow(number, flow) {
                self.remove(classifier, owner);
                return Err(error.into());
            }
            self.slots[usize::from(number.0)] = Slot {
                owner: Some(owner),
                flow: Some(*flow),
                before: counts.flow(number),
            };
        }
        Ok(())
    }

    /// Removes the flows of an owner; returns their drops, for the ledger.
    pub(super) fn remove(
        &mut self,
        classifier: &mut Classifier,
        owner: Owner,
    ) -> [(ReceiveDrop, u64); DROPS.len()] {
        let mut dropped = DROPS.map(|(_, reason)| (reason, 0));
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if slot.owner == Some(owner) {
                let number = FlowSlot(number as u8);
                classifier.remove_flow(number);
                let counts = classifier.counts().flow(number);
                for (sum, (reason, _)) in dropped.iter_mut().zip(DROPS) {
                    sum.1 += counts.get(reason) - slot.before.get(reason);
                }
                slot.owner = None;
                slot.flow = None;
            }
        }
        dropped
    }

    /// Slots in use: number, owner and flow.
    pub(super) fn used(&self) -> impl Iterator<Item = (FlowSlot, Owner, &Flow)> {
        let numbered = self.slots.iter().enumerate();
        numbered.filter_map(|(number, slot)| {
            Some((FlowSlot(number as u8), slot.owner?, slot.flow.as_ref()?))
        })
    }

    /// Drops of a lane's flows, by reason.
    pub(super) fn drops(
        &self,
        counts: &Counts,
        lane: Lane,
    ) -> impl Iterator<Item = (ReceiveDrop, u64)> {
        let of_lane = |slot: &&(usize, &Slot)| slot.1.owner.is_some_and(|owner| owner.lane == lane);
        let mut sums = DROPS.map(|(_, reason)| (reason, 0));
        for (number, slot) in self.slots.iter().enumerate().filter(|slot| of_lane(&slot)) {
            let counts = counts.flow(FlowSlot(number as u8));
            for (sum, (reason, _)) in sums.iter_mut().zip(DROPS) {
                sum.1 += counts.get(reason) - slot.before.get(reason);
            }
        }
        sums.into_iter()
    }

    /// Counters of a slot since its flow was registered.
    pub(super) fn counted(&self, counts: &Counts, number: FlowSlot) -> Vec<(&'static str, u64)> {
        let before = self.slots.get(usize::from(number.0));
        let before = before.map(|slot| slot.before).unwrap_or_default();
        let now = counts.flow(number);
        let both = now.named().zip(before.named());
        both.map(|((name, now), (_, before))| (name, now - before))
            .collect()
    }

    /// Makes this level's flows the only ones that may use the reserve of the interface's budget.
    pub(super) fn set_critical(
        &mut self,
        classifier: &mut Classifier,
        level: Level,
    ) -> Result<(), XdpError> {
        for (number, slot) in self.slots.iter_mut().enumerate() {
            let Some(flow) = &mut slot.flow else {
                continue;
            };
            let is_critical = flow.action == RedirectAction::Lane(level);
            if flow.is_critical != is_critical {
                flow.is_critical = is_critical;
                classifier.set_flow(FlowSlot(number as u8), flow)?;
            }
        }
        Ok(())
    }

    /// Sets the rate limit of all flows of an owner; returns false if the owner has none.
    pub(super) fn set_rate_limit(
        &mut self,
        classifier: &mut Classifier,
        owner: Owner,
        with: Option<RateLimit>,
    ) -> Result<bool, RateLimitError> {
        let mut any = false;
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if slot.owner == Some(owner) {
                classifier.set_rate_limit(FlowSlot(number as u8), with)?;
                if let Some(flow) = &mut slot.flow {
                    flow.rate_limit = with;
                }
                any = true;
            }
        }
        Ok(any)
    }

    /// Adds a topic's port; `None` if all are in use.
    pub(super) fn add_topic(&mut self, topic: Topic) -> Option<FlowId> {
        let free = self.topics.iter().position(Option::is_none);
        let place = free.unwrap_or(self.topics.len());
        if place == MAX_TOPIC_FLOWS {
            return None;
        }
        if place == self.topics.len() {
            self.topics.push(None);
        }
        self.topics[place] = Some(topic);
        Some(FlowId(place as u8))
    }

    pub(super) fn topic(&self, flow: FlowId) -> Option<Topic> {
        *self.topics.get(usize::from(flow.0))?
    }

    pub(super) fn remove_topic(&mut self, flow: FlowId) -> Option<Topic> {
        self.topics.get_mut(usize::from(flow.0))?.take()
    }
}

/// Last requested rate limits: those that a classifier does not enforce yet, and those for lanes opened later.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PendingLimits {
    lanes: [Option<RateLimit>; Lane::COUNT],
    interface: Option<InterfaceRateLimit>,
}

impl PendingLimits {
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
    /// Sets the rate limit of a lane or a topic's flow, now or when the lane opens.
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
            self.pending_limits.lanes[lane.index()] = with;
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
            self.pending_limits.lanes[lane.index()] = with;
        }
        self.note_rate_limits();
        Ok(())
    }

    /// Sets the rate limit of the interface, now or when its device opens.
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
        self.pending_limits.interface = Some(with);
        self.warn_waiting();
        Ok(())
    }

    /// Checks that a device that can enforce budgets is open, or can still be opened.
    fn can_count(&self) -> Result<(), RateLimitError> {
        let interface = self.interface.as_ref().filter(|it| !it.is_gone);
        let is_wanted = |_: &&_| self.options.levels != 0;
        match interface.filter(is_wanted) {
            Some(interface) if interface.device.is_some() || !interface.is_refused => Ok(()),
            _ => Err(RateLimitError::NoLanes),
        }
    }

    /// Determines whether this process replenishes budgets. Called after budgets may have been set.
    pub(super) fn note_rate_limits(&mut self) {
        if let Some(device) = self.device_mut() {
            device.note_rate_limits();
        }
        self.warn_replenisher();
    }

    /// Warns that requested budgets are not enforced yet, if levels are open and none of them has a lane.
    pub(super) fn warn_waiting(&mut self) {
        let Some(interface) = self.interface.as_deref().filter(|it| !it.is_gone) else {
            return;
        };
        let is_open = |lane: &Lane| lane.level().is_some() && !self.udp.unicast(*lane).is_empty();
        let waits = interface.device.is_none()
            && !interface.is_refused
            && self.pending_limits.is_anything();
        if waits && Lane::ALL.iter().any(is_open) {
            let waiting = warning::budgets_wait(&interface.name);
            self.warn(waiting);
        }
    }

    /// Warns that requested budgets are not enforced, for a lane that has sockets only.
    pub(super) fn warn_not_limited(&mut self, lane: Lane) {
        let Some(interface) = self.interface.as_deref() else {
            return;
        };
        let warning = match interface.device {
            None if self.pending_limits.is_anything() => warning::no_budgets(&interface.name),
            Some(_) if self.pending_limits.lane(lane).is_some() => {
                warning::no_budget_of(&interface.name, lane)
            }
            _ => return,
        };
        self.warn(warning);
    }
}
