//! Flow table of the classifier and its per-port chains.
//!
//! The program looks up a frame's port in an array and follows the chain of flows that starts there. User space builds
//! the chains: flows with a source first, then those without, each in slot order. Frames arrive while a chain changes;
//! `classifier/layout.h` says what they observe.

use std::sync::atomic::Ordering::{Relaxed, Release};

use super::flow::{Flow, FlowError, FlowSlot, Way};
use super::layout::{KERNEL, Shared};
use crate::limits::{MAX_FLOWS, MAX_FLOWS_PER_PORT};

/// Registered flows, as known to user space.
#[derive(Debug)]
pub(super) struct Table {
    flows: [Option<Flow>; MAX_FLOWS],
}

impl Table {
    pub(super) const fn new() -> Table {
        Table {
            flows: [None; MAX_FLOWS],
        }
    }

    /// Flow in a slot.
    pub(super) fn get(&self, slot: FlowSlot) -> Option<&Flow> {
        self.flows.get(usize::from(slot.0))?.as_ref()
    }

    /// Checks that a flow can be registered in the slot.
    pub(super) fn admit(&self, slot: FlowSlot, flow: &Flow) -> Result<(), FlowError> {
        let place = usize::from(slot.0);
        if place >= MAX_FLOWS {
            return Err(FlowError::NoSlot { slot: slot.0 });
        }
        if flow.port == 0 {
            return Err(FlowError::NoPort);
        }
        let others = (self.flows.iter().enumerate())
            .filter(|(other, registered)| {
                *other != place && registered.is_some_and(|other| other.port == flow.port)
            })
            .count();
        if others >= MAX_FLOWS_PER_PORT {
            return Err(FlowError::PortFull { port: flow.port });
        }
        Ok(())
    }

    /// Registers an admitted flow whose budget is set.
    pub(super) fn insert(&mut self, shared: &Shared, slot: FlowSlot, flow: &Flow) {
        self.remove(shared, slot);
        let place = usize::from(slot.0);
        self.flows[place] = Some(*flow);
        let entry = &shared.flows[place];
        let raw = u32::from_ne_bytes;
        entry.destination.store(raw(flow.destination), Relaxed);
        entry
            .source
            .store(raw(flow.source.unwrap_or_default()), Relaxed);
        let has_source = u8::from(flow.source.is_some());
        entry.has_source.store(has_source, Relaxed);
        let lane = match flow.way {
            Way::Lane(level) => level.get(),
            Way::Kernel => KERNEL,
        };
        entry.lane.store(lane, Relaxed);
        let is_critical = u8::from(flow.is_critical);
        entry.is_critical.store(is_critical, Relaxed);
        entry.port.store(flow.port, Release);
        self.chain(shared, flow.port);
    }

    /// Removes a flow, if there is one.
    pub(super) fn remove(&mut self, shared: &Shared, slot: FlowSlot) {
        let place = usize::from(slot.0);
        let Some(flow) = self.flows.get_mut(place).and_then(Option::take) else {
            return;
        };
        shared.flows[place].port.store(0, Release);
        self.chain(shared, flow.port);
    }

    /// Flow in a slot, to change its budget.
    pub(super) fn flow_mut(&mut self, slot: FlowSlot) -> Option<&mut Flow> {
        self.flows.get_mut(usize::from(slot.0))?.as_mut()
    }

    /// Rebuilds a port's chain from the last flow to the first, so that every link names a linked flow.
    fn chain(&self, shared: &Shared, port: u16) {
        let mut next = 0;
        for has_source in [false, true] {
            for (place, flow) in self.flows.iter().enumerate().rev() {
                let is_next = flow
                    .is_some_and(|flow| flow.port == port && flow.source.is_some() == has_source);
                if is_next {
                    shared.flows[place].next.store(next, Release);
                    next = place as u8 + 1;
                }
            }
        }
        shared.first[usize::from(port)].store(next, Release);
    }
}
