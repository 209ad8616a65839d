//! Pool configuration: number and size of frames.

use super::Class;
use crate::lane::Lane;
use crate::limits::{FRAME_BYTES, RECEIVE_FRAMES, TRANSMIT_FRAMES};

/// Number and size of the frames of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Size of each frame in bytes, including head room; at most [`FRAME_BYTES`].
    pub frame_bytes: usize,
    /// Bytes reserved at the front of a transmit frame for the datapath's headers (none for sockets). With a device,
    /// only in lanes of the device.
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
    /// Lanes ([`Lane::bit`]) whose transmit frames are chunks. [`Class::Queue`]s always are.
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
    pub(super) fn head_room_of(&self, class: Class) -> usize {
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
