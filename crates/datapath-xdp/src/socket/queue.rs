//! Queue of a device, with the rings shared by its lanes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Instant;

use isolane_hostnet::link;

use super::error::OpenError;
use super::lane::Statistics;
use super::rings::{CompletionRing, FillRing, ReceiveRing};
use super::system_calls;
use super::umem::Umem;
use crate::limits::{BIND_PATIENCE, BIND_RETRY};

/// Requested mode of moving frames between the device and the UMEM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BindMode {
    /// Zero copy where the driver offers it, else copy.
    #[default]
    Auto,
    /// Copy mode.
    Copy,
    /// Zero copy; opening fails without it.
    ZeroCopy,
}

/// Effective mode, read back from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The kernel copies each frame once in each direction.
    Copy,
    /// The device accesses the UMEM directly.
    ZeroCopy,
}

/// Configuration of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Index of the device in the calling thread's network namespace.
    pub interface_index: u32,
    /// Queue of the device, from 0.
    pub queue: u32,
    /// Requested mode.
    pub mode: BindMode,
    /// Entries of the fill ring: a power of two, and more than the less critical lanes can take. Each of these takes
    /// the entries of its receive ring, and the frames that its reader may hold.
    pub fill_entries: u32,
    /// Entries of the completion ring: a power of two, and at least the frames ever in transmission.
    pub completion_entries: u32,
}

/// One queue of one device, with its fill and completion rings.
///
/// A dedicated socket owns the queue, with a receive ring of one entry that no map refers to. So all lane sockets are
/// made alike and may be opened and closed in any order.
#[derive(Debug)]
pub struct Queue {
    /// Empty chunks for all sockets of the queue.
    pub fill: FillRing,
    /// Sent chunks of all sockets of the queue.
    pub completion: CompletionRing,
    _unused: ReceiveRing,
    // Dropped after the rings, which map this socket, and before the memory it uses.
    socket: OwnedFd,
    umem: Umem,
    interface_index: u32,
    queue: u32,
    mode: Mode,
}

impl Queue {
    /// Registers the memory and binds a queue. The kernel releases a dead process's queue after about 60 ms; this call
    /// retries for up to [`BIND_PATIENCE`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(umem: &Umem, config: &QueueConfig) -> Result<Queue, OpenError> {
        Queue::take(umem, config, None)
    }

    /// Binds another queue of any device with its own rings and the same memory. The new queue has the mode of this
    /// one; `config.mode` is ignored.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_shared(&self, config: &QueueConfig) -> Result<Queue, OpenError> {
        Queue::take(&self.umem, config, Some(self.socket.as_fd()))
    }

    fn take(
        umem: &Umem,
        config: &QueueConfig,
        owner: Option<BorrowedFd<'_>>,
    ) -> Result<Queue, OpenError> {
        let socket = open_socket()?;
        if owner.is_none() {
            register(socket.as_fd(), umem)?;
        }
        let fill = FillRing::make(socket.as_fd(), umem, config.fill_entries)?;
        let completion = CompletionRing::make(socket.as_fd(), umem, config.completion_entries)?;
        let unused = ReceiveRing::make(socket.as_fd(), umem, 1)?;
        // With XDP_SHARED_UMEM the kernel inherits mode and wake-up flag from the owner and accepts no other flags.
        let flags = match (owner, config.mode) {
            (Some(_), _) => libc::XDP_SHARED_UMEM,
            (None, BindMode::Auto) => libc::XDP_USE_NEED_WAKEUP,
            (None, BindMode::Copy) => libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
            (None, BindMode::ZeroCopy) => libc::XDP_ZEROCOPY | libc::XDP_USE_NEED_WAKEUP,
        };
        let (index, queue) = (config.interface_index, config.queue);
        bind_patiently(|| system_calls::bind(socket.as_fd(), index, queue, flags, owner))
            .map_err(|source| bind_error(index, queue, source))?;
        let is_zero_copy = system_calls::is_zero_copy(socket.as_fd())
            .map_err(|source| OpenError::of("read the mode of a queue", source))?;
        Ok(Queue {
            fill,
            completion,
            _unused: unused,
            socket,
            umem: umem.clone(),
            interface_index: index,
            queue,
            mode: if is_zero_copy {
                Mode::ZeroCopy
            } else {
                Mode::Copy
            },
        })
    }

    /// Effective mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Memory of the frames.
    #[must_use]
    pub fn umem(&self) -> &Umem {
        &self.umem
    }

    /// Index of the device.
    #[must_use]
    pub fn interface_index(&self) -> u32 {
        self.interface_index
    }

    /// Queue number, from 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.queue
    }

    /// Number of frames, over all sockets of the queue, that found the fill ring empty.
    ///
    /// # Errors
    /// Error from the system.
    pub fn fill_missed(&self) -> io::Result<u64> {
        Statistics::read(self.socket.as_fd()).map(|statistics| statistics.fill_ring_empty)
    }

    /// Binds a socket with its rings to this queue, with shared memory.
    pub(super) fn admit(&self, socket: BorrowedFd<'_>) -> Result<(), OpenError> {
        let (index, queue) = (self.interface_index, self.queue);
        let (flags, owner) = (libc::XDP_SHARED_UMEM, Some(self.socket.as_fd()));
        system_calls::bind(socket, index, queue, flags, owner)
            .map_err(|source| bind_error(index, queue, source))
    }
}

/// Opens a socket without rings.
pub(super) fn open_socket() -> Result<OwnedFd, OpenError> {
    system_calls::open().map_err(|source| OpenError::of("open an AF_XDP socket", source))
}

fn register(socket: BorrowedFd<'_>, umem: &Umem) -> Result<(), OpenError> {
    let (chunk_bytes, head_room) = (umem.chunk_bytes() as u32, umem.head_room());
    system_calls::register(socket, umem.memory(), chunk_bytes, head_room).map_err(|source| {
        match source.raw_os_error() {
            Some(libc::ENOBUFS) => OpenError::MemoryLock {
                bytes: umem.memory().len(),
            },
            _ => OpenError::of("share memory with the kernel", source),
        }
    })
}

fn bind_error(interface_index: u32, queue: u32, source: io::Error) -> OpenError {
    let name = link::name_of(interface_index);
    let name = name.unwrap_or_else(|| format!("number {interface_index}"));
    OpenError::of_bind(name, queue, source)
}

/// Retries while the queue is bound: the kernel releases a dead process's queue with a delay.
fn bind_patiently(mut bind: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let begin = Instant::now();
    loop {
        match bind() {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && begin.elapsed() < BIND_PATIENCE =>
            {
                thread::sleep(BIND_RETRY);
            }
            result => return result,
        }
    }
}
