//! Transmit side of the cable: a packet socket on a queue the kernel chooses, or AF_XDP sockets with a queue per class.

use std::io;

use isolane_datapath_xdp::socket::OpenError;

use super::arbiter::CLASSES;
use super::frame::class;
use crate::system::packet::{Frame, Sender};
use crate::system::queues::{QUEUES, Queues};

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

/// Reasons why a transmitter could not be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutletError {
    #[error(transparent)]
    Packet(#[from] io::Error),
    #[error(transparent)]
    Queues(#[from] OpenError),
}

impl Outlet {
    /// Opens a transmitter on the device `interface_index` in the calling thread's network namespace.
    pub(super) fn open(interface_index: u32, steer: bool) -> Result<Outlet, OutletError> {
        Ok(if steer {
            Outlet::Steering(Box::new(Queues::open(interface_index)?))
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

    /// Closes the transmitter. Returns the frames sent on each queue, if known, and the frames still unsent and not
    /// counted as refused.
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
