//! Memory shared with a device (UMEM).
//!
//! The region is registered with the device as a whole, before the first frame moves, so it is allocated with the pool.
//! Chunks are unassigned until a class reserves them; then they are frames of that class.

use std::any::Any;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;

use super::config::DeviceConfig;
use super::pages::NoMemory;
use super::region::{Region, Slot};

/// Region, and its unassigned chunks.
pub(super) struct Device {
    pub(super) region: Arc<Region>,
    unassigned: RefCell<Vec<Slot>>,
}

impl Device {
    pub(super) fn new(config: &DeviceConfig) -> Result<Device, NoMemory> {
        let (region, mut slots) = Region::of_chunks(config.chunks, config.chunk_bytes)?;
        // Reversed, so that the lowest numbers are drawn first.
        slots.reverse();
        Ok(Device {
            region: Arc::new(region),
            unassigned: RefCell::new(slots),
        })
    }

    /// Draws up to `count` chunks for a class.
    pub(super) fn draw(&self, count: usize) -> Vec<Slot> {
        let mut unassigned = self.unassigned.borrow_mut();
        let left = unassigned.len().saturating_sub(count);
        unassigned.drain(left..).rev().collect()
    }
}

/// Share of a pool's device memory, which lives as long as any share.
#[derive(Clone)]
pub struct DeviceMemory {
    pub(super) region: Arc<Region>,
    pub(super) chunk_bytes: usize,
}

impl DeviceMemory {
    /// The whole region: whole pages, page-aligned. Each chunk's bytes belong to its frame; access through this pointer
    /// requires the consent of the frame's holder.
    #[must_use]
    pub fn memory(&self) -> NonNull<[u8]> {
        self.region.memory()
    }

    /// Size of each chunk in bytes.
    #[must_use]
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Owner of the memory. When the last share is dropped the memory is unmapped, not returned to an allocator, so no
    /// other code gets memory that a device may still write to.
    #[must_use]
    pub fn owner(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(Arc::clone(&self.region))
    }
}
