//! Memory of frames: regions of zeroed pages, divided into frames of equal size.
//!
//! This module has all unsafe code about the bytes of frames and their mapping. Invariant: for each frame of a region
//! there is at most one [`Slot`] at any time, and slots are neither `Clone` nor `Copy`. The holder of the slot has
//! exclusive access to the frame's bytes. The slot of a frame given to a device stays with the code that keeps the
//! frame until the device has completed the frame.
//!
//! # Pages of the system
//!
//! Frames are not taken from the allocator, because it reuses freed memory while a device may still write to it. The
//! kernel pins the pages of shared memory until the last copy of the socket's descriptor is closed, also in child
//! processes. It revokes the device's access some time later. Unmapped pages that are still pinned belong to the
//! kernel alone, so late writes do no harm.
//!
//! # Memory shared with a device (UMEM)
//!
//! The region is registered with the device as a whole, before the first frame moves, so it is allocated with the pool.
//! Chunks are unassigned until a class reserves them; then they are frames of that class.

use std::any::Any;
use std::cell::RefCell;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::class::{Class, DeviceConfig};

pub(super) const PAGE_BYTES: usize = 4_096;

/// The system has no memory left for frames.
#[derive(Debug, thiserror::Error)]
#[error(
    "no {bytes} bytes of memory are left for frames ({source}): raise the limit of the process (ulimit -v, or LimitAS= of \
     a systemd unit), or use fewer levels, each of which takes its own frames"
)]
pub struct NoMemory {
    /// Requested bytes.
    pub bytes: usize,
    /// Error of the system.
    pub source: io::Error,
}

/// Mapping of fresh pages, unmapped when dropped.
struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: this value owns the mapping; this type only stores its address and never accesses its contents.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps `bytes` bytes, rounded up to whole pages, at least one. A page is allocated at its first write.
    ///
    /// # Errors
    /// [`NoMemory`].
    fn new(bytes: usize) -> Result<Pages, NoMemory> {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE_BYTES);
        let bytes = bytes.expect("frames fit into the address space");
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at a place the kernel chooses touches no memory that is in use.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, flags, -1, 0) };
        let start = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED);
        match start {
            Some(start) => Ok(Pages { start, bytes }),
            None => Err(NoMemory {
                bytes,
                source: io::Error::last_os_error(),
            }),
        }
    }

    /// Page-aligned address of the first byte.
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Size in bytes, a multiple of the page size.
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and everything that points into it keeps this value alive.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Chunk number of a frame that is not a device chunk.
const NO_CHUNK: u32 = u32::MAX;

/// Memory divided into frames of equal size.
pub(super) struct Region {
    pages: Pages,
    frames: usize,
    frame_bytes: usize,
    /// Distance between the starts of two frames in bytes.
    stride: usize,
    /// Number of frames by class whose lease was dropped. They are never reused.
    retired: [AtomicUsize; Class::COUNT],
}

impl Region {
    /// Allocates zeroed memory for `frames` frames, each on separate pages. `number` is the region's index in its
    /// class.
    pub(super) fn new(
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
    pub(super) fn of_chunks(
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
    pub(super) fn memory(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.pages.start(), self.pages.bytes())
    }

    pub(super) fn retired(&self, class: Class) -> usize {
        self.retired[class.index()].load(Ordering::Relaxed)
    }

    /// Counts a slot of this region and class that will not return. Relaxed: no other data depends on the count.
    pub(super) fn retire(&self, class: Class) {
        self.retired[class.index()].fetch_add(1, Ordering::Relaxed);
    }
}

/// Exclusive right to one frame's bytes. Must not outlive its region: the pool keeps its slots together with the
/// regions, a frame keeps the pool, a leased frame keeps the region.
pub(super) struct Slot {
    bytes: NonNull<u8>,
    capacity: u32,
    region: u32,
    chunk: u32,
}

impl Slot {
    /// Index of the region in the class.
    pub(super) fn region(&self) -> usize {
        self.region as usize
    }

    /// Sets the index of the region, when the slot is assigned to a class.
    pub(super) fn set_region(&mut self, number: usize) {
        self.region = number as u32;
    }

    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Number of the device chunk, if the slot is one.
    #[inline]
    pub(super) fn chunk(&self) -> Option<u32> {
        (self.chunk != NO_CHUNK).then_some(self.chunk)
    }

    /// # Safety
    /// The slot's region is alive for as long as the result is used.
    #[inline]
    pub(super) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: `bytes` points to `capacity` initialised (zeroed) bytes of the region, which the caller keeps alive.
        // Only the slot's holder accesses them, and the slot is borrowed.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.capacity()) }
    }

    /// # Safety
    /// The slot's region is alive for as long as the result is used.
    #[inline]
    pub(super) unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the slot is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.capacity()) }
    }
}

/// Memory shared with a device, and its unassigned chunks.
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

/// Shared reference to a pool's device memory, which stays mapped while any reference exists.
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

    /// Owner of the memory. When the last reference is dropped, the memory is unmapped, not returned to an allocator,
    /// so no other code gets memory that a device may still write to.
    #[must_use]
    pub fn owner(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(Arc::clone(&self.region))
    }
}
