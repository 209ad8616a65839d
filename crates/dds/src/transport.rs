//! The datapath a participant uses, chosen once: an enum, so that no user's type carries it.

use std::os::fd::BorrowedFd;

use isolane_datapath::{
    Capabilities, Datapath, Lane, Ledger, Note, OpenError, Pool, ReceiveBurst, SendReport,
    TransmitBurst, Wakeup, memory::Memory, udp::Udp,
};
use isolane_wire::locator::Locator;

/// One of the datapaths.
#[derive(Debug)]
pub(crate) enum Transport {
    Memory(Box<Memory>),
    Udp(Box<Udp>),
}

impl Transport {
    /// Whether epoll tells what lanes are readable; otherwise the datapath itself does.
    pub(crate) fn has_descriptors(&self) -> bool {
        self.capabilities().wakeup == Wakeup::Descriptors
    }
}

/// Calls the same method of whichever it is.
macro_rules! dispatch {
    ($self:ident, $datapath:ident => $call:expr) => {
        match $self {
            Transport::Memory($datapath) => $call,
            Transport::Udp($datapath) => $call,
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

    fn ledger(&self) -> Ledger {
        dispatch!(self, datapath => datapath.ledger())
    }

    fn notes(&self) -> &[Note] {
        dispatch!(self, datapath => datapath.notes())
    }
}
