//! A queue of a device, and the rings that all its lanes share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Instant;

use isolane_hostnet::link;

use super::error::OpenError;
use super::rings::{CompletionRing, FillRing, ReceiveRing};
use super::statistics::Statistics;
use super::system;
use super::umem::Umem;
use crate::limits::{BIND_PATIENCE, BIND_RETRY};

/// How the kernel is asked to move frames between the device and the registered memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BindMode {
    /// Zero copy where the driver offers it, else copy.
    #[default]
    Auto,
    /// The kernel copies.
    Copy,
    /// The device reads and writes the memory itself, or the queue is not opened.
    ZeroCopy,
}

/// How it does so, as read back from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The kernel copies each frame once, either way.
    Copy,
    /// No copy.
    ZeroCopy,
}

/// Which queue is wanted, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The device, by its number in the calling thread's network namespace.
    pub interface_index: u32,
    /// The device's queue, from 0.
    pub queue: u32,
    /// How frames are moved.
    pub mode: BindMode,
    /// Of the fill ring: a power of two, and more than all lanes' receive rings but the most
    /// critical one's hold together with what is held of them.
    pub fill_entries: u32,
    /// Of the completion ring: a power of two, and no fewer than frames are ever in transmission.
    pub completion_entries: u32,
}

/// One queue of one device, with its fill and completion rings.
///
/// It is held by a socket of its own, with a receive ring of one entry that no map names: so the
/// sockets of lanes are all made alike, and may come and go in any order.
#[derive(Debug)]
pub struct Queue {
    /// Empty chunks for all sockets of the queue.
    pub fill: FillRing,
    /// Sent chunks of all sockets of the queue.
    pub completion: CompletionRing,
    _unused: ReceiveRing,
    // Behind the rings, which are of this socket's memory, and before the memory it uses.
    socket: OwnedFd,
    umem: Umem,
    interface_index: u32,
    queue: u32,
    mode: Mode,
}

impl Queue {
    /// Registers the memory and takes a queue. A queue whose last program has just died is still
    /// taken for some 60 ms: that is waited for, up to [`BIND_PATIENCE`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(umem: &Umem, config: &QueueConfig) -> Result<Queue, OpenError> {
        Queue::take(umem, config, None)
    }

    /// Takes another queue, of the same device or another one, with rings of its own for the same
    /// memory. It has the mode that the first has: `config.mode` does not count.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_beside(&self, config: &QueueConfig) -> Result<Queue, OpenError> {
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
        // With shared memory, the kernel takes mode and wake-up from its owner, and nothing else.
        let flags = match (owner, config.mode) {
            (Some(_), _) => libc::XDP_SHARED_UMEM,
            (None, BindMode::Auto) => libc::XDP_USE_NEED_WAKEUP,
            (None, BindMode::Copy) => libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
            (None, BindMode::ZeroCopy) => libc::XDP_ZEROCOPY | libc::XDP_USE_NEED_WAKEUP,
        };
        let (index, queue) = (config.interface_index, config.queue);
        bind_patiently(|| system::bind(socket.as_fd(), index, queue, flags, owner))
            .map_err(|source| bind_error(index, queue, source))?;
        let is_zero_copy = system::is_zero_copy(socket.as_fd())
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

    /// How frames are moved.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The memory that frames lie in.
    #[must_use]
    pub fn umem(&self) -> &Umem {
        &self.umem
    }

    /// The device's number.
    #[must_use]
    pub fn interface_index(&self) -> u32 {
        self.interface_index
    }

    /// The queue's number, from 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.queue
    }

    /// How often a frame came for any socket of the queue and the fill ring was empty.
    ///
    /// # Errors
    /// What the system said.
    pub fn fill_missed(&self) -> io::Result<u64> {
        Statistics::read(self.socket.as_fd()).map(|statistics| statistics.fill_ring_empty)
    }

    /// Binds a socket, with its rings made, beside this queue's.
    pub(super) fn admit(&self, socket: BorrowedFd<'_>) -> Result<(), OpenError> {
        let (index, queue) = (self.interface_index, self.queue);
        let (flags, owner) = (libc::XDP_SHARED_UMEM, Some(self.socket.as_fd()));
        system::bind(socket, index, queue, flags, owner)
            .map_err(|source| bind_error(index, queue, source))
    }
}

/// A socket with nothing yet.
pub(super) fn open_socket() -> Result<OwnedFd, OpenError> {
    system::open().map_err(|source| OpenError::of("open an AF_XDP socket", source))
}

fn register(socket: BorrowedFd<'_>, umem: &Umem) -> Result<(), OpenError> {
    let (chunk_bytes, head_room) = (umem.chunk_bytes() as u32, umem.head_room());
    system::register(socket, umem.memory(), chunk_bytes, head_room).map_err(|source| {
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

/// Tries again while the queue is taken: the kernel lets go of a dead program's queue a while after
/// the program is gone.
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
