//! Sleep of the loop: epoll on the datapath's descriptors and on one eventfd for other threads.
//!
//! The event data of epoll is a bit per descriptor of a lane, so that the result of a wait is the set of readable
//! descriptors. There is no timer descriptor: epoll's timeout, in nanoseconds, is the time to the next release.
//!
//! `epoll_pwait2` requires Linux 5.11, and valgrind 3.19 lacks it. Without it the loop sleeps in `ppoll` on duplicates
//! of the same descriptors, which also has nanoseconds and costs a little more per descriptor. Event loops of the
//! application get the epoll descriptor either way.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use isolane_datapath::Lane;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll},
    io::{Errno, fcntl_dupfd_cloexec},
};

/// Event data of the eventfd; lanes use the lower bits.
const WAKE_BIT: u64 = 1 << 63;

/// Maximum number of descriptors, and so bits, of a lane: a device's ring (for discovery, the netlink socket for
/// routes and neighbours), two sockets, one for all ports of single topics, and the wake-up of fault injection.
const PER_LANE: usize = 5;

/// Maximum number of events of a wait: the descriptors of all lanes, and the eventfd.
const EVENTS: usize = PER_LANE * Lane::COUNT + 1;

const _: () = assert!(
    PER_LANE * Lane::COUNT < 63,
    "the descriptors of all lanes are one word"
);

/// Set of readable descriptors of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Readable(u64);

impl Readable {
    /// First descriptor of each lane.
    pub(crate) const FIRSTS: Self = {
        let (mut firsts, mut lane) = (0, 0);
        while lane < Lane::COUNT {
            firsts |= 1 << (PER_LANE * lane);
            lane += 1;
        }
        Self(firsts)
    };

    /// Returns the readable descriptors of the lane with this index; bit *i* is the *i*-th.
    #[inline]
    pub(crate) fn of(self, lane: usize) -> u8 {
        (self.0 >> (PER_LANE * lane)) as u8 & ((1 << PER_LANE) - 1)
    }

    /// Returns the lanes with a readable descriptor ([`Lane::bit`]).
    pub(crate) fn lanes(self) -> u16 {
        let mut lanes = 0;
        let mut left = self.0;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            lanes |= 1 << (bit / PER_LANE);
        }
        lanes
    }
}

pub(crate) struct Poller {
    epoll: Rc<OwnedFd>,
    wake: Arc<OwnedFd>,
    events: Vec<epoll::Event>,
    /// Watched descriptors with their event data, for systems without `epoll_pwait2`.
    watched: Option<Vec<(u64, OwnedFd)>>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut events = Vec::<epoll::Event>::with_capacity(1);
        let buffer = rustix::buffer::spare_capacity(&mut events);
        let tried = epoll::wait(&epoll, buffer, Some(&Timespec::default()));
        Self::with(epoll, tried != Err(Errno::NOSYS))
    }

    fn with(epoll: OwnedFd, has_epoll_pwait2: bool) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let mut poller = Self {
            epoll: Rc::new(epoll),
            wake: Arc::new(wake),
            events: Vec::with_capacity(EVENTS),
            watched: (!has_epoll_pwait2).then(|| Vec::with_capacity(EVENTS)),
        };
        let wake = poller.wake_descriptor();
        poller.watch(WAKE_BIT, wake.as_fd())?;
        Ok(poller)
    }

    /// Adds the `place`-th descriptor of a lane.
    pub(crate) fn add(
        &mut self,
        lane: Lane,
        place: usize,
        descriptor: BorrowedFd<'_>,
    ) -> io::Result<()> {
        assert!(place < PER_LANE, "a lane has five descriptors at most");
        self.watch(1 << (PER_LANE * lane.index() + place), descriptor)
    }

    fn watch(&mut self, data: u64, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        if let Some(watched) = &mut self.watched {
            watched.push((data, fcntl_dupfd_cloexec(descriptor, 0)?));
        }
        let event_data = epoll::EventData::new_u64(data);
        epoll::add(&*self.epoll, descriptor, event_data, epoll::EventFlags::IN)?;
        Ok(())
    }

    /// Returns the descriptor that is readable when the loop has something to do, except for timers.
    pub(crate) fn descriptor(&self) -> Rc<OwnedFd> {
        Rc::clone(&self.epoll)
    }

    /// Returns the eventfd that other threads write.
    pub(crate) fn wake_descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.wake)
    }

    /// Polls, and sleeps up to `timeout` (`None`: forever) if nothing is readable. Returns the readable descriptors.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Readable> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let waited = match &self.watched {
            None => self.wait_in_epoll(timeout.as_ref()),
            Some(watched) => wait_in_ppoll(watched, timeout.as_ref()),
        };
        let ready = match waited {
            // After a signal the loop checks its stop condition and waits again.
            Err(Errno::INTR) => 0,
            waited => waited?,
        };
        if ready & WAKE_BIT != 0 {
            let mut count = [0; 8];
            // An empty eventfd is no error: data handed over is in the rings.
            let _ = rustix::io::read(&*self.wake, &mut count);
        }
        Ok(Readable(ready & !WAKE_BIT))
    }

    fn wait_in_epoll(&mut self, timeout: Option<&Timespec>) -> rustix::io::Result<u64> {
        self.events.clear();
        let buffer = rustix::buffer::spare_capacity(&mut self.events);
        epoll::wait(&*self.epoll, buffer, timeout)?;
        let ready = self.events.iter().map(|event| event.data.u64());
        Ok(ready.fold(0, |all, data| all | data))
    }
}

fn wait_in_ppoll(
    watched: &[(u64, OwnedFd)],
    timeout: Option<&Timespec>,
) -> rustix::io::Result<u64> {
    let mut descriptors: heapless::Vec<PollFd<'_>, EVENTS> = watched
        .iter()
        .map(|(_, descriptor)| PollFd::new(descriptor, PollFlags::IN))
        .collect();
    poll(&mut descriptors, timeout)?;
    let looked_at = watched.iter().zip(&descriptors);
    let ready = looked_at.filter(|(_, looked_at)| !looked_at.revents().is_empty());
    Ok(ready.fold(0, |all, ((data, _), _)| all | data))
}

#[cfg(test)]
mod tests {
    use std::{net::UdpSocket, time::Instant};

    use super::*;

    #[test]
    fn with_and_without_epoll_pwait2_a_wait_ends_in_time_by_a_lane_and_by_the_doorbell() {
        for has_epoll_pwait2 in [true, false] {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
            let mut poller = Poller::with(epoll, has_epoll_pwait2).unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let lane = Lane::ALL[3];
            poller.add(lane, 1, socket.as_fd()).unwrap();

            let short = Duration::from_micros(300);
            let begin = Instant::now();
            assert_eq!(poller.wait(Some(short)).unwrap(), Readable::default());
            assert!(begin.elapsed() >= short);

            let to = socket.local_addr().unwrap();
            socket.send_to(&[1], to).unwrap();
            let readable = poller.wait(None).unwrap();
            assert_eq!(readable.of(lane.index()), 1 << 1);
            assert_eq!(readable.lanes(), lane.bit());
            socket.recv(&mut [0]).unwrap();

            rustix::io::write(&*poller.wake_descriptor(), &1u64.to_ne_bytes()).unwrap();
            let long = Some(Duration::from_secs(60));
            assert_eq!(poller.wait(long).unwrap(), Readable::default());
            assert!(begin.elapsed() < Duration::from_secs(30));
            let again = poller.wait(Some(Duration::ZERO));
            assert_eq!(again.unwrap(), Readable::default());
            assert!(!is_readable(&poller), "one ring is heard once");
        }
    }

    fn is_readable(poller: &Poller) -> bool {
        let descriptor = poller.descriptor();
        let mut descriptors = [PollFd::new(&*descriptor, PollFlags::IN)];
        poll(&mut descriptors, Some(&Timespec::default())).unwrap() > 0
    }
}
