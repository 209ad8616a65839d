//! One piece of memory, divided into frames of equal size. All unsafe code about frames' bytes is
//! here; that about the memory they lie in is in `pages`.
//!
//! The invariant: for each frame of a region there is at any time at most one [`Slot`], and a
//! slot is neither `Clone` nor `Copy`. Whoever has the slot has the frame's bytes to itself. A
//! frame that was handed to a device is still somebody's slot: that of whoever keeps it until the
//! device is done.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Class;
use super::pages::{NoMemory, PAGE_BYTES, Pages};

/// The number of a frame that is no chunk of a device.
const NO_CHUNK: u32 = u32::MAX;

pub(crate) struct Region {
    pages: Pages,
    frames: usize,
    frame_bytes: usize,
    /// From one frame's beginning to the next one's.
    stride: usize,
    /// Frames whose slot was dropped with a lease, never to be used again, by class.
    retired: [AtomicUsize; Class::COUNT],
}

impl Region {
    /// Zeroed memory for `frames` frames, each on pages of its own. `number` is the region's place
    /// in its class.
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

    /// Zeroed memory for so many chunks, one directly behind the other from a page boundary on, to
    /// be registered with a device.
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
        // Checked: where addresses have 32 bits, the most frames there may be are one too many, and a
        // sum that came round would be memory without room for the slots.
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

    /// The slots of all frames. A slot is the only right to its bytes: called once, at creation.
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

    /// All frames' bytes, in whole pages.
    pub(crate) fn memory(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.pages.start(), self.pages.bytes())
    }

    pub(crate) fn retired(&self, class: Class) -> usize {
        self.retired[class.index()].load(Ordering::Relaxed)
    }

    /// A slot of this region and class will not come back. A plain count: nothing is read by its
    /// order.
    pub(crate) fn retire(&self, class: Class) {
        self.retired[class.index()].fetch_add(1, Ordering::Relaxed);
    }
}

/// The right to one frame's bytes. It must not outlive its region: the pool keeps slots together
/// with the regions, a frame keeps the pool, a leased frame keeps the region.
pub(crate) struct Slot {
    bytes: NonNull<u8>,
    capacity: u32,
    region: u32,
    chunk: u32,
}

impl Slot {
    /// The region's place in the class.
    pub(crate) fn region(&self) -> usize {
        self.region as usize
    }

    /// The slot becomes one of a class that has its region at this place.
    pub(crate) fn set_region(&mut self, number: usize) {
        self.region = number as u32;
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// The chunk's number in the device's memory, if it is one.
    #[inline]
    pub(crate) fn chunk(&self) -> Option<u32> {
        (self.chunk != NO_CHUNK).then_some(self.chunk)
    }

    /// # Safety
    /// The slot's region is alive for as long as the result is used.
    #[inline]
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: `bytes` begins `capacity` initialised (zeroed) bytes of the region, which the
        // caller keeps alive; only the slot's holder reaches them, and it is borrowed.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.capacity()) }
    }

    /// # Safety
    /// The slot's region is alive for as long as the result is used.
    #[inline]
    pub(crate) unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the slot is borrowed for itself alone.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.capacity()) }
    }
}
