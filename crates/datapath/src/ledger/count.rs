//! What a lane of a device did besides receiving, sending, dropping and refusing: each thing has a
//! name and a count of its own. None of them is a loss.

/// A thing that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Datagrams received by the lane's ring; the others of `received` came by a kernel socket.
    ReceivedByLane,
    /// Of these, those whose checksum was left unfinished by a virtual interface, and fits so far.
    PartialChecksum,
    /// Of these, those that came without a checksum.
    NoChecksum,
    /// Datagrams sent by the lane's ring; the others of `sent` left by a kernel socket.
    SentByLane,
    /// Copies of a frame that were made for further destinations, or because it was no chunk.
    DestinationCopy,
    /// Left by a kernel socket, which makes fragments of it: longer than the interface's frames.
    KernelTooLong,
    /// Left by a kernel socket: the destination is this host.
    KernelOwnHost,
    /// A group's copy for readers on this host, by a kernel socket; the others got it by the lane.
    KernelLocalGroup,
    /// Left by a kernel socket: the neighbour's address was not known, or not any more.
    KernelNeighbour,
    /// Left by a kernel socket: the route leads to another interface, or is none.
    KernelNoRoute,
    /// Left by a kernel socket: the interface was down or gone.
    KernelDown,
    /// Left by a kernel socket: no chunk was free for it, or its frame was none.
    KernelNoChunk,
    /// Left by a kernel socket: the ring was full of what the device had not taken.
    KernelRingFull,
    /// Left by a kernel socket: its route is of a kind that lanes do not take.
    KernelUnsupported,
    /// System calls that asked the device to send.
    Kick,
    /// Of these, those after which something was left in the ring.
    KickUnfinished,
    /// Looks that found fewer chunks free than are reserved for the most critical lane, those not counted that
    /// it had taken of them itself.
    ReserveTouched,
    /// Descriptors that the kernel gave back without having had them: a fault of somebody's.
    Stray,
}

impl Counted {
    /// How many there are.
    pub const COUNT: usize = 18;
    /// All of them, by index.
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

    /// As reports print it.
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

/// How often each thing happened to a lane. All zero where it has no ring of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    of: [u64; Counted::COUNT],
}

impl Counts {
    /// One of them.
    #[must_use]
    pub const fn get(&self, what: Counted) -> u64 {
        self.of[what as usize]
    }

    /// Those that happened, with their counts.
    pub fn named(&self) -> impl Iterator<Item = (Counted, u64)> + '_ {
        let counts = Counted::ALL.into_iter().zip(self.of);
        counts.filter(|(_, count)| *count > 0)
    }

    /// It happened so often more.
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
