//! Classes of frames, and their configuration: number, size and head room.
//!
//! A class is a set of frames with a common purpose. Classes never lend frames to each other.

use std::fmt;

use isolane_wire::level::Level;

use crate::lane::Lane;
use crate::limits::{FRAME_BYTES, MAX_DEVICE_QUEUES, RECEIVE_FRAMES, TRANSMIT_FRAMES};

/// Frames of one lane in one direction, or of one receive queue of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Armed for arriving datagrams, then read.
    Receive(Lane),
    /// Filled by writers and by the protocol, then sent.
    Transmit(Lane),
    /// Frames for datagrams that do not fit the lane's transmit frames, if those are device chunks.
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

/// Number and size of the frames of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Size of each frame in bytes, including head room; at most [`FRAME_BYTES`].
    pub frame_bytes: usize,
    /// Bytes reserved at the front of a transmit frame for the datapath's headers (none for sockets). If there is a
    /// device, only frames that are its chunks have head room.
    pub head_room_bytes: usize,
    /// Bytes at the front of each frame to prefault on allocation, so that its first use causes no page fault; 0 for
    /// none. Only opened lanes have frames.
    pub prefault_bytes: usize,
    /// Receive frames of each lane, by [`Lane::index`].
    pub receive_frames: [usize; Lane::COUNT],
    /// Transmit frames of each lane, by [`Lane::index`].
    pub transmit_frames: [usize; Lane::COUNT],
    /// Oversize frames of `frame_bytes` for each lane, by [`Lane::index`]. Not needed if transmit frames have this
    /// size.
    pub oversize_frames: [usize; Lane::COUNT],
    /// Memory shared with a device, whose chunks are frames of some classes.
    pub device: Option<DeviceConfig>,
}

impl Default for PoolConfig {
    fn default() -> PoolConfig {
        PoolConfig {
            frame_bytes: FRAME_BYTES,
            head_room_bytes: 0,
            prefault_bytes: 0,
            receive_frames: [RECEIVE_FRAMES; Lane::COUNT],
            transmit_frames: [TRANSMIT_FRAMES; Lane::COUNT],
            oversize_frames: [0; Lane::COUNT],
            device: None,
        }
    }
}

/// Memory region of equal chunks, registered with a device as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Size of a chunk in bytes, a power of two up to a page's 4,096.
    pub chunk_bytes: usize,
    /// Number of chunks for all classes together.
    pub chunks: usize,
    /// Lanes ([`Lane::bit`]) whose transmit frames are chunks. Frames of a [`Class::Queue`] always are chunks.
    pub lanes: u16,
}

impl PoolConfig {
    /// Returns true if frames of this class are device chunks.
    pub(super) fn is_of_device(&self, class: Class) -> bool {
        let device = self.device.as_ref();
        device.is_some_and(|device| match class {
            Class::Queue(_) => true,
            Class::Transmit(lane) => device.lanes & lane.bit() != 0,
            Class::Receive(_) | Class::Oversize(_) => false,
        })
    }

    pub(super) fn bytes_of(&self, class: Class) -> usize {
        match self.device {
            Some(device) if self.is_of_device(class) => device.chunk_bytes,
            _ => self.frame_bytes,
        }
    }

    /// Head room of a new frame of this class in bytes.
    fn head_room_of(&self, class: Class) -> usize {
        let has_head = match class {
            Class::Transmit(_) => self.device.is_none() || self.is_of_device(class),
            Class::Receive(_) | Class::Oversize(_) | Class::Queue(_) => false,
        };
        if has_head { self.head_room_bytes } else { 0 }
    }

    /// Configured number of frames of a class in an open lane.
    pub(super) fn frames_of(&self, class: Class) -> usize {
        match class {
            Class::Receive(lane) => self.receive_frames[lane.index()],
            Class::Transmit(lane) => self.transmit_frames[lane.index()],
            Class::Oversize(lane) => self.oversize_frames[lane.index()],
            Class::Queue(_) => 0,
        }
    }
}

/// Layout of the frames of a class.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    head_room: u32,
    room: u32,
}

impl Shape {
    /// Bytes reserved at the front.
    #[inline]
    pub(super) const fn head_room(self) -> usize {
        self.head_room as usize
    }

    /// Bytes after the head room.
    #[inline]
    pub(super) const fn room(self) -> usize {
        self.room as usize
    }
}

/// Layouts of all classes, precomputed because every request needs them.
pub(super) struct Shapes([Shape; Class::COUNT]);

impl Shapes {
    pub(super) fn of(config: &PoolConfig) -> Shapes {
        let mut shapes = [Shape {
            head_room: 0,
            room: 0,
        }; Class::COUNT];
        for class in Class::all() {
            let head_room = config.head_room_of(class);
            // Cannot truncate: both are at most the size of a frame.
            shapes[class.index()] = Shape {
                head_room: head_room as u32,
                room: (config.bytes_of(class) - head_room) as u32,
            };
        }
        Shapes(shapes)
    }

    #[inline]
    pub(super) const fn get(&self, class: Class) -> Shape {
        self.0[class.index()]
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
