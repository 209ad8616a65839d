//! A frame, on the executor's thread and on another.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::rc::Rc;
use std::sync::Arc;

use super::region::{Region, Slot};
use super::{Class, Shared};
use crate::lane::Lane;

/// What is to be appended does not fit behind what is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the frame has {room} bytes left of the {wanted} wanted")]
pub struct FrameFull {
    /// Bytes to be appended.
    pub wanted: usize,
    /// Bytes left.
    pub room: usize,
}

const _: () = assert!(
    Class::COUNT <= 1 << u8::BITS,
    "a frame keeps its class in a byte"
);

/// No lane's index: of a frame that was lent to no reader.
const NOBODY: u8 = u8::MAX;

/// Asserts that a part lies inside a frame: our own arithmetic, never a peer's.
#[inline]
fn check_range(range: &Range<usize>, capacity: usize) {
    if range.start > range.end || range.end > capacity {
        refuse_range(range.clone(), capacity);
    }
}

/// Takes values: what is printed by reference would lie in memory each time a frame's part is said.
#[cold]
fn refuse_range(range: Range<usize>, capacity: usize) -> ! {
    panic!("{range:?} is no part of a frame of {capacity} bytes")
}

/// Memory for one datagram, owned. Dropped, it goes home to its class.
///
/// A frame is one buffer, of which one range, the *filled part*, is the datagram:
///
/// ```text
///   | head room | filled part (what the frame derefs to) | tail room |
/// ```
///
/// Headers are put in front of a payload that is already in place, so a writer leaves head room
/// before it fills. Bytes outside of the filled part are whatever was there last.
pub struct Frame {
    home: Rc<Shared>,
    /// The index of its class: what a frame that goes home asks for.
    class: u8,
    /// Taken out by `drop` or `into_leased`, and by nothing else.
    slot: ManuallyDrop<Slot>,
    start: u32,
    end: u32,
    /// The index of the lane whose reader it was lent to, or [`NOBODY`].
    held_by: u8,
}

impl Frame {
    // Always: what is known of the class is then found once for many.
    #[inline(always)]
    pub(super) fn new(home: Rc<Shared>, class: Class, slot: Slot, range: Range<usize>) -> Frame {
        check_range(&range, slot.capacity());
        Frame {
            home,
            class: class.index() as u8,
            slot: ManuallyDrop::new(slot),
            start: range.start as u32,
            end: range.end as u32,
            held_by: NOBODY,
        }
    }

    /// Where the frame goes home.
    #[inline]
    #[must_use]
    pub fn class(&self) -> Class {
        Class::of_index(self.class.into())
    }

    /// Bytes of the whole buffer.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slot.capacity()
    }

    /// The number of the device's chunk that the frame is, if it is one.
    #[inline]
    #[must_use]
    pub fn chunk(&self) -> Option<u32> {
        self.slot.chunk()
    }

    /// Counts it as held by a lane's reader.
    #[inline]
    pub(super) fn lend(&mut self, lane: Lane) {
        self.give_up();
        self.held_by = lane.index() as u8;
        let held = &self.home.held[lane.index()];
        held.set(held.get() + 1);
    }

    /// Counts it as held no longer.
    #[inline]
    fn give_up(&mut self) {
        // Nobody's has no count.
        if let Some(held) = self.home.held.get(usize::from(self.held_by)) {
            held.set(held.get() - 1);
            self.held_by = NOBODY;
        }
    }

    /// The filled part, as a range of the buffer.
    #[inline]
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Says which part of the buffer is the datagram.
    ///
    /// # Panics
    /// If it is no part of the buffer.
    #[inline]
    pub fn set_range(&mut self, range: Range<usize>) {
        check_range(&range, self.capacity());
        self.start = range.start as u32;
        self.end = range.end as u32;
    }

    /// The whole buffer.
    #[inline]
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        // SAFETY: `home` keeps the slot's region alive as long as the frame.
        unsafe { self.slot.bytes() }
    }

    /// The whole buffer, to be filled; [`set_range`](Self::set_range) then says which part was.
    #[inline]
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        // SAFETY: `home` keeps the slot's region alive as long as the frame.
        unsafe { self.slot.bytes_mut() }
    }

    /// Bytes in front of the filled part.
    #[inline]
    #[must_use]
    pub fn head_room(&self) -> usize {
        self.start as usize
    }

    /// Bytes behind the filled part.
    #[inline]
    #[must_use]
    pub fn tail_room(&self) -> usize {
        self.capacity() - self.end as usize
    }

    /// Leaves `bytes` more head room in an empty frame.
    ///
    /// # Panics
    /// If the frame is filled already, or smaller than that.
    pub fn reserve_head(&mut self, bytes: usize) {
        assert!(self.is_empty(), "head room is reserved before filling");
        let start = self.head_room() + bytes;
        self.set_range(start..start);
    }

    /// Grows the filled part by `bytes` to the front, and lends them to be written.
    ///
    /// # Panics
    /// If the head room is smaller: whoever filled the frame had to leave it.
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

    /// Copies bytes behind the filled part.
    ///
    /// # Errors
    /// [`FrameFull`], and the frame is as it was.
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

    /// For another thread. It comes back by [`Pool::adopt`](super::Pool::adopt).
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

/// A frame in the hands of another thread.
///
/// It owns its bytes, and a share of the memory they lie in: it may outlive the pool. It should
/// be brought back by [`Pool::adopt`](super::Pool::adopt); one that is dropped instead is no
/// longer outstanding, and its class has a frame less.
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
    /// Where the frame belongs.
    #[must_use]
    pub fn class(&self) -> Class {
        self.class
    }

    /// The filled part, as a range of the buffer.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Says which part of the buffer is filled.
    ///
    /// # Panics
    /// If it is no part of the buffer.
    pub fn set_range(&mut self, range: Range<usize>) {
        check_range(&range, self.slot.capacity());
        self.start = range.start as u32;
        self.end = range.end as u32;
    }

    /// The whole buffer.
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        // SAFETY: `region` is the slot's, and lives as long as the frame.
        unsafe { self.slot.bytes() }
    }

    /// The whole buffer, to be filled.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        // SAFETY: `region` is the slot's, and lives as long as the frame.
        unsafe { self.slot.bytes_mut() }
    }

    /// Everything, without retiring the frame.
    pub(super) fn into_parts(self) -> (Class, Slot, Range<usize>, Arc<Region>) {
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
