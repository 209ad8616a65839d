//! Which slot of the classifier has which flow, and the topics that have a port of their own.

use isolane_datapath::flow::{FlowId, Protection};
use isolane_datapath::{Lane, ReceiveDrop};
use isolane_wire::level::Level;

use super::error::XdpError;
use crate::classifier::{Classifier, Counts, Flow, FlowCounts, FlowReason, FlowSlot, Way};
use crate::limits::{MAX_FLOWS, MAX_TOPIC_FLOWS};

/// Whose a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) lane: Lane,
    /// `None`: the lane itself, its port and its group.
    pub(super) topic: Option<FlowId>,
}

struct Slot {
    owner: Option<Owner>,
    flow: Option<Flow>,
    /// What the slot had counted when it was given to its owner: a slot counts on.
    before: FlowCounts,
}

/// A topic's port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Topic {
    pub(super) lane: Lane,
    /// The socket's number within the lane.
    pub(super) socket: usize,
}

/// The table.
pub(super) struct Slots {
    slots: Vec<Slot>,
    topics: Vec<Option<Topic>>,
}

/// The reasons a flow's frames are dropped for, and how the ledger calls them.
const DROPS: [(FlowReason, ReceiveDrop); 3] = [
    (FlowReason::OverBudget, ReceiveDrop::Budget),
    (FlowReason::OverInterface, ReceiveDrop::InterfaceBudget),
    (FlowReason::Recycled, ReceiveDrop::RecycledDriver),
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

    /// Registers flows of one owner, all or none of them.
    pub(super) fn add(
        &mut self,
        classifier: &mut Classifier,
        owner: Owner,
        flows: &[Flow],
    ) -> Result<(), XdpError> {
        let counts = classifier.counts();
        for flow in flows {
            let free = self.slots.iter().position(|slot| slot.owner.is_none());
            // One more than there are is named by the classifier.
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

    /// Forgets the flows of an owner; returns what was dropped of them, to be kept.
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

    /// The slots in use: number, owner, flow.
    pub(super) fn used(&self) -> impl Iterator<Item = (FlowSlot, Owner, &Flow)> {
        let numbered = self.slots.iter().enumerate();
        numbered.filter_map(|(number, slot)| {
            Some((FlowSlot(number as u8), slot.owner?, slot.flow.as_ref()?))
        })
    }

    /// What each reason dropped of a lane's flows.
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

    /// What a slot's frames came to since its owner has it.
    pub(super) fn counted(&self, counts: &Counts, number: FlowSlot) -> Vec<(&'static str, u64)> {
        let before = self.slots.get(usize::from(number.0));
        let before = before.map(|slot| slot.before).unwrap_or_default();
        let now = counts.flow(number);
        let both = now.named().zip(before.named());
        both.map(|((name, now), (_, before))| (name, now - before))
            .collect()
    }

    /// Only flows of this level may have the reserve of the interface's budget from now on.
    pub(super) fn set_critical(
        &mut self,
        classifier: &mut Classifier,
        level: Level,
    ) -> Result<(), XdpError> {
        for (number, slot) in self.slots.iter_mut().enumerate() {
            let Some(flow) = &mut slot.flow else {
                continue;
            };
            let is_critical = flow.way == Way::Lane(level);
            if flow.is_critical != is_critical {
                flow.is_critical = is_critical;
                classifier.set_flow(FlowSlot(number as u8), flow)?;
            }
        }
        Ok(())
    }

    /// Protects all flows of an owner. False: it has none.
    pub(super) fn protect(
        &mut self,
        classifier: &mut Classifier,
        owner: Owner,
        with: Option<Protection>,
    ) -> Result<bool, isolane_datapath::ProtectError> {
        let mut any = false;
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if slot.owner == Some(owner) {
                classifier.protect(FlowSlot(number as u8), with)?;
                if let Some(flow) = &mut slot.flow {
                    flow.protection = with;
                }
                any = true;
            }
        }
        Ok(any)
    }

    /// A number for a topic's port; `None` if all are in use.
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
