//! Sockets embedded in a datapath with rings: they share its frames, send what its lanes cannot, and provide flows.

use isolane_wire::locator::Locator;
use libc::c_int;

use super::flows::{FlowSocket, FlowSockets};
use super::open::{OpenLane, Opener};
use super::receive::Source;
use super::send::Egress;
use super::{Udp, destination};
use crate::burst::{Message, SendReport, TransmitBurst};
use crate::contract::OpenError;
use crate::lane::Lane;
use crate::ledger::{LaneLedger, ReceiveDrop, Refusal, TransmitLedger};
use crate::limits::MAX_LANE_FLOWS;
use crate::network::NetworkConfig;
use crate::pool::Pool;

/// Multicast TTL for the local network: routers do not forward.
pub(super) const ON_THE_NETWORK: u8 = 1;

/// Multicast TTL for readers on this host only.
const ON_THIS_HOST: u8 = 0;

impl Udp {
    /// Creates sockets that use an existing pool, and support [flows](Self::open_flow_socket).
    ///
    /// # Errors
    /// Those of [`Udp::new`].
    pub fn embedded(config: NetworkConfig, pool: Pool) -> Result<Udp, OpenError> {
        let mut udp = Udp::with_pool(config, pool)?;
        udp.has_flows = true;
        Ok(udp)
    }

    /// Configuration of the sockets.
    #[must_use]
    pub fn config(&self) -> &NetworkConfig {
        &self.config
    }

    /// Ledger of a lane, in which the embedding datapath counts as well.
    #[inline]
    pub fn lane_ledger_mut(&mut self, lane: Lane) -> &mut LaneLedger {
        self.ledger.lane_mut(lane)
    }

    /// Sends selected messages of a burst without changing the burst: bit *i* of `which` selects message *i*. Multicast
    /// is sent on all interfaces but `except`.
    pub fn send_messages(
        &mut self,
        lane: Lane,
        burst: &TransmitBurst,
        which: u64,
        except: Option<u32>,
    ) -> SendReport {
        let mut report = SendReport::default();
        let ledger = &mut self.ledger.lane_mut(lane).transmit;
        let Some(open) = self.lanes[lane.index()].as_deref_mut() else {
            let refused = selected(burst, which).count() as u32;
            ledger.note_refused(Refusal::LANE_CLOSED, refused.into());
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
                Ok(_) if self.egress.is_empty() => batch.refuse(Refusal::NO_MULTICAST, 1),
                Ok(to) => {
                    let others = |egress: &&Egress| Some(egress.index) != except;
                    for egress in self.egress.iter().filter(others) {
                        if egress.is_present {
                            batch.push(bytes, to, Some(*egress));
                        } else {
                            batch.refuse(Refusal::INTERFACE_GONE, 1);
                        }
                    }
                }
            }
        }
        batch.flush();
        report
    }

    /// Sends selected multicast messages to readers on this host only, as if received on `interface`: TTL 0 keeps them
    /// from leaving the host. Not counted in a ledger, because the network copies are sent by other means. Returns how
    /// many the kernel accepted.
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

    /// Returns true if multicast is sent on an interface other than this one.
    #[must_use]
    pub fn multicasts_on_others(&self, interface: u32) -> bool {
        self.egress.iter().any(|one| one.index != interface)
    }

    /// Closes a lane after another part of it could not be opened.
    pub fn close_lane(&mut self, lane: Lane) {
        self.lanes[lane.index()] = None;
    }

    /// Opens a flow in an open lane and returns its number. Its datagrams arrive in the lane's bursts.
    ///
    /// # Errors
    /// [`OpenError`]; nothing is changed.
    pub fn open_flow_socket(&mut self, lane: Lane) -> Result<usize, OpenError> {
        let mut opener = Opener {
            config: &self.config,
            interfaces: &self.interfaces,
            has_flows: true,
            warnings: Vec::new(),
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

    /// Unicast locators of a flow.
    #[must_use]
    pub fn flow_socket_unicast(&self, lane: Lane, number: usize) -> &[Locator] {
        let flows = self.lane(lane).and_then(|open| open.flows.as_ref());
        let flow = flows.and_then(|flows| flows.get(number));
        flow.map_or(&[], |flow| &flow.unicast)
    }

    /// Closes a flow.
    pub fn close_flow_socket(&mut self, lane: Lane, number: usize) {
        let open = self.lanes[lane.index()].as_deref_mut();
        let flow = open.and_then(|open| open.flows.as_mut()?.remove(number));
        if let Some(flow) = flow {
            // Keep the kernel's drop count.
            let unseen = flow.source.drops_unseen();
            let receive = &mut self.ledger.lane_mut(lane).receive;
            receive.note_dropped(ReceiveDrop::KERNEL_OVERFLOW, unseen);
        }
    }
}

fn selected(burst: &TransmitBurst, which: u64) -> impl Iterator<Item = &Message> {
    let numbered = burst.messages().iter().enumerate();
    numbered
        .filter(move |(place, _)| which & 1 << place != 0)
        .map(|(_, message)| message)
}

/// Sets the multicast TTL; a system call only if it changes.
fn set_hops(open: &mut OpenLane, hops: u8) {
    if open.hops != hops {
        let (level, option) = (libc::IPPROTO_IP, libc::IP_MULTICAST_TTL);
        // Cannot fail: the option was set when the lane was opened.
        let set = open.own.socket.set(level, option, c_int::from(hops));
        if set.is_ok() {
            open.hops = hops;
        }
    }
}

/// Creates the flow table of a lane, if supported.
pub(super) fn flow_sockets(has_flows: bool) -> Result<Option<FlowSockets>, OpenError> {
    if !has_flows {
        return Ok(None);
    }
    let sockets = FlowSockets::new();
    let sockets = sockets.map_err(|error| OpenError::of("make an epoll instance", error))?;
    Ok(Some(sockets))
}
