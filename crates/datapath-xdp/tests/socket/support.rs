//! Set-up of these tests: a queue with its memory, sockets that account for every chunk, and frames with a lane and a
//! number.

use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use isolane_datapath_xdp::socket::{
    BindMode, Chunk, ChunkBytes, Descriptor, Held, Kicked, Queue, QueueConfig, ReceiveSocket, Side,
    TransmitSocket, Umem,
};

use crate::bpf::{ETHER_TYPE, Redirect};
use crate::hosts::{End, Pair};

/// Offset of a received frame in its chunk.
pub(crate) const HEAD_ROOM: u64 = 256;

pub(crate) fn config(pair: &Pair, end: End, queue: u32) -> QueueConfig {
    QueueConfig {
        interface_index: pair.interface_index(end),
        queue,
        mode: BindMode::Copy,
        fill_entries: 256,
        completion_entries: 256,
    }
}

/// UMEM with its chunks, and which of them the kernel holds.
pub(crate) struct Memory {
    pub(crate) umem: Umem,
    pub(crate) free: Vec<Chunk>,
    pub(crate) held: Held<Chunk>,
}

impl Memory {
    pub(crate) fn new(chunks: u32) -> Memory {
        // SAFETY: a chunk whose address is given to a ring waits in `held` until a ring gives it back:
        // see `fill`, `send`, `take` and `complete`, which are the only ones that do.
        let (umem, free) = unsafe { Umem::fresh(chunks, ChunkBytes::TwoKib) }.unwrap();
        let held = Held::new(&umem);
        Memory { umem, free, held }
    }

    /// Passes this number of chunks to the kernel for reception.
    pub(crate) fn fill(&mut self, queue: &mut Queue, count: usize) {
        for _ in 0..count {
            let chunk = self.free.pop().expect("a free chunk");
            let address = chunk.address();
            self.held.hold(Side::Receive, address, chunk).unwrap();
            assert_eq!(queue.fill.push(&[address]), 1, "the fill ring is full");
        }
    }

    /// Puts frames into the ring without notifying the kernel; returns the number that fitted.
    pub(crate) fn put(&mut self, socket: &mut TransmitSocket, frames: &[Vec<u8>]) -> usize {
        for (put, frame) in frames.iter().enumerate() {
            if socket.ring.free() == 0 {
                return put;
            }
            let mut chunk = self.free.pop().expect("a free chunk");
            chunk[..frame.len()].copy_from_slice(frame);
            let descriptor = Descriptor {
                address: chunk.address(),
                length: frame.len() as u32,
                options: 0,
            };
            self.held
                .hold(Side::Transmit, descriptor.address, chunk)
                .unwrap();
            assert_eq!(socket.ring.push(&[descriptor]), 1);
        }
        frames.len()
    }

    /// Sends frames, which must all fit.
    pub(crate) fn send(&mut self, socket: &mut TransmitSocket, frames: &[Vec<u8>]) -> Kicked {
        assert_eq!(self.put(socket, frames), frames.len());
        socket.kick()
    }

    /// Takes back sent chunks; returns their number.
    pub(crate) fn complete(&mut self, queue: &mut Queue) -> usize {
        let mut addresses = [0; 64];
        let mut all = 0;
        loop {
            let count = queue.completion.pop(&mut addresses);
            for &address in &addresses[..count] {
                match self.held.release(Side::Transmit, address) {
                    Some(chunk) => self.free.push(chunk),
                    None => panic!("{address} was not sent"),
                }
            }
            all += count;
            if count == 0 {
                return all;
            }
        }
    }

    /// Takes one received frame.
    pub(crate) fn take(&mut self, socket: &mut ReceiveSocket) -> Option<Vec<u8>> {
        let mut one = [Descriptor::default()];
        if socket.ring.pop(&mut one) == 0 {
            return None;
        }
        let located = self.umem.locate(one[0]).expect("a frame in a chunk");
        assert_eq!(
            one[0].address,
            self.umem.start_of(located.chunk) + HEAD_ROOM
        );
        let chunk = self.held.release(Side::Receive, one[0].address);
        let chunk = chunk.expect("a chunk that was given to be filled");
        let frame = chunk[located.range].to_vec();
        self.free.push(chunk);
        Some(frame)
    }

    /// Takes `count` frames, and waits for them up to a time limit.
    pub(crate) fn take_all(&mut self, socket: &mut ReceiveSocket, count: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        eventually(&format!("{count} frames"), || {
            frames.extend(std::iter::from_fn(|| self.take(socket)));
            frames.len() >= count
        });
        frames
    }

    /// Checks that every chunk has exactly one holder.
    pub(crate) fn assert_balanced(&self) {
        let held = self.held.count(Side::Receive) + self.held.count(Side::Transmit);
        assert_eq!(self.free.len() + held, self.umem.chunks() as usize);
        assert_eq!(self.held.strays(), 0);
    }
}

/// Host that sends on one queue.
pub(crate) struct Sender {
    pub(crate) queue: Queue,
    pub(crate) socket: TransmitSocket,
    pub(crate) memory: Memory,
}

impl Sender {
    /// Creates the sender at end A.
    pub(crate) fn new(pair: &Pair, queue: u32) -> Sender {
        let memory = Memory::new(256);
        pair.run(End::A, || {
            let queue = Queue::open(&memory.umem, &config(pair, End::A, queue)).unwrap();
            let socket = TransmitSocket::open(&queue, 256).unwrap();
            socket.set_send_buffer(4 << 20).unwrap();
            Sender {
                queue,
                socket,
                memory,
            }
        })
    }

    pub(crate) fn send(&mut self, frames: &[Vec<u8>]) -> Kicked {
        self.memory.send(&mut self.socket, frames)
    }

    /// Waits until all sent chunks have come back.
    pub(crate) fn wait_for_completions(&mut self) {
        eventually("completions", || {
            self.memory.complete(&mut self.queue);
            self.memory.held.count(Side::Transmit) == 0
        });
    }
}

/// Host at end B that receives lanes on one queue, with a program that redirects frames to lanes.
pub(crate) struct Receiver {
    pub(crate) redirect: Redirect,
    pub(crate) lanes: Vec<ReceiveSocket>,
    pub(crate) queue: Queue,
    pub(crate) memory: Memory,
}

impl Receiver {
    /// Creates lanes 0, 1 and so on with receive rings of these sizes, and a full fill ring of `fill_entries`.
    pub(crate) fn new(pair: &Pair, fill_entries: u32, rings: &[u32]) -> Receiver {
        let mut memory = Memory::new(2 * fill_entries);
        pair.run(End::B, || {
            let redirect = Redirect::attach(pair.interface_index(End::B)).unwrap();
            let config = QueueConfig {
                fill_entries,
                ..config(pair, End::B, 0)
            };
            let mut queue = Queue::open(&memory.umem, &config).unwrap();
            memory.fill(&mut queue, fill_entries as usize);
            let open = |(lane, &entries): (usize, &u32)| {
                let socket = ReceiveSocket::open(&queue, entries).unwrap();
                redirect.name(0, lane as u32, socket.as_fd()).unwrap();
                socket
            };
            let lanes = rings.iter().enumerate().map(open).collect();
            Receiver {
                redirect,
                lanes,
                queue,
                memory,
            }
        })
    }

    pub(crate) fn take_all(&mut self, lane: usize, count: usize) -> Vec<Vec<u8>> {
        self.memory.take_all(&mut self.lanes[lane], count)
    }
}

/// Broadcast frame for a lane, with a number.
pub(crate) fn frame(lane: u8, number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1]);
    frame.extend(ETHER_TYPE);
    frame.push(lane);
    frame.extend(number.to_be_bytes());
    frame.resize(bytes, number as u8);
    frame
}

/// Frames of one lane, numbered.
pub(crate) fn frames(lane: u8, numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    numbers.map(|number| frame(lane, number, 100)).collect()
}

/// Waits for a condition, with a time limit that a loaded machine meets.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}
