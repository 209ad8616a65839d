//! End of the ping-pong: a queue, its UMEM, and a lane's two sockets.

use std::io;
use std::os::fd::AsFd;

use isolane_datapath_xdp::socket::{
    BindMode, Chunk, ChunkBytes, Descriptor, Held, OpenError, Queue, QueueConfig, ReceiveSocket,
    Side, TransmitSocket, Umem,
};

use crate::bpf::{ETHER_TYPE, Redirect};

/// Chunks of an end. One frame is in flight at a time; a delayed host may find a few more.
const CHUNKS: u32 = 64;
/// Chunks kept in the fill ring.
const FILLED: usize = 32;
/// Entries of each ring: all chunks.
const ENTRIES: u32 = 64;
/// Offset of the round's number of 8 bytes: after the addresses, the EtherType and the lane.
const NUMBER_AT: usize = 15;
/// Ethernet, IPv4 and UDP header bytes, as in a datagram with the same payload.
pub(crate) const HEADERS: usize = 42;

/// Receives and sends frames, one at a time.
pub(crate) struct End {
    receive: ReceiveSocket,
    transmit: TransmitSocket,
    queue: Queue,
    free: Vec<Chunk>,
    held: Held<Chunk>,
    frame: Vec<u8>,
    _redirect: Redirect,
}

impl End {
    /// Opens an end on queue 0 of the device, in the calling thread's network namespace.
    pub(crate) fn open(interface_index: u32, payload_bytes: usize) -> Result<End, OpenError> {
        let system = |action| move |source| OpenError::System { action, source };
        let redirect = Redirect::attach(interface_index)
            .map_err(system("attach a program to the driver's hook"))?;
        // SAFETY: a chunk whose address is in a ring is kept in `held`: see `send`, `resend` and `take_back`, which put
        // addresses in, and `take` and `take_back`, which take them out.
        let (umem, free) = unsafe { Umem::fresh(CHUNKS, ChunkBytes::TwoKib) }
            .map_err(|error| system("take memory for frames")(io::Error::other(error)))?;
        let queue = Queue::open(
            &umem,
            &QueueConfig {
                interface_index,
                queue: 0,
                mode: BindMode::Auto,
                fill_entries: ENTRIES,
                completion_entries: ENTRIES,
            },
        )?;
        let receive = ReceiveSocket::open(&queue, ENTRIES)?;
        let transmit = TransmitSocket::open(&queue, ENTRIES)?;
        redirect
            .name(0, 0, receive.as_fd())
            .map_err(system("name a socket to the program"))?;
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0, 0, 0, 0, 1]);
        frame.extend(ETHER_TYPE);
        frame.resize((HEADERS + payload_bytes).max(NUMBER_AT + 8), 0);
        let mut end = End {
            receive,
            transmit,
            queue,
            free,
            held: Held::new(&umem),
            frame,
            _redirect: redirect,
        };
        end.fill();
        Ok(end)
    }

    /// Sends the frame of a round; false if the kernel did not take it.
    pub(crate) fn send(&mut self, number: u64) -> bool {
        self.take_back();
        let Some(mut chunk) = self.free.pop() else {
            return false;
        };
        let length = self.frame.len();
        chunk[..length].copy_from_slice(&self.frame);
        chunk[NUMBER_AT..NUMBER_AT + 8].copy_from_slice(&number.to_le_bytes());
        let address = chunk.address();
        self.give(chunk, address, length as u32)
    }

    /// Takes a received frame, returns its chunk to the fill ring, and returns its number.
    pub(crate) fn take(&mut self) -> Option<u64> {
        let (chunk, at, _) = self.pop()?;
        let number = number(&chunk, at);
        self.free.push(chunk);
        self.fill();
        number
    }

    /// Sends a received frame back in its chunk, and returns its number. `sent` is called just before.
    pub(crate) fn resend(&mut self, sent: impl FnOnce(u64)) -> Option<u64> {
        let (chunk, at, length) = self.pop()?;
        let number = number(&chunk, at);
        sent(number?);
        let address = chunk.address() + at as u64;
        self.give(chunk, address, length);
        self.take_back();
        self.fill();
        number
    }

    /// Pops a received frame: its chunk, its offset there, and its length.
    fn pop(&mut self) -> Option<(Chunk, usize, u32)> {
        let mut one = [Descriptor::default()];
        if self.receive.ring.pop(&mut one) == 0 {
            return None;
        }
        let located = self.queue.umem().locate(one[0])?;
        let chunk = self.held.release(Side::Receive, one[0].address)?;
        Some((chunk, located.range.start, one[0].length))
    }

    fn give(&mut self, chunk: Chunk, address: u64, length: u32) -> bool {
        if self.held.hold(Side::Transmit, address, chunk).is_err() {
            return false;
        }
        let descriptor = Descriptor {
            address,
            length,
            options: 0,
        };
        if self.transmit.ring.push(&[descriptor]) == 0 {
            self.free.extend(self.held.release(Side::Transmit, address));
            return false;
        }
        let kicked = self.transmit.kick();
        kicked.left == 0 && kicked.refused == 0
    }

    /// Takes back the chunks of sent frames.
    fn take_back(&mut self) {
        let mut addresses = [0; 8];
        let count = self.queue.completion.pop(&mut addresses);
        for &address in &addresses[..count] {
            self.free.extend(self.held.release(Side::Transmit, address));
        }
    }

    /// Gives chunks to the fill ring, up to [`FILLED`].
    fn fill(&mut self) {
        while self.held.count(Side::Receive) < FILLED {
            let Some(chunk) = self.free.pop() else {
                return;
            };
            let address = chunk.address();
            if let Err(chunk) = self.held.hold(Side::Receive, address, chunk) {
                self.free.push(chunk);
                return;
            }
            if self.queue.fill.push(&[address]) == 0 {
                self.free.extend(self.held.release(Side::Receive, address));
                return;
            }
        }
    }
}

fn number(chunk: &Chunk, at: usize) -> Option<u64> {
    let bytes = chunk.get(at + NUMBER_AT..at + NUMBER_AT + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
