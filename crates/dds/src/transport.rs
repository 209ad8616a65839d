//! Datapath of a participant, and the lane of each level.

use std::os::fd::BorrowedFd;

use isolane_datapath::{
    Capabilities, Datapath, FlowId, InterfaceProtection, Lane, Ledger, Note, Observation,
    OpenError, Pool, ProtectError, Protected, Protection, ReceiveBurst, SendReport, TransmitBurst,
    Wakeup, memory::Memory, udp::Udp,
};
use isolane_datapath_xdp::xdp::Xdp;
use isolane_wire::{level::Level, locator::Locator};

/// Lane of each level's samples: their sockets, port, frames and receive job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes {
    levels: [Level; Level::COUNT],
    is_per_level: bool,
}

impl Lanes {
    /// Evaluates [`Builder::level_mapping`](crate::Builder::level_mapping).
    pub(crate) fn new(level_mapping: fn(Level) -> Level) -> Self {
        let levels = Level::ALL.map(level_mapping);
        Self {
            levels,
            is_per_level: levels == Level::ALL,
        }
    }

    /// Returns the lane of a level.
    pub(crate) fn lane(self, level: Level) -> Lane {
        Lane::Level(self.levels[usize::from(level.get())])
    }

    /// Whether each level has its own lane.
    #[inline]
    pub(crate) fn is_per_level(self) -> bool {
        self.is_per_level
    }
}

/// Function that puts a datapath around another one.
pub(crate) type WrapDatapath = Box<dyn FnOnce(Box<dyn Datapath>) -> Box<dyn Datapath>>;

/// Datapath of a participant.
pub(crate) enum Transport {
    Memory(Box<Memory>),
    Udp(Box<Udp>),
    /// Lanes of a device, and sockets beside them.
    Xdp(Box<Xdp>),
    /// Datapath that [`Builder::wrap_datapath`](crate::Builder::wrap_datapath) returned.
    Wrapped(Box<dyn Datapath>),
}

impl Transport {
    /// Whether epoll tells what lanes are readable; otherwise the datapath itself does.
    pub(crate) fn has_descriptors(&self) -> bool {
        self.capabilities().wakeup == Wakeup::Descriptors
    }

    /// Hands the datapath to a wrapper.
    pub(crate) fn wrapped(self, wrap: WrapDatapath) -> Self {
        let datapath: Box<dyn Datapath> = match self {
            Self::Memory(memory) => memory,
            Self::Udp(udp) => udp,
            Self::Xdp(xdp) => xdp,
            Self::Wrapped(wrapped) => wrapped,
        };
        Self::Wrapped(wrap(datapath))
    }
}

/// Calls the same method of whichever it is.
macro_rules! dispatch {
    ($self:ident, $datapath:ident => $call:expr) => {
        match $self {
            Transport::Memory($datapath) => $call,
            Transport::Udp($datapath) => $call,
            Transport::Xdp($datapath) => $call,
            Transport::Wrapped($datapath) => $call,
        }
    };
}

impl Datapath for Transport {
    fn name(&self) -> &'static str {
        dispatch!(self, datapath => datapath.name())
    }

    fn capabilities(&self) -> &Capabilities {
        dispatch!(self, datapath => datapath.capabilities())
    }

    fn pool(&self) -> &Pool {
        dispatch!(self, datapath => datapath.pool())
    }

    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError> {
        dispatch!(self, datapath => datapath.open_lane(lane))
    }

    fn unicast(&self, lane: Lane) -> &[Locator] {
        dispatch!(self, datapath => datapath.unicast(lane))
    }

    fn multicast(&self, lane: Lane) -> &[Locator] {
        dispatch!(self, datapath => datapath.multicast(lane))
    }

    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize {
        dispatch!(self, datapath => datapath.receive_burst(lane, limit, burst))
    }

    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport {
        dispatch!(self, datapath => datapath.send_burst(lane, burst))
    }

    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)> {
        dispatch!(self, datapath => datapath.descriptors())
    }

    fn ready_lanes(&mut self) -> u16 {
        dispatch!(self, datapath => datapath.ready_lanes())
    }

    fn seen_readable(&mut self, lane: Lane, readable: u8) {
        dispatch!(self, datapath => datapath.seen_readable(lane, readable));
    }

    fn look_after_interfaces(&mut self) -> bool {
        dispatch!(self, datapath => datapath.look_after_interfaces())
    }

    fn peek_lanes(&mut self) -> Option<u16> {
        dispatch!(self, datapath => datapath.peek_lanes())
    }

    fn recycle(&mut self) -> bool {
        dispatch!(self, datapath => datapath.recycle())
    }

    fn wants_recycling(&mut self) -> bool {
        dispatch!(self, datapath => datapath.wants_recycling())
    }

    fn open_flow(&mut self, lane: Lane) -> Result<FlowId, OpenError> {
        dispatch!(self, datapath => datapath.open_flow(lane))
    }

    fn flow_unicast(&self, flow: FlowId) -> &[Locator] {
        dispatch!(self, datapath => datapath.flow_unicast(flow))
    }

    fn close_flow(&mut self, flow: FlowId) {
        dispatch!(self, datapath => datapath.close_flow(flow));
    }

    fn protect(&mut self, what: Protected, with: Option<Protection>) -> Result<(), ProtectError> {
        dispatch!(self, datapath => datapath.protect(what, with))
    }

    fn protect_interface(&mut self, with: InterfaceProtection) -> Result<(), ProtectError> {
        dispatch!(self, datapath => datapath.protect_interface(with))
    }

    fn networks(&self) -> Vec<([u8; 4], u8)> {
        dispatch!(self, datapath => datapath.networks())
    }

    fn link_bits_per_s(&self) -> Option<u64> {
        dispatch!(self, datapath => datapath.link_bits_per_s())
    }

    fn receive_buffer(&self, lane: Lane) -> Option<usize> {
        dispatch!(self, datapath => datapath.receive_buffer(lane))
    }

    fn observe(&self) -> Observation {
        dispatch!(self, datapath => datapath.observe())
    }

    fn ledger(&self) -> Ledger {
        dispatch!(self, datapath => datapath.ledger())
    }

    fn notes(&self) -> &[Note] {
        dispatch!(self, datapath => datapath.notes())
    }
}
