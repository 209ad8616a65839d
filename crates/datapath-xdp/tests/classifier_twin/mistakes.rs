//! Reference models with one mistake each. The sequences must reveal each of them; otherwise they would not reveal the
//! same mistake in the program.

use isolane_datapath::flow::InterfaceRateLimit;
use isolane_datapath_xdp::classifier::twin::Twin;
use isolane_datapath_xdp::classifier::{Flow, FlowError, FlowSlot, Verdict};
use isolane_wire::ethernet::Frame;
use isolane_wire::level::Level;

use crate::world::Model;

/// Mistake of a reference model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    Nothing,
    TakesFirstFragments,
    LooksBehindTheThirdTag,
    ForgetsTheSource,
    LendsTheReserve,
    KeepsOneBufferLess,
    CatchesUpOnMissedPeriods,
    LetsCriticalFlowsBeAnybodys,
}
use Mistake::*;

/// All mistakes, with descriptions.
pub(crate) const MISTAKES: &[(Mistake, &str)] = &[
    (Nothing, "a twin without mistake"),
    (
        TakesFirstFragments,
        "the first fragment of a packet is taken for a whole one",
    ),
    (LooksBehindTheThirdTag, "a third VLAN tag is skipped"),
    (
        ForgetsTheSource,
        "a flow of one source takes everybody's frames",
    ),
    (
        LendsTheReserve,
        "what is reserved for critical flows is lent to all",
    ),
    (KeepsOneBufferLess, "the low-water mark is one too low"),
    (
        CatchesUpOnMissedPeriods,
        "a budget that is late stays in step",
    ),
    (
        LetsCriticalFlowsBeAnybodys,
        "critical flows have no reserve",
    ),
];

/// Reference model with a mistake.
pub(crate) struct Mistaken {
    mistake: Mistake,
    twin: Twin,
    last_ns: u64,
}

impl Mistaken {
    pub(crate) fn new(mistake: Mistake) -> Mistaken {
        Mistaken {
            mistake,
            twin: Twin::new(),
            last_ns: 0,
        }
    }
}

impl Model for Mistaken {
    fn twin(&mut self) -> &mut Twin {
        &mut self.twin
    }

    fn judge(&mut self, frame: &[u8], queue: u32) -> Verdict {
        let mut frame = frame.to_vec();
        let parsed =
            Frame::new_checked(&frame[..]).map(|view| (view.header_len(), view.tags().count()));
        match (self.mistake, parsed) {
            (TakesFirstFragments, Ok((at, _))) if frame.len() > at + 8 => {
                let is_first = frame[at + 6] & 0x1f == 0 && frame[at + 7] == 0;
                if is_first {
                    frame[at + 6] &= !0x20;
                }
            }
            (LooksBehindTheThirdTag, Ok((at, 2))) => {
                let is_tag = matches!(frame[at - 2..at], [0x81, 0x00] | [0x88, 0xa8]);
                if is_tag && frame.len() >= at + 4 {
                    frame.drain(at - 2..at + 2);
                }
            }
            _ => {}
        }
        self.twin.judge(&frame, queue)
    }

    fn set_flow(&mut self, slot: FlowSlot, flow: &Flow) -> Result<(), FlowError> {
        let mut flow = *flow;
        match self.mistake {
            ForgetsTheSource => flow.source = None,
            LetsCriticalFlowsBeAnybodys => flow.is_critical = false,
            _ => {}
        }
        self.twin.set_flow(slot, &flow)
    }

    fn set_interface_rate_limit(&mut self, rate_limit: &InterfaceRateLimit) {
        let mut rate_limit = *rate_limit;
        if let (LendsTheReserve, Some((_, reserved))) = (self.mistake, &mut rate_limit.topics) {
            *reserved = 0;
        }
        let set = self.twin.set_interface_rate_limit(&rate_limit);
        set.expect("the interface is protected");
    }

    fn replenish(&mut self, now_ns: u64) {
        if self.mistake == CatchesUpOnMissedPeriods {
            // Replenishes in small steps, as if the model had been called all the time.
            const STEP_NS: u64 = 100_000;
            while self.last_ns + STEP_NS < now_ns {
                self.last_ns += STEP_NS;
                self.twin.replenish(self.last_ns);
            }
        }
        self.last_ns = now_ns;
        self.twin.replenish(now_ns);
    }

    fn set_low_water(&mut self, queue: u32, lane: Level, low_water: Option<u32>) {
        let less = u32::from(self.mistake == KeepsOneBufferLess);
        let low_water = low_water.and_then(|mark| mark.checked_sub(less));
        self.twin.set_low_water(queue, lane, low_water);
    }
}
