//! Memory that a device reads and writes too.
//!
//! It is one region, registered with the device as a whole and before the first frame moves, so all
//! of it is taken when the pool is made. Its chunks belong to nobody until a class reserves some;
//! from then on they are frames of that class like any others, and go home to it.

use std::any::Any;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;

use super::config::DeviceConfig;
use super::pages::NoMemory;
use super::region::{Region, Slot};

/// The region, and the chunks that no class has reserved yet.
pub(super) struct Device {
    pub(super) region: Arc<Region>,
    unassigned: RefCell<Vec<Slot>>,
}

impl Device {
    pub(super) fn new(config: &DeviceConfig) -> Result<Device, NoMemory> {
        let (region, mut slots) = Region::of_chunks(config.chunks, config.chunk_bytes)?;
        // The lowest numbers go first.
        slots.reverse();
        Ok(Device {
            region: Arc::new(region),
            unassigned: RefCell::new(slots),
        })
    }

    /// Up to so many chunks, for a class.
    pub(super) fn draw(&self, count: usize) -> Vec<Slot> {
        let mut unassigned = self.unassigned.borrow_mut();
        let left = unassigned.len().saturating_sub(count);
        unassigned.drain(left..).rev().collect()
    }
}

/// A share of a pool's device memory, which lives as long as any share of it.
#[derive(Clone)]
pub struct DeviceMemory {
    pub(super) region: Arc<Region>,
    pub(super) chunk_bytes: usize,
}

impl DeviceMemory {
    /// All of it: whole pages, from a page boundary on. The bytes of each chunk are those of its
    /// frame, and whoever reaches them by this pointer must be lent them by the frame's holder.
    #[must_use]
    pub fn memory(&self) -> NonNull<[u8]> {
        self.region.memory()
    }

    /// Bytes of each chunk.
    #[must_use]
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// What keeps the memory. When its last share is dropped the memory is unmapped, and given to no
    /// allocator: nobody else gets what a device may still write to.
    #[must_use]
    pub fn owner(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(Arc::clone(&self.region))
    }
}
