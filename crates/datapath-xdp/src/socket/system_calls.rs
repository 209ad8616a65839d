//! System calls of AF_XDP sockets, each behind a safe function.
//!
//! The two wake-up calls are made for each burst and use rustix, which adds nothing to the system call. The C
//! library's functions are thread cancellation points, at a cost of about fifty instructions.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, compiler_fence};

use libc::{c_int, off_t, socklen_t};
use rustix::net::{self, RecvFlags, SendFlags};

/// Type that the kernel reads or writes as it is in memory.
///
/// # Safety
/// Any bytes, including zeros, are a valid value of the implementor.
unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for c_int {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: integers only.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: integers only.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: integers only.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: integers only.
unsafe impl Plain for libc::xdp_options {}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Opens an unbound socket without rings.
pub(super) fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let descriptor = check(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
    // SAFETY: the descriptor was just created and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn set<T: Plain>(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let bytes = size_of::<T>() as socklen_t;
    let value = ptr::from_ref(value).cast();
    // SAFETY: `value` points to `bytes` valid bytes for the duration of the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, bytes) })?;
    Ok(())
}

/// Reads an AF_XDP option. Bytes that the kernel does not write stay 0.
fn get<T: Plain>(socket: BorrowedFd<'_>, option: c_int) -> io::Result<T> {
    // SAFETY: zeros are a valid value (Plain).
    let mut value: T = unsafe { zeroed() };
    let mut bytes = size_of::<T>() as socklen_t;
    let into = (&raw mut value).cast();
    let raw = socket.as_raw_fd();
    // SAFETY: the kernel writes at most `bytes` bytes into `value`, and any are a valid value (Plain).
    check(unsafe { libc::getsockopt(raw, libc::SOL_XDP, option, into, &raw mut bytes) })?;
    Ok(value)
}

/// Sets the number of entries of a ring.
pub(super) fn set_entries(socket: BorrowedFd<'_>, option: c_int, entries: u32) -> io::Result<()> {
    set(socket, libc::SOL_XDP, option, &entries)
}

/// Sets an integer option of the level SOL_SOCKET.
pub(super) fn set_number(socket: BorrowedFd<'_>, option: c_int, value: c_int) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, option, &value)
}

/// Registers memory with a socket, in chunks of `chunk_bytes`. The kernel may access a chunk from the time its address
/// is put into a ring.
pub(super) fn register(
    socket: BorrowedFd<'_>,
    memory: NonNull<[u8]>,
    chunk_bytes: u32,
    head_room: u32,
) -> io::Result<()> {
    let region = libc::xdp_umem_reg {
        addr: memory.cast::<u8>().as_ptr().expose_provenance() as u64,
        len: memory.len() as u64,
        chunk_size: chunk_bytes,
        headroom: head_room,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &region)
}

/// Offsets of each ring's parts in its mapping.
pub(super) fn ring_offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    get(socket, libc::XDP_MMAP_OFFSETS)
}

/// Kernel counters of a socket.
pub(super) fn statistics(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_statistics> {
    get(socket, libc::XDP_STATISTICS)
}

/// Returns whether a bound socket uses zero copy.
pub(super) fn is_zero_copy(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let options: libc::xdp_options = get(socket, libc::XDP_OPTIONS)?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// Binds a socket with its rings to a queue. `shared` is the socket that registered the memory, if it is another one.
pub(super) fn bind(
    socket: BorrowedFd<'_>,
    interface_index: u32,
    queue: u32,
    flags: u16,
    shared: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: interface_index,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared.map_or(0, |owner| owner.as_raw_fd() as u32),
    };
    let bytes = size_of_val(&address) as socklen_t;
    // SAFETY: `address` is valid for `bytes` bytes for the duration of the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), bytes) })?;
    Ok(())
}

/// Makes the kernel process the transmit ring, or part of it. Non-blocking.
#[inline]
pub(super) fn wake_transmit(socket: BorrowedFd<'_>) -> io::Result<()> {
    let sent = net::send(socket, &[], SendFlags::DONTWAIT);
    // To the compiler, a send writes no memory; this one advances the rings' indexes.
    compiler_fence(Ordering::SeqCst);
    sent?;
    Ok(())
}

/// Makes the kernel poll the device if busy polling is set. Non-blocking.
pub(super) fn wake_receive(socket: BorrowedFd<'_>) -> io::Result<()> {
    let nothing: &mut [u8] = &mut [];
    net::recv(socket, nothing, RecvFlags::DONTWAIT)?;
    Ok(())
}

/// Owned memory mapping, unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned; this type accesses none of its memory and only says where it is.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a ring of a socket, with its pages populated.
    pub(super) fn of_ring(
        socket: BorrowedFd<'_>,
        page_offset: u64,
        bytes: usize,
    ) -> io::Result<Mapping> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Mapping::new(bytes, flags, socket.as_raw_fd(), page_offset)
    }

    /// Maps zeroed anonymous memory, with its pages populated.
    pub(super) fn of_memory(bytes: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Mapping::new(bytes, flags, -1, 0)
    }

    fn new(bytes: usize, flags: c_int, descriptor: c_int, offset: u64) -> io::Result<Mapping> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let offset = off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address the kernel chooses affects no memory that is in use.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), bytes, rights, flags, descriptor, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, bytes })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned by this value; every user of a pointer into it keeps this value alive.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
