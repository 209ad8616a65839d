//! How many frames there are, and how large they are.

use super::Class;
use crate::lane::Lane;
use crate::limits::{FRAME_BYTES, RECEIVE_FRAMES, TRANSMIT_FRAMES};

/// How many frames a lane has once it is open, and how large they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Bytes of each frame, head room included; at most [`FRAME_BYTES`].
    pub frame_bytes: usize,
    /// Bytes kept free in front of what is filled into a transmit frame, for the datapath's
    /// headers (none for sockets). With a device, in front of what its lanes send only.
    pub head_room_bytes: usize,
    /// Bytes at the front of each frame whose pages are touched when the frame is made, so that
    /// its first use is no page fault; 0 leaves all to their first use. Only lanes that are opened
    /// have frames.
    pub prefault_bytes: usize,
    /// Receive frames of each lane, by [`Lane::index`].
    pub receive_frames: [usize; Lane::COUNT],
    /// Transmit frames of each lane, by [`Lane::index`].
    pub transmit_frames: [usize; Lane::COUNT],
    /// Frames of `frame_bytes` for what does not fit the lane's transmit frames, by
    /// [`Lane::index`]. None are needed where these are as large.
    pub oversize_frames: [usize; Lane::COUNT],
    /// Memory shared with a device, whose chunks are the frames of some classes.
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

/// One piece of memory in chunks, registered with a device as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Bytes of each chunk, a power of two that divides or is a page's 4,096.
    pub chunk_bytes: usize,
    /// How many chunks there are for all classes together.
    pub chunks: usize,
    /// Lanes ([`Lane::bit`]) whose transmit frames are chunks. [`Class::Queue`]s always are.
    pub lanes: u16,
}

impl PoolConfig {
    /// Whether frames of this class are chunks of the device.
    pub(super) fn is_of_device(&self, class: Class) -> bool {
        let device = self.device.as_ref();
        device.is_some_and(|device| match class {
            Class::Queue(_) => true,
            Class::Transmit(lane) => device.lanes & lane.bit() != 0,
            Class::Receive(_) | Class::Oversize(_) => false,
        })
    }

    /// Bytes of a frame of this class.
    pub(super) fn bytes_of(&self, class: Class) -> usize {
        match self.device {
            Some(device) if self.is_of_device(class) => device.chunk_bytes,
            _ => self.frame_bytes,
        }
    }

    /// Head room of a frame of this class when it is taken.
    pub(super) fn head_room_of(&self, class: Class) -> usize {
        let has_head = match class {
            Class::Transmit(_) => self.device.is_none() || self.is_of_device(class),
            Class::Receive(_) | Class::Oversize(_) | Class::Queue(_) => false,
        };
        if has_head { self.head_room_bytes } else { 0 }
    }

    /// Frames a class of a lane has once the lane is open.
    pub(super) fn frames_of(&self, class: Class) -> usize {
        match class {
            Class::Receive(lane) => self.receive_frames[lane.index()],
            Class::Transmit(lane) => self.transmit_frames[lane.index()],
            Class::Oversize(lane) => self.oversize_frames[lane.index()],
            Class::Queue(_) => 0,
        }
    }
}
