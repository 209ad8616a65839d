//! Received datagrams: lost, damaged, copied, kept back.

use super::lane::{FaultyLane, Held};
use super::plan::FaultPlan;
use crate::burst::{ReceiveBurst, ReceivedFrame};
use crate::contract::Datapath;
use crate::ledger::ReceiveDrop;
use crate::limits::MAX_FLIPPED_BITS;
use crate::pool::{Class, Pool};

impl FaultyLane {
    /// Receives at most `limit` datagrams, which is no more than the burst's room.
    pub(super) fn receive(
        &mut self,
        inner: &mut (impl Datapath + ?Sized),
        plan: &FaultPlan,
        limit: usize,
        arrived: &mut ReceiveBurst,
        burst: &mut ReceiveBurst,
    ) -> usize {
        if limit == 0 {
            return 0;
        }
        self.calls += 1;
        let taken = if plan.plug.is_pulled() {
            self.drop_all(inner, limit, arrived)
        } else if !plan.covers(self.lane) {
            let handed = burst.len();
            let taken = inner.receive_burst(self.lane, limit, burst);
            for received in &burst[handed..] {
                self.received.note_received(received.frame.len());
            }
            taken
        } else if self.receiving.happens(plan.starvation_per_million) {
            self.received.starved += 1;
            self.injected.starved += 1;
            0
        } else {
            self.receive_some(inner, plan, limit, arrived, burst)
        };
        let holds = self.holds();
        if let Some(bell) = &mut self.bell {
            bell.set(holds);
        }
        taken
    }

    /// The interface is gone: nothing comes in, and what waited is lost with it.
    fn drop_all(
        &mut self,
        inner: &mut (impl Datapath + ?Sized),
        limit: usize,
        arrived: &mut ReceiveBurst,
    ) -> usize {
        let taken = inner.receive_burst(self.lane, limit, arrived);
        let dropped = arrived.len() + self.held.len();
        self.received
            .note_dropped(ReceiveDrop::FaultInterfaceGone, dropped as u64);
        arrived.clear();
        self.held.clear();
        taken
    }

    fn receive_some(
        &mut self,
        inner: &mut (impl Datapath + ?Sized),
        plan: &FaultPlan,
        limit: usize,
        arrived: &mut ReceiveBurst,
        burst: &mut ReceiveBurst,
    ) -> usize {
        let mut taken = self.hand_on_due(limit, burst);
        taken += inner.receive_burst(self.lane, limit - taken, arrived);
        for received in std::mem::take(arrived) {
            self.settle(plan, inner.pool(), received, burst);
        }
        taken
    }

    /// Hands on what was kept back long enough, in the order of arrival.
    fn hand_on_due(&mut self, limit: usize, burst: &mut ReceiveBurst) -> usize {
        let mut taken = 0;
        while taken < limit {
            let due = self.held.iter().position(|held| held.due <= self.calls);
            let Some(due) = due else {
                break;
            };
            let held = self.held.remove(due);
            self.hand_on(held.received, burst);
            taken += 1;
        }
        taken
    }

    fn hand_on(&mut self, received: ReceivedFrame, burst: &mut ReceiveBurst) {
        self.received.note_received(received.frame.len());
        // There is room: no more is taken than the limit, and the limit is no more than that.
        let _ = burst.push(received);
    }

    /// Decides what becomes of one datagram.
    fn settle(
        &mut self,
        plan: &FaultPlan,
        pool: &Pool,
        mut received: ReceivedFrame,
        burst: &mut ReceiveBurst,
    ) {
        if self.receiving.happens(plan.loss_per_million) {
            self.received.note_dropped(ReceiveDrop::FaultLoss, 1);
            return;
        }
        self.damage(plan, &mut received);
        if self.receiving.happens(plan.duplication_per_million) {
            self.duplicate(plan, pool, &received);
        }
        let is_delayed = self.receiving.happens(plan.delay_per_million);
        if is_delayed && plan.delay_bursts > 0 && !self.held.is_full() {
            self.injected.delayed += 1;
            self.keep_back(plan, received);
        } else {
            self.hand_on(received, burst);
        }
    }

    fn damage(&mut self, plan: &FaultPlan, received: &mut ReceivedFrame) {
        let bytes = received.frame.len();
        if bytes > 0 && self.receiving.happens(plan.corruption_per_million) {
            self.injected.corrupted += 1;
            let (bits, first) = (bytes * 8, self.receiving.below(bytes * 8));
            // Neighbours, so that none is flipped back: there are more bits than that.
            for bit in first..=first + self.receiving.below(MAX_FLIPPED_BITS) {
                let bit = bit % bits;
                received.frame[bit / 8] ^= 1 << (bit % 8);
            }
        }
        if bytes > 1 && self.receiving.happens(plan.shortening_per_million) {
            self.injected.shortened += 1;
            let start = received.frame.head_room();
            let left = 1 + self.receiving.below(bytes - 1);
            received.frame.set_range(start..start + left);
        }
    }

    /// A copy comes later; none where there is no frame or no room for it.
    fn duplicate(&mut self, plan: &FaultPlan, pool: &Pool, received: &ReceivedFrame) {
        if self.held.is_full() {
            return;
        }
        let Some(mut frame) = pool.take(Class::Receive(self.lane)) else {
            return;
        };
        // Frames of one class are of one size.
        if frame.append(&received.frame).is_err() {
            return;
        }
        self.injected.duplicated += 1;
        let copy = ReceivedFrame { frame, ..*received };
        self.keep_back(plan, copy);
    }

    /// For one to `delay_bursts` calls that receive later datagrams. There is room.
    fn keep_back(&mut self, plan: &FaultPlan, received: ReceivedFrame) {
        let passing = 1 + self.receiving.below(plan.delay_bursts as usize) as u64;
        let due = self.calls + passing + 1;
        let _ = self.held.push(Held { due, received });
    }
}
