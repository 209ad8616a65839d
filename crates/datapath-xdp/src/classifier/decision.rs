//! What the classifier can decide of a frame, and why: the values of `classifier/layout.h`.
//!
//! Each frame is counted once, under one reason. The action follows from the reason; the lane of a
//! frame that is handed on is the flow's own, or the lowest one for a frame that is demoted.

use isolane_wire::level::Level;

use super::flow::FlowSlot;

/// What becomes of a frame; the values are those of XDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Action {
    /// Dropped at the driver.
    Drop = 1,
    /// Passed to the kernel, untouched.
    Pass = 2,
    /// Handed to the socket of a lane. Whether the socket's ring takes it is decided afterwards, by
    /// the kernel, and counted in the socket's statistics.
    Redirect = 4,
}

/// Declares an enum of reasons, with names for people in the order of their values.
macro_rules! reasons {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All of them, in the order of their values.
            pub const ALL: &[$name] = &[$($name::$variant,)*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// In a few words, for a table.
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
    };
}

reasons! {
    /// What became of a frame of no flow. All but the last are passed.
    OthersReason {
        /// Shorter than its Ethernet header and tags.
        Runt = "runt",
        /// Neither IP nor ARP; a third VLAN tag is one, too.
        OtherEtherType = "other ethertype",
        /// Never charged: without ARP our own lanes reach nobody.
        Arp = "arp",
        /// Flows are IPv4 only.
        Ipv6 = "ipv6",
        /// Lengths that contradict each other, or no version 4.
        MalformedIpv4 = "malformed ipv4",
        /// Also the first of a packet: only the kernel puts them together.
        Fragment = "fragment",
        /// Not UDP.
        OtherProtocol = "other protocol",
        /// Lengths that contradict each other.
        MalformedUdp = "malformed udp",
        /// Another protocol's datagram.
        NotRtps = "not rtps",
        /// Nobody registered the port.
        UnknownPort = "unknown port",
        /// The port is registered, for other addresses or sources.
        UnknownAddress = "unknown address",
        /// Dropped: beyond the budget of everything that is not ours.
        OverOthers = "over the budget of others",
    }
}

reasons! {
    /// What became of a frame of a flow.
    FlowReason {
        /// Handed to its lane's socket.
        InLane = "in lane",
        /// Over budget: handed to the lowest lane's socket.
        Demoted = "demoted",
        /// Passed: no socket is bound for its lane on this queue.
        NoLane = "no lane",
        /// Passed: over budget, and no lane of the queue is bound that is not above its own.
        DemotedToKernel = "demoted to kernel",
        /// Passed: that is where the flow goes.
        ToKernel = "to kernel",
        /// Dropped: the flow's budget is used up.
        OverBudget = "over budget",
        /// Dropped: the interface's budget is used up, or what is left of it is reserved.
        OverInterface = "over the interface's budget",
        /// Dropped: so few buffers are free that they are kept for other lanes.
        Recycled = "recycled",
    }
}

impl OthersReason {
    /// What becomes of such a frame.
    #[must_use]
    pub const fn action(self) -> Action {
        match self {
            OthersReason::OverOthers => Action::Drop,
            _ => Action::Pass,
        }
    }
}

impl FlowReason {
    /// What becomes of such a frame.
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

/// What was decided of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is of no flow.
    Others(OthersReason),
    /// It is of a flow.
    Flow {
        /// Which.
        slot: FlowSlot,
        /// What became of it.
        reason: FlowReason,
        /// The lane it was handed to; `None` unless it was redirected.
        lane: Option<Level>,
    },
}

impl Verdict {
    /// As the program traces it: `place` is the slot and one, or 0.
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

    /// What becomes of the frame.
    #[must_use]
    pub const fn action(&self) -> Action {
        match self {
            Verdict::Others(reason) => reason.action(),
            Verdict::Flow { reason, .. } => reason.action(),
        }
    }
}
