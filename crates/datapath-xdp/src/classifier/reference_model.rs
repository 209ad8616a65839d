//! Reference model of the classifier in Rust: the same decisions by different means.
//!
//! The model reads frames through the views of `isolane-wire`, searches all flows instead of following a chain, and
//! keeps budgets and free buffers as plain numbers. Tests give model and program the same configuration and frames, and
//! require the same verdicts (`tests/reference_model`). The model has no clock, kernel or shared memory. It also
//! predicts verdicts where no program can be loaded.

use isolane_datapath::flow::{Budget, InterfaceRateLimit, OverBudget, RateLimit, RateLimitError};
use isolane_wire::level::Level;
use isolane_wire::{ethernet, ipv4, udp};

use super::flows::{Flow, FlowError, FlowSlot, RedirectAction};
use super::verdict::{Counts, FlowReason, OthersReason, Verdict};
use super::{Enforcement, budgets};
use crate::limits::{MAX_FLOWS, MAX_FLOWS_PER_PORT, MAX_LANES, MAX_QUEUES};

/// Deferrable server.
#[derive(Clone, Copy, Debug)]
struct Server {
    left: u32,
    capacity: u32,
    period_ns: u64,
    /// End of the period; `None` until the first replenishment call.
    next_ns: Option<u64>,
}

impl Server {
    const fn new(capacity: u32, budget: &Budget) -> Server {
        Server {
            left: capacity,
            capacity,
            period_ns: budget.period.as_nanos() as u64,
            next_ns: None,
        }
    }

    /// Takes one unit of budget, if any is left.
    const fn take(&mut self) -> bool {
        let has_place = self.left > 0;
        self.left -= has_place as u32;
        has_place
    }

    fn replenish(&mut self, now_ns: u64) {
        let Some(next_ns) = self.next_ns else {
            self.next_ns = Some(now_ns + self.period_ns);
            return;
        };
        if now_ns >= next_ns {
            self.left = self.capacity;
            // Keeps the phase of the period, unless a whole period was missed.
            let is_late = now_ns >= next_ns + self.period_ns;
            let from_ns = if is_late { now_ns } else { next_ns };
            self.next_ns = Some(from_ns + self.period_ns);
        }
    }
}

/// Lane of a queue.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    is_bound: bool,
    has_socket: bool,
    low_water: Option<u32>,
}

/// Receive queue.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    lanes: [Lane; MAX_LANES],
    /// Free fill-ring entries as the program estimates them: negative when sockets refuse redirected frames.
    free: i64,
}

/// Servers of the interface's budget.
#[derive(Clone, Copy, Debug)]
struct Interface {
    shared: Server,
    reserve: Server,
}

/// Reference model of the classifier.
#[derive(Clone, Debug)]
pub struct ReferenceModel {
    flows: [Option<Flow>; MAX_FLOWS],
    budgets: [Option<Server>; MAX_FLOWS],
    interface: Option<Interface>,
    others: Option<Server>,
    queues: [Queue; MAX_QUEUES],
    enforcement: Enforcement,
    counts: Box<Counts>,
}

impl Default for ReferenceModel {
    fn default() -> ReferenceModel {
        ReferenceModel::new()
    }
}

impl ReferenceModel {
    /// Creates a model without flows and lanes, which passes every frame.
    #[must_use]
    pub fn new() -> ReferenceModel {
        ReferenceModel {
            flows: [None; MAX_FLOWS],
            budgets: [None; MAX_FLOWS],
            interface: None,
            others: None,
            queues: [Queue::default(); MAX_QUEUES],
            enforcement: Enforcement::default(),
            counts: Box::default(),
        }
    }

    /// Model of [`Classifier::set_flow`](super::Classifier::set_flow).
    ///
    /// # Errors
    /// Those of the original.
    pub fn set_flow(&mut self, slot: FlowSlot, flow: &Flow) -> Result<(), FlowError> {
        if slot.index() >= MAX_FLOWS {
            return Err(FlowError::NoSlot { slot: slot.0 });
        }
        if flow.port == 0 {
            return Err(FlowError::NoPort);
        }
        let mut flows = self.flows;
        flows[slot.index()] = Some(*flow);
        let of_port = flows
            .iter()
            .flatten()
            .filter(|other| other.port == flow.port);
        if of_port.count() > MAX_FLOWS_PER_PORT {
            return Err(FlowError::PortFull { port: flow.port });
        }
        if let Some(rate_limit) = &flow.rate_limit {
            budgets::check(&rate_limit.budget)?;
        }
        self.flows = flows;
        self.set_budget(slot, flow.rate_limit);
        Ok(())
    }

    /// Model of [`Classifier::remove_flow`](super::Classifier::remove_flow).
    pub fn remove_flow(&mut self, slot: FlowSlot) {
        if let Some(flow) = self.flows.get_mut(slot.index()) {
            *flow = None;
        }
    }

    /// Model of [`Classifier::set_rate_limit`](super::Classifier::set_rate_limit).
    ///
    /// # Errors
    /// Those of the original.
    pub fn set_rate_limit(
        &mut self,
        slot: FlowSlot,
        rate_limit: Option<RateLimit>,
    ) -> Result<(), RateLimitError> {
        if let Some(rate_limit) = &rate_limit {
            budgets::check(&rate_limit.budget)?;
        }
        let flow = self.flows.get_mut(slot.index()).and_then(Option::as_mut);
        flow.ok_or(RateLimitError::NoFlow)?.rate_limit = rate_limit;
        self.set_budget(slot, rate_limit);
        Ok(())
    }

    fn set_budget(&mut self, slot: FlowSlot, rate_limit: Option<RateLimit>) {
        self.budgets[slot.index()] =
            rate_limit.map(|RateLimit { budget, .. }| Server::new(budget.capacity.get(), &budget));
    }

    /// Model of [`Classifier::set_interface_rate_limit`](super::Classifier::set_interface_rate_limit).
    ///
    /// # Errors
    /// Those of the original.
    pub fn set_interface_rate_limit(
        &mut self,
        rate_limit: &InterfaceRateLimit,
    ) -> Result<(), RateLimitError> {
        budgets::check_interface(rate_limit)?;
        self.interface = rate_limit.topics.map(|(budget, reserved)| Interface {
            shared: Server::new(budget.capacity.get() - reserved, &budget),
            reserve: Server::new(reserved, &budget),
        });
        let server = |budget: Budget| Server::new(budget.capacity.get(), &budget);
        self.others = rate_limit.foreign.map(server);
        Ok(())
    }

    /// Model of [`Classifier::replenish`](super::Classifier::replenish) without timers.
    pub fn replenish(&mut self, now_ns: u64) {
        let interface = self.interface.iter_mut();
        let interface = interface.flat_map(|both| [&mut both.shared, &mut both.reserve]);
        let flows = self.flows.iter().zip(&mut self.budgets);
        let flows = flows.filter_map(|(flow, budget)| flow.and(budget.as_mut()));
        let servers = flows.chain(interface).chain(self.others.as_mut());
        servers.for_each(|server| server.replenish(now_ns));
    }

    /// Model of [`Classifier::left`](super::Classifier::left).
    #[must_use]
    pub fn left(&self, slot: FlowSlot) -> Option<u32> {
        self.flows.get(slot.index())?.as_ref()?;
        self.budgets[slot.index()].map(|server| server.left)
    }

    /// Model of [`Classifier::bind_lane`](super::Classifier::bind_lane). No effect for a queue that does not exist.
    pub fn bind_lane(&mut self, queue: u32, lane: Level) {
        if let Some(lane) = self.lane(queue, lane) {
            lane.is_bound = true;
            lane.has_socket = true;
        }
    }

    /// Model of [`Classifier::unbind_lane`](super::Classifier::unbind_lane).
    pub fn unbind_lane(&mut self, queue: u32, lane: Level) {
        if let Some(lane) = self.lane(queue, lane) {
            lane.is_bound = false;
            lane.has_socket = false;
        }
    }

    /// Models a closed socket before its owner unbinds the lane.
    pub fn lose_socket(&mut self, queue: u32, lane: Level) {
        if let Some(lane) = self.lane(queue, lane) {
            lane.has_socket = false;
        }
    }

    /// Model of [`Classifier::set_low_water`](super::Classifier::set_low_water).
    pub fn set_low_water(&mut self, queue: u32, lane: Level, low_water: Option<u32>) {
        if let Some(lane) = self.lane(queue, lane) {
            lane.low_water = low_water;
        }
    }

    /// Model of [`Classifier::note_free`](super::Classifier::note_free).
    pub fn note_free(&mut self, queue: u32, free: u32) {
        if let Some(queue) = self.queues.get_mut(queue as usize) {
            queue.free = i64::from(free);
        }
    }

    /// Model of [`Classifier::enforce`](super::Classifier::enforce).
    pub const fn enforce(&mut self, enforcement: Enforcement) {
        self.enforcement = enforcement;
    }

    /// Model of [`Classifier::counts`](super::Classifier::counts).
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Verdict on a frame that arrives on a queue. The frame is counted and charged.
    pub fn judge(&mut self, frame: &[u8], queue: u32) -> Verdict {
        let slot = Message::read(frame).and_then(|message| self.find(&message));
        match slot {
            Ok(slot) => self.judge_flow(slot, queue),
            Err(reason) => self.judge_others(reason),
        }
    }

    fn lane(&mut self, queue: u32, lane: Level) -> Option<&mut Lane> {
        let queue = self.queues.get_mut(queue as usize)?;
        Some(&mut queue.lanes[usize::from(lane.get())])
    }

    /// Finds the flow of a message: a flow with its source before one without, then the lowest slot.
    fn find(&self, message: &Message) -> Result<FlowSlot, OthersReason> {
        let flows = self.flows.iter().zip(0..);
        let mut of_port = flows
            .filter_map(|(flow, slot)| Some((flow.as_ref()?, FlowSlot(slot))))
            .filter(|(flow, _)| flow.port == message.port)
            .peekable();
        of_port.peek().ok_or(OthersReason::UnknownPort)?;
        of_port
            .filter(|(flow, _)| {
                let fits = |source| source == message.source;
                flow.destination == message.destination && flow.source.is_none_or(fits)
            })
            .min_by_key(|(flow, slot)| (flow.source.is_none(), *slot))
            .map(|(_, slot)| slot)
            .ok_or(OthersReason::UnknownAddress)
    }

    fn judge_others(&mut self, reason: OthersReason) -> Verdict {
        let is_charged = reason != OthersReason::Arp;
        let is_over = is_charged && self.others.as_mut().is_some_and(|server| !server.take());
        let reason = if is_over {
            OthersReason::OverOthers
        } else {
            reason
        };
        self.counts.others.note(reason);
        Verdict::Others(reason)
    }

    fn judge_flow(&mut self, slot: FlowSlot, queue: u32) -> Verdict {
        let (reason, lane) = self.decide(slot, queue);
        self.counts.flows[slot.index()].note(reason);
        Verdict::Flow { slot, reason, lane }
    }

    fn decide(&mut self, slot: FlowSlot, queue: u32) -> (FlowReason, Option<Level>) {
        // Always `Some`: `find` returned this slot.
        let Some(flow) = self.flows[slot.index()] else {
            return (FlowReason::NoLane, None);
        };
        let lanes = self.queues.get(queue as usize).map(|queue| queue.lanes);
        let budget = self.budgets[slot.index()].as_mut();
        let is_over = budget.is_some_and(|server| !server.take());
        let over = flow.rate_limit.map(|rate_limit| rate_limit.over);
        if is_over && over == Some(OverBudget::Drop) {
            return (FlowReason::OverBudget, None);
        }
        let own = match flow.action {
            RedirectAction::Lane(level) => Some(level),
            RedirectAction::Kernel => None,
        };
        let (lane, here, without) = match (is_over, own) {
            (true, _) => (
                lowest(lanes.as_ref(), own),
                FlowReason::Demoted,
                FlowReason::DemotedToKernel,
            ),
            (false, None) => (None, FlowReason::ToKernel, FlowReason::ToKernel),
            (false, Some(_)) => (own, FlowReason::InLane, FlowReason::NoLane),
        };
        let lane = lane.filter(|lane| is_bound(lanes.as_ref(), *lane));
        if lane.is_some_and(|lane| self.is_recycled(queue, lane)) {
            return (FlowReason::Recycled, None);
        }
        if !self.take_of_interface(flow.is_critical && !is_over) {
            return (FlowReason::OverInterface, None);
        }
        match lane.filter(|lane| self.hand_over(queue, *lane)) {
            Some(lane) => (here, Some(lane)),
            None => (without, None),
        }
    }

    /// Returns whether the queue's free buffers are reserved for other lanes.
    fn is_recycled(&mut self, queue: u32, lane: Level) -> bool {
        let queue = &self.queues[queue as usize];
        let low_water = queue.lanes[usize::from(lane.get())].low_water;
        let is_low = low_water.is_some_and(|mark| queue.free <= i64::from(mark));
        if is_low && !self.enforcement.recycling {
            self.counts.touched_fill += 1;
        }
        is_low && self.enforcement.recycling
    }

    fn take_of_interface(&mut self, is_critical: bool) -> bool {
        let Some(Interface { shared, reserve }) = &mut self.interface else {
            return true;
        };
        if is_critical {
            return reserve.take() || shared.take();
        }
        if shared.take() {
            return true;
        }
        let touches = !self.enforcement.reserve && reserve.take();
        self.counts.touched_reserve += u64::from(touches);
        touches
    }

    /// Hands a frame to a lane's socket; false without a socket.
    fn hand_over(&mut self, queue: u32, lane: Level) -> bool {
        let queue = &mut self.queues[queue as usize];
        let has_socket = queue.lanes[usize::from(lane.get())].has_socket;
        queue.free -= i64::from(has_socket);
        has_socket
    }
}

/// Returns whether a lane of the queue is bound.
fn is_bound(lanes: Option<&[Lane; MAX_LANES]>, lane: Level) -> bool {
    lanes.is_some_and(|lanes| lanes[usize::from(lane.get())].is_bound)
}

/// Lowest bound lane, unless it is above the flow's own. `None` for flows to the kernel.
fn lowest(lanes: Option<&[Lane; MAX_LANES]>, own: Option<Level>) -> Option<Level> {
    let lowest = Level::ALL
        .into_iter()
        .find(|level| is_bound(lanes, *level))?;
    own.is_some_and(|own| lowest <= own).then_some(lowest)
}

/// Protocol id at the start of every RTPS message (RTPS 2.5 §9.4.4).
const RTPS: &[u8] = b"RTPS";

/// Fields of an RTPS message's headers that select its flow, read through the checked views of `isolane-wire`.
struct Message {
    source: [u8; 4],
    destination: [u8; 4],
    port: u16,
}

impl Message {
    /// Parses a frame's headers.
    ///
    /// # Errors
    /// The reason that the frame holds no RTPS message.
    fn read(bytes: &[u8]) -> Result<Message, OthersReason> {
        let frame = ethernet::Frame::new_checked(bytes).map_err(|_| OthersReason::Runt)?;
        match frame.ether_type() {
            ethernet::EtherType::IPV4 => {}
            ethernet::EtherType::IPV6 => return Err(OthersReason::Ipv6),
            ethernet::EtherType::ARP => return Err(OthersReason::Arp),
            _ => return Err(OthersReason::OtherEtherType),
        }
        let packet = ipv4::Packet::new_checked(frame.payload());
        let packet = packet.map_err(|_| OthersReason::MalformedIpv4)?;
        if packet.is_fragment() {
            return Err(OthersReason::Fragment);
        }
        if packet.protocol() != ipv4::PROTOCOL_UDP {
            return Err(OthersReason::OtherProtocol);
        }
        let datagram = udp::Datagram::new_checked(packet.payload());
        let datagram = datagram.map_err(|_| OthersReason::MalformedUdp)?;
        if !datagram.payload().starts_with(RTPS) {
            return Err(OthersReason::NotRtps);
        }
        Ok(Message {
            source: packet.source(),
            destination: packet.destination(),
            port: datagram.destination_port(),
        })
    }
}
