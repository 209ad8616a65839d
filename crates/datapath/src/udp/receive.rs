//! Burst reception: recvmmsg directly into frames.
//!
//! Frames stay armed between calls: only those filled by the last call are replaced, so an empty lane costs one system
//! call and moves no frame. The arrays for the call are allocated once. Their entries are rewritten before each use, so
//! no pointer is used after its frame has left.
//!
//! # Receive stamps
//!
//! Both clocks are read once for each socket that delivered datagrams. After a step of the wall clock a socket's stamps
//! are ignored until the socket has been empty, because waiting datagrams may be stamped before the step.

use std::io;
use std::mem;
use std::ptr;

use isolane_wire::locator::Locator;
use isolane_wire::time::Instant;
use libc::{iovec, mmsghdr, sockaddr_in};

use super::socket::{Socket, for_each_control};
use crate::burst::{ReceiveBurst, ReceivedFrame};
use crate::clock::{ArrivalClock, nanos_of};
use crate::ledger::{LaneLedger, ReceiveDrop};
use crate::limits::MAX_BURST;
use crate::pool::{Class, Frame, Pool};

/// Words of control data of a datagram: drop counter (24 bytes) and receive stamp (32).
const CONTROL_WORDS: usize = 8;

/// Socket to receive from.
pub(super) struct Source {
    pub(super) socket: Socket,
    /// Value of the kernel's drop counter already in the ledger.
    drops_seen: u32,
    /// Number of wall-clock steps when the socket was last empty.
    steps_settled: u32,
}

impl Source {
    pub(super) fn new(socket: Socket) -> Source {
        Source {
            socket,
            drops_seen: 0,
            steps_settled: 0,
        }
    }

    /// Datagrams dropped by the kernel since the last received one, not in the ledger yet.
    pub(super) fn drops_unseen(&self) -> u64 {
        let drops = self.socket.kernel_drops().unwrap_or(self.drops_seen);
        u64::from(drops.wrapping_sub(self.drops_seen))
    }

    /// Records the drop counter of a datagram, which only grows, modulo 2^32.
    fn note_drops(&mut self, drops: u32, ledger: &mut LaneLedger) {
        let new = drops.wrapping_sub(self.drops_seen);
        self.drops_seen = drops;
        let ledger = &mut ledger.receive;
        ledger.note_dropped(ReceiveDrop::KERNEL_OVERFLOW, u64::from(new));
    }
}

/// Control data of a datagram.
#[derive(Default)]
struct Extras {
    drops: Option<u32>,
    wall_ns: Option<u64>,
}

/// Armed frames of a lane, and the arrays of recvmmsg.
pub(super) struct Receiver {
    class: Class,
    /// Frame i receives datagram i of a call. Armed frames are kept at the front.
    frames: [Option<Frame>; MAX_BURST],
    headers: Box<[mmsghdr; MAX_BURST]>,
    vectors: Box<[iovec; MAX_BURST]>,
    names: Box<[sockaddr_in; MAX_BURST]>,
    controls: Box<[[u64; CONTROL_WORDS]; MAX_BURST]>,
    /// Bit i: header i points to frame i, and no call has written to it since. Most calls use one place of sixteen; the
    /// others need no work.
    prepared: u32,
    /// Clock for receive stamps, if enabled.
    clock: Option<ArrivalClock>,
}

impl Receiver {
    pub(super) fn new(class: Class, timestamps: bool) -> Receiver {
        // SAFETY: these are plain C structures, for which all zeros are valid.
        let (headers, vectors, names) = unsafe {
            (
                Box::new(mem::zeroed()),
                Box::new(mem::zeroed()),
                Box::new(mem::zeroed()),
            )
        };
        Receiver {
            class,
            frames: [const { None }; MAX_BURST],
            headers,
            vectors,
            names,
            controls: Box::new([[0; CONTROL_WORDS]; MAX_BURST]),
            prepared: 0,
            clock: timestamps.then(ArrivalClock::new),
        }
    }

    /// Receives at most `limit` datagrams from a socket. `limit` is at most the burst's room.
    pub(super) fn receive(
        &mut self,
        source: &mut Source,
        limit: usize,
        pool: &Pool,
        ledger: &mut LaneLedger,
        burst: &mut ReceiveBurst,
    ) -> usize {
        let armed = self.arm(limit, pool);
        if armed == 0 {
            ledger.receive.starved += u64::from(limit > 0);
            return 0;
        }
        let steps = self.clock.map(|clock| clock.steps());
        let count = self.call_twice(source, armed, ledger);
        let clock = self.look_at_clock(source, count);
        if let (Some(steps), true) = (steps, count < armed) {
            source.steps_settled = steps;
        }
        for place in 0..count {
            self.finish(place, source, clock, ledger, burst);
        }
        let largest = &mut ledger.receive.largest_burst;
        *largest = (*largest).max(count as u64);
        count
    }

    /// Clock to convert this call's stamps with, if they are valid.
    fn look_at_clock(&mut self, source: &Source, count: usize) -> Option<ArrivalClock> {
        let clock = self.clock.as_mut().filter(|_| count > 0)?;
        clock.look();
        (source.steps_settled == clock.steps()).then_some(*clock)
    }

    /// Arms up to `limit` frames at the front and returns their number. Only unprepared places are visited: those that
    /// the last call filled.
    fn arm(&mut self, limit: usize, pool: &Pool) -> usize {
        let wanted = (1 << limit) - 1;
        loop {
            let missing = wanted & !self.prepared;
            if missing == 0 {
                return limit;
            }
            let place = missing.trailing_zeros() as usize;
            if self.frames[place].is_none() {
                let Some(frame) = pool.take(self.class).or_else(|| self.take_behind(place)) else {
                    return place;
                };
                self.frames[place] = Some(frame);
            }
            self.prepare(place);
        }
    }

    /// Takes an armed frame from a later place, when the pool is empty.
    fn take_behind(&mut self, place: usize) -> Option<Frame> {
        let behind = place + 1..MAX_BURST;
        let from = behind
            .into_iter()
            .find(|&from| self.frames[from].is_some())?;
        self.prepared &= !(1 << from);
        self.frames[from].take()
    }

    /// Receives; retries once if the first call returned only the error of an earlier send.
    fn call_twice(&mut self, source: &Source, armed: usize, ledger: &mut LaneLedger) -> usize {
        for _ in 0..2 {
            match self.call(&source.socket, armed) {
                Ok(count) => return count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return 0,
                Err(_) => ledger.transmit.bounced += source.socket.take_errors(),
            }
        }
        0
    }

    fn call(&mut self, socket: &Socket, armed: usize) -> io::Result<usize> {
        debug_assert_eq!(
            self.prepared.trailing_ones().min(armed as u32),
            armed as u32
        );
        let headers = self.headers.as_mut_ptr();
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: the first `armed` headers are prepared (`arm`; a failed call changes none). Each points to its own
        // vector, name and control data, the vector to the frame armed at its place since. None of them moves or is
        // accessed during the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.raw(),
                headers,
                armed as libc::c_uint,
                flags,
                ptr::null_mut(),
            )
        };
        match usize::try_from(count) {
            Ok(count) => {
                self.prepared &= u32::MAX << count;
                Ok(count)
            }
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// Points header `place` to the frame armed there.
    fn prepare(&mut self, place: usize) {
        let Some(frame) = &mut self.frames[place] else {
            return;
        };
        let buffer = frame.buffer_mut();
        self.vectors[place] = iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        let header = &mut self.headers[place].msg_hdr;
        header.msg_name = (&raw mut self.names[place]).cast();
        header.msg_namelen = size_of::<sockaddr_in>() as _;
        header.msg_iov = &raw mut self.vectors[place];
        header.msg_iovlen = 1;
        header.msg_control = self.controls[place].as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&self.controls[place]) as _;
        header.msg_flags = 0;
        self.prepared |= 1 << place;
    }

    /// Delivers the datagram of a place, or drops it, counted by reason, and keeps its frame armed.
    fn finish(
        &mut self,
        place: usize,
        source: &mut Source,
        clock: Option<ArrivalClock>,
        ledger: &mut LaneLedger,
        burst: &mut ReceiveBurst,
    ) {
        let extras = self.extras(place);
        if let Some(drops) = extras.drops {
            source.note_drops(drops, ledger);
        }
        let header = &self.headers[place];
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            ledger.receive.note_dropped(ReceiveDrop::TRUNCATED, 1);
            return;
        }
        let Some(mut frame) = self.frames[place].take() else {
            return;
        };
        let bytes = header.msg_len as usize;
        frame.set_range(0..bytes);
        ledger.receive.note_received(bytes);
        let arrived = arrival(clock, extras.wall_ns);
        if self.clock.is_some() && arrived.is_none() {
            ledger.receive.unstamped += 1;
        }
        let received = ReceivedFrame {
            frame,
            from: locator_of(&self.names[place]),
            arrived,
        };
        // Cannot fail: the limit is at most the burst's room.
        let _ = burst.push(received);
    }

    fn extras(&self, place: usize) -> Extras {
        let mut extras = Extras::default();
        // SAFETY: the kernel filled this header in the call that has just returned.
        unsafe {
            for_each_control(
                &self.headers[place].msg_hdr,
                |level, kind, data, len| match (level, kind) {
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) if len >= 4 => {
                        extras.drops = Some(data.cast::<u32>().read_unaligned());
                    }
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)
                        if len >= size_of::<libc::timespec>() =>
                    {
                        let stamp = data.cast::<libc::timespec>().read_unaligned();
                        extras.wall_ns = Some(nanos_of(&stamp));
                    }
                    _ => {}
                },
            );
        }
        extras
    }
}

fn arrival(clock: Option<ArrivalClock>, wall_ns: Option<u64>) -> Option<Instant> {
    Some(clock?.instant_of(wall_ns?))
}

fn locator_of(name: &sockaddr_in) -> Locator {
    Locator::udpv4(
        name.sin_addr.s_addr.to_ne_bytes(),
        u16::from_be(name.sin_port),
    )
}
