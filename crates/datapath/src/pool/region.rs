//! Memory regions divided into frames of equal size. Contains all unsafe code about frames' bytes; that about their
//! mapping is in `pages`.
//!
//! Invariant: for each frame of a region there is at most one [`Slot`] at any time, and slots are neither `Clone` nor
//! `Copy`. The holder of the slot has exclusive access to the frame's bytes. The slot of a frame given to a device
//! stays with the code that keeps it until the device has completed the frame.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Class;
use super::pages::{NoMemory, PAGE_BYTES, Pages};

/// Chunk number of a frame that is not a device chunk.
const NO_CHUNK: u32 = u32::MAX;

pub(crate) struct Region {
    pages: Pages,
    frames: usize,
    frame_bytes: usize,
    /// Distance between the starts of two frames in bytes.
    stride: usize,
    /// Frames whose slot was dropped with a lease, never to be reused, by class.
    retired: [AtomicUsize; Class::COUNT],
}

impl Region {
    /// Allocates zeroed memory for `frames` frames, each on separate pages. `number` is the region's index in its
    /// class.
    pub(crate) fn new(
        number: usize,
        frames: usize,
        frame_bytes: usize,
    ) -> Result<(Region, Vec<Slot>), NoMemory> {
        let stride = frame_bytes.next_multiple_of(PAGE_BYTES);
        let region = Region::allocate(frames, frame_bytes, stride)?;
        let slots = region.slots(number, |_| NO_CHUNK).collect();
        Ok((region, slots))
    }

    /// Allocates zeroed memory for consecutive chunks from a page boundary on, to be registered with a device.
    pub(crate) fn of_chunks(
        chunks: usize,
        chunk_bytes: usize,
    ) -> Result<(Region, Vec<Slot>), NoMemory> {
        let divides = chunk_bytes.is_power_of_two() && chunk_bytes <= PAGE_BYTES;
        assert!(divides, "a chunk lies on one page");
        let region = Region::allocate(chunks, chunk_bytes, chunk_bytes)?;
        let slots = region.slots(0, |chunk| chunk as u32).collect();
        Ok((region, slots))
    }

    fn allocate(frames: usize, frame_bytes: usize, stride: usize) -> Result<Region, NoMemory> {
        // Checked: with 32-bit addresses the maximum number of frames overflows, and a wrapped size would give memory
        // too small for the slots.
        let bytes = stride.checked_mul(frames);
        let bytes = bytes.expect("a class's frames fit into the address space");
        Ok(Region {
            pages: Pages::new(bytes)?,
            frames,
            frame_bytes,
            stride,
            retired: [const { AtomicUsize::new(0) }; Class::COUNT],
        })
    }

    /// Slots of all frames. Called once, at creation, because a slot is the exclusive right to its bytes.
    fn slots(&self, number: usize, chunk: fn(usize) -> u32) -> impl Iterator<Item = Slot> + '_ {
        (0..self.frames).map(move |frame| {
            // SAFETY: the pages hold as many strides as there are frames.
            let bytes = unsafe { self.pages.start().add(frame * self.stride) };
            Slot {
                bytes,
                capacity: self.frame_bytes as u32,
                region: number as u32,
                chunk: chunk(frame),
            }
        })
    }

    /// Bytes of all frames, in whole pages.
    pub(crate) fn memory(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.pages.start(), self.pages.bytes())
    }

    pub(crate) fn retired(&self, class: Class) -> usize {
        self.retired[class.index()].load(Ordering::Relaxed)
    }

    /// Counts a slot of this region and class that will not return. Relaxed: no other data depends on the count.
    pub(crate) fn retire(&self, class: Class) {
        self.retired[class.index()].fetch_add(1, Ordering::Relaxed);
    }
}

/// Exclusive right to one frame's bytes. Must not outlive its region: the pool keeps its slots together with the
/// regions, a frame keeps the pool, a leased frame keeps the region.
pub(crate) struct Slot {
    bytes: NonNull<u8>,
    capacity: u32,
    region: u32,
    chunk: u32,
}

impl Slot {
    /// Index of the region in the class.
    pub(crate) fn region(&self) -> usize {
        self.region as usize
    }

    /// Sets the index of the region, when the slot is assigned to a class.
    pub(crate) fn set_region(&mut self, number: usize) {
        self.region = number as u32;
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Number of the device chunk, if the slot is one.
    #[inline]
    pub(crate) fn chunk(&self) -> Option<u32> {
        (self.chunk != NO_CHUNK).then_some(self.chunk)
    }

    /// # Safety
    /// The slot's region is alive for as long as the result is used.
    #[inline]
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: `bytes` points to `capacity` initialised (zeroed) bytes of the region, which the caller keeps alive.
        // Only the slot's holder accesses them, and the slot is borrowed.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.capacity()) }
    }

    /// # Safety
    /// The slot's region is alive for as long as the result is used.
    #[inline]
    pub(crate) unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the slot is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.capacity()) }
    }
}
