//! Frame classes: sets of frames with a common purpose, never lent to each other.

use std::fmt;

use isolane_wire::level::Level;

use crate::lane::Lane;
use crate::limits::MAX_DEVICE_QUEUES;

/// Frames of one lane in one direction, or of one receive queue of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Armed for arriving datagrams, then read.
    Receive(Lane),
    /// Filled by writers and by the protocol, then sent.
    Transmit(Lane),
    /// Larger frames for datagrams beyond the lane's transmit frames, if these are device chunks.
    Oversize(Lane),
    /// Receive chunks of a device queue, shared by its lanes like the queue's fill ring. Numbered from 0, below
    /// [`MAX_DEVICE_QUEUES`].
    Queue(u8),
}

impl Class {
    pub(super) const COUNT: usize = 3 * Lane::COUNT + MAX_DEVICE_QUEUES;

    #[inline]
    pub(super) const fn index(self) -> usize {
        match self {
            Class::Receive(lane) => lane.index(),
            Class::Transmit(lane) => Lane::COUNT + lane.index(),
            Class::Oversize(lane) => 2 * Lane::COUNT + lane.index(),
            Class::Queue(queue) => {
                assert!((queue as usize) < MAX_DEVICE_QUEUES, "no such queue");
                3 * Lane::COUNT + queue as usize
            }
        }
    }

    pub(super) fn of_index(index: usize) -> Class {
        let lane = || Lane::ALL[index % Lane::COUNT];
        match index / Lane::COUNT {
            0 => Class::Receive(lane()),
            1 => Class::Transmit(lane()),
            2 => Class::Oversize(lane()),
            _ => Class::Queue((index - 3 * Lane::COUNT) as u8),
        }
    }

    pub(super) fn all() -> impl Iterator<Item = Class> {
        let of_lanes = Lane::ALL.into_iter().flat_map(|lane| {
            [
                Class::Receive(lane),
                Class::Transmit(lane),
                Class::Oversize(lane),
            ]
        });
        of_lanes.chain((0..MAX_DEVICE_QUEUES as u8).map(Class::Queue))
    }
}

/// A lane without a direction means its transmit frames.
impl From<Lane> for Class {
    fn from(lane: Lane) -> Class {
        Class::Transmit(lane)
    }
}

/// A level without a direction means its transmit frames.
impl From<Level> for Class {
    fn from(level: Level) -> Class {
        Class::Transmit(Lane::Level(level))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Receive(lane) => write!(f, "receive {lane}"),
            Class::Transmit(lane) => write!(f, "transmit {lane}"),
            Class::Oversize(lane) => write!(f, "oversize {lane}"),
            Class::Queue(queue) => write!(f, "receive queue {queue}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_own_index() {
        assert!(Class::all().all(|class| Class::of_index(class.index()) == class));
        let mut seen: Vec<usize> = Class::all().map(Class::index).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..Class::COUNT).collect::<Vec<_>>());
    }
}
