//! Memory shared by the program and user space, field by field as in `classifier/layout.h`, and its mapping into this
//! process. `layout.h` says which side writes each field.
//!
//! All fields are atomics: the kernel changes them at any time. No order between fields is assumed,
//! except where [`super::flows`] and [`super::budgets`] say so.

use std::io;
use std::mem::{offset_of, size_of};
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use super::verdict::{FlowReason, OthersReason};
use crate::limits::{MAX_FLOWS, MAX_LANES, MAX_QUEUES};

/// Lane value that means the kernel.
pub(super) const KERNEL: u8 = MAX_LANES as u8;

/// Values of `enum over`.
pub(super) const UNLIMITED: u8 = 0;
pub(super) const DROP: u8 = 1;
pub(super) const DEMOTE: u8 = 2;

/// Servers that belong to no flow.
pub(super) const INTERFACE_SHARED: usize = MAX_FLOWS;
pub(super) const INTERFACE_RESERVE: usize = MAX_FLOWS + 1;
pub(super) const OTHERS: usize = MAX_FLOWS + 2;
pub(super) const SERVERS: usize = MAX_FLOWS + 3;

const PORTS: usize = 1 << 16;

/// Counters per row for frames that belong to no flow; more than there are reasons.
const OTHERS_COUNTERS: usize = 16;

#[repr(C, align(64))]
pub(super) struct Settings {
    pub(super) limits_interface: AtomicU8,
    pub(super) limits_others: AtomicU8,
    pub(super) enforces_recycling: AtomicU8,
    pub(super) enforces_reserve: AtomicU8,
    pub(super) unused: [u8; 4],
    /// Action, reason, slot + 1 and lane of the last frame, if traced.
    pub(super) last: [AtomicU8; 8],
}

/// Counter on its own cache line, written by the kernel only.
#[repr(C, align(64))]
pub(super) struct Taken(pub(super) AtomicU64);

#[repr(C, align(64))]
pub(super) struct Queue {
    pub(super) filled: AtomicU64,
    pub(super) low_water: [AtomicI64; MAX_LANES],
    pub(super) bound: AtomicU8,
    pub(super) unused: [u8; 7],
    pub(super) taken: Taken,
}

#[repr(C)]
pub(super) struct FlowEntry {
    pub(super) destination: AtomicU32,
    pub(super) source: AtomicU32,
    pub(super) port: AtomicU16,
    pub(super) has_source: AtomicU8,
    pub(super) lane: AtomicU8,
    pub(super) is_critical: AtomicU8,
    pub(super) over: AtomicU8,
    pub(super) next: AtomicU8,
    pub(super) unused: u8,
}

#[repr(C, align(64))]
pub(super) struct Server {
    pub(super) left: AtomicI64,
    pub(super) capacity: AtomicI64,
    pub(super) period_ns: AtomicU64,
    pub(super) next_ns: AtomicU64,
}

#[repr(C, align(64))]
pub(super) struct Row {
    pub(super) others: [AtomicU64; OTHERS_COUNTERS],
    pub(super) flows: [[AtomicU64; FlowReason::COUNT]; MAX_FLOWS],
    pub(super) touched_fill: AtomicU64,
    pub(super) touched_reserve: AtomicU64,
    pub(super) unstamped: AtomicU64,
}

#[repr(C, align(64))]
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) queues: [Queue; MAX_QUEUES],
    pub(super) flows: [FlowEntry; MAX_FLOWS],
    pub(super) servers: [Server; SERVERS],
    pub(super) rows: [Row; MAX_QUEUES],
    pub(super) first: [AtomicU8; PORTS],
}

const _: () = {
    assert!(FlowReason::COUNT == 8 && OthersReason::COUNT <= OTHERS_COUNTERS);
    assert!(size_of::<Settings>() == 64);
    assert!(offset_of!(Queue, taken) == 128 && size_of::<Queue>() == 192);
    assert!(size_of::<FlowEntry>() == 16);
    assert!(size_of::<Server>() == 64);
    assert!(size_of::<Row>() == 4_288);
    assert!(
        size_of::<Shared>() == 64 + 8 * 192 + 64 * 16 + 67 * 64 + 8 * 4_288 + 65_536,
        "as in layout.h"
    );
};

/// Mapped value of the classifier's map. It stays mapped after the program is gone.
#[derive(Debug)]
pub(super) struct Memory(NonNull<Shared>);

impl Memory {
    /// Maps the value of `map`. The caller has checked that its size is that of [`Shared`].
    pub(super) fn map(map: BorrowedFd<'_>) -> io::Result<Memory> {
        // SAFETY: a new mapping, placed by the kernel in free address space.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<Shared>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(address.cast())
            .map(Memory)
            .ok_or_else(|| io::Error::other("the kernel mapped the classifier's memory at 0"))
    }
}

impl Deref for Memory {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        // SAFETY: the memory is mapped for as long as this value lives, page-aligned and of this size. The kernel
        // zeroed it, and zeros are valid. Every field that anyone writes is an atomic.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size, and no reference outlives this value.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Shared>()) };
    }
}
