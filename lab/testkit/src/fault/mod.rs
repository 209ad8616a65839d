//! Fault injection: a datapath that wraps another one and makes it fail, repeatably.
//!
//! A [`Fault`] injects into any datapath the faults of a [`FaultPlan`]:
//!
//! ```text
//!   send_burst ──> refused? ──────────────────────────> wrapped datapath
//!   receive_burst <── delayed? <── copied? <── damaged? <── lost? <── wrapped datapath
//! ```
//!
//! The faults of a lane depend on the seed and on the lane's own datagrams and calls alone. A
//! failure repeats if the same datagrams are sent in the same order, whatever other lanes do.
//! With an empty plan a wrapped datapath passes the whole conformance suite. With faults it
//! passes the suite's `accounts` part: every fault is counted by
//! [`ReceiveDrop`](isolane_datapath::ReceiveDrop), [`Refusal`](isolane_datapath::Refusal) or
//! [`Injected`], and the ledger balances.
//!
//! Datagrams are lost, damaged, copied and delayed when they are received. For faults in both
//! directions, give each end a plan.

mod lane;
mod plan;

use std::cell::Cell;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use isolane_datapath::burst::Message;
use isolane_datapath::flow::{
    FlowId, InterfaceRateLimit, Observation, RateLimit, RateLimitError, RateLimitTarget,
};
use isolane_datapath::limits::{MAX_BURST, MAX_MESSAGES};
use isolane_datapath::{
    Capabilities, Class, Datapath, Frame, Lane, Ledger, OpenError, Pool, ReceiveBurst, SendReport,
    TransmitBurst, Wakeup, Warning,
};
use isolane_wire::locator::Locator;

use self::lane::{Bell, FaultyLane};
pub use self::plan::{FaultPlan, Plug};

/// Limit of delayed datagrams and copies per lane: one burst. At the limit, the lane delays and copies no further
/// datagram.
pub const MAX_HELD: usize = MAX_BURST;

/// Maximum number of bits flipped in a datagram. At least one bit is flipped, and all are adjacent.
pub const MAX_FLIPPED_BITS: usize = 4;

/// Number of `recycle` calls after which a lane's held frames return even if no frame was requested in the meantime. A
/// participant calls `recycle` fewer times than this for each frame that it takes, so it sees the exhaustion.
pub const HELD_RECYCLES: u32 = 16;

/// Removes the messages for which `keep` returns false, and each frame whose last message is removed. Frames that never
/// had a message stay.
pub fn retain_messages(burst: &mut TransmitBurst, mut keep: impl FnMut(&Message) -> bool) {
    let messages: heapless::Vec<Message, MAX_MESSAGES> = burst.messages().iter().copied().collect();
    // `drain` and `pop` both start at the end, so the frames keep their order.
    let mut frames: heapless::Vec<Frame, MAX_BURST> = burst.drain().collect();
    let mut place = 0;
    while let Some(frame) = frames.pop() {
        let own = messages.iter().filter(|one| one.frame == place);
        let is_unaddressed = own.clone().next().is_none();
        let kept = own
            .filter(|message| keep(message))
            .map(|message| message.to);
        let kept: heapless::Vec<Locator, MAX_MESSAGES> = kept.collect();
        if is_unaddressed || !kept.is_empty() {
            burst.push_to(frame, &kept);
        }
        place += 1;
    }
}

/// Injected faults of a lane that are neither a drop nor a refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Injected {
    /// Copies made of received datagrams. The ledger counts them as arrived.
    pub duplicated: u64,
    /// Datagrams that were delayed. The ledger counts them as pending until they are handed on.
    pub delayed: u64,
    /// Datagrams handed on with flipped bits.
    pub corrupted: u64,
    /// Datagrams handed on with their end cut off.
    pub shortened: u64,
    /// Calls that received nothing although datagrams may have waited.
    pub starved: u64,
    /// Calls after which the lane's free transmit frames were held.
    pub exhausted: u64,
}

impl std::ops::AddAssign<&Injected> for Injected {
    fn add_assign(&mut self, other: &Injected) {
        self.duplicated += other.duplicated;
        self.delayed += other.delayed;
        self.corrupted += other.corrupted;
        self.shortened += other.shortened;
        self.starved += other.starved;
        self.exhausted += other.exhausted;
    }
}

/// Handle to a [`Fault`] that a participant owns. Clones are the same handle.
#[derive(Clone, Debug, Default)]
pub struct FaultHandle {
    shared: Rc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    lanes: [Cell<Injected>; Lane::COUNT],
    is_exhaustion_over: Cell<bool>,
}

impl FaultHandle {
    /// Returns the faults injected into one lane.
    #[must_use]
    pub fn injected(&self, lane: Lane) -> Injected {
        self.shared.lanes[lane.index()].get()
    }

    /// Returns the faults injected into all lanes.
    #[must_use]
    pub fn injected_total(&self) -> Injected {
        let mut total = Injected::default();
        for lane in Lane::ALL {
            total += &self.injected(lane);
        }
        total
    }

    /// Ends exhaustion: held frames return with the next `recycle`, and no more are held.
    pub fn end_exhaustion(&self) {
        self.shared.is_exhaustion_over.set(true);
    }

    fn set(&self, lane: Lane, injected: Injected) {
        self.shared.lanes[lane.index()].set(injected);
    }

    fn is_exhaustion_over(&self) -> bool {
        self.shared.is_exhaustion_over.get()
    }
}

/// Datapath with injected faults.
pub struct Fault {
    inner: Box<dyn Datapath>,
    /// Those of the wrapped datapath, but without segmentation: each datagram has its own faults.
    capabilities: Capabilities,
    plan: FaultPlan,
    lanes: [Option<Box<FaultyLane>>; Lane::COUNT],
    handle: FaultHandle,
    /// Datagrams of the wrapped datapath before faults are applied. Empty between calls.
    arrived: ReceiveBurst,
}

impl Fault {
    /// Wraps a datapath. Lanes that are already open get no faults.
    pub fn new(inner: Box<dyn Datapath>, plan: FaultPlan) -> Fault {
        Fault {
            capabilities: without_segmentation(&*inner),
            inner,
            plan,
            lanes: Default::default(),
            handle: FaultHandle::default(),
            arrived: ReceiveBurst::new(),
        }
    }

    /// Returns a handle that outlives the move of the datapath into a participant.
    #[must_use]
    pub fn handle(&self) -> FaultHandle {
        self.handle.clone()
    }

    fn make_lane(&self, lane: Lane) -> Result<Box<FaultyLane>, OpenError> {
        let wakes_by_descriptors = self.inner.capabilities().wakeup == Wakeup::Descriptors;
        let bell = if self.plan.keeps_back(lane) && wakes_by_descriptors {
            let bell = Bell::new();
            Some(bell.map_err(|error| OpenError::of("make an eventfd", error))?)
        } else {
            None
        };
        Ok(Box::new(FaultyLane::new(&self.plan, lane, bell)))
    }
}

fn without_segmentation(inner: &dyn Datapath) -> Capabilities {
    Capabilities {
        segmented_lanes: 0,
        ..*inner.capabilities()
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("inner", &self.inner.name())
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl Datapath for Fault {
    fn name(&self) -> &'static str {
        "fault"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn pool(&self) -> &Pool {
        self.inner.pool()
    }

    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError> {
        if self.lanes[lane.index()].is_some() {
            return Ok(());
        }
        // Made first: if it cannot be made, the wrapped lane stays closed.
        let mut faulty = self.make_lane(lane)?;
        self.inner.open_lane(lane)?;
        self.capabilities = without_segmentation(&*self.inner);
        let pool = self.inner.pool();
        if self.plan.keeps_back(lane) {
            pool.reserve(Class::Receive(lane), MAX_HELD)?;
        }
        faulty.held_frames.reserve(pool.capacity(lane));
        self.lanes[lane.index()] = Some(faulty);
        Ok(())
    }

    fn unicast(&self, lane: Lane) -> &[Locator] {
        self.inner.unicast(lane)
    }

    fn multicast(&self, lane: Lane) -> &[Locator] {
        self.inner.multicast(lane)
    }

    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize {
        let Some(faulty) = self.lanes[lane.index()].as_deref_mut() else {
            return self.inner.receive_burst(lane, limit, burst);
        };
        let limit = limit.min(burst.capacity() - burst.len());
        let arrived = &mut self.arrived;
        let taken = faulty.receive(self.inner.as_mut(), &self.plan, limit, arrived, burst);
        self.handle.set(lane, faulty.injected);
        taken
    }

    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport {
        let Some(faulty) = self.lanes[lane.index()].as_deref_mut() else {
            return self.inner.send_burst(lane, burst);
        };
        if faulty.wants_recycling(self.inner.pool(), false) {
            faulty.held_frames.clear();
        }
        let refused = faulty.refuse(&self.plan, burst);
        let mut report = self.inner.send_burst(lane, burst);
        report.refused += refused;
        if !self.handle.is_exhaustion_over() {
            faulty.exhaust(&self.plan, self.inner.pool());
        }
        self.handle.set(lane, faulty.injected);
        report
    }

    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)> {
        let mut descriptors = self.inner.descriptors();
        for lane in Lane::ALL {
            let faulty = self.lanes[lane.index()].as_deref();
            let bell = faulty.and_then(|faulty| faulty.bell.as_ref());
            descriptors.extend(bell.map(|bell| (lane, bell.as_fd())));
        }
        descriptors
    }

    fn ready_lanes(&mut self) -> u16 {
        let lanes = self.lanes.iter().flatten();
        let held = lanes.filter(|lane| lane.delays());
        let held = held.fold(0, |set, faulty| set | faulty.lane.bit());
        self.inner.ready_lanes() | held
    }

    fn set_readable(&mut self, lane: Lane, readable: u8) {
        self.inner.set_readable(lane, readable);
    }

    fn check_interfaces(&mut self) -> bool {
        self.inner.check_interfaces()
    }

    fn peek_lanes(&mut self) -> Option<u16> {
        self.inner.peek_lanes()
    }

    fn recycle(&mut self) -> bool {
        let is_over = self.handle.is_exhaustion_over();
        let lanes = self.lanes.iter_mut().flatten();
        lanes.for_each(|lane| lane.recycle(self.inner.pool(), is_over));
        self.inner.recycle()
    }

    fn wants_recycling(&mut self) -> bool {
        let is_over = self.handle.is_exhaustion_over();
        let mut lanes = self.lanes.iter().flatten();
        lanes.any(|lane| lane.wants_recycling(self.inner.pool(), is_over))
            || self.inner.wants_recycling()
    }

    fn open_flow(&mut self, lane: Lane) -> Result<FlowId, OpenError> {
        self.inner.open_flow(lane)
    }

    fn flow_unicast(&self, flow: FlowId) -> &[Locator] {
        self.inner.flow_unicast(flow)
    }

    fn close_flow(&mut self, flow: FlowId) {
        self.inner.close_flow(flow);
    }

    fn set_rate_limit(
        &mut self,
        what: RateLimitTarget,
        with: Option<RateLimit>,
    ) -> Result<(), RateLimitError> {
        self.inner.set_rate_limit(what, with)
    }

    fn set_interface_rate_limit(&mut self, with: InterfaceRateLimit) -> Result<(), RateLimitError> {
        self.inner.set_interface_rate_limit(with)
    }

    fn networks(&self) -> Vec<([u8; 4], u8)> {
        self.inner.networks()
    }

    fn link_bits_per_s(&self) -> Option<u64> {
        self.inner.link_bits_per_s()
    }

    fn receive_buffer(&self, lane: Lane) -> Option<usize> {
        self.inner.receive_buffer(lane)
    }

    fn observe(&self) -> Observation {
        self.inner.observe()
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = self.inner.ledger();
        for faulty in self.lanes.iter().flatten() {
            faulty.add_to(ledger.lane_mut(faulty.lane));
        }
        ledger
    }

    fn warnings(&self) -> &[Warning] {
        self.inner.warnings()
    }
}
