//! Verification of sequence numbers far ahead, so that no forged datagram stops the delivery of a writer's samples.
//!
//! A datagram counts as the writer's own if it comes from an address of its participant.
//!
//! Reliable reader:
//! - If a HEARTBEAT, or the writer's own GAP, requires a jump beyond the window, the reader keeps its position and
//!   sends a non-final ACKNACK. Another HEARTBEAT of the writer's own confirms or refutes the jump (one round trip).
//! - A GAP from another address beyond the window is ignored, and the numbers are requested again.
//! - The ACKNACK and the request are each sent at most once in
//!   [`Timing::nack_suppression`](crate::Timing::nack_suppression).
//! - If the writer's own HEARTBEATs end more than a window below the position for [`JUMP_PATIENCE`], the reader returns
//!   to the writer. Another sender has then moved the position ahead in many short steps.
//!
//! Best-effort reader:
//! - A sample beyond the window is accepted, and the former position kept. A later sample at the former position
//!   reverts the jump; a second sample of the writer's own at the new position confirms it.
//! - A sample more than a window beyond the last one known as the writer's own is accepted only from an address of its
//!   participant. The hot path thus compares one number a sample, and addresses once in 256 samples.
//!
//! If no datagram has come from an address of the participant, any address counts as one after [`JUMP_PATIENCE`], since
//! a host may send from addresses it does not announce. A reader without any sample of the writer follows the latest
//! HEARTBEAT in both directions.

use core::time::Duration;

use isolane_wire::{message::Heartbeat, sequence::SequenceNumber, time::Instant};

use crate::{
    counters::ReaderLedger,
    limits::{JUMP_PATIENCE, WINDOW},
    participant::{Facts, Shared},
    reader::{ReaderStatus, Readers, WriterProxy},
    receiver::MessageReceiver,
    slab::WriterProxyId,
};

/// Jump required by a HEARTBEAT or GAP, not confirmed yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    to: SequenceNumber,
    /// Count of the HEARTBEAT; `None` for a GAP.
    count: Option<i32>,
    since: Instant,
}

/// Position of a best-effort reader before an unconfirmed jump.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Former {
    expected: SequenceNumber,
    /// Count of numbers passed since the jump, which are lost if it is confirmed.
    passed: u64,
    since: Instant,
}

/// Last sample of a best-effort writer that came from an address of its participant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anchor {
    /// Sequence number of the sample; [`Self::CHECK_NEXT`] if the origin of the next sample is checked.
    sequence: i64,
    /// True once the participant has sent from an address that it announces.
    is_set: bool,
    /// Time of the first refusal since the last sample of the writer's own.
    refused_since: Option<Instant>,
}

impl Anchor {
    const CHECK_NEXT: i64 = i64::MIN;

    /// State before the first sample.
    pub(crate) const NONE: Self = Self {
        sequence: Self::CHECK_NEXT,
        is_set: false,
        refused_since: None,
    };

    /// Returns whether a sample near the position is accepted.
    fn admits(&mut self, sequence: SequenceNumber, origin: Origin) -> bool {
        if origin.is_own {
            *self = Self {
                sequence: sequence.get(),
                is_set: true,
                refused_since: None,
            };
            return true;
        }
        if !self.is_set {
            self.sequence = sequence.get();
            return true;
        }
        self.sequence = Self::CHECK_NEXT;
        let since = *self.refused_since.get_or_insert(origin.now);
        let is_moved = origin.now.saturating_since(since) >= JUMP_PATIENCE;
        if is_moved {
            *self = Self::NONE;
        }
        is_moved
    }
}

/// Result of checking the position of a best-effort reader for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Taken,
    /// Accepted. It confirms a jump, and the numbers passed are lost.
    Confirmed,
    Refused,
}

/// Result of a HEARTBEAT that requires a far jump, or that follows one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No jump is claimed any more.
    Refuted,
    /// The jump is confirmed.
    Jump(SequenceNumber),
    /// The writer is below the window; the reader returns to this number.
    Back(SequenceNumber),
    /// The jump waits for another HEARTBEAT.
    Provisional,
}

/// Time and origin of a datagram.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) now: Instant,
    /// True if it came from an address of the writer's participant.
    pub(crate) is_own: bool,
}

impl WriterProxy {
    /// Returns whether a number is so far ahead that it needs confirmation.
    #[inline]
    pub(crate) fn is_far(&self, to: SequenceNumber) -> bool {
        let ahead = to.get().saturating_sub(self.expected.get());
        self.begun && ahead > i64::from(WINDOW)
    }

    /// Returns whether a HEARTBEAT must be checked before it is followed.
    #[inline]
    pub(crate) fn may_jump(&self, heartbeat: &Heartbeat) -> bool {
        self.reliable
            && (self.claim.is_some()
                || self.gap_doubted_since.is_some()
                || self.is_far(heartbeat.first)
                || self.is_astray(heartbeat))
    }

    /// Returns whether the position is more than a window beyond the writer's last sample.
    fn is_astray(&self, heartbeat: &Heartbeat) -> bool {
        let beyond = self.expected.get().saturating_sub(heartbeat.last.get());
        self.begun && beyond > i64::from(WINDOW) + 1
    }

    /// Returns whether a GAP that ends far ahead, before number `to`, is followed at once.
    #[cold]
    pub(crate) fn follows_gap(&mut self, to: SequenceNumber, origin: Origin) -> bool {
        let is_known = to <= self.last.next();
        if origin.is_own {
            self.gap_doubted_since = None;
            if !is_known {
                self.claim.get_or_insert(Claim {
                    to,
                    count: None,
                    since: origin.now,
                });
            }
            return is_known;
        }
        let since = *self.gap_doubted_since.get_or_insert(origin.now);
        let is_old = origin.now.saturating_since(since) >= JUMP_PATIENCE;
        if is_old && is_known {
            self.gap_doubted_since = None;
        }
        is_old && is_known
    }

    /// Returns whether to request a confirmation now, at most once in the suppression time.
    pub(crate) fn asks_to_confirm(&mut self, now: Instant, suppression: Duration) -> bool {
        let asked_at = self.confirm_asked_at;
        let asks = asked_at.is_none_or(|at| now.saturating_since(at) >= suppression);
        if asks {
            self.confirm_asked_at = Some(now);
        }
        asks
    }

    /// Checks a HEARTBEAT that requires a jump, or arrives while one is claimed.
    pub(crate) fn judge_jump(&mut self, heartbeat: &Heartbeat, origin: Origin) -> Verdict {
        let first = heartbeat.first;
        let is_far = self.is_far(first);
        if origin.is_own {
            self.gap_doubted_since = None;
        }
        if !self.is_astray(heartbeat) {
            self.astray_since = self.astray_since.filter(|_| !origin.is_own);
        } else if origin.is_own {
            let since = *self.astray_since.get_or_insert(origin.now);
            if origin.now.saturating_since(since) >= JUMP_PATIENCE {
                (self.claim, self.astray_since) = (None, None);
                return Verdict::Back(heartbeat.last.next());
            }
        }
        let agrees =
            |claim: &Claim| heartbeat.last.next() >= claim.to && (is_far || claim.count.is_none());
        match self.claim.filter(agrees) {
            Some(claim) if claim.count != Some(heartbeat.count) => {
                let is_old = origin.now.saturating_since(claim.since) >= JUMP_PATIENCE;
                if origin.is_own || is_old {
                    self.claim = None;
                    let is_by_gap = claim.count.is_none();
                    return Verdict::Jump(if is_by_gap {
                        claim.to
                    } else {
                        claim.to.min(first)
                    });
                }
                Verdict::Provisional
            }
            Some(_) => Verdict::Provisional,
            None if is_far => {
                self.claim = Some(Claim {
                    to: first,
                    count: Some(heartbeat.count),
                    since: origin.now,
                });
                Verdict::Provisional
            }
            None => {
                self.claim = None;
                Verdict::Refuted
            }
        }
    }

    /// Returns to a lower position of the writer. The numbers passed since that position were not the writer's.
    pub(crate) fn go_back(&mut self, to: SequenceNumber, ledger: &mut ReaderLedger) {
        let passed = (self.expected.get() - to.get()).unsigned_abs();
        match self.begun {
            true => self.strays += ledger.take_back_lost(passed),
            false => ledger.skipped = ledger.skipped.wrapping_sub(passed),
        }
        self.jump(to);
        self.acknowledged = self.acknowledged.min(to);
        self.irrelevant_to = self.irrelevant_to.min(to);
        self.nacked_until = SequenceNumber(0);
    }

    /// Returns the position without the effect of an unconfirmed jump.
    pub(crate) fn settled_position(&self) -> SequenceNumber {
        self.former.map_or(self.expected, |former| former.expected)
    }

    /// Returns whether the position of a best-effort reader must be checked before this sample is accepted.
    #[inline]
    pub(crate) fn strays(&self, sequence: SequenceNumber) -> bool {
        let ahead = sequence.get().saturating_sub(self.anchor.sequence);
        self.former.is_some() || ahead > i64::from(WINDOW)
    }

    /// Moves a best-effort reader to the position to which a sample belongs.
    #[cold]
    pub(crate) fn settle(
        &mut self,
        sequence: SequenceNumber,
        origin: Origin,
        ledger: &mut ReaderLedger,
    ) -> Settled {
        let is_far = self.is_far(sequence);
        let ahead = |from: SequenceNumber| (sequence.get() - from.get()).unsigned_abs();
        let Some(former) = &mut self.former else {
            if is_far {
                self.former = Some(Former {
                    expected: self.expected,
                    passed: ahead(self.expected),
                    since: origin.now,
                });
                self.expected = sequence;
            } else if sequence < self.expected {
                // Duplicate. If it is the writer's own, the writer is still at this position.
                let since = &mut self.anchor.refused_since;
                *since = since.filter(|_| !origin.is_own);
            } else if !self.anchor.admits(sequence, origin) {
                return Settled::Refused;
            }
            return Settled::Taken;
        };
        let is_at = |from: SequenceNumber| sequence >= from && ahead(from) <= u64::from(WINDOW);
        if is_at(former.expected) {
            self.return_to_former();
            return self.settle(sequence, origin, ledger);
        }
        if sequence < self.expected {
            let behind = (self.expected.get() - sequence.get()).unsigned_abs();
            if sequence > former.expected && behind > u64::from(WINDOW) {
                // A third position: it does not confirm the jump to the second one.
                self.return_to_former();
                return self.settle(sequence, origin, ledger);
            }
            // Duplicate at either position.
            return Settled::Taken;
        }
        former.passed += ahead(self.expected);
        self.expected = sequence;
        let is_old = origin.now.saturating_since(former.since) >= JUMP_PATIENCE;
        let is_old = is_old && !self.anchor.is_set;
        if is_far || !(origin.is_own || is_old) {
            return Settled::Taken;
        }
        let passed = former.passed;
        self.former = None;
        self.anchor.admits(sequence, origin);
        match ledger.lose(passed, true) {
            true => Settled::Confirmed,
            false => Settled::Taken,
        }
    }

    /// Reverts a jump. Samples accepted after it have numbers that the writer has not reached.
    fn return_to_former(&mut self) {
        if let Some(former) = self.former.take() {
            let numbers = (self.expected.get() - former.expected.get()).unsigned_abs();
            self.strays += numbers - former.passed;
            self.expected = former.expected;
        }
    }

    /// Returns whether fragments of this number belong to the position before a jump, which is then reverted.
    pub(crate) fn returns_for(&mut self, sequence: SequenceNumber) -> bool {
        let is_former = self.former.is_some_and(|former| {
            let ahead = sequence.get().saturating_sub(former.expected.get());
            (0..=i64::from(WINDOW)).contains(&ahead)
        });
        if is_former {
            self.return_to_former();
        }
        is_former
    }

    /// Number of finished sequence numbers.
    pub(crate) fn done(&self) -> u64 {
        let passed = self.former.map_or(0, |former| former.passed);
        let done = (self.expected.get() - 1).unsigned_abs();
        done.wrapping_sub(passed).wrapping_add(self.strays)
    }
}

impl Readers {
    /// Checks the position of a best-effort reader before a sample far from it, or far from the last number confirmed
    /// as the writer's own. `index` is that of the proxy.
    #[cold]
    #[inline(never)]
    pub(crate) fn settle_position(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        now: Instant,
        message: &MessageReceiver,
        index: WriterProxyId,
        sequence: SequenceNumber,
    ) -> Settled {
        let is_own = facts.is_own_address(shared, message.prefix, message.source);
        let proxy = &mut self.proxies[index];
        let reader = &mut self.table[proxy.reader];
        let is_far = proxy.is_far(sequence);
        let settled = proxy.settle(sequence, Origin { now, is_own }, &mut reader.ledger);
        shared.counters.jumps_doubted += u64::from(is_far || settled == Settled::Refused);
        if settled == Settled::Confirmed {
            reader.status |= ReaderStatus::SAMPLE_LOST;
        }
        settled
    }
}
