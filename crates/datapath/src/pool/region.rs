//! One piece of memory, divided into frames of equal size. All unsafe code about frames' memory
//! is here.
//!
//! The invariant: for each frame of a region there is at any time at most one [`Slot`], and a
//! slot is neither `Clone` nor `Copy`. Whoever has the slot has the frame's bytes to itself.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Frames begin on page boundaries of the region, so that touching one touches no page of
/// another.
pub(crate) const PAGE_BYTES: usize = 4_096;

/// The alignment asked of the allocator. Not a page: for an alignment above its natural one the
/// allocator takes memory first and zeroes it then, touching every page; for this one it hands
/// out fresh pages untouched.
const ALLOCATOR_ALIGN: usize = 16;

pub(crate) struct Region {
    number: u32,
    allocation: NonNull<u8>,
    layout: Layout,
    frames: usize,
    frame_bytes: usize,
    /// Frames whose slot was dropped with a lease, never to be used again.
    retired: AtomicUsize,
}

// SAFETY: the region itself never reads or writes the memory it owns, it only frees it, when no
// slot's holder has a share of it any more; its other fields are plain values and an atomic.
unsafe impl Send for Region {}
// SAFETY: as above; what is reachable from a shared reference is immutable or atomic.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed memory for `frames` frames. `number` is the region's place in its class.
    pub(crate) fn new(number: usize, frames: usize, frame_bytes: usize) -> (Region, Vec<Slot>) {
        // Checked: where addresses have 32 bits, the most frames there may be are one too many, and a
        // sum that came round would be a layout without room for the slots.
        let layout = stride_of(frame_bytes)
            .checked_mul(frames)
            .and_then(|bytes| bytes.checked_add(PAGE_BYTES))
            .and_then(|bytes| Layout::from_size_align(bytes, ALLOCATOR_ALIGN).ok())
            .expect("a class's frames fit into the address space");
        // SAFETY: the layout's size is not 0, it holds at least a page.
        let allocation = unsafe { alloc_zeroed(layout) };
        let Some(allocation) = NonNull::new(allocation) else {
            handle_alloc_error(layout);
        };
        let region = Region {
            number: number as u32,
            allocation,
            layout,
            frames,
            frame_bytes,
            retired: AtomicUsize::new(0),
        };
        let slots = region.slots().collect();
        (region, slots)
    }

    /// The slots of all frames. A slot is the only right to its bytes: called once, by `new`.
    fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let padding = self.allocation.as_ptr().addr().wrapping_neg() % PAGE_BYTES;
        let stride = stride_of(self.frame_bytes);
        (0..self.frames).map(move |frame| {
            // SAFETY: padding is below a page, and the layout holds a page more than all
            // strides: the result is inside the allocation, with `frame_bytes` behind it.
            let bytes = unsafe { self.allocation.add(padding + frame * stride) };
            Slot {
                bytes,
                capacity: self.frame_bytes as u32,
                region: self.number,
            }
        })
    }

    pub(crate) fn retired(&self) -> usize {
        self.retired.load(Ordering::Relaxed)
    }

    /// A slot of this region will not come back. A plain count: nothing is read by its order.
    pub(crate) fn retire(&self) {
        self.retired.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout; every holder of a slot also holds a share
        // of the region, so nobody has any of its bytes now.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) };
    }
}

const fn stride_of(frame_bytes: usize) -> usize {
    frame_bytes.next_multiple_of(PAGE_BYTES)
}

/// The right to one frame's bytes. It must not outlive its region: the pool keeps slots together
/// with the regions, a frame keeps the pool, a leased frame keeps the region.
pub(crate) struct Slot {
    bytes: NonNull<u8>,
    capacity: u32,
    region: u32,
}

impl Slot {
    pub(crate) fn region(&self) -> usize {
        self.region as usize
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// # Safety
    /// The slot's region is alive for as long as the result is used.
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: `bytes` begins `capacity` initialised (zeroed) bytes of the region, which the
        // caller keeps alive; only the slot's holder reaches them, and it is borrowed.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.capacity()) }
    }

    /// # Safety
    /// The slot's region is alive for as long as the result is used.
    pub(crate) unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the slot is borrowed for itself alone.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.capacity()) }
    }
}
