//! The four rings, each with the end that is a program's.

use std::io;
use std::os::fd::BorrowedFd;

use super::error::{OpenError, RingKind};
use super::ring::{Consumer, Entry, Layout, Memory, Producer};
use super::system::{self, Mapping};
use super::umem::Umem;
use crate::limits::MAX_RING_ENTRIES;

/// A frame in a ring: where its bytes lie in the registered memory (`struct xdp_desc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Descriptor {
    /// Of its first byte, from the memory's begin.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// Flags of the kernel; 0 to send.
    pub options: u32,
}

// SAFETY: numbers that fill 16 bytes without padding.
unsafe impl Entry for Descriptor {}

/// Asks for a ring, before the socket is bound, and maps it.
fn ring(
    socket: BorrowedFd<'_>,
    umem: &Umem,
    kind: RingKind,
    count: u32,
    entry_bytes: usize,
) -> Result<(Memory, Layout), OpenError> {
    if !count.is_power_of_two() || count > MAX_RING_ENTRIES {
        return Err(OpenError::RingEntries {
            ring: kind,
            entries: count,
        });
    }
    let (option, page_offset) = match kind {
        RingKind::Fill => (libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_PGOFF_FILL_RING),
        RingKind::Completion => (
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_UMEM_PGOFF_COMPLETION_RING,
        ),
        RingKind::Receive => (libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING as u64),
        RingKind::Transmit => (libc::XDP_TX_RING, libc::XDP_PGOFF_TX_RING as u64),
    };
    let of = |source| OpenError::of("map a ring", source);
    system::set_entries(socket, option, count)
        .map_err(|source| OpenError::of("make a ring", source))?;
    let offsets = system::ring_offsets(socket).map_err(of)?;
    let offset = match kind {
        RingKind::Fill => offsets.fr,
        RingKind::Completion => offsets.cr,
        RingKind::Receive => offsets.rx,
        RingKind::Transmit => offsets.tx,
    };
    let layout = Layout {
        producer: offset.producer,
        consumer: offset.consumer,
        flags: offset.flags,
        entries: offset.desc,
    };
    // At most MAX_RING_ENTRIES of 16 bytes: no overflow.
    let bytes = offset.desc as usize + count as usize * entry_bytes;
    let mapping = Mapping::of_ring(socket, page_offset, bytes).map_err(of)?;
    Ok((Memory::Mapped(mapping, umem.clone()), layout))
}

/// A ring whose parts the kernel said lie elsewhere.
fn misplaced() -> OpenError {
    OpenError::System {
        action: "find the parts of a ring",
        source: io::ErrorKind::InvalidData.into(),
    }
}

fn producer<T: Entry>(
    socket: BorrowedFd<'_>,
    umem: &Umem,
    kind: RingKind,
    count: u32,
) -> Result<Producer<T>, OpenError> {
    let (memory, layout) = ring(socket, umem, kind, count, size_of::<T>())?;
    Producer::new(memory, layout, count).ok_or_else(misplaced)
}

fn consumer<T: Entry>(
    socket: BorrowedFd<'_>,
    umem: &Umem,
    kind: RingKind,
    count: u32,
) -> Result<Consumer<T>, OpenError> {
    let (memory, layout) = ring(socket, umem, kind, count, size_of::<T>())?;
    Consumer::new(memory, layout, count).ok_or_else(misplaced)
}

/// Empty chunks on their way to the kernel, of one queue and all its lanes.
#[derive(Debug)]
pub struct FillRing(Producer<u64>);

/// Chunks that the kernel has sent, on their way back, of one queue and all its lanes.
#[derive(Debug)]
pub struct CompletionRing(Consumer<u64>);

/// Frames that have arrived, of one socket.
#[derive(Debug)]
pub struct ReceiveRing(Consumer<Descriptor>);

/// Frames to be sent, of one socket.
#[derive(Debug)]
pub struct TransmitRing(Producer<Descriptor>);

impl FillRing {
    /// Gives chunks to be filled, as many as there is room for, from the front; returns how many.
    /// Each address is of a chunk that its holder gives up until it comes back.
    pub fn push(&mut self, addresses: &[u64]) -> usize {
        self.0.push(addresses)
    }
}

impl CompletionRing {
    /// Takes addresses of sent frames, as they were given to be sent; returns how many.
    pub fn pop(&mut self, into: &mut [u64]) -> usize {
        self.0.pop(into)
    }
}

impl ReceiveRing {
    /// Takes frames in the order they arrived; returns how many. A descriptor is only believed once
    /// [`Umem::locate`](super::Umem::locate) has found its place.
    pub fn pop(&mut self, into: &mut [Descriptor]) -> usize {
        self.0.pop(into)
    }
}

impl TransmitRing {
    /// Gives frames to be sent in order, as many as there is room for, from the front; returns how
    /// many. They are sent at the latest by [`kick`](super::TransmitSocket::kick).
    pub fn push(&mut self, frames: &[Descriptor]) -> usize {
        self.0.push(frames)
    }
}

/// What is the same of all rings that a program fills.
macro_rules! filled_by_us {
    ($($ring:ident: $kind:ident of $entry:ty),*) => {$(
        impl $ring {
            pub(super) fn make(
                socket: BorrowedFd<'_>,
                umem: &Umem,
                entries: u32,
            ) -> Result<$ring, OpenError> {
                producer(socket, umem, RingKind::$kind, entries).map($ring)
            }

            /// Entries it has.
            #[must_use]
            pub fn entries(&self) -> u32 {
                self.0.count()
            }

            /// The same without believing it for good: for people.
            #[must_use]
            pub fn peek_used(&self) -> u32 {
                self.0.peek_used()
            }

            /// Puts one entry in, which the kernel sees after [`show`](Self::show). False: there is no
            /// room.
            #[inline]
            pub fn stage(&mut self, entry: $entry) -> bool {
                self.0.stage(entry)
            }

            /// Whether there is room for one entry.
            #[inline]
            pub fn has_room(&mut self) -> bool {
                self.0.has_room()
            }

            /// Shows the kernel all that was put in.
            #[inline]
            pub fn show(&mut self) {
                self.0.show();
            }

            /// Entries that the kernel had not taken when [`used`](Self::used) was last asked, and
            /// those put in since.
            #[inline]
            #[must_use]
            pub fn known_used(&self) -> u32 {
                self.0.known_used()
            }

            /// Entries that the kernel has not taken yet.
            #[inline]
            pub fn used(&mut self) -> u32 {
                self.0.used()
            }

            /// Entries there is room for.
            #[inline]
            pub fn free(&mut self) -> u32 {
                self.0.count() - self.0.used()
            }

            /// Whether the kernel waits to be told of new entries.
            #[inline]
            #[must_use]
            pub fn needs_wakeup(&self) -> bool {
                self.0.needs_wakeup()
            }

            /// How often the kernel's index was none it could have: 0.
            #[must_use]
            pub fn nonsense(&self) -> u64 {
                self.0.nonsense()
            }
        }
    )*};
}
filled_by_us!(FillRing: Fill of u64, TransmitRing: Transmit of Descriptor);

/// What is the same of all rings that the kernel fills.
macro_rules! filled_by_the_kernel {
    ($($ring:ident: $kind:ident of $entry:ty),*) => {$(
        impl $ring {
            pub(super) fn make(
                socket: BorrowedFd<'_>,
                umem: &Umem,
                entries: u32,
            ) -> Result<$ring, OpenError> {
                consumer(socket, umem, RingKind::$kind, entries).map($ring)
            }

            /// Entries it has.
            #[must_use]
            pub fn entries(&self) -> u32 {
                self.0.count()
            }

            /// The same without believing it for good: for people.
            #[must_use]
            pub fn peek_waiting(&self) -> u32 {
                self.0.peek_waiting()
            }

            /// How many there are to be [taken](Self::take) one by one, at most `limit`.
            #[inline]
            pub fn ready(&mut self, limit: usize) -> usize {
                self.0.ready(limit)
            }

            /// Takes one of those; its place is the kernel's again after
            /// [`give_back`](Self::give_back).
            #[inline]
            pub fn take(&mut self) -> Option<$entry> {
                self.0.take()
            }

            /// Gives the places of all that was taken back.
            #[inline]
            pub fn give_back(&mut self) {
                self.0.give_back();
            }

            /// Entries that wait to be taken.
            #[inline]
            pub fn waiting(&mut self) -> u32 {
                self.0.waiting()
            }

            /// How often the kernel's index was none it could have: 0.
            #[must_use]
            pub fn nonsense(&self) -> u64 {
                self.0.nonsense()
            }
        }
    )*};
}
filled_by_the_kernel!(CompletionRing: Completion of u64, ReceiveRing: Receive of Descriptor);
