//! Fill, completion, receive and transmit rings, from the program's end of each.

use std::io;
use std::os::fd::BorrowedFd;

use super::error::{OpenError, RingKind};
use super::ring::{Consumer, Entry, Layout, Memory, Producer};
use super::system_calls::{self, Mapping};
use super::umem::Umem;
use crate::limits::MAX_RING_ENTRIES;

/// Frame descriptor of a ring (`struct xdp_desc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Descriptor {
    /// Address of the first byte, from the start of the UMEM.
    pub address: u64,
    /// Length in bytes.
    pub length: u32,
    /// Kernel flags; 0 for transmission.
    pub options: u32,
}

// SAFETY: numbers that fill 16 bytes without padding.
unsafe impl Entry for Descriptor {}

/// Requests a ring from the kernel and maps it. The socket is not bound yet.
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
    system_calls::set_entries(socket, option, count)
        .map_err(|source| OpenError::of("make a ring", source))?;
    let offsets = system_calls::ring_offsets(socket).map_err(of)?;
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

/// Error for ring offsets that do not fit the mapping.
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

/// Fill ring: empty chunks for the kernel to receive into, for one queue and all its lanes.
#[derive(Debug)]
pub struct FillRing(Producer<u64>);

/// Completion ring: chunks the kernel has sent, for one queue and all its lanes.
#[derive(Debug)]
pub struct CompletionRing(Consumer<u64>);

/// Receive ring of one socket.
#[derive(Debug)]
pub struct ReceiveRing(Consumer<Descriptor>);

/// Transmit ring of one socket.
#[derive(Debug)]
pub struct TransmitRing(Producer<Descriptor>);

impl FillRing {
    /// Pushes chunk addresses from the front while there is room; returns how many. The caller
    /// gives up the chunk of each pushed address until it comes back.
    pub fn push(&mut self, addresses: &[u64]) -> usize {
        self.0.push(addresses)
    }
}

impl CompletionRing {
    /// Pops addresses of sent frames, as they were given for transmission; returns how many.
    pub fn pop(&mut self, into: &mut [u64]) -> usize {
        self.0.pop(into)
    }
}

impl ReceiveRing {
    /// Pops frames in arrival order; returns how many. [`Umem::locate`](super::Umem::locate) must
    /// accept a descriptor before its bytes are used.
    pub fn pop(&mut self, into: &mut [Descriptor]) -> usize {
        self.0.pop(into)
    }
}

impl TransmitRing {
    /// Pushes frames for transmission in order, from the front, while there is room; returns how
    /// many. [`kick`](super::TransmitSocket::kick) sends them at the latest.
    pub fn push(&mut self, frames: &[Descriptor]) -> usize {
        self.0.push(frames)
    }
}

/// Methods common to the rings filled by the program.
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

            /// Number of entries.
            #[must_use]
            pub fn entries(&self) -> u32 {
                self.0.count()
            }

            /// Used entries, for display: the kernel's index is not adopted.
            #[must_use]
            pub fn peek_used(&self) -> u32 {
                self.0.peek_used()
            }

            /// Adds one entry, which the kernel sees after [`show`](Self::show). Returns false if the ring is full.
            #[inline]
            pub fn stage(&mut self, entry: $entry) -> bool {
                self.0.stage(entry)
            }

            /// Returns whether there is room for one entry.
            #[inline]
            pub fn has_room(&mut self) -> bool {
                self.0.has_room()
            }

            /// Publishes all staged entries to the kernel.
            #[inline]
            pub fn show(&mut self) {
                self.0.show();
            }

            /// Used entries as of the last [`used`](Self::used), plus those added since.
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

            /// Free entries.
            #[inline]
            pub fn free(&mut self) -> u32 {
                self.0.count() - self.0.used()
            }

            /// Returns whether the kernel must be woken for new entries.
            #[inline]
            #[must_use]
            pub fn needs_wakeup(&self) -> bool {
                self.0.needs_wakeup()
            }

            /// Number of times the kernel's index was out of range. Expected to be 0.
            #[must_use]
            pub fn nonsense(&self) -> u64 {
                self.0.nonsense()
            }
        }
    )*};
}
filled_by_us!(FillRing: Fill of u64, TransmitRing: Transmit of Descriptor);

/// Methods common to the rings filled by the kernel.
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

            /// Number of entries.
            #[must_use]
            pub fn entries(&self) -> u32 {
                self.0.count()
            }

            /// Waiting entries, for display: the kernel's index is not adopted.
            #[must_use]
            pub fn peek_waiting(&self) -> u32 {
                self.0.peek_waiting()
            }

            /// Number of entries ready to be [taken](Self::take) one by one, at most `limit`.
            #[inline]
            pub fn ready(&mut self, limit: usize) -> usize {
                self.0.ready(limit)
            }

            /// Takes one ready entry. Its slot returns to the kernel with [`give_back`](Self::give_back).
            #[inline]
            pub fn take(&mut self) -> Option<$entry> {
                self.0.take()
            }

            /// Returns the slots of all taken entries to the kernel.
            #[inline]
            pub fn give_back(&mut self) {
                self.0.give_back();
            }

            /// Entries waiting to be taken.
            #[inline]
            pub fn waiting(&mut self) -> u32 {
                self.0.waiting()
            }

            /// Number of times the kernel's index was out of range. Expected to be 0.
            #[must_use]
            pub fn nonsense(&self) -> u64 {
                self.0.nonsense()
            }
        }
    )*};
}
filled_by_the_kernel!(CompletionRing: Completion of u64, ReceiveRing: Receive of Descriptor);
