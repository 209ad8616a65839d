//! Transmit queues of a device, one AF_XDP socket each. The socket determines the transmit queue, and the other end of
//! a veth receives the frame on the queue of the same number.
//!
//! Frames are copied into UMEM. Each queue has its own share of the chunks, so that bulk frames that the host does not
//! take cannot use up the critical queue's share.

use isolane_datapath_xdp::socket::{
    BindMode, Chunk, ChunkBytes, Descriptor, Held, OpenError, Queue, QueueConfig, Side,
    TransmitSocket, Umem,
};

use super::packet::Frame;
use crate::limits::{BATCH_FRAMES, CABLE_SEND_BYTES, QUEUE_FRAMES, QUEUE_OPEN_ATTEMPTS};

/// Number of transmit queues.
pub(crate) const QUEUES: usize = 2;

/// Transmit queue with its socket.
struct Outlet {
    // The socket drops before the queue whose rings it shares.
    socket: TransmitSocket,
    queue: Queue,
    free: Vec<Chunk>,
    /// Frames put into the ring.
    given: u64,
    /// Frames of `given` that the driver refused.
    refused: u64,
    /// Frames that found no free chunk.
    full: u64,
}

/// Sender with a socket per queue; receives nothing.
pub(crate) struct Queues {
    outlets: [Outlet; QUEUES],
    /// Chunks in flight.
    held: Held<Chunk>,
}

impl Queues {
    /// Opens the first queues of the device `interface_index` in the calling thread's network namespace.
    pub(crate) fn open(interface_index: u32) -> Result<Queues, OpenError> {
        // SAFETY: a chunk whose address goes into a ring waits in `held` until a ring gives the address back: see
        // `push` and `take_back`, the only functions that access the rings.
        let memory = unsafe { Umem::fresh(QUEUES as u32 * QUEUE_FRAMES, ChunkBytes::TwoKib) };
        let (umem, mut chunks) = memory.map_err(|error| OpenError::System {
            action: "take memory for frames",
            source: std::io::Error::other(error),
        })?;
        let mut share = || chunks.split_off(chunks.len() - QUEUE_FRAMES as usize);
        let first = open_first(&umem, &config(interface_index, 0))?;
        let second = first.open_shared(&config(interface_index, 1))?;
        Ok(Queues {
            outlets: [Outlet::new(first, share())?, Outlet::new(second, share())?],
            held: Held::new(&umem),
        })
    }

    /// Sends all `frames` without waiting, each on the queue that `queue_of` returns and in order within a queue;
    /// returns how many were refused.
    pub(crate) fn send(&mut self, frames: &[Frame], queue_of: impl Fn(&[u8]) -> usize) -> u64 {
        let before = self.lost();
        for frame in frames {
            let outlet = &mut self.outlets[queue_of(frame.as_bytes())];
            outlet.push(frame.as_bytes(), &mut self.held);
        }
        for outlet in &mut self.outlets {
            outlet.flush(&mut self.held);
        }
        self.lost() - before
    }

    fn lost(&self) -> u64 {
        let lost = |outlet: &Outlet| outlet.refused + outlet.full;
        self.outlets.iter().map(lost).sum()
    }

    /// Closes the queues. Returns the frames sent on each queue, and the frames accepted but never transmitted because
    /// the device was set down or removed.
    pub(crate) fn finish(mut self) -> ([u64; QUEUES], u64) {
        let mut left = 0;
        let mut sent = [0; QUEUES];
        for (outlet, sent) in self.outlets.iter_mut().zip(&mut sent) {
            outlet.flush(&mut self.held);
            let kept = u64::from(outlet.socket.ring.used());
            left += kept;
            *sent = outlet.given - outlet.refused - kept;
        }
        (sent, left)
    }
}

fn config(interface_index: u32, queue: u32) -> QueueConfig {
    QueueConfig {
        interface_index,
        queue,
        mode: BindMode::Copy,
        // The queue receives nothing.
        fill_entries: 1,
        completion_entries: QUEUE_FRAMES,
    }
}

/// Opens the first queue, with retries: a cable that has just ended may still occupy it.
fn open_first(umem: &Umem, config: &QueueConfig) -> Result<Queue, OpenError> {
    for _ in 1..QUEUE_OPEN_ATTEMPTS {
        match Queue::open(umem, config) {
            Err(OpenError::QueueTaken { .. }) => {}
            result => return result,
        }
    }
    Queue::open(umem, config)
}

impl Outlet {
    fn new(queue: Queue, free: Vec<Chunk>) -> Result<Outlet, OpenError> {
        let socket = TransmitSocket::open(&queue, QUEUE_FRAMES)?;
        socket
            .set_send_buffer(CABLE_SEND_BYTES)
            .map_err(|source| OpenError::System {
                action: "make a send buffer larger",
                source,
            })?;
        Ok(Outlet {
            socket,
            queue,
            free,
            given: 0,
            refused: 0,
            full: 0,
        })
    }

    /// Puts a frame into the ring, or counts it in `full` when no chunk is free.
    fn push(&mut self, frame: &[u8], held: &mut Held<Chunk>) {
        if self.free.is_empty() {
            self.flush(held);
        }
        let Some(mut chunk) = self.free.pop() else {
            self.full += 1;
            return;
        };
        // A cable frame fits into a chunk: both are at most SLOT_BYTES.
        chunk[..frame.len()].copy_from_slice(frame);
        let descriptor = Descriptor {
            address: chunk.address(),
            length: frame.len() as u32,
            options: 0,
        };
        // A free chunk is not held, and the ring has an entry for each chunk: neither call fails.
        if let Err(chunk) = held.hold(Side::Transmit, descriptor.address, chunk) {
            self.free.push(chunk);
            self.full += 1;
        } else if self.socket.ring.push(&[descriptor]) == 0 {
            self.free
                .extend(held.release(Side::Transmit, descriptor.address));
            self.full += 1;
        } else {
            self.given += 1;
        }
    }

    /// Makes the kernel send the ring's frames, and takes back the chunks of sent ones.
    fn flush(&mut self, held: &mut Held<Chunk>) {
        let mut left = self.socket.ring.used();
        while left > 0 {
            let kicked = self.socket.kick();
            self.refused += u64::from(kicked.refused);
            if kicked.stopped.is_some() || kicked.left == left {
                break;
            }
            left = kicked.left;
        }
        let mut addresses = [0; BATCH_FRAMES];
        loop {
            let count = self.queue.completion.pop(&mut addresses);
            for &address in &addresses[..count] {
                self.free.extend(held.release(Side::Transmit, address));
            }
            if count < addresses.len() {
                return;
            }
        }
    }
}
