//! Stop requests for a running cable, sender or sink.
//!
//! A child process stops when its standard input ends (its parent closed the pipe, or died) or on SIGTERM, SIGINT or
//! SIGHUP. A part that runs in a thread stops when its [`Stopper`] is used or dropped. In both cases one descriptor
//! becomes readable, so every loop polls in the same way.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};

use crate::system;

/// Descriptor that becomes readable when its holder shall finish.
#[derive(Debug)]
pub struct Stop {
    any: OwnedFd,
    // Kept open, because the epoll set forgets a closed descriptor.
    _sources: Vec<OwnedFd>,
}

/// Counterpart of a [`Stop`] made by [`Stop::pair`]. Dropping it also requests the stop.
#[derive(Debug)]
pub struct Stopper(OwnedFd);

impl Stop {
    /// Stops at any input or the end of standard input, and at SIGTERM, SIGINT and SIGHUP. Blocks these signals; call
    /// it before the process has other threads.
    pub fn of_process() -> io::Result<Stop> {
        let stop = Stop::of_signals()?;
        match watch(&stop.any, rustix::stdio::stdin()) {
            // /dev/null and files cannot be polled by epoll; then only signals stop.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            result => result?,
        }
        Ok(stop)
    }

    /// Stops at SIGTERM, SIGINT and SIGHUP only. Blocks these signals; call it before the process has other threads.
    pub fn of_signals() -> io::Result<Stop> {
        let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let signals = system::terminations()?;
        watch(&any, signals.as_fd())?;
        Ok(Stop {
            any,
            _sources: vec![signals],
        })
    }

    /// Creates a stop for a part that runs in a thread.
    pub fn pair() -> io::Result<(Stop, Stopper)> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        watch(&any, event.as_fd())?;
        let stopper = Stopper(event.try_clone()?);
        Ok((
            Stop {
                any,
                _sources: vec![event],
            },
            stopper,
        ))
    }

    /// Returns whether a stop was requested. Does not wait.
    pub fn is_requested(&self) -> bool {
        let mut set = [PollFd::new(&self.any, PollFlags::IN)];
        matches!(poll(&mut set, Some(&Timespec::default())), Ok(1..))
    }

    /// Waits for the stop.
    pub fn wait(&self) {
        let mut set = [PollFd::new(&self.any, PollFlags::IN)];
        while !matches!(poll(&mut set, None), Ok(1..)) {}
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.any.as_fd()
    }
}

impl Stopper {
    /// Asks the holder of the [`Stop`] to finish.
    pub fn stop(self) {}
}

impl Drop for Stopper {
    fn drop(&mut self) {
        // The write fails only if the counter is full, and then the descriptor is readable already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

fn watch(set: &OwnedFd, source: BorrowedFd<'_>) -> io::Result<()> {
    let data = epoll::EventData::new_u64(0);
    Ok(epoll::add(set, source, data, epoll::EventFlags::IN)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_stopped_by_its_stopper_and_by_the_stoppers_end() {
        let (stop, stopper) = Stop::pair().unwrap();
        assert!(!stop.is_requested());
        stopper.stop();
        assert!(stop.is_requested());

        let (stop, stopper) = Stop::pair().unwrap();
        drop(stopper);
        assert!(stop.is_requested());
    }
}
