//! Flows that the classifier matches, and their table with a chain for each port.
//!
//! The program looks up a frame's port in an array and follows the chain of flows that starts there. User space builds
//! the chains: flows with a source first, then those without, each in slot order. Frames arrive while a chain changes;
//! `classifier/layout.h` describes what the program observes then.

use std::sync::atomic::Ordering::{Relaxed, Release};

use isolane_datapath::flow::RateLimit;
use isolane_wire::level::Level;

use super::shared_memory::{KERNEL, Shared};
use crate::limits::{MAX_FLOWS, MAX_FLOWS_PER_PORT};

/// Index of a flow in the classifier's table, below [`MAX_FLOWS`]. Assigned by the caller that registers flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowSlot(pub u8);

impl FlowSlot {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Destination of a flow's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedirectAction {
    /// The level's lane on the queue of arrival.
    Lane(Level),
    /// Always the kernel: for own traffic without a lane, such as discovery. It is counted as a flow, and not charged
    /// to the budget of traffic that belongs to no flow.
    Kernel,
}

/// Flow with the rate limit of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Destination address: this host's, or a multicast group.
    pub destination: [u8; 4],
    /// Destination UDP port.
    pub port: u16,
    /// Source address; `None` matches any. Flows with a source take precedence over those without.
    pub source: Option<[u8; 4]>,
    /// Destination of the frames.
    pub action: RedirectAction,
    /// True if the flow may use the reserve of the interface's budget. Its demoted frames may not.
    pub is_critical: bool,
    /// Budget; `None` is unlimited.
    pub rate_limit: Option<RateLimit>,
}

/// Error of registering a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// The slot is beyond the table.
    #[error(
        "the classifier has no slot {slot} for a flow, only {MAX_FLOWS}: give fewer topics a flow of \
         their own"
    )]
    NoSlot {
        /// Requested slot.
        slot: u8,
    },
    /// The port's chain has its maximum length.
    #[error(
        "port {port} has {MAX_FLOWS_PER_PORT} flows already, as many as are searched for a frame: use \
         another port for some of them"
    )]
    PortFull {
        /// Port of the flow.
        port: u16,
    },
    /// The port is 0.
    #[error("a flow needs a port, and 0 is none: register it after its socket is bound")]
    NoPort,
    /// The budget is invalid.
    #[error(transparent)]
    RateLimit(#[from] isolane_datapath::flow::RateLimitError),
}

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
        let lane = match flow.action {
            RedirectAction::Lane(level) => level.get(),
            RedirectAction::Kernel => KERNEL,
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

    /// Rebuilds a port's chain from the last flow to the first, so that every link names an already linked flow.
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
