//! Verdicts of the classifier, their reasons, and their counters: the values of `classifier/layout.h`.
//!
//! Each frame is counted once, under one reason. The reason determines the action. A redirected
//! frame goes to the flow's own lane, or to the lowest one if it is demoted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use isolane_wire::level::Level;

use super::flows::FlowSlot;
use super::shared_memory::{Row, Shared};
use crate::limits::MAX_FLOWS;

/// Action on a frame; the values are those of `enum xdp_action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Action {
    /// Dropped in the driver.
    Drop = 1,
    /// Passed to the kernel unchanged.
    Pass = 2,
    /// Redirected to a lane's socket. The kernel decides afterwards whether the socket's ring takes
    /// the frame, and counts it in the socket's statistics.
    Redirect = 4,
}

/// Declares an enum of reasons with display names, in the order of their values, and their counters.
macro_rules! reasons {
    (
        $(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }
        $(#[$about_counts:meta])* $counts:ident
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All reasons, in the order of their values.
            pub const ALL: &[$name] = &[$($name::$variant,)*];
            /// Number of reasons.
            pub const COUNT: usize = Self::ALL.len();

            /// Short name for tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            pub(super) fn from_number(number: u8) -> Option<$name> {
                Self::ALL.get(usize::from(number)).copied()
            }
        }

        $(#[$about_counts])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $counts([u64; $name::COUNT]);

        impl $counts {
            /// Number of frames with this reason.
            #[must_use]
            pub const fn get(&self, reason: $name) -> u64 {
                self.0[reason as usize]
            }

            /// Number of all frames.
            #[must_use]
            pub fn total(&self) -> u64 {
                self.0.iter().sum()
            }

            /// Name and frame count of each reason.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
                let reasons = $name::ALL.iter();
                reasons.map(|reason| (reason.name(), self.get(*reason)))
            }

            pub(super) fn note(&mut self, reason: $name) {
                self.0[reason as usize] += 1;
            }
        }
    };
}

reasons! {
    /// Reason for a frame that belongs to no flow. All but the last are passed.
    OthersReason {
        /// Shorter than its Ethernet header and tags.
        Runt = "runt",
        /// Neither IP nor ARP. A third VLAN tag also counts here.
        OtherEtherType = "other ethertype",
        /// ARP. Never charged: without ARP the lanes reach no peer.
        Arp = "arp",
        /// IPv6. Flows are IPv4 only.
        Ipv6 = "ipv6",
        /// Inconsistent lengths, or a version other than 4.
        MalformedIpv4 = "malformed ipv4",
        /// Fragment, including the first of a packet: only the kernel reassembles.
        Fragment = "fragment",
        /// Not UDP.
        OtherProtocol = "other protocol",
        /// Inconsistent lengths.
        MalformedUdp = "malformed udp",
        /// Datagram of another protocol.
        NotRtps = "not rtps",
        /// No flow has the port.
        UnknownPort = "unknown port",
        /// Flows have the port, but for other addresses or sources.
        UnknownAddress = "unknown address",
        /// Dropped: over the budget of frames that belong to no flow.
        OverOthers = "over the budget of others",
    }
    /// Frames that belong to no flow, by reason.
    OthersCounts
}

reasons! {
    /// Reason for a frame of a flow.
    FlowReason {
        /// Redirected to the socket of its lane.
        InLane = "in lane",
        /// Over budget: redirected to the socket of the lowest lane.
        Demoted = "demoted",
        /// Passed: no socket is bound for the flow's lane on this queue.
        NoLane = "no lane",
        /// Passed: over budget, and every bound lane of the queue is above the flow's own.
        DemotedToKernel = "demoted to kernel",
        /// Passed: the flow's destination is the kernel.
        ToKernel = "to kernel",
        /// Dropped: the flow's budget is exhausted.
        OverBudget = "over budget",
        /// Dropped: the interface's budget is exhausted, or the rest is reserved.
        OverInterface = "over the interface's budget",
        /// Dropped: the few free buffers are kept for other lanes.
        Recycled = "recycled",
    }
    /// Frames of one flow, by reason.
    FlowCounts
}

impl OthersReason {
    /// Action that follows from the reason.
    #[must_use]
    pub const fn action(self) -> Action {
        match self {
            OthersReason::OverOthers => Action::Drop,
            _ => Action::Pass,
        }
    }
}

impl FlowReason {
    /// Action that follows from the reason.
    #[must_use]
    pub const fn action(self) -> Action {
        match self {
            FlowReason::InLane | FlowReason::Demoted => Action::Redirect,
            FlowReason::NoLane | FlowReason::DemotedToKernel | FlowReason::ToKernel => Action::Pass,
            FlowReason::OverBudget | FlowReason::OverInterface | FlowReason::Recycled => {
                Action::Drop
            }
        }
    }
}

/// Decision on one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The frame belongs to no flow.
    Others(OthersReason),
    /// The frame belongs to a flow.
    Flow {
        /// Slot of the flow.
        slot: FlowSlot,
        /// Reason of the decision.
        reason: FlowReason,
        /// Lane it was redirected to; `None` unless it was redirected.
        lane: Option<Level>,
    },
}

impl Verdict {
    /// Decodes the program's trace. `place` is the slot plus one, or 0 for no flow.
    pub(super) fn from_trace(reason: u8, place: u8, lane: u8) -> Option<Verdict> {
        let Some(slot) = place.checked_sub(1) else {
            return OthersReason::from_number(reason).map(Verdict::Others);
        };
        let reason = FlowReason::from_number(reason)?;
        let is_redirected = reason.action() == Action::Redirect;
        Some(Verdict::Flow {
            slot: FlowSlot(slot),
            reason,
            lane: Level::new(lane).filter(|_| is_redirected),
        })
    }

    /// Action on the frame.
    #[must_use]
    pub const fn action(&self) -> Action {
        match self {
            Verdict::Others(reason) => reason.action(),
            Verdict::Flow { reason, .. } => reason.action(),
        }
    }
}

/// Counters of one interface's classifier since it was loaded, summed over the queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Counters by slot. A slot reused for another flow continues its counters.
    pub flows: [FlowCounts; MAX_FLOWS],
    /// Counters of frames that belong to no flow.
    pub others: OthersCounts,
    /// Frames handed on below the low-water mark, which recycling would have dropped. 0 while recycling is enforced.
    pub touched_fill: u64,
    /// Frames of non-critical flows charged to the interface's reserve. 0 while the reserve is enforced.
    pub touched_reserve: u64,
    /// Frames without a stamp, because the driver left no metadata room.
    pub unstamped: u64,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            flows: [FlowCounts::default(); MAX_FLOWS],
            others: OthersCounts::default(),
            touched_fill: 0,
            touched_reserve: 0,
            unstamped: 0,
        }
    }
}

impl Counts {
    /// Counters of one flow; zeros for a slot that does not exist.
    #[must_use]
    pub fn flow(&self, slot: FlowSlot) -> FlowCounts {
        let counts = self.flows.get(usize::from(slot.0));
        counts.copied().unwrap_or_default()
    }

    /// Number of all frames examined.
    #[must_use]
    pub fn total(&self) -> u64 {
        let flows: u64 = self.flows.iter().map(FlowCounts::total).sum();
        flows + self.others.total()
    }

    /// Reads the counters of all queues. Frames arriving meanwhile may or may not be included.
    pub(super) fn read(shared: &Shared) -> Box<Counts> {
        let mut counts = Box::<Counts>::default();
        shared.rows.iter().for_each(|row| counts.add(row));
        counts
    }

    fn add(&mut self, row: &Row) {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        for (sum, counter) in self.others.0.iter_mut().zip(&row.others) {
            *sum += read(counter);
        }
        for (flow, counters) in self.flows.iter_mut().zip(&row.flows) {
            for (sum, counter) in flow.0.iter_mut().zip(counters) {
                *sum += read(counter);
            }
        }
        self.touched_fill += read(&row.touched_fill);
        self.touched_reserve += read(&row.touched_reserve);
        self.unstamped += read(&row.unstamped);
    }
}
