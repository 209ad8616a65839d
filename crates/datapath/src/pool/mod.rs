//! Pool of frames: memory for datagrams, allocated before start, with one owner at a time.
//!
//! A [`Frame`] is taken from its class in the [`Pool`], and returns there when dropped.
//!
//! # Classes
//!
//! A class is the frames of one lane in one direction. Classes do not lend frames to each other: a bulk lane that is
//! not drained, or a writer faster than its lane, exhausts only its own frames. A common pool with a reserve would
//! depend on every holder to keep to its share.
//!
//! # Memory layout
//!
//! A class consists of *regions*: memory mappings divided into frames of equal size. Each time a class grows, it gets
//! a region. Memory shared with a device (AF_XDP's UMEM, a DMA mapping) is one region of small chunks, from which the
//! classes that the device fills or sends take their frames ([`DeviceConfig`]). Regions are fresh zeroed pages of the
//! system, not of the allocator (see `memory`). A frame costs only address space until it is written, page by page, so
//! frames of 64 KiB are cheap when datagrams are small. [`Pool::prefault`] and [`PoolConfig::prefault_bytes`] avoid
//! page faults at first use.
//!
//! Free frames are a stack: the frame returned last, still in the cache, is taken next. The stack's memory is reserved
//! when the class grows, so taking and dropping frames never allocates.
//!
//! # Threads
//!
//! The pool and its [`Frame`]s belong to the executor's thread (not `Send`), so no locks are needed. A publisher on
//! another thread uses [`LeasedFrame`]s. Each leased frame owns its bytes and a reference to its region, so it may
//! outlive the pool. A ring between the threads carries leased frames back to [`Pool::adopt`].

mod class;
mod memory;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::num::NonZeroU16;
use std::ops::{Deref, DerefMut, Range};
use std::rc::Rc;
use std::sync::Arc;

use self::class::Shapes;
pub use self::class::{Class, DeviceConfig, PoolConfig};
use self::memory::{Device, PAGE_BYTES, Region, Slot};
pub use self::memory::{DeviceMemory, NoMemory};
use crate::lane::Lane;
use crate::limits::{FRAME_BYTES, MAX_CLASS_FRAMES};

#[derive(Default)]
struct ClassState {
    regions: Vec<Arc<Region>>,
    /// Free frames; the last is taken next.
    free: Vec<Slot>,
    /// Frames ever created for this class.
    made: usize,
    /// Frames of `made` that were created for the class itself; the others were created to be leased.
    own: usize,
    /// Frames leased and not returned, including dropped ones.
    leased: usize,
}

impl ClassState {
    /// Leased frames of this class that were dropped instead of returned.
    fn retired(&self, class: Class) -> usize {
        let regions = self.regions.iter();
        regions.map(|region| region.retired(class)).sum()
    }

    /// Adds free frames of a region; their region index must be set.
    fn add(&mut self, slots: Vec<Slot>) {
        self.made += slots.len();
        // Reserves capacity for all frames ever created, including those that are not free now.
        let missing = self.made - self.free.len();
        self.free.reserve_exact(missing);
        self.free.extend(slots);
    }

    /// Index of a region, which is added if absent.
    fn place_of(&mut self, region: &Arc<Region>) -> usize {
        let place = self.regions.iter().position(|one| Arc::ptr_eq(one, region));
        place.unwrap_or_else(|| {
            self.regions.push(Arc::clone(region));
            self.regions.len() - 1
        })
    }
}

/// State shared by the pool's handles and its frames.
struct Shared {
    config: PoolConfig,
    shapes: Shapes,
    classes: [RefCell<ClassState>; Class::COUNT],
    exhausted: [Cell<u64>; Class::COUNT],
    /// Queue frames lent to readers of a lane and not returned yet.
    held: [Cell<usize>; Lane::COUNT],
    device: Option<Device>,
}

impl Shared {
    #[inline]
    fn class(&self, class: Class) -> &RefCell<ClassState> {
        &self.classes[class.index()]
    }

    /// Returns a frame to its class. The stack's capacity was reserved when the frame was created.
    #[inline]
    fn give_back(&self, class: usize, slot: Slot) {
        let mut state = self.classes[class].borrow_mut();
        debug_assert!(state.free.len() < state.free.capacity());
        state.free.push(slot);
    }
}

/// Prefaults the pages of the first `bytes`, by writing back one byte of each page, and returns the number of bytes.
/// Reading would not suffice: untouched pages are all mapped to the zero page.
fn touch(frame: &mut [u8], bytes: usize) -> usize {
    let bytes = bytes.min(frame.len());
    for at in (0..bytes).step_by(PAGE_BYTES) {
        frame[at] = black_box(frame[at]);
    }
    bytes.next_multiple_of(PAGE_BYTES)
}

/// Handle to the frames of a datapath; clones share the pool.
#[derive(Clone)]
pub struct Pool {
    shared: Rc<Shared>,
}

impl Pool {
    /// Creates a pool without frames: lanes reserve theirs when they are opened.
    ///
    /// # Panics
    /// If the memory of a [device](PoolConfig::device) cannot be allocated; see [`try_new`](Self::try_new).
    #[must_use]
    pub fn new(config: PoolConfig) -> Pool {
        Self::try_new(config).expect("memory for a device's chunks")
    }

    /// Creates a pool without frames, but with the memory of a [device](PoolConfig::device).
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn try_new(mut config: PoolConfig) -> Result<Pool, NoMemory> {
        config.frame_bytes = config.frame_bytes.min(FRAME_BYTES);
        let smallest = config
            .device
            .map_or(usize::MAX, |device| device.chunk_bytes);
        let smallest = smallest.min(config.frame_bytes);
        config.head_room_bytes = config.head_room_bytes.min(smallest);
        let shared = Shared {
            config,
            shapes: Shapes::of(&config),
            classes: std::array::from_fn(|_| RefCell::default()),
            exhausted: std::array::from_fn(|_| Cell::new(0)),
            held: std::array::from_fn(|_| Cell::new(0)),
            device: config.device.as_ref().map(Device::new).transpose()?,
        };
        Ok(Pool {
            shared: Rc::new(shared),
        })
    }

    /// Configuration of the pool.
    #[must_use]
    pub fn config(&self) -> &PoolConfig {
        &self.shared.config
    }

    /// Brings the classes of a lane to their configured size, as far as device memory suffices.
    ///
    /// # Errors
    /// [`NoMemory`]; earlier reservations stay.
    pub fn reserve_lane(&self, lane: Lane) -> Result<(), NoMemory> {
        let classes = [Class::Receive, Class::Transmit, Class::Oversize];
        for class in classes.map(|class| class(lane)) {
            let own = self.shared.class(class).borrow().own;
            let wanted = self.shared.config.frames_of(class);
            self.reserve(class, wanted.saturating_sub(own))?;
        }
        Ok(())
    }

    /// Creates `count` more frames of a class, up to [`MAX_CLASS_FRAMES`], or assigns as many device chunks, if its
    /// frames are chunks. Returns the number obtained. Allocates, so only before start.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing was reserved.
    pub fn reserve(&self, class: Class, count: usize) -> Result<usize, NoMemory> {
        let made = match self.shared.config.is_of_device(class) {
            true => self.assign(class, count),
            false => self.make(class, count)?,
        };
        self.shared.class(class).borrow_mut().own += made;
        Ok(made)
    }

    /// Creates frames and returns their number, which is less than `count` if the class reaches its bound.
    fn make(&self, class: Class, count: usize) -> Result<usize, NoMemory> {
        let mut state = self.shared.class(class).borrow_mut();
        let count = count.min(MAX_CLASS_FRAMES - state.made);
        if count == 0 {
            return Ok(0);
        }
        let config = &self.shared.config;
        let number = state.regions.len();
        let (region, mut slots) = Region::new(number, count, config.bytes_of(class))?;
        for slot in &mut slots {
            // SAFETY: `region` is the region of these slots, and alive.
            touch(unsafe { slot.bytes_mut() }, config.prefault_bytes);
        }
        state.add(slots);
        state.regions.push(Arc::new(region));
        Ok(count)
    }

    /// Assigns device chunks to a class and returns their number, which is less than `count` if too few are left.
    fn assign(&self, class: Class, count: usize) -> usize {
        let Some(device) = &self.shared.device else {
            return 0;
        };
        let mut state = self.shared.class(class).borrow_mut();
        let mut slots = device.draw(count.min(MAX_CLASS_FRAMES - state.made));
        let place = state.place_of(&device.region);
        slots.iter_mut().for_each(|slot| slot.set_region(place));
        let count = slots.len();
        state.add(slots);
        count
    }

    /// Memory to register with the device.
    #[must_use]
    pub fn device_memory(&self) -> Option<DeviceMemory> {
        let device = self.shared.device.as_ref()?;
        Some(DeviceMemory {
            region: Arc::clone(&device.region),
            chunk_bytes: self.shared.config.device?.chunk_bytes,
        })
    }

    /// Prefaults the first `bytes` of each free frame of the class, and returns the number of bytes faulted in.
    /// Contents are unchanged. A class without frames costs nothing.
    pub fn prefault(&self, class: impl Into<Class>, bytes: usize) -> usize {
        let mut state = self.shared.class(class.into()).borrow_mut();
        let free = state.free.iter_mut();
        // SAFETY: the class keeps the regions of its slots.
        free.map(|slot| touch(unsafe { slot.bytes_mut() }, bytes))
            .sum()
    }

    /// Takes a free frame of the class, empty after its head room. `None` if none is free, counted by
    /// [`exhausted`](Self::exhausted).
    #[inline]
    #[must_use]
    pub fn take(&self, class: impl Into<Class>) -> Option<Frame> {
        let class = class.into();
        let frame = self.take_free(class);
        if frame.is_none() {
            self.note_exhausted(class);
        }
        frame
    }

    #[cold]
    fn note_exhausted(&self, class: Class) {
        let exhausted = &self.shared.exhausted[class.index()];
        exhausted.set(exhausted.get() + 1);
    }

    #[inline]
    fn take_free(&self, class: Class) -> Option<Frame> {
        let slot = self.shared.class(class).borrow_mut().free.pop()?;
        Some(self.frame_of(class, slot))
    }

    #[inline]
    fn frame_of(&self, class: Class, slot: Slot) -> Frame {
        let head_room = self.shared.shapes.get(class).head_room();
        let home = Rc::clone(&self.shared);
        Frame::new(home, class, slot, head_room..head_room)
    }

    /// Passes up to `most` free chunks of a queue to `give`, to be armed for receiving, and returns their number.
    /// Borrows the class once for all of them.
    ///
    /// # Panics
    /// If `give` drops a chunk, which would return to the borrowed class.
    #[inline]
    pub fn take_chunks(&self, queue: Class, most: usize, mut give: impl FnMut(Frame)) -> usize {
        let free = &mut self.shared.class(queue).borrow_mut().free;
        let head_room = self.shared.shapes.get(queue).head_room();
        let count = free.len().min(most);
        for _ in 0..count {
            if let Some(slot) = free.pop() {
                let home = Rc::clone(&self.shared);
                give(Frame::new(home, queue, slot, head_room..head_room));
            }
        }
        count
    }

    /// Takes a frame for a datagram of `bytes` bytes: a transmit frame of the lane or, if too small, an oversize one.
    #[inline]
    #[must_use]
    pub fn take_for(&self, lane: Lane, bytes: usize) -> Option<Frame> {
        match bytes <= self.transmit_room(lane) {
            true => self.take(Class::Transmit(lane)),
            false => self.take(Class::Oversize(lane)),
        }
    }

    /// Bytes after the head room of the lane's transmit frames.
    #[inline]
    #[must_use]
    pub fn transmit_room(&self, lane: Lane) -> usize {
        self.shared.shapes.get(Class::Transmit(lane)).room()
    }

    /// Lends a queue's frame to the reader of a lane. The lane counts as its holder ([`held`](Self::held)) until the
    /// frame returns.
    #[inline]
    pub fn lend(&self, frame: &mut Frame, lane: Lane) {
        frame.give_up();
        frame.held_by = lane.index() as u8;
        let held = &frame.home.held[lane.index()];
        held.set(held.get() + 1);
    }

    /// Queue frames held by readers of the lane.
    #[inline]
    #[must_use]
    pub fn held(&self, lane: Lane) -> usize {
        self.shared.held[lane.index()].get()
    }

    /// Free frames of the class.
    #[inline]
    #[must_use]
    pub fn free(&self, class: impl Into<Class>) -> usize {
        self.shared.class(class.into()).borrow().free.len()
    }

    /// Frames of the class in use.
    #[must_use]
    pub fn outstanding_of(&self, class: impl Into<Class>) -> usize {
        let class = class.into();
        let state = self.shared.class(class).borrow();
        state.made - state.free.len() - state.retired(class)
    }

    /// Frames of all classes in use: armed in the datapath, held by jobs, or leased. 0 at the end of a test.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        Class::all().map(|class| self.outstanding_of(class)).sum()
    }

    /// Frames of the class, free or in use.
    #[must_use]
    pub fn capacity(&self, class: impl Into<Class>) -> usize {
        let class = class.into();
        let state = self.shared.class(class).borrow();
        state.made - state.retired(class)
    }

    /// Number of requests for a frame of the class when none was free.
    #[must_use]
    pub fn exhausted(&self, class: impl Into<Class>) -> u64 {
        self.shared.exhausted[class.into().index()].get()
    }

    /// Leases frames of the class to another thread, in addition to the class's own, so a publisher takes none from the
    /// executor. Frames returned by earlier publishers are leased first. Further frames are created: from device chunks
    /// if available, otherwise as frames of the same size unknown to the device. Allocates, so only before start.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing was leased.
    pub fn lease(
        &self,
        class: impl Into<Class>,
        count: usize,
    ) -> Result<Vec<LeasedFrame>, NoMemory> {
        let class = class.into();
        let missing = {
            let state = self.shared.class(class).borrow();
            let wanted = state.own + state.leased + count;
            wanted.saturating_sub(state.made)
        };
        let assigned = match self.shared.config.is_of_device(class) {
            true => self.assign(class, missing),
            false => 0,
        };
        self.make(class, missing - assigned)?;
        let frames = (0..count).map_while(|_| self.take_free(class));
        Ok(frames.map(Frame::into_leased).collect())
    }

    /// Takes a leased frame back with its contents. It becomes an ordinary frame of its class.
    ///
    /// # Panics
    /// If another pool leased the frame.
    #[inline]
    #[must_use]
    pub fn adopt(&self, leased: LeasedFrame) -> Frame {
        let (class, slot, range, region) = leased.into_parts();
        let mut state = self.shared.class(class).borrow_mut();
        let home = state.regions.get(slot.region());
        assert!(
            home.is_some_and(|home| Arc::ptr_eq(home, &region)),
            "a frame was brought back to a pool that never had it"
        );
        state.leased -= 1;
        drop(state);
        Frame::new(Rc::clone(&self.shared), class, slot, range)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("outstanding", &self.outstanding())
            .finish_non_exhaustive()
    }
}

/// The data does not fit after the filled part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the frame has {room} bytes left of the {wanted} wanted")]
pub struct FrameFull {
    /// Bytes to append.
    pub wanted: usize,
    /// Bytes left.
    pub room: usize,
}

const _: () = assert!(
    Class::COUNT <= 1 << u8::BITS,
    "a frame keeps its class in a byte"
);

/// Value of `held_by` for a frame that is not lent to a reader.
const NO_LANE: u8 = u8::MAX;

/// Asserts that a range lies in a frame. Ranges come from our own arithmetic, never from a peer.
#[inline]
fn check_range(range: &Range<usize>, capacity: usize) {
    if range.start > range.end || range.end > capacity {
        refuse_range(range.clone(), capacity);
    }
}

/// Takes the range by value, because a reference to it would force every checked range into memory.
#[cold]
fn refuse_range(range: Range<usize>, capacity: usize) -> ! {
    panic!("{range:?} is no part of a frame of {capacity} bytes")
}

/// Owned memory for a datagram, or for several of equal size; dropping a frame returns it to its class.
///
/// A frame is a buffer with a *filled part*, the datagram or a *segmented burst*: datagrams of equal size one after the
/// other, the last of which may be shorter.
///
/// ```text
///   | head room | filled part (what the frame derefs to) | tail room |
/// ```
///
/// A datapath writes headers in front of a payload already in place, so a writer leaves head room. Bytes outside of
/// the filled part have unspecified earlier contents.
pub struct Frame {
    home: Rc<Shared>,
    /// Index of the class, needed when the frame is returned.
    class: u8,
    /// Taken only by `drop` and `into_leased`.
    slot: ManuallyDrop<Slot>,
    start: u32,
    end: u32,
    /// Index of the lane whose reader holds the frame, or [`NO_LANE`].
    held_by: u8,
    /// Size of each datagram but the last, in bytes; 0 for a single datagram.
    segment_bytes: u16,
}

impl Frame {
    // Always inlined, so that the class's properties are computed once for many frames.
    #[inline(always)]
    fn new(home: Rc<Shared>, class: Class, slot: Slot, range: Range<usize>) -> Frame {
        check_range(&range, slot.capacity());
        Frame {
            home,
            class: class.index() as u8,
            slot: ManuallyDrop::new(slot),
            start: range.start as u32,
            end: range.end as u32,
            held_by: NO_LANE,
            segment_bytes: 0,
        }
    }

    /// Class to which the frame returns.
    #[inline]
    #[must_use]
    pub fn class(&self) -> Class {
        Class::of_index(self.class.into())
    }

    /// Size of the whole buffer in bytes.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slot.capacity()
    }

    /// Number of the device chunk, if the frame is one.
    #[inline]
    #[must_use]
    pub fn chunk(&self) -> Option<u32> {
        self.slot.chunk()
    }

    /// Stops counting the frame as held by a reader.
    #[inline]
    fn give_up(&mut self) {
        // `NO_LANE` has no counter.
        if let Some(held) = self.home.held.get(usize::from(self.held_by)) {
            held.set(held.get() - 1);
            self.held_by = NO_LANE;
        }
    }

    /// Filled part as a range of the buffer.
    #[inline]
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Sets the filled part.
    ///
    /// # Panics
    /// If the range exceeds the buffer.
    #[inline]
    pub fn set_range(&mut self, range: Range<usize>) {
        check_range(&range, self.capacity());
        self.start = range.start as u32;
        self.end = range.end as u32;
    }

    /// Divides the filled part into datagrams of `bytes` bytes each, the last of which may be shorter; 0 makes it a
    /// single datagram.
    #[inline]
    pub fn set_segment_bytes(&mut self, bytes: u16) {
        self.segment_bytes = bytes;
    }

    /// Size of each datagram but the last, in bytes; `None` for a single datagram.
    #[inline]
    #[must_use]
    pub fn segment_bytes(&self) -> Option<NonZeroU16> {
        NonZeroU16::new(self.segment_bytes)
    }

    /// Number of datagrams in the frame.
    #[inline]
    #[must_use]
    pub fn datagram_count(&self) -> usize {
        match self.segment_bytes() {
            None => 1,
            Some(bytes) => self.len().div_ceil(bytes.get().into()).max(1),
        }
    }

    /// Iterates over the datagrams of the frame.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let datagram = self.datagram_at(at)?;
            at += datagram.len().max(1);
            Some(datagram)
        })
    }

    /// Returns the datagram that begins at offset `at` of the filled part. `None` at the end. An empty
    /// frame has one empty datagram, at offset 0.
    #[inline]
    #[must_use]
    pub fn datagram_at(&self, at: usize) -> Option<&[u8]> {
        let rest = self.get(at..)?;
        let bytes = match self.segment_bytes() {
            None => rest.len(),
            Some(bytes) => rest.len().min(bytes.get().into()),
        };
        (bytes > 0 || at == 0).then(|| &rest[..bytes])
    }

    /// Returns the whole buffer.
    #[inline]
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        // SAFETY: `home` keeps the slot's region alive as long as the frame.
        unsafe { self.slot.bytes() }
    }

    /// Returns the whole buffer mutably; [`set_range`](Self::set_range) then sets the filled part.
    #[inline]
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        // SAFETY: `home` keeps the slot's region alive as long as the frame.
        unsafe { self.slot.bytes_mut() }
    }

    /// Bytes before the filled part.
    #[inline]
    #[must_use]
    pub fn head_room(&self) -> usize {
        self.start as usize
    }

    /// Bytes after the filled part.
    #[inline]
    #[must_use]
    pub fn tail_room(&self) -> usize {
        self.capacity() - self.end as usize
    }

    /// Reserves `bytes` more head room in an empty frame.
    ///
    /// # Panics
    /// If the frame is not empty, or too small.
    pub fn reserve_head(&mut self, bytes: usize) {
        assert!(self.is_empty(), "head room is reserved before filling");
        let start = self.head_room() + bytes;
        self.set_range(start..start);
    }

    /// Extends the filled part by `bytes` at the front, and returns the new bytes.
    ///
    /// # Panics
    /// If the head room is too small: the code that filled the frame must leave enough.
    #[inline]
    pub fn push_head(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.head_room().checked_sub(bytes);
        let Some(start) = start else {
            panic!(
                "{bytes} bytes in front of a frame with {} of head room",
                self.head_room()
            );
        };
        self.set_range(start..self.end as usize);
        &mut self[..bytes]
    }

    /// Appends bytes to the filled part.
    ///
    /// # Errors
    /// [`FrameFull`]; the frame is unchanged.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), FrameFull> {
        let Range { start, end } = self.range();
        let room = self.tail_room();
        if bytes.len() > room {
            return Err(FrameFull {
                wanted: bytes.len(),
                room,
            });
        }
        let filled = end + bytes.len();
        self.buffer_mut()[end..filled].copy_from_slice(bytes);
        self.set_range(start..filled);
        Ok(())
    }

    /// Converts to a frame that can move to another thread. [`Pool::adopt`] takes it back.
    #[must_use]
    pub fn into_leased(self) -> LeasedFrame {
        let mut frame = ManuallyDrop::new(self);
        frame.give_up();
        let range = frame.range();
        let class = frame.class();
        // SAFETY: `frame` is never dropped nor its slot used again.
        let slot = unsafe { ManuallyDrop::take(&mut frame.slot) };
        // SAFETY: `frame` is never dropped nor `home` used again: read out once.
        let home = unsafe { std::ptr::read(&raw const frame.home) };
        let mut state = home.class(class).borrow_mut();
        state.leased += 1;
        let region = Arc::clone(&state.regions[slot.region()]);
        drop(state);
        LeasedFrame {
            region,
            class,
            slot: ManuallyDrop::new(slot),
            start: range.start as u32,
            end: range.end as u32,
        }
    }
}

impl Drop for Frame {
    #[inline]
    fn drop(&mut self) {
        self.give_up();
        // SAFETY: nothing uses the slot after the drop.
        let slot = unsafe { ManuallyDrop::take(&mut self.slot) };
        self.home.give_back(self.class.into(), slot);
    }
}

impl Deref for Frame {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buffer()[self.range()]
    }
}

impl DerefMut for Frame {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let range = self.range();
        &mut self.buffer_mut()[range]
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({}, {:?})", self.class(), self.range())
    }
}

/// Frame leased to another thread.
///
/// Owns its bytes and a share of their memory, so it may outlive the pool. [`Pool::adopt`] takes it back. A leased
/// frame that is dropped instead is lost to its class, and no longer outstanding.
pub struct LeasedFrame {
    region: Arc<Region>,
    class: Class,
    slot: ManuallyDrop<Slot>,
    start: u32,
    end: u32,
}

// SAFETY: the slot is the only way to its bytes, and moves with the frame; the region is `Sync`.
unsafe impl Send for LeasedFrame {}

impl LeasedFrame {
    /// Class of the frame.
    #[must_use]
    pub fn class(&self) -> Class {
        self.class
    }

    /// Filled part as a range of the buffer.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Sets the filled part.
    ///
    /// # Panics
    /// If the range exceeds the buffer.
    pub fn set_range(&mut self, range: Range<usize>) {
        check_range(&range, self.slot.capacity());
        self.start = range.start as u32;
        self.end = range.end as u32;
    }

    /// Returns the whole buffer.
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        // SAFETY: `region` is the slot's region, and lives as long as the frame.
        unsafe { self.slot.bytes() }
    }

    /// Returns the whole buffer mutably.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        // SAFETY: `region` is the slot's region, and lives as long as the frame.
        unsafe { self.slot.bytes_mut() }
    }

    /// Decomposes the leased frame without counting it as retired.
    fn into_parts(self) -> (Class, Slot, Range<usize>, Arc<Region>) {
        let mut leased = ManuallyDrop::new(self);
        let (class, range) = (leased.class, leased.range());
        // SAFETY: `leased` is never dropped nor its slot used again.
        let slot = unsafe { ManuallyDrop::take(&mut leased.slot) };
        // SAFETY: `leased` is never dropped nor its region used again: read out once.
        let region = unsafe { std::ptr::read(&raw const leased.region) };
        (class, slot, range, region)
    }
}

impl Drop for LeasedFrame {
    fn drop(&mut self) {
        self.region.retire(self.class);
    }
}

impl Deref for LeasedFrame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer()[self.range()]
    }
}

impl DerefMut for LeasedFrame {
    fn deref_mut(&mut self) -> &mut [u8] {
        let range = self.range();
        &mut self.buffer_mut()[range]
    }
}

impl fmt::Debug for LeasedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeasedFrame({}, {:?})", self.class, self.range())
    }
}
