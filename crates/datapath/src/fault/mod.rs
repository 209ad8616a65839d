//! A datapath that makes another one fail, on purpose and repeatably: for the tests of everything
//! that must live with failures.
//!
//! A [`Fault`] wraps any datapath and does to it what a [`FaultPlan`] says:
//!
//! ```text
//!   send_burst ──> refused? ──────────────────────────────> the datapath within
//!   receive_burst <── kept back? <── copied? <── damaged? <── lost? <── the datapath within
//! ```
//!
//! What happens to a lane's datagrams depends on the seed and on the lane's own datagrams and
//! calls alone, so a failure repeats while the same is sent in the same order, whatever happens
//! on other lanes. An empty plan changes nothing: a wrapped datapath passes the whole conformance
//! suite then. With faults, it passes the suite's part on accounts: every fault is counted, by
//! [`ReceiveDrop`], [`Refusal`] or [`Injected`], and the ledger balances.
//!
//! Faults happen at this end only. Datagrams are lost, damaged, doubled and delayed when they are
//! received; two ends that each have a plan have all that in both directions.

mod bell;
mod lane;
mod plan;
mod receive;
mod transmit;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};

use isolane_wire::locator::Locator;

use self::bell::Bell;
use self::lane::FaultyLane;
pub use self::plan::{FaultPlan, Plug};
use crate::burst::{ReceiveBurst, SendReport, TransmitBurst};
use crate::chance::Generator;
use crate::contract::{Capabilities, Datapath, Note, OpenError, Wakeup};
use crate::flow::{FlowId, InterfaceProtection, Observation, ProtectError, Protected, Protection};
use crate::lane::Lane;
use crate::ledger::Ledger;
#[cfg(doc)]
use crate::ledger::{Injected, ReceiveDrop, Refusal};
use crate::limits::MAX_HELD;
use crate::pool::{Class, Pool};

/// Of the generators, which belong to lanes otherwise.
const POOL_STREAM: u64 = u64::MAX;

/// Another datapath, with faults.
pub struct Fault<D: Datapath + ?Sized> {
    inner: Box<D>,
    plan: FaultPlan,
    lanes: [Option<Box<FaultyLane>>; Lane::COUNT],
    /// What the datapath within handed over, before its fate is settled. Empty between calls.
    arrived: ReceiveBurst,
}

impl<D: Datapath + ?Sized> Fault<D> {
    /// Datapath with the faults of `plan`. Lanes that are open already stay without faults.
    pub fn new(inner: Box<D>, plan: FaultPlan) -> Fault<D> {
        let generator = Generator::new(plan.seed, POOL_STREAM);
        inner
            .pool()
            .set_failing(plan.exhaustion_per_million, plan.lanes, generator);
        Fault {
            inner,
            plan,
            lanes: Default::default(),
            arrived: ReceiveBurst::new(),
        }
    }

    /// The datapath within.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// What is done to it.
    pub fn plan(&self) -> &FaultPlan {
        &self.plan
    }

    fn wakes_by_descriptors(&self) -> bool {
        self.inner.capabilities().wakeup == Wakeup::Descriptors
    }

    fn make_lane(&self, lane: Lane) -> Result<Box<FaultyLane>, OpenError> {
        let bell = if self.plan.keeps_back(lane) && self.wakes_by_descriptors() {
            let bell = Bell::new();
            Some(bell.map_err(|error| OpenError::of("make an eventfd", error))?)
        } else {
            None
        };
        Ok(Box::new(FaultyLane::new(&self.plan, lane, bell)))
    }
}

impl<D: Datapath + ?Sized> fmt::Debug for Fault<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("inner", &self.inner.name())
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl<D: Datapath + ?Sized> Datapath for Fault<D> {
    fn name(&self) -> &'static str {
        "fault"
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn pool(&self) -> &Pool {
        self.inner.pool()
    }

    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError> {
        if self.lanes[lane.index()].is_some() {
            return Ok(());
        }
        // First, so that a lane that cannot be made is not open within.
        let faulty = self.make_lane(lane)?;
        self.inner.open_lane(lane)?;
        if self.plan.keeps_back(lane) {
            let class = Class::Receive(lane);
            self.inner.pool().reserve(class, MAX_HELD)?;
        }
        self.lanes[lane.index()] = Some(faulty);
        Ok(())
    }

    fn unicast(&self, lane: Lane) -> &[Locator] {
        self.inner.unicast(lane)
    }

    fn multicast(&self, lane: Lane) -> &[Locator] {
        self.inner.multicast(lane)
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

    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize {
        let Some(faulty) = self.lanes[lane.index()].as_deref_mut() else {
            return self.inner.receive_burst(lane, limit, burst);
        };
        let limit = limit.min(burst.capacity() - burst.len());
        let arrived = &mut self.arrived;
        faulty.receive(&mut *self.inner, &self.plan, limit, arrived, burst)
    }

    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport {
        let Some(faulty) = self.lanes[lane.index()].as_deref_mut() else {
            return self.inner.send_burst(lane, burst);
        };
        let refused = faulty.refuse(&self.plan, burst);
        let mut report = self.inner.send_burst(lane, burst);
        report.refused += refused;
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
        let holds = |lane: &Lane| {
            let faulty = self.lanes[lane.index()].as_deref();
            faulty.is_some_and(FaultyLane::holds)
        };
        let held = Lane::ALL.into_iter().filter(holds);
        let held = held.fold(0, |set, lane| set | lane.bit());
        self.inner.ready_lanes() | held
    }

    fn seen_readable(&mut self, lane: Lane, readable: u8) {
        self.inner.seen_readable(lane, readable);
    }

    fn look_after_interfaces(&mut self) -> bool {
        self.inner.look_after_interfaces()
    }

    fn peek_lanes(&mut self) -> Option<u16> {
        self.inner.peek_lanes()
    }

    fn recycle(&mut self) -> bool {
        self.inner.recycle()
    }

    fn wants_recycling(&mut self) -> bool {
        self.inner.wants_recycling()
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

    fn protect(&mut self, what: Protected, with: Option<Protection>) -> Result<(), ProtectError> {
        self.inner.protect(what, with)
    }

    fn protect_interface(&mut self, with: InterfaceProtection) -> Result<(), ProtectError> {
        self.inner.protect_interface(with)
    }

    fn observe(&self) -> Observation {
        self.inner.observe()
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = self.inner.ledger();
        for lane in Lane::ALL {
            if let Some(faulty) = self.lanes[lane.index()].as_deref() {
                faulty.add_to(ledger.lane_mut(lane));
            }
            ledger.lane_mut(lane).injected.exhausted += self.inner.pool().failed(lane);
        }
        ledger
    }

    fn notes(&self) -> &[Note] {
        self.inner.notes()
    }
}

#[cfg(test)]
mod tests;
