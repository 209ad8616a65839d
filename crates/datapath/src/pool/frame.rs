//! Frames, on the executor's thread and leased to another.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::rc::Rc;
use std::sync::Arc;

use super::region::{Region, Slot};
use super::{Class, Shared};
use crate::lane::Lane;

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

/// Takes the range by value: a reference for the message would force every range into memory.
#[cold]
fn refuse_range(range: Range<usize>, capacity: usize) -> ! {
    panic!("{range:?} is no part of a frame of {capacity} bytes")
}

/// Owned memory for one datagram; dropping it returns it to its class.
///
/// A frame is a buffer with a *filled part*, the datagram:
///
/// ```text
///   | head room | filled part (what the frame derefs to) | tail room |
/// ```
///
/// Headers are written before a payload already in place, so a writer leaves head room. Bytes outside of the filled
/// part have unspecified earlier contents.
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
}

impl Frame {
    // Always inlined, so that the class's properties are computed once for many frames.
    #[inline(always)]
    pub(super) fn new(home: Rc<Shared>, class: Class, slot: Slot, range: Range<usize>) -> Frame {
        check_range(&range, slot.capacity());
        Frame {
            home,
            class: class.index() as u8,
            slot: ManuallyDrop::new(slot),
            start: range.start as u32,
            end: range.end as u32,
            held_by: NO_LANE,
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

    /// Counts the frame as held by a lane's reader.
    #[inline]
    pub(super) fn lend(&mut self, lane: Lane) {
        self.give_up();
        self.held_by = lane.index() as u8;
        let held = &self.home.held[lane.index()];
        held.set(held.get() + 1);
    }

    /// Ends the counting as held.
    #[inline]
    fn give_up(&mut self) {
        // The index of an unlent frame has no counter.
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

    /// Converts to a frame that can move to another thread. [`Pool::adopt`](super::Pool::adopt) takes it back.
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
/// Owns its bytes and a share of their memory, so it may outlive the pool. [`Pool::adopt`](super::Pool::adopt) takes it
/// back. A lease dropped instead is no longer outstanding, and its class has lost the frame.
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
        // SAFETY: `region` is the slot's, and lives as long as the frame.
        unsafe { self.slot.bytes() }
    }

    /// Returns the whole buffer mutably.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        // SAFETY: `region` is the slot's, and lives as long as the frame.
        unsafe { self.slot.bytes_mut() }
    }

    /// Decomposes the lease without retiring the frame.
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
