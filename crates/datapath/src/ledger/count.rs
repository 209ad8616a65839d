//! Counters of a device lane in addition to received, sent, dropped and refused datagrams. None of them counts a loss.

/// Counted event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Datagrams received through the lane's ring; the others of `received` came through a kernel socket.
    ReceivedByLane,
    /// Datagrams among these with a partial checksum of a virtual interface, correct so far.
    PartialChecksum,
    /// Datagrams among these without a checksum.
    NoChecksum,
    /// Datagrams sent through the lane's ring; the others of `sent` left through a kernel socket.
    SentByLane,
    /// Frames copied for further destinations, or because the frame is not a device chunk.
    DestinationCopy,
    /// Sent through a kernel socket, which fragments: longer than the interface's MTU.
    KernelTooLong,
    /// Sent through a kernel socket: the destination is this host.
    KernelOwnHost,
    /// Multicast copies sent through a kernel socket for readers on this host; the lane sent to the network.
    KernelLocalGroup,
    /// Sent through a kernel socket: the neighbour's link-layer address is unknown or stale.
    KernelNeighbour,
    /// Sent through a kernel socket: no route, or one through another interface.
    KernelNoRoute,
    /// Sent through a kernel socket: the interface was down or removed.
    KernelDown,
    /// Sent through a kernel socket: the frame is not a device chunk, and none was free for a copy.
    KernelNoChunk,
    /// Sent through a kernel socket: the transmit ring was full.
    KernelRingFull,
    /// Sent through a kernel socket: its kind of route is not supported by lanes.
    KernelUnsupported,
    /// System calls that triggered transmission.
    Kick,
    /// Kicks among these that left entries in the ring.
    KickUnfinished,
    /// Checks that found fewer free chunks than the reserve of the most critical lane, not counting those that it had
    /// taken itself.
    ReserveTouched,
    /// Descriptors returned by the kernel that it did not own: a bug in kernel or program.
    Stray,
}

impl Counted {
    /// Number of counters.
    pub const COUNT: usize = 18;
    /// All counters, by index.
    pub const ALL: [Counted; Counted::COUNT] = [
        Counted::ReceivedByLane,
        Counted::PartialChecksum,
        Counted::NoChecksum,
        Counted::SentByLane,
        Counted::DestinationCopy,
        Counted::KernelTooLong,
        Counted::KernelOwnHost,
        Counted::KernelLocalGroup,
        Counted::KernelNeighbour,
        Counted::KernelNoRoute,
        Counted::KernelDown,
        Counted::KernelNoChunk,
        Counted::KernelRingFull,
        Counted::KernelUnsupported,
        Counted::Kick,
        Counted::KickUnfinished,
        Counted::ReserveTouched,
        Counted::Stray,
    ];

    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Counted::ReceivedByLane => "received_by_lane",
            Counted::PartialChecksum => "partial_checksum",
            Counted::NoChecksum => "no_checksum",
            Counted::SentByLane => "sent_by_lane",
            Counted::DestinationCopy => "destination_copy",
            Counted::KernelTooLong => "kernel_too_long",
            Counted::KernelOwnHost => "kernel_own_host",
            Counted::KernelLocalGroup => "kernel_local_group",
            Counted::KernelNeighbour => "kernel_neighbour",
            Counted::KernelNoRoute => "kernel_no_route",
            Counted::KernelDown => "kernel_down",
            Counted::KernelNoChunk => "kernel_no_chunk",
            Counted::KernelRingFull => "kernel_ring_full",
            Counted::KernelUnsupported => "kernel_unsupported",
            Counted::Kick => "kick",
            Counted::KickUnfinished => "kick_unfinished",
            Counted::ReserveTouched => "reserve_touched",
            Counted::Stray => "stray",
        }
    }
}

/// Counters of a lane. All zero without a device ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    of: [u64; Counted::COUNT],
}

impl Counts {
    /// Returns a counter.
    #[must_use]
    pub const fn get(&self, what: Counted) -> u64 {
        self.of[what as usize]
    }

    /// Iterates over the nonzero counters.
    pub fn named(&self) -> impl Iterator<Item = (Counted, u64)> + '_ {
        let counts = Counted::ALL.into_iter().zip(self.of);
        counts.filter(|(_, count)| *count > 0)
    }

    /// Adds to a counter.
    #[inline]
    pub fn note(&mut self, what: Counted, count: u64) {
        self.of[what as usize] += count;
    }

    pub(super) fn add(&mut self, other: &Counts) {
        for (to, from) in self.of.iter_mut().zip(other.of) {
            *to += from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_counted_has_a_name_and_an_index_of_its_own() {
        for (index, what) in Counted::ALL.into_iter().enumerate() {
            assert_eq!(what as usize, index, "{}", what.name());
        }
        let mut counts = Counts::default();
        counts.note(Counted::Kick, 2);
        counts.note(Counted::Kick, 1);
        assert_eq!(counts.named().collect::<Vec<_>>(), [(Counted::Kick, 3)]);
    }
}
