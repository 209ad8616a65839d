//! What a datapath with rings needs of the sockets beside its lanes: they share its frames, send what
//! it does not, and keep ports for single topics.

use isolane_wire::locator::Locator;
use libc::c_int;

use super::flows::{FlowSocket, FlowSockets};
use super::open::{OpenLane, Opener};
use super::receive::Source;
use super::send::Egress;
use super::{Udp, UdpConfig, destination};
use crate::burst::{Message, SendReport, TransmitBurst};
use crate::contract::OpenError;
use crate::lane::Lane;
use crate::ledger::{LaneLedger, ReceiveDrop, Refusal, TransmitLedger};
use crate::limits::MAX_LANE_FLOWS;
use crate::pool::Pool;

/// Hops of a datagram that a network's readers are to get: routers pass none on.
pub(super) const ON_THE_NETWORK: u8 = 1;

/// Hops of a datagram that only this host's readers are to get.
const ON_THIS_HOST: u8 = 0;

impl Udp {
    /// Sockets that take their frames from a pool of somebody else's, and can have
    /// [flows](Self::open_flow_socket).
    ///
    /// # Errors
    /// As [`Udp::new`].
    pub fn embedded(config: UdpConfig, pool: Pool) -> Result<Udp, OpenError> {
        let mut udp = Udp::with_pool(config, pool)?;
        udp.has_flows = true;
        Ok(udp)
    }

    /// As it was set up.
    #[must_use]
    pub fn config(&self) -> &UdpConfig {
        &self.config
    }

    /// What was counted of a lane so far, for what another datapath counts beside it.
    #[inline]
    pub fn lane_ledger_mut(&mut self, lane: Lane) -> &mut LaneLedger {
        self.ledger.lane_mut(lane)
    }

    /// Sends some messages of a burst, which stays as it is: bit *i* of `which` is its *i*-th message.
    /// Groups are sent to by all interfaces but `beside`.
    pub fn send_messages(
        &mut self,
        lane: Lane,
        burst: &TransmitBurst,
        which: u64,
        beside: Option<u32>,
    ) -> SendReport {
        let mut report = SendReport::default();
        let ledger = &mut self.ledger.lane_mut(lane).transmit;
        let Some(open) = self.lanes[lane.index()].as_deref_mut() else {
            let refused = selected(burst, which).count() as u32;
            ledger.note_refused(Refusal::LaneClosed, refused.into());
            report.refused = refused;
            return report;
        };
        let is_near = open.hops != ON_THE_NETWORK;
        if is_near && selected(burst, which).any(|message| message.to.is_multicast()) {
            set_hops(open, ON_THE_NETWORK);
        }
        let mut batch = self.sender.batch(&open.own.socket, ledger, &mut report);
        let max_frame_bytes = self.capabilities.max_frame_bytes;
        for message in selected(burst, which) {
            let bytes = burst.frame(message);
            match destination(message, bytes.len(), max_frame_bytes) {
                Err(reason) => batch.refuse(reason, 1),
                Ok(to) if !message.to.is_multicast() => batch.push(bytes, to, None),
                Ok(_) if self.egress.is_empty() => batch.refuse(Refusal::NoMulticast, 1),
                Ok(to) => {
                    let others = |egress: &&Egress| Some(egress.index) != beside;
                    for egress in self.egress.iter().filter(others) {
                        if egress.is_present {
                            batch.push(bytes, to, Some(*egress));
                        } else {
                            batch.refuse(Refusal::InterfaceGone, 1);
                        }
                    }
                }
            }
        }
        batch.flush();
        report
    }

    /// Sends some messages to groups so that readers on this host get them as if they had come by
    /// this interface, and nobody else does: without a hop they leave no host. In no ledger, since
    /// they are sent to the network by other means; returns how many the kernel took.
    pub fn send_to_this_host(
        &mut self,
        lane: Lane,
        burst: &TransmitBurst,
        which: u64,
        interface: u32,
    ) -> u32 {
        let by = self.egress.iter().find(|one| one.index == interface);
        let (Some(by), Some(open)) = (by.copied(), self.lanes[lane.index()].as_deref_mut()) else {
            return 0;
        };
        let (mut ledger, mut report) = (TransmitLedger::default(), SendReport::default());
        set_hops(open, ON_THIS_HOST);
        let mut batch = self
            .sender
            .batch(&open.own.socket, &mut ledger, &mut report);
        for message in selected(burst, which) {
            let bytes = burst.frame(message);
            let to = destination(message, bytes.len(), self.capabilities.max_frame_bytes);
            if let Ok(to) = to {
                batch.push(bytes, to, Some(by));
            }
        }
        batch.flush();
        report.sent
    }

    /// Whether groups are sent to by any interface but this one.
    #[must_use]
    pub fn multicasts_beside(&self, interface: u32) -> bool {
        self.egress.iter().any(|one| one.index != interface)
    }

    /// Closes a lane that was just opened, because another part of it could not be.
    pub fn close_lane(&mut self, lane: Lane) {
        self.lanes[lane.index()] = None;
    }

    /// Reserves a port of its own within an open lane; returns its number there. What arrives comes
    /// with the lane's bursts.
    ///
    /// # Errors
    /// [`OpenError`], and everything is as it was.
    pub fn open_flow_socket(&mut self, lane: Lane) -> Result<usize, OpenError> {
        let mut opener = Opener {
            config: &self.config,
            interfaces: &self.interfaces,
            has_flows: true,
            notes: Vec::new(),
        };
        let open = self.lanes[lane.index()].as_deref_mut();
        let Some(flows) = open.and_then(|open| open.flows.as_mut()) else {
            return Err(OpenError::NoFlows { datapath: "udp" });
        };
        let (socket, unicast) = opener.open_flow(lane)?;
        let flow = FlowSocket {
            source: Source::new(socket),
            unicast,
        };
        let place = flows.add(flow);
        let place = place.map_err(|error| OpenError::of("watch a socket with epoll", error))?;
        place.ok_or(OpenError::TooManyFlows {
            limit: MAX_LANE_FLOWS,
        })
    }

    /// Where such a port is reached.
    #[must_use]
    pub fn flow_socket_unicast(&self, lane: Lane, number: usize) -> &[Locator] {
        let flows = self.lane(lane).and_then(|open| open.flows.as_ref());
        let flow = flows.and_then(|flows| flows.get(number));
        flow.map_or(&[], |flow| &flow.unicast)
    }

    /// Gives such a port back.
    pub fn close_flow_socket(&mut self, lane: Lane, number: usize) {
        let open = self.lanes[lane.index()].as_deref_mut();
        let flow = open.and_then(|open| open.flows.as_mut()?.remove(number));
        if let Some(flow) = flow {
            // What the kernel dropped there is not to be forgotten with it.
            let unseen = flow.source.drops_unseen();
            let receive = &mut self.ledger.lane_mut(lane).receive;
            receive.note_dropped(ReceiveDrop::KernelOverflow, unseen);
        }
    }
}

/// The messages of a burst whose bits are set.
fn selected(burst: &TransmitBurst, which: u64) -> impl Iterator<Item = &Message> {
    let numbered = burst.messages().iter().enumerate();
    numbered
        .filter(move |(place, _)| which & 1 << place != 0)
        .map(|(_, message)| message)
}

/// Makes datagrams to groups travel so far. A system call only where it was another distance.
fn set_hops(open: &mut OpenLane, hops: u8) {
    if open.hops != hops {
        let (level, option) = (libc::IPPROTO_IP, libc::IP_MULTICAST_TTL);
        // It was set when the lane was opened, so it can be.
        let set = open.own.socket.set(level, option, c_int::from(hops));
        if set.is_ok() {
            open.hops = hops;
        }
    }
}

/// For a lane that can have flows.
pub(super) fn flow_sockets(has_flows: bool) -> Result<Option<FlowSockets>, OpenError> {
    if !has_flows {
        return Ok(None);
    }
    let sockets = FlowSockets::new();
    let sockets = sockets.map_err(|error| OpenError::of("make an epoll instance", error))?;
    Ok(Some(sockets))
}
