//! Messages to be sent: refused.

use super::lane::FaultyLane;
use super::plan::FaultPlan;
use crate::burst::TransmitBurst;
use crate::ledger::Refusal;

impl FaultyLane {
    /// Takes out of the burst what is refused, and says how many messages that is.
    pub(super) fn refuse(&mut self, plan: &FaultPlan, burst: &mut TransmitBurst) -> u32 {
        let before = self.refused.refused_total();
        if plan.plug.is_pulled() {
            burst.retain(|_| {
                let reason = Refusal::FaultInterfaceGone;
                self.refused.note_refused(reason, 1);
                false
            });
        } else if plan.covers(self.lane) {
            let mut is_full = false;
            burst.retain(|_| {
                let reason = self.fate(plan, &mut is_full);
                if let Some(reason) = reason {
                    self.refused.note_refused(reason, 1);
                }
                reason.is_none()
            });
        }
        (self.refused.refused_total() - before) as u32
    }

    /// A buffer that is full is full for the rest of the burst as well.
    fn fate(&mut self, plan: &FaultPlan, is_full: &mut bool) -> Option<Refusal> {
        *is_full = *is_full || self.sending.happens(plan.would_block_per_million);
        if *is_full {
            return Some(Refusal::FaultWouldBlock);
        }
        let is_unreachable = self.sending.happens(plan.unreachable_per_million);
        is_unreachable.then_some(Refusal::FaultUnreachable)
    }
}
