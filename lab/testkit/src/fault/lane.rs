//! Faults of one lane: generators, delayed datagrams, held frames, and the lane's counters.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use fastrand::Rng;
use isolane_datapath::burst::ReceivedFrame;
use isolane_datapath::ledger::{LaneLedger, ReceiveLedger, TransmitLedger};
use isolane_datapath::{
    Class, Datapath, Frame, Lane, Pool, ReceiveBurst, ReceiveDrop, Refusal, TransmitBurst,
};
use rustix::event::{EventfdFlags, eventfd};

use super::{FaultPlan, HELD_RECYCLES, Injected, MAX_FLIPPED_BITS, MAX_HELD, retain_messages};

/// Returns true for `per_million` of a million calls on average. Draws nothing for 0, so a disabled fault does not
/// change the others.
fn happens(rng: &mut Rng, per_million: u32) -> bool {
    per_million > 0 && rng.u32(..1_000_000) < per_million
}

/// Number of datagrams in a packet of the kernel.
fn datagrams(received: &ReceivedFrame) -> u64 {
    received.frame.datagram_count() as u64
}

/// Delayed datagram.
struct Delayed {
    /// First receive call that may deliver it.
    due: u64,
    received: ReceivedFrame,
}

pub(super) struct FaultyLane {
    pub(super) lane: Lane,
    /// Separate generators per direction, so that neither direction changes the other's faults.
    receiving: Rng,
    sending: Rng,
    /// Receive calls on the lane.
    calls: u64,
    /// Delayed datagrams in the order of arrival.
    delayed: heapless::Vec<Delayed, MAX_HELD>,
    /// Free transmit frames taken to exhaust the pool.
    pub(super) held_frames: Vec<Frame>,
    /// [`Pool::exhausted`] when the held frames were taken.
    exhausted_before: u64,
    /// Calls of `recycle` until the held frames return although none was requested.
    recycles_left: u32,
    /// Descriptor that is readable while datagrams are delayed; `None` if none is needed.
    pub(super) bell: Option<Bell>,
    /// Datagrams delivered or dropped here. They are counted here, not derived from the wrapped datapath's ledger, so
    /// that the balance shows mistakes of either datapath.
    received: ReceiveLedger,
    /// Datagrams refused here.
    refused: TransmitLedger,
    pub(super) injected: Injected,
}

impl FaultyLane {
    pub(super) fn new(plan: &FaultPlan, lane: Lane, bell: Option<Bell>) -> FaultyLane {
        let stream = 2 * lane.index() as u64;
        let generator = |stream| Rng::with_seed(plan.seed.rotate_left(32) ^ stream);
        FaultyLane {
            lane,
            receiving: generator(stream),
            sending: generator(stream + 1),
            calls: 0,
            delayed: heapless::Vec::new(),
            held_frames: Vec::new(),
            exhausted_before: 0,
            recycles_left: 0,
            bell,
            received: ReceiveLedger::default(),
            refused: TransmitLedger::default(),
            injected: Injected::default(),
        }
    }

    /// Returns whether datagrams are delayed.
    pub(super) fn delays(&self) -> bool {
        !self.delayed.is_empty()
    }

    /// Converts the wrapped datapath's ledger of the lane to the ledger with faults.
    pub(super) fn add_to(&self, ledger: &mut LaneLedger) {
        // A datagram received from the wrapped datapath counts as arrived only: its outcome is decided here.
        ledger.receive.received = 0;
        ledger.receive.received_bytes = 0;
        let arrived = ledger.receive.arrived + self.injected.duplicated;
        *ledger += &LaneLedger {
            receive: self.received,
            transmit: self.refused,
            ..LaneLedger::default()
        };
        ledger.receive.arrived = arrived;
        let delayed = self.delayed.iter().map(|one| datagrams(&one.received));
        ledger.receive.pending += delayed.sum::<u64>();
    }
}

/// Reception: datagrams lost, damaged, copied, delayed.
impl FaultyLane {
    /// Receives at most `limit` datagrams; the burst has room for them.
    pub(super) fn receive(
        &mut self,
        inner: &mut dyn Datapath,
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
                self.received
                    .note_received_all(datagrams(received), received.frame.len());
            }
            taken
        } else if happens(&mut self.receiving, plan.starvation_per_million) {
            self.received.starved += 1;
            self.injected.starved += 1;
            0
        } else {
            self.receive_some(inner, plan, limit, arrived, burst)
        };
        let delays = self.delays();
        if let Some(bell) = &mut self.bell {
            bell.set(delays);
        }
        taken
    }

    /// Drops arriving and delayed datagrams: the interface is gone.
    fn drop_all(
        &mut self,
        inner: &mut dyn Datapath,
        limit: usize,
        arrived: &mut ReceiveBurst,
    ) -> usize {
        let taken = inner.receive_burst(self.lane, limit, arrived);
        let delayed = self.delayed.iter().map(|one| &one.received);
        let dropped = arrived.iter().chain(delayed).map(datagrams).sum();
        self.received
            .note_dropped(ReceiveDrop::FAULT_INTERFACE_GONE, dropped);
        arrived.clear();
        self.delayed.clear();
        taken
    }

    fn receive_some(
        &mut self,
        inner: &mut dyn Datapath,
        plan: &FaultPlan,
        limit: usize,
        arrived: &mut ReceiveBurst,
        burst: &mut ReceiveBurst,
    ) -> usize {
        let mut taken = self.hand_on_due(limit, burst);
        taken += inner.receive_burst(self.lane, limit - taken, arrived);
        for received in std::mem::take(arrived) {
            self.decide(plan, inner.pool(), received, burst);
        }
        taken
    }

    /// Delivers the delayed datagrams that are due, in the order of arrival.
    fn hand_on_due(&mut self, limit: usize, burst: &mut ReceiveBurst) -> usize {
        let mut taken = 0;
        while taken < limit {
            let due = self.delayed.iter().position(|one| one.due <= self.calls);
            let Some(due) = due else {
                break;
            };
            let delayed = self.delayed.remove(due);
            self.hand_on(delayed.received, burst);
            taken += 1;
        }
        taken
    }

    fn hand_on(&mut self, received: ReceivedFrame, burst: &mut ReceiveBurst) {
        self.received
            .note_received_all(datagrams(&received), received.frame.len());
        // Cannot fail: the limit leaves room.
        let _ = burst.push(received);
    }

    /// Applies the faults to one datagram, or to a segmented burst as a whole, as the kernel does.
    fn decide(
        &mut self,
        plan: &FaultPlan,
        pool: &Pool,
        mut received: ReceivedFrame,
        burst: &mut ReceiveBurst,
    ) {
        if happens(&mut self.receiving, plan.loss_per_million) {
            self.received
                .note_dropped(ReceiveDrop::FAULT_LOSS, datagrams(&received));
            return;
        }
        self.damage(plan, &mut received);
        if happens(&mut self.receiving, plan.duplication_per_million) {
            self.duplicate(plan, pool, &received);
        }
        let is_delayed = happens(&mut self.receiving, plan.delay_per_million);
        if is_delayed && plan.delay_bursts > 0 && !self.delayed.is_full() {
            self.injected.delayed += datagrams(&received);
            self.delay(plan, received);
        } else {
            self.hand_on(received, burst);
        }
    }

    /// Damages a single datagram. A segmented burst stays whole, because its length determines its number of datagrams.
    fn damage(&mut self, plan: &FaultPlan, received: &mut ReceivedFrame) {
        if received.frame.segment_bytes().is_some() {
            return;
        }
        let bytes = received.frame.len();
        if bytes > 0 && happens(&mut self.receiving, plan.corruption_per_million) {
            self.injected.corrupted += 1;
            let (bits, first) = (bytes * 8, self.receiving.usize(..bytes * 8));
            // Adjacent bits, so none is flipped twice.
            for bit in first..=first + self.receiving.usize(..MAX_FLIPPED_BITS) {
                let bit = bit % bits;
                received.frame[bit / 8] ^= 1 << (bit % 8);
            }
        }
        if bytes > 1 && happens(&mut self.receiving, plan.shortening_per_million) {
            self.injected.shortened += 1;
            let start = received.frame.head_room();
            let left = 1 + self.receiving.usize(..bytes - 1);
            received.frame.set_range(start..start + left);
        }
    }

    /// Delays a copy of a datagram, if a frame and a slot are free.
    fn duplicate(&mut self, plan: &FaultPlan, pool: &Pool, received: &ReceivedFrame) {
        if self.delayed.is_full() {
            return;
        }
        let Some(mut frame) = pool.take(Class::Receive(self.lane)) else {
            return;
        };
        // Cannot fail: frames of one class have one size.
        if frame.append(&received.frame).is_err() {
            return;
        }
        if let Some(bytes) = received.frame.segment_bytes() {
            frame.set_segment_bytes(bytes.get());
        }
        self.injected.duplicated += datagrams(received);
        let copy = ReceivedFrame { frame, ..*received };
        self.delay(plan, copy);
    }

    /// Delays a datagram by one to `delay_bursts` later receive calls. The caller checked for room.
    fn delay(&mut self, plan: &FaultPlan, received: ReceivedFrame) {
        let passing = 1 + self.receiving.u64(..u64::from(plan.delay_bursts.max(1)));
        let due = self.calls + passing + 1;
        let _ = self.delayed.push(Delayed { due, received });
    }
}

/// Transmission: messages refused, frames held.
impl FaultyLane {
    /// Removes refused messages from the burst. Returns their number.
    pub(super) fn refuse(&mut self, plan: &FaultPlan, burst: &mut TransmitBurst) -> u32 {
        let before = self.refused.refused_total();
        if plan.plug.is_pulled() {
            retain_messages(burst, |_| {
                let reason = Refusal::FAULT_INTERFACE_GONE;
                self.refused.note_refused(reason, 1);
                false
            });
        } else if plan.covers(self.lane) {
            let mut is_full = false;
            retain_messages(burst, |_| {
                let reason = self.refusal(plan, &mut is_full);
                if let Some(reason) = reason {
                    self.refused.note_refused(reason, 1);
                }
                reason.is_none()
            });
        }
        (self.refused.refused_total() - before) as u32
    }

    /// Decides whether a message is refused. A full buffer stays full for the rest of the burst.
    fn refusal(&mut self, plan: &FaultPlan, is_full: &mut bool) -> Option<Refusal> {
        *is_full = *is_full || happens(&mut self.sending, plan.would_block_per_million);
        if *is_full {
            return Some(Refusal::FAULT_WOULD_BLOCK);
        }
        let is_unreachable = happens(&mut self.sending, plan.unreachable_per_million);
        is_unreachable.then_some(Refusal::FAULT_UNREACHABLE)
    }

    /// Takes all free transmit frames out of the pool, if the plan triggers exhaustion.
    pub(super) fn exhaust(&mut self, plan: &FaultPlan, pool: &Pool) {
        let is_due = plan.covers(self.lane) && self.held_frames.is_empty();
        if is_due && happens(&mut self.sending, plan.exhaustion_per_million) {
            self.exhausted_before = pool.exhausted(self.lane);
            self.recycles_left = HELD_RECYCLES;
            while pool.free(self.lane) > 0 {
                self.held_frames.extend(pool.take(self.lane));
            }
            self.injected.exhausted += u64::from(!self.held_frames.is_empty());
        }
    }

    /// Returns whether held frames must return: one was requested, or exhaustion is over.
    pub(super) fn wants_recycling(&self, pool: &Pool, is_over: bool) -> bool {
        let is_wanted = pool.exhausted(self.lane) > self.exhausted_before;
        !self.held_frames.is_empty() && (is_wanted || is_over)
    }

    /// Returns the held frames once one was requested, or after [`HELD_RECYCLES`] calls.
    pub(super) fn recycle(&mut self, pool: &Pool, is_over: bool) {
        self.recycles_left = self.recycles_left.saturating_sub(1);
        if self.recycles_left == 0 || self.wants_recycling(pool, is_over) {
            self.held_frames.clear();
        }
    }
}

/// Eventfd that wakes the reader of a lane with delayed datagrams.
pub(super) struct Bell {
    fd: OwnedFd,
    is_rung: bool,
}

impl Bell {
    pub(super) fn new() -> io::Result<Bell> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Bell { fd, is_rung: false })
    }

    /// Makes the descriptor readable or not. Makes a system call only on a change.
    fn set(&mut self, is_rung: bool) {
        if self.is_rung == is_rung {
            return;
        }
        // The counter is 0 or 1: neither call can fail.
        let _ = match is_rung {
            true => rustix::io::write(&self.fd, &1_u64.to_ne_bytes()),
            false => rustix::io::read(&self.fd, &mut [0; size_of::<u64>()]),
        };
        self.is_rung = is_rung;
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
