//! Counters of a lane: reasons of drops and refusals, and events.
//!
//! A counter is an index into an array of the lane's ledger. The first indexes are common to all datapaths. A datapath
//! defines the others, and names them in its [`CounterNames`]. Only reports need names.

use crate::limits::{MAX_OWN_EVENTS, MAX_OWN_RECEIVE_DROPS, MAX_OWN_REFUSALS};

/// Reason for not delivering a datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReceiveDrop(u8);

impl ReceiveDrop {
    /// Longer than a frame.
    pub const TRUNCATED: ReceiveDrop = ReceiveDrop(0);
    /// Dropped by the kernel at the socket: receive buffer full, or a wrong checksum. The kernel counts packets
    /// (SO_RXQ_OVFL): a dropped segmented burst of up to [`MAX_SEGMENTS`](crate::limits::MAX_SEGMENTS) datagrams counts as
    /// one, so a socket with UDP_GRO may have lost more datagrams.
    pub const KERNEL_OVERFLOW: ReceiveDrop = ReceiveDrop(1);
    /// Queue of the datapath full.
    pub const QUEUE_FULL: ReceiveDrop = ReceiveDrop(2);
    /// Injected: lost in the network.
    pub const FAULT_LOSS: ReceiveDrop = ReceiveDrop(3);
    /// Injected: arrived while the interface was removed.
    pub const FAULT_INTERFACE_GONE: ReceiveDrop = ReceiveDrop(4);

    /// Names of the reasons common to all datapaths, by index.
    const NAMES: [(ReceiveDrop, &'static str); 5] = [
        (ReceiveDrop::TRUNCATED, "truncated"),
        (ReceiveDrop::KERNEL_OVERFLOW, "kernel_overflow"),
        (ReceiveDrop::QUEUE_FULL, "queue_full"),
        (ReceiveDrop::FAULT_LOSS, "fault_loss"),
        (ReceiveDrop::FAULT_INTERFACE_GONE, "fault_interface_gone"),
    ];
    /// Number of reasons.
    pub(super) const COUNT: usize = ReceiveDrop::NAMES.len() + MAX_OWN_RECEIVE_DROPS;

    /// Returns reason `number` of those that a datapath adds.
    ///
    /// # Panics
    /// If `number` is not below [`MAX_OWN_RECEIVE_DROPS`]. In a constant, this is a compile error.
    #[must_use]
    pub const fn own(number: u8) -> ReceiveDrop {
        assert!((number as usize) < MAX_OWN_RECEIVE_DROPS);
        ReceiveDrop(ReceiveDrop::NAMES.len() as u8 + number)
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Iterates over all reasons, by index.
    pub(super) fn all() -> impl Iterator<Item = ReceiveDrop> {
        (0..ReceiveDrop::COUNT as u8).map(ReceiveDrop)
    }
}

/// Reason for not sending an offered datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refusal(u8);

impl Refusal {
    /// Lane not open.
    pub const LANE_CLOSED: Refusal = Refusal(0);
    /// Frame without destination.
    pub const NO_DESTINATION: Refusal = Refusal(1);
    /// Locator kind not supported by this datapath.
    pub const UNKNOWN_DESTINATION: Refusal = Refusal(2);
    /// Multicast destination, and no interface in use supports multicast.
    pub const NO_MULTICAST: Refusal = Refusal(3);
    /// Longer than the datapath's or the system's maximum (EMSGSIZE).
    pub const TOO_LONG: Refusal = Refusal(4);
    /// Send buffer of the socket full (EAGAIN).
    pub const WOULD_BLOCK: Refusal = Refusal(5);
    /// Device queue full, or kernel out of memory (ENOBUFS, ENOMEM).
    pub const NO_BUFFERS: Refusal = Refusal(6);
    /// No listener at the destination (ECONNREFUSED).
    pub const CONNECTION_REFUSED: Refusal = Refusal(7);
    /// No route or no neighbour (ENETUNREACH, EHOSTUNREACH, ENETDOWN).
    pub const UNREACHABLE: Refusal = Refusal(8);
    /// Forbidden by a firewall or policy (EPERM, EACCES).
    pub const NOT_PERMITTED: Refusal = Refusal(9);
    /// Interface removed (ENODEV).
    pub const INTERFACE_GONE: Refusal = Refusal(10);
    /// Other error; its number is in [`TransmitLedger::last_error`](super::TransmitLedger::last_error).
    pub const OTHER: Refusal = Refusal(11);
    /// Injected: send buffer full.
    pub const FAULT_WOULD_BLOCK: Refusal = Refusal(12);
    /// Injected: no route.
    pub const FAULT_UNREACHABLE: Refusal = Refusal(13);
    /// Injected: interface removed.
    pub const FAULT_INTERFACE_GONE: Refusal = Refusal(14);

    /// Names of the reasons common to all datapaths, by index.
    const NAMES: [(Refusal, &'static str); 15] = [
        (Refusal::LANE_CLOSED, "lane_closed"),
        (Refusal::NO_DESTINATION, "no_destination"),
        (Refusal::UNKNOWN_DESTINATION, "unknown_destination"),
        (Refusal::NO_MULTICAST, "no_multicast"),
        (Refusal::TOO_LONG, "too_long"),
        (Refusal::WOULD_BLOCK, "would_block"),
        (Refusal::NO_BUFFERS, "no_buffers"),
        (Refusal::CONNECTION_REFUSED, "connection_refused"),
        (Refusal::UNREACHABLE, "unreachable"),
        (Refusal::NOT_PERMITTED, "not_permitted"),
        (Refusal::INTERFACE_GONE, "interface_gone"),
        (Refusal::OTHER, "other"),
        (Refusal::FAULT_WOULD_BLOCK, "fault_would_block"),
        (Refusal::FAULT_UNREACHABLE, "fault_unreachable"),
        (Refusal::FAULT_INTERFACE_GONE, "fault_interface_gone"),
    ];
    /// Number of reasons.
    pub(super) const COUNT: usize = Refusal::NAMES.len() + MAX_OWN_REFUSALS;

    /// Returns reason `number` of those that a datapath adds.
    ///
    /// # Panics
    /// If `number` is not below [`MAX_OWN_REFUSALS`]. In a constant, this is a compile error.
    #[must_use]
    pub const fn own(number: u8) -> Refusal {
        assert!((number as usize) < MAX_OWN_REFUSALS);
        Refusal(Refusal::NAMES.len() as u8 + number)
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Iterates over all reasons, by index.
    pub(super) fn all() -> impl Iterator<Item = Refusal> {
        (0..Refusal::COUNT as u8).map(Refusal)
    }
}

/// Event that a datapath counts in addition to received, sent, dropped and refused datagrams. No event counts a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event(u8);

impl Event {
    /// Segmented bursts sent: several datagrams in one packet of the kernel (UDP_SEGMENT).
    pub const SEGMENTED: Event = Event(0);
    /// Segmented bursts received: several datagrams in one packet of the kernel (UDP_GRO).
    pub const COALESCED: Event = Event(1);
    /// Segmented bursts sent as single datagrams, because the interface has no checksum offload (EIO).
    pub const NO_CHECKSUM_OFFLOAD: Event = Event(2);
    /// Segmented bursts sent as single datagrams, because the kernel refused their size (EINVAL, EMSGSIZE): a datagram
    /// exceeds the MTU, or the kernel does not segment.
    pub const SEGMENTS_REFUSED: Event = Event(3);

    /// Names of the events common to all datapaths, by index.
    const NAMES: [(Event, &'static str); 4] = [
        (Event::SEGMENTED, "segmented"),
        (Event::COALESCED, "coalesced"),
        (Event::NO_CHECKSUM_OFFLOAD, "no_checksum_offload"),
        (Event::SEGMENTS_REFUSED, "segments_refused"),
    ];
    /// Number of events.
    const COUNT: usize = Event::NAMES.len() + MAX_OWN_EVENTS;

    /// Returns event `number` of those that a datapath adds.
    ///
    /// # Panics
    /// If `number` is not below [`MAX_OWN_EVENTS`]. In a constant, this is a compile error.
    #[must_use]
    pub const fn own(number: u8) -> Event {
        assert!((number as usize) < MAX_OWN_EVENTS);
        Event(Event::NAMES.len() as u8 + number)
    }
}

/// Event counters of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCounts {
    of: [u64; Event::COUNT],
}

impl Default for EventCounts {
    fn default() -> EventCounts {
        EventCounts {
            of: [0; Event::COUNT],
        }
    }
}

impl EventCounts {
    /// Returns a counter.
    #[must_use]
    pub const fn get(&self, event: Event) -> u64 {
        self.of[event.0 as usize]
    }

    /// Iterates over the nonzero counters.
    pub fn counted(&self) -> impl Iterator<Item = (Event, u64)> + '_ {
        let counts = (0..).map(Event).zip(self.of);
        counts.filter(|(_, count)| *count > 0)
    }

    /// Adds to a counter.
    #[inline]
    pub fn note(&mut self, event: Event, count: u64) {
        self.of[event.0 as usize] += count;
    }

    pub(super) fn add(&mut self, other: &EventCounts) {
        super::add_each(&mut self.of, &other.of);
    }
}

/// Names of a datapath's own counters in reports.
#[derive(Debug, PartialEq, Eq)]
pub struct CounterNames {
    receive_drops: &'static [(ReceiveDrop, &'static str)],
    refusals: &'static [(Refusal, &'static str)],
    events: &'static [(Event, &'static str)],
}

impl CounterNames {
    /// Names of a datapath without its own counters.
    pub const NONE: &'static CounterNames = &CounterNames::new(&[], &[], &[]);

    /// Creates the table of a datapath from its counters in the order of their numbers.
    ///
    /// # Panics
    /// If a list does not number its counters from zero in order. In a static, this is a compile error.
    #[must_use]
    pub const fn new(
        receive_drops: &'static [(ReceiveDrop, &'static str)],
        refusals: &'static [(Refusal, &'static str)],
        events: &'static [(Event, &'static str)],
    ) -> CounterNames {
        let mut number = 0;
        while number < receive_drops.len() {
            assert!(receive_drops[number].0.index() == ReceiveDrop::own(number as u8).index());
            number += 1;
        }
        number = 0;
        while number < refusals.len() {
            assert!(refusals[number].0.index() == Refusal::own(number as u8).index());
            number += 1;
        }
        number = 0;
        while number < events.len() {
            assert!(events[number].0.0 == Event::own(number as u8).0);
            number += 1;
        }
        CounterNames {
            receive_drops,
            refusals,
            events,
        }
    }

    /// Name of a reason of a drop.
    #[must_use]
    pub fn receive_drop(&self, reason: ReceiveDrop) -> &'static str {
        find(self.receive_drops(), reason)
    }

    /// Name of a reason of a refusal.
    #[must_use]
    pub fn refusal(&self, reason: Refusal) -> &'static str {
        find(self.refusals(), reason)
    }

    /// Name of an event.
    #[must_use]
    pub fn event(&self, event: Event) -> &'static str {
        find(self.events(), event)
    }

    /// Iterates over the reasons of drops, both those common to all datapaths and the datapath's own.
    pub fn receive_drops(&self) -> impl Iterator<Item = (ReceiveDrop, &'static str)> {
        ReceiveDrop::NAMES.iter().chain(self.receive_drops).copied()
    }

    /// Iterates over the reasons of refusals, both those common to all datapaths and the datapath's own.
    pub fn refusals(&self) -> impl Iterator<Item = (Refusal, &'static str)> {
        Refusal::NAMES.iter().chain(self.refusals).copied()
    }

    /// Iterates over the events, both those common to all datapaths and the datapath's own.
    pub fn events(&self) -> impl Iterator<Item = (Event, &'static str)> {
        Event::NAMES.iter().chain(self.events).copied()
    }

    /// Returns a name that two counters of a kind share, if there is one.
    #[must_use]
    pub fn duplicate(&self) -> Option<&'static str> {
        fn first_duplicate(names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
            let mut names: Vec<&str> = names.collect();
            names.sort_unstable();
            names
                .windows(2)
                .find(|two| two[0] == two[1])
                .map(|two| two[0])
        }
        first_duplicate(self.receive_drops().map(|(_, name)| name))
            .or_else(|| first_duplicate(self.refusals().map(|(_, name)| name)))
            .or_else(|| first_duplicate(self.events().map(|(_, name)| name)))
    }
}

/// Returns the name of a counter. A counter that the datapath does not list is "unnamed".
fn find<T: PartialEq>(
    mut names: impl Iterator<Item = (T, &'static str)>,
    counter: T,
) -> &'static str {
    let found = names.find(|(named, _)| *named == counter);
    found.map_or("unnamed", |(_, name)| name)
}

// An index must fit into a byte.
const _: () = assert!(ReceiveDrop::COUNT <= 256 && Refusal::COUNT <= 256 && Event::COUNT <= 256);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_all_datapaths_have_a_name_and_an_index_of_their_own() {
        let names = CounterNames::NONE;
        for (index, (reason, name)) in names.receive_drops().enumerate() {
            assert_eq!(reason.index(), index, "{name}");
        }
        for (index, (reason, name)) in names.refusals().enumerate() {
            assert_eq!(reason.index(), index, "{name}");
        }
        assert_eq!(names.duplicate(), None);
    }

    #[test]
    fn counters_of_a_datapath_follow_those_of_all() {
        const BENT: ReceiveDrop = ReceiveDrop::own(0);
        const JAMMED: Refusal = Refusal::own(0);
        const RUNG: Event = Event::own(0);
        static NAMES: CounterNames =
            CounterNames::new(&[(BENT, "bent")], &[(JAMMED, "jammed")], &[(RUNG, "rung")]);
        assert_eq!(NAMES.receive_drop(BENT), "bent");
        assert_eq!(NAMES.receive_drop(ReceiveDrop::TRUNCATED), "truncated");
        assert_eq!(NAMES.refusal(JAMMED), "jammed");
        assert_eq!(NAMES.event(RUNG), "rung");
        assert_eq!(CounterNames::NONE.event(RUNG), "unnamed");
        assert_eq!(NAMES.duplicate(), None);
        let last = ReceiveDrop::own(MAX_OWN_RECEIVE_DROPS as u8 - 1);
        assert_eq!(last.index() + 1, ReceiveDrop::COUNT);

        static TWICE: CounterNames = CounterNames::new(&[(BENT, "truncated")], &[], &[]);
        assert_eq!(TWICE.duplicate(), Some("truncated"));
    }

    #[test]
    fn only_events_that_occurred_are_listed() {
        let mut counts = EventCounts::default();
        counts.note(Event::own(3), 2);
        counts.note(Event::own(3), 1);
        assert_eq!(counts.counted().collect::<Vec<_>>(), [(Event::own(3), 3)]);
        assert_eq!(counts.get(Event::own(3)), 3);
    }
}
