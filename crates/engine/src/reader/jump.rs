//! Far jumps of sequence numbers. A number beyond the window is provisional, so that one datagram in a writer's name
//! does not end its flow.
//!
//! A reliable reader stays where it is and asks the writer with a non-final ACKNACK; a further HEARTBEAT from an address
//! of the writer's participant confirms the jump or ends the claim. That costs one round trip. A best-effort reader
//! takes the sample and keeps its former position: the next sample that belongs there leads back, and a second sample
//! at the new position, from an address of the participant, confirms the jump. A reader that has taken nothing from a
//! writer yet follows its latest HEARTBEAT in both directions.

use isolane_wire::{rtps::Heartbeat, sequence::SequenceNumber, time::Instant};

use super::{ReaderLedger, WriterProxy};
use crate::limits::{JUMP_PATIENCE, WINDOW};

/// A jump that a HEARTBEAT or GAP calls for, not yet confirmed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    to: SequenceNumber,
    /// Count of the HEARTBEAT; none: a GAP.
    count: Option<i32>,
    since: Instant,
}

/// Position of a best-effort reader before a jump that is not confirmed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Former {
    expected: SequenceNumber,
    /// Numbers passed since, which are lost if the jump is confirmed.
    passed: u64,
}

/// Consequence of a HEARTBEAT for a reader with a claim, or that calls for a far jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing is claimed any more.
    Refuted,
    /// The jump is confirmed.
    Jump(SequenceNumber),
    /// The jump waits for a further HEARTBEAT.
    Provisional,
}

/// Origin of a datagram, as far as it matters for jumps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) now: Instant,
    /// It came from an address of the writer's participant.
    pub(crate) is_own: bool,
}

impl WriterProxy {
    /// Whether a number is so far ahead that it needs confirmation.
    #[inline]
    pub(crate) fn is_far(&self, to: SequenceNumber) -> bool {
        let ahead = to.get().saturating_sub(self.expected.get());
        self.begun && ahead > i64::from(WINDOW)
    }

    /// Whether a HEARTBEAT with this first number is to be judged before it is followed.
    #[inline]
    pub(crate) fn may_jump(&self, first: SequenceNumber) -> bool {
        self.reliable && (self.claim.is_some() || self.is_far(first))
    }

    /// Notes the jump that a GAP calls for.
    pub(crate) fn claim_by_gap(&mut self, to: SequenceNumber, now: Instant) {
        self.claim.get_or_insert(Claim {
            to,
            count: None,
            since: now,
        });
    }

    /// Judges a HEARTBEAT where a jump is claimed, or where it calls for one.
    pub(crate) fn judge_jump(&mut self, heartbeat: &Heartbeat, origin: Origin) -> Verdict {
        let first = heartbeat.first;
        let is_far = self.is_far(first);
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

    /// Goes back to where a HEARTBEAT says the writer is, where nothing was taken in yet.
    pub(crate) fn go_back(&mut self, to: SequenceNumber, ledger: &mut ReaderLedger) {
        let passed = (self.expected.get() - to.get()).unsigned_abs();
        ledger.skipped = ledger.skipped.wrapping_sub(passed);
        self.jump(to);
        self.nacked_until = SequenceNumber(0);
    }

    /// Whether the position of a best-effort reader is provisional, or this number would make it so.
    #[inline]
    pub(crate) fn strays(&self, sequence: SequenceNumber) -> bool {
        self.former.is_some() || self.is_far(sequence)
    }

    /// Moves a best-effort reader to the position that a sample of this number belongs to. True: a jump is confirmed,
    /// and what it passed is lost.
    #[cold]
    pub(crate) fn settle(
        &mut self,
        sequence: SequenceNumber,
        is_own: bool,
        ledger: &mut ReaderLedger,
    ) -> bool {
        let is_far = self.is_far(sequence);
        let ahead = |from: SequenceNumber| (sequence.get() - from.get()).unsigned_abs();
        let Some(former) = &mut self.former else {
            if is_far {
                self.former = Some(Former {
                    expected: self.expected,
                    passed: ahead(self.expected),
                });
                self.expected = sequence;
            }
            return false;
        };
        let is_at = |from: SequenceNumber| sequence >= from && ahead(from) <= u64::from(WINDOW);
        if is_at(former.expected) {
            self.return_to_former();
            return false;
        }
        if sequence < self.expected {
            let behind = (self.expected.get() - sequence.get()).unsigned_abs();
            if sequence > former.expected && behind > u64::from(WINDOW) {
                // At a third position: the second was no better.
                self.return_to_former();
                return self.settle(sequence, is_own, ledger);
            }
            // A duplicate at either position.
            return false;
        }
        former.passed += ahead(self.expected);
        self.expected = sequence;
        if is_far || !is_own {
            return false;
        }
        let passed = former.passed;
        self.former = None;
        ledger.lose(passed, true)
    }

    /// Takes back a jump. Samples that were taken in behind it have numbers that the writer has not reached.
    fn return_to_former(&mut self) {
        if let Some(former) = self.former.take() {
            let numbers = (self.expected.get() - former.expected.get()).unsigned_abs();
            self.strays += numbers - former.passed;
            self.expected = former.expected;
        }
    }

    /// Whether fragments of this number belong to the position before a jump, which is taken back then.
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

    /// Numbers that this reader is done with.
    pub(crate) fn done(&self) -> u64 {
        let passed = self.former.map_or(0, |former| former.passed);
        let done = (self.expected.get() - 1).unsigned_abs();
        done.wrapping_sub(passed).wrapping_add(self.strays)
    }
}
