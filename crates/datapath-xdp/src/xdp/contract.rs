//! [`Datapath`] implementation over lanes and their kernel sockets.

use std::os::fd::{AsFd, BorrowedFd};

use isolane_datapath::{
    Capabilities, Datapath, FlowId, InterfaceRateLimit, Lane, Ledger, Observation, OpenError, Pool,
    RateLimit, RateLimitError, RateLimitTarget, ReceiveBurst, SendReport, TransmitBurst, Warning,
};
use isolane_wire::locator::Locator;

use super::counters;
use super::{Xdp, refuse_or_warn};

impl Datapath for Xdp {
    fn name(&self) -> &'static str {
        "xdp"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError> {
        if !self.udp.unicast(lane).is_empty() {
            return Ok(());
        }
        self.udp.open_lane(lane)?;
        self.capabilities.segmented_lanes = self.udp.capabilities().segmented_lanes;
        let opened = self.open_on_device(lane);
        // Also after a failure, because the device may exist and enforce budgets.
        self.note_rate_limits();
        let Err(source) = opened else {
            return Ok(());
        };
        if let Some(interface) = self.interface.as_deref_mut() {
            interface.is_refused = interface.device.is_none();
        }
        let interface = self.interface.as_ref().map(|it| it.name.clone());
        let interface = interface.unwrap_or_default();
        let refused = refuse_or_warn(&self.options, interface, source, &mut self.warnings);
        match refused {
            Ok(()) => self.warn_not_limited(lane),
            Err(_) => self.udp.close_lane(lane),
        }
        refused
    }

    fn unicast(&self, lane: Lane) -> &[Locator] {
        self.udp.unicast(lane)
    }

    fn multicast(&self, lane: Lane) -> &[Locator] {
        self.udp.multicast(lane)
    }

    fn networks(&self) -> Vec<([u8; 4], u8)> {
        self.udp.networks()
    }

    fn link_bits_per_s(&self) -> Option<u64> {
        self.udp.link_bits_per_s()
    }

    fn receive_buffer(&self, lane: Lane) -> Option<usize> {
        self.udp.receive_buffer(lane)
    }

    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize {
        let readable = std::mem::replace(&mut self.readable[lane.index()], u8::MAX);
        let limit = limit.min(burst.capacity() - burst.len());
        let has_looked = readable != u8::MAX;
        let by_kernel = match has_looked && self.firsts & lane.bit() != 0 {
            true => readable >> 1,
            false => readable,
        };
        match lane.level() {
            // Usual case: the last poll found frames in the ring only.
            Some(level) if by_kernel == 0 => self.receive_by_lane(level, limit, burst),
            _ => self.receive_by_both(lane, limit, readable, by_kernel, burst),
        }
    }

    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport {
        if let Some(level) = lane.level() {
            // Usual case: one frame to one destination.
            let sent = self.send_single(level, burst);
            if let Some(report) = sent.or_else(|| self.send_by_lane(level, burst)) {
                return report;
            }
        }
        self.udp.send_burst(lane, burst)
    }

    fn set_readable(&mut self, lane: Lane, readable: u8) {
        self.readable[lane.index()] = readable;
    }

    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)> {
        let of_sockets = self.udp.descriptors();
        let mut descriptors = Vec::new();
        for lane in Lane::ALL {
            let is_for_news = lane == Lane::Discovery && !self.udp.unicast(lane).is_empty();
            let interface = self.interface.as_ref().filter(|_| is_for_news);
            descriptors.extend(interface.map(|it| (lane, it.router.descriptor())));
            let ring = self.device().zip(lane.level()).and_then(|(device, level)| {
                let open = device.lanes[usize::from(level.get())].as_deref()?;
                Some((lane, open.receive.as_fd()))
            });
            descriptors.extend(ring);
            let sockets = of_sockets.iter().filter(|(of, _)| *of == lane);
            descriptors.extend(sockets.copied());
        }
        descriptors
    }

    /// All open lanes; epoll reports the kernel sockets.
    fn ready_lanes(&mut self) -> u16 {
        self.udp.ready_lanes()
    }

    fn peek_lanes(&mut self) -> Option<u16> {
        let polls = self.options.busy_poll.is_some();
        let device = self.device_mut()?;
        let mut seen = device.waiting();
        if polls && seen == 0 {
            device.poll();
            seen = device.waiting();
        }
        Some(seen)
    }

    fn recycle(&mut self) -> bool {
        let Some(device) = self
            .interface
            .as_mut()
            .and_then(|it| it.device.as_deref_mut())
        else {
            return false;
        };
        device.take_home(&self.pool);
        if device.has_left() {
            device.kick_left(&mut self.udp);
            // The kick usually completes the frames, and the next send may be much later.
            device.take_home(&self.pool);
        }
        device.wake();
        device.replenish();
        if !self.options.recycling {
            return false;
        }
        let reserve = self.options.critical_reserve;
        device.recycle(reserve, &self.pool, &mut self.udp)
    }

    fn wants_recycling(&mut self) -> bool {
        let reserve = match self.options.recycling {
            true => self.options.critical_reserve,
            false => 0,
        };
        let Some(device) = self.device_mut() else {
            return false;
        };
        device.replenishes || device.has_left() || device.is_low(reserve)
    }

    fn check_interfaces(&mut self) -> bool {
        let is_moved = self.udp.check_interfaces();
        self.check_device();
        if is_moved {
            self.follow_addresses();
        }
        is_moved
    }

    fn open_flow(&mut self, lane: Lane) -> Result<FlowId, OpenError> {
        self.open_topic(lane)
    }

    fn flow_unicast(&self, flow: FlowId) -> &[Locator] {
        let topic = self.device().and_then(|device| device.slots.topic(flow));
        topic.map_or(&[], |topic| {
            self.udp.flow_socket_unicast(topic.lane, topic.socket)
        })
    }

    fn close_flow(&mut self, flow: FlowId) {
        self.close_topic(flow);
    }

    fn set_rate_limit(
        &mut self,
        what: RateLimitTarget,
        with: Option<RateLimit>,
    ) -> Result<(), RateLimitError> {
        self.set_rate_limit_now_or_later(what, with)
    }

    fn set_interface_rate_limit(&mut self, with: InterfaceRateLimit) -> Result<(), RateLimitError> {
        self.set_interface_rate_limit_now_or_later(with)
    }

    fn observe(&self) -> Observation {
        self.observation()
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = self.udp.ledger().with_names(&counters::NAMES);
        if let Some(device) = self.device() {
            device.add_to(&mut ledger);
        }
        ledger
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}
