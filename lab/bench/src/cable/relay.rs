//! Cable between two devices: packet sockets around two [`Link`]s.
//!
//! A frame is read into memory reserved at start, gets its checksum completed, passes its direction's link, and is
//! written from the same memory.
//!
//! While a direction's wire is busy, the relay does not wake up for that direction's arrivals, which would have to wait
//! anyway. It reads them when the wire is free, with the kernel's receive timestamps, so the link decides as if they
//! had been read on arrival. A flood then costs one wake-up per frame sent, which leaves the core to the traffic
//! sources.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::netdevice::name_to_index;

use super::frame::{Observer, Passages, class, complete_checksum, udp};
use super::link::{Arrival, CLASSES, Datagram, Departure, Link};
use super::{CableError, Config, DirectionReport, Report, RoundPassages};
use crate::clock::{NANOS_PER_SECOND, micros, now_and_realtime_offset_ns, now_ns, timespec};
use crate::limits::{BATCH_FRAMES, BATCHES_PER_LOOK, FINAL_BATCHES};
use crate::namespace::Host;
use crate::process::{self, Note, Notes};
use crate::stop::Stop;
use crate::system::packet::{Frame, Receiver, Sender};
use crate::system::queues::{QUEUES, Queues};

/// Open cable with both directions.
pub struct Relay {
    a_to_b: Direction,
    b_to_a: Direction,
    notes: Notes,
}

impl Relay {
    /// Opens the cable in the calling thread's network namespace. Frames are received from now on and relayed by
    /// [`Relay::run`].
    pub fn open(config: &Config) -> Result<Relay, CableError> {
        config.check()?;
        Ok(Relay {
            a_to_b: Direction::open(config, Host::A, config.seed)?,
            // A different seed than that of the opposite direction.
            b_to_a: Direction::open(config, Host::B, config.seed ^ 0x5555_5555_5555_5555)?,
            notes: Notes::default(),
        })
    }

    /// Pins the calling thread, gives it the cable's real-time priority and locks its memory, as far as the machine
    /// allows.
    pub fn take_priority(&mut self, core: Option<usize>) -> &[Note] {
        self.notes = Notes::pinned(core);
        self.notes.collect(process::exact_timers());
        self.notes.collect(process::lock_memory());
        self.notes
            .collect(process::run_first_in_first_out(process::CABLE_PRIORITY));
        &self.notes.0
    }

    /// Relays frames until stopped, and returns the report.
    pub fn run(mut self, stop: &Stop) -> Result<Report, CableError> {
        loop {
            let (a_to_b, b_to_a) = (&mut self.a_to_b, &mut self.b_to_a);
            a_to_b.look().map_err(CableError::Receive)?;
            b_to_a.look().map_err(CableError::Receive)?;
            let next = [a_to_b.link.next_time_ns(), b_to_a.link.next_time_ns()];
            let timeout = next
                .into_iter()
                .flatten()
                .min()
                .map(|time| timespec(time.saturating_sub(now_ns())));
            let mut sources = [
                PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
                PollFd::new(&a_to_b.receiver, a_to_b.awaited()),
                PollFd::new(&b_to_a.receiver, b_to_a.awaited()),
            ];
            match poll(&mut sources, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(CableError::Wait(error.into())),
            }
            if !sources[0].revents().is_empty() {
                return self.report();
            }
        }
    }

    fn report(self) -> Result<Report, CableError> {
        let late_max_ns = self
            .a_to_b
            .link
            .late_max_ns()
            .max(self.b_to_a.link.late_max_ns());
        let (a_to_b, a_to_b_passages) = self.a_to_b.report()?;
        let (b_to_a, b_to_a_passages) = self.b_to_a.report()?;
        let passages = a_to_b_passages.zip(b_to_a_passages);
        Ok(Report {
            a_to_b,
            b_to_a,
            late_max_us: micros(late_max_ns),
            passages: passages.map(|(a_to_b, b_to_a)| RoundPassages { a_to_b, b_to_a }),
            notes: self.notes.0,
        })
    }
}

/// One direction, from one host's device to the other's.
struct Direction {
    receiver: Receiver,
    outlet: Outlet,
    link: Link<Frame>,
    observer: Option<Observer>,
    /// Free frames. In all, there are as many frames as the link can hold, and one batch more.
    free: Vec<Frame>,
    /// Batch of frames to receive into.
    arriving: Vec<Frame>,
    /// Frames due now, in order.
    leaving: Vec<Frame>,
}

impl Direction {
    fn open(config: &Config, from: Host, seed: u64) -> Result<Direction, CableError> {
        let waiting = config.queue_frames as usize * config.arbiter.queues();
        // One on the wire, the waiting ones, and a batch of arrivals.
        let frames = 1 + waiting + BATCH_FRAMES;
        let [arrives, leaves] = [from, from.other()].map(Host::cable_interface);
        let index = |interface: &'static str| {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
            Ok::<u32, io::Error>(name_to_index(socket, interface)?)
        };
        let outlet = index(leaves)
            .and_then(|index| Outlet::open(index, config.steer))
            .map_err(|source| CableError::open(leaves, source))?;
        let link = Link::new(config, seed)?;
        let observer = config.observe.map(Observer::new).transpose()?;
        let free = (0..frames).map(|_| Frame::new()).collect();
        // The receiver is opened last, so that nothing arrives before all memory is reserved.
        let receiver = index(arrives)
            .and_then(Receiver::open)
            .map_err(|source| CableError::open(arrives, source))?;
        Ok(Direction {
            receiver,
            outlet,
            link,
            observer,
            free,
            arriving: Vec::with_capacity(BATCH_FRAMES),
            leaving: Vec::with_capacity(frames),
        })
    }

    /// Events to wait for at the receiving end.
    fn awaited(&self) -> PollFlags {
        if self.link.is_busy() {
            PollFlags::empty()
        } else {
            PollFlags::IN
        }
    }

    /// Receives a bounded number of arrivals and transmits what is due.
    fn look(&mut self) -> io::Result<()> {
        self.take_batches(BATCHES_PER_LOOK)
    }

    /// Receives at most `most` batches. The link advances only to the time by which all arrivals are known, because an
    /// unread frame may be more urgent than the frames read.
    fn take_batches(&mut self, most: usize) -> io::Result<()> {
        for _ in 0..most {
            let looked_ns = now_ns();
            let is_all = self.take_batch()? < BATCH_FRAMES;
            self.let_go(is_all.then_some(looked_ns));
            if is_all {
                break;
            }
        }
        Ok(())
    }

    fn take_batch(&mut self) -> io::Result<usize> {
        // A full batch is always available: the link holds at most its reserved number of frames.
        let missing = BATCH_FRAMES - self.arriving.len();
        let rest = self.free.len() - missing;
        self.arriving.extend(self.free.drain(rest..));
        let received = self.receiver.receive(&mut self.arriving)?;
        let (now_ns, realtime_offset_ns) = now_and_realtime_offset_ns();
        for mut frame in self.arriving.drain(..received) {
            if frame.is_oversize() {
                self.link.refuse_oversize();
                self.free.push(frame);
                continue;
            }
            if let Some((start, position)) = frame.take_unfinished_checksum() {
                complete_checksum(frame.as_bytes_mut(), start, position);
            }
            let arrived_ns = arrival(&frame, now_ns, realtime_offset_ns);
            let datagram = udp(frame.as_bytes());
            if let (Some(observer), Some((_, payload))) = (&mut self.observer, datagram) {
                observer.arrived(payload, arrived_ns);
            }
            let datagram = datagram.map(|(port, payload)| Datagram {
                port,
                payload_bytes: payload.len() as u32,
            });
            let (free, leaving) = (&mut self.free, &mut self.leaving);
            let observer = &mut self.observer;
            self.link.advance(arrived_ns, now_ns, |departure| {
                sort_out(departure, leaving, free, observer, now_ns);
            });
            let offered = self.link.offer(Arrival {
                at_ns: arrived_ns,
                bytes: frame.as_bytes().len() as u64,
                class: class(frame.as_bytes()),
                datagram,
                frame,
            });
            if let Err(frame) = offered {
                self.free.push(frame);
            }
        }
        Ok(received)
    }

    /// Transmits everything due by `due_ns`, and frames that have already left the link.
    fn let_go(&mut self, due_ns: Option<u64>) {
        let now_ns = now_ns();
        let (free, leaving) = (&mut self.free, &mut self.leaving);
        let observer = &mut self.observer;
        if let Some(due_ns) = due_ns {
            self.link.advance(due_ns, now_ns, |departure| {
                sort_out(departure, leaving, free, observer, now_ns);
            });
        }
        if self.leaving.is_empty() {
            return;
        }
        if self.observer.is_some() {
            for frame in &self.leaving {
                stamp_sent(&mut self.observer, frame, now_ns);
            }
        }
        let refused = self.outlet.send(&self.leaving);
        self.link.note_refused(refused);
        self.free.append(&mut self.leaving);
    }

    /// Counts unread frames and closes the direction.
    fn report(mut self) -> Result<(DirectionReport, Option<Passages>), CableError> {
        // A busy wire leaves arrivals unread; the ledger must include them.
        self.take_batches(FINAL_BATCHES)
            .map_err(CableError::Receive)?;
        let (sent_on_queue, left) = self.outlet.finish();
        self.link.note_refused(left);
        let report = DirectionReport {
            frames: self.link.ledger(),
            ingress_drops: self.receiver.take_drops().map_err(CableError::Receive)?,
            sent_on_queue,
        };
        Ok((report, self.observer.map(Observer::into_passages)))
    }
}

/// Sorts a frame that left the link into `leaving` or `free`.
fn sort_out(
    departure: Departure<Frame>,
    leaving: &mut Vec<Frame>,
    free: &mut Vec<Frame>,
    observer: &mut Option<Observer>,
    now_ns: u64,
) {
    match departure {
        Departure::Deliver(frame) => leaving.push(frame),
        Departure::Lost(frame) => free.push(frame),
        Departure::Hidden(frame) => {
            stamp_sent(observer, &frame, now_ns);
            free.push(frame);
        }
    }
}

fn stamp_sent(observer: &mut Option<Observer>, frame: &Frame, now_ns: u64) {
    if let (Some(observer), Some((_, payload))) = (observer, udp(frame.as_bytes())) {
        observer.sent(payload, now_ns);
    }
}

/// Arrival time of a frame read at `now_ns`, in monotonic time. The time is clamped to the second before `now_ns`, in
/// case the real-time clock was set in between.
fn arrival(frame: &Frame, now_ns: u64, realtime_offset_ns: u64) -> u64 {
    match frame.arrived_realtime_ns() {
        Some(realtime_ns) => realtime_ns
            .saturating_sub(realtime_offset_ns)
            .clamp(now_ns.saturating_sub(NANOS_PER_SECOND), now_ns),
        None => now_ns,
    }
}

/// Queue of the most urgent class.
const CRITICAL_QUEUE: usize = 0;
/// Queue of all other classes.
const BULK_QUEUE: usize = 1;

/// Transmitter of frames to a host.
pub(super) enum Outlet {
    /// The kernel chooses the queue.
    Plain(Sender),
    /// The traffic class chooses the queue.
    Steering(Box<Queues>),
}

impl Outlet {
    /// Opens a transmitter on the device `interface_index` in the calling thread's network namespace.
    pub(super) fn open(interface_index: u32, steer: bool) -> io::Result<Outlet> {
        Ok(if steer {
            let queues = Queues::open(interface_index).map_err(io::Error::other)?;
            Outlet::Steering(Box::new(queues))
        } else {
            Outlet::Plain(Sender::open(interface_index)?)
        })
    }

    /// Sends all `frames` without waiting; returns how many the kernel refused.
    pub(super) fn send(&mut self, frames: &[Frame]) -> u64 {
        match self {
            Outlet::Plain(sender) => sender.send(frames),
            Outlet::Steering(queues) => queues.send(frames, queue_of),
        }
    }

    /// Closes the transmitter. Returns the number of frames sent on each queue, if known, and the number of unsent
    /// frames that were not counted as refused.
    pub(super) fn finish(self) -> (Option<[u64; QUEUES]>, u64) {
        match self {
            Outlet::Plain(_) => (None, 0),
            Outlet::Steering(queues) => {
                let (sent, left) = queues.finish();
                (Some(sent), left)
            }
        }
    }
}

/// Device queue on which a frame is sent and received.
fn queue_of(frame: &[u8]) -> usize {
    if usize::from(class(frame)) == CLASSES - 1 {
        CRITICAL_QUEUE
    } else {
        BULK_QUEUE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::{Place, TestHosts, TestHostsConfig, TestHostsError};
    use crate::system::packet::Sender;

    /// Broadcast frame with one or two VLAN tags.
    fn tagged_frame(tags: &[u8]) -> Vec<u8> {
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0, 0, 0, 0, 1]);
        frame.extend(tags);
        // EtherType for experiments (IEEE 802.1), which no host answers.
        frame.extend([0x88, 0xb5]);
        frame.extend(1..=60);
        frame
    }

    #[test]
    fn vlan_tags_pass_unchanged() {
        let testbed = match TestHosts::new(&TestHostsConfig::default()) {
            Ok(testbed) => testbed,
            Err(TestHostsError::NotPermitted { action, right }) => {
                println!("not permitted: {action} needs {right}; nothing was tested");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let index = |name: &str| {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            name_to_index(socket, name).unwrap()
        };
        let sender = testbed
            .run(Host::A, || {
                Sender::open(index(Host::A.interface())).unwrap()
            })
            .unwrap();
        let receiver = testbed
            .run(Host::B, || {
                Receiver::open(index(Host::B.interface())).unwrap()
            })
            .unwrap();
        let mut relay = testbed
            .run(Place::Cable, || Relay::open(&Config::default()).unwrap())
            .unwrap();
        // Priority 7 in VLAN 5; the same tag inside a service tag.
        let frames = [
            tagged_frame(&[0x81, 0x00, 0xe0, 0x05]),
            tagged_frame(&[0x88, 0xa8, 0x20, 0x09, 0x81, 0x00, 0xe0, 0x05]),
        ];
        for sent in frames {
            let mut frame = [Frame::new()];
            frame[0].fill(&sent);
            assert_eq!(sender.send(&frame), 0);
            let mut received = [Frame::new()];
            let mut count = 0;
            for _ in 0..500 {
                relay.a_to_b.look().unwrap();
                count = receiver.receive(&mut received).unwrap();
                if count > 0 {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            assert_eq!(count, 1, "nothing arrived");
            assert_eq!(received[0].as_bytes(), sent);
        }
    }

    #[test]
    fn only_the_highest_class_takes_the_critical_queue() {
        let of_class = |class: u8| {
            let mut frame = vec![0; 60];
            frame[12..14].copy_from_slice(&[0x81, 0x00]);
            frame[14] = class << 5;
            queue_of(&frame)
        };
        let queues: Vec<usize> = (0..8).map(of_class).collect();
        assert_eq!(queues, [1, 1, 1, 1, 1, 1, 1, 0]);
        assert_eq!(queue_of(&[]), BULK_QUEUE);
    }
}
