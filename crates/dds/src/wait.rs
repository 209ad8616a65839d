//! How the loop sleeps: epoll over the datapath's descriptors and one eventfd that other threads
//! write to.
//!
//! The event data of epoll is the set of lanes a descriptor belongs to, so that what wakes the loop
//! says at once what to look at. There is no timer descriptor: the time of the next release is
//! epoll's timeout, which has nanoseconds.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use isolane_datapath::Lane;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

/// The datum of the eventfd; lanes use the lower bits.
const WAKE_BIT: u64 = 1 << 63;

/// Events taken at once: two sockets a lane and the eventfd.
const EVENTS: usize = 2 * Lane::COUNT + 1;

pub(crate) struct Waiter {
    epoll: Rc<OwnedFd>,
    wake: Arc<OwnedFd>,
    events: Vec<epoll::Event>,
}

impl Waiter {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(
            &epoll,
            &wake,
            epoll::EventData::new_u64(WAKE_BIT),
            epoll::EventFlags::IN,
        )?;
        Ok(Self {
            epoll: Rc::new(epoll),
            wake: Arc::new(wake),
            events: Vec::with_capacity(EVENTS),
        })
    }

    /// Adds a descriptor of a lane.
    pub(crate) fn add(&self, lane: Lane, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let data = epoll::EventData::new_u64(u64::from(lane.bit()));
        Ok(epoll::add(
            &*self.epoll,
            descriptor,
            data,
            epoll::EventFlags::IN,
        )?)
    }

    /// Readable when the loop has something to do, time apart.
    pub(crate) fn descriptor(&self) -> Rc<OwnedFd> {
        Rc::clone(&self.epoll)
    }

    /// What another thread writes to.
    pub(crate) fn wake_descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.wake)
    }

    /// Looks, and sleeps up to `timeout` (`None`: without end) if nothing is ready. Returns the
    /// readable lanes ([`Lane::bit`]).
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<u16> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        self.events.clear();
        let buffer = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&*self.epoll, buffer, timeout.as_ref()) {
            Ok(_) => {}
            // A signal is no event; the loop looks at its stop condition and comes again.
            Err(rustix::io::Errno::INTR) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        let mut lanes = 0;
        for event in &self.events {
            let data = event.data.u64();
            if data == WAKE_BIT {
                let mut count = [0; 8];
                // Nothing to read is fine: what was handed in is seen in the rings.
                let _ = rustix::io::read(&*self.wake, &mut count);
            } else {
                lanes |= data as u16;
            }
        }
        Ok(lanes)
    }
}
