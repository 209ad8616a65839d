//! Frames: memory for datagrams, taken before start, owned by one holder at a time.
//!
//! # Why classes
//!
//! A class is the frames of one lane in one direction. Frames are never lent between classes: a
//! bulk lane that nobody drains, or a writer that fills faster than its lane sends, runs out of
//! its own frames and of no one else's. A common pool with a reserve would need every holder to
//! keep to its share; here there is nothing to keep to.
//!
//! # Why the memory lies as it does
//!
//! A class is made of *regions*, one for each time it grew, each one mapping divided into frames of
//! equal size. Where a device shares memory (AF_XDP's UMEM, a DMA mapping), that is one
//! region of small chunks, and the classes of frames that the device fills or sends take theirs
//! from it ([`DeviceConfig`]). A region is fresh zeroed pages of the system, not the allocator's
//! (`pages` says why): a frame costs addresses until its bytes are written, page by page, so frames
//! of 64 KiB do not cost 64 KiB when datagrams are small. Who minds the page fault of a frame's first
//! use has the pages touched before start ([`Pool::prefault`], [`PoolConfig::prefault_bytes`]), and
//! says how many bytes of each frame will be used.
//!
//! Free frames are a stack: the one that came home last, whose bytes are still in the cache, is
//! taken next. The stack's memory is reserved when the class grows, so that neither taking nor
//! dropping a frame ever allocates.
//!
//! # Who may hold a frame where
//!
//! The pool and its [`Frame`]s belong to the executor's thread (they are not `Send`), so there
//! is nothing to lock. A publisher on another thread works with [`LeasedFrame`]s: each owns its
//! bytes and a share of its region, so its memory outlives the pool if it must. It comes back by
//! [`Pool::adopt`], after having been carried over by whatever ring the two threads share.

mod class;
mod config;
mod device;
mod frame;
mod pages;
mod region;
mod shape;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;

pub use self::class::Class;
pub use self::config::{DeviceConfig, PoolConfig};
use self::device::Device;
pub use self::device::DeviceMemory;
pub use self::frame::{Frame, FrameFull, LeasedFrame};
pub use self::pages::NoMemory;
use self::pages::PAGE_BYTES;
use self::region::{Region, Slot};
use self::shape::Shapes;
use crate::lane::Lane;
use crate::limits::{FRAME_BYTES, MAX_CLASS_FRAMES};

/// What one class has.
#[derive(Default)]
struct ClassState {
    regions: Vec<Arc<Region>>,
    /// Free frames, the one to be taken next at the end.
    free: Vec<Slot>,
    /// Frames ever made for this class.
    made: usize,
    /// Of these, frames the class was given for itself; the others were made to be leased.
    own: usize,
    /// Frames leased and not brought back, those dropped elsewhere included.
    leased: usize,
}

impl ClassState {
    /// Leased frames of this class that were dropped instead of brought back.
    fn retired(&self, class: Class) -> usize {
        let regions = self.regions.iter();
        regions.map(|region| region.retired(class)).sum()
    }

    /// Adds free frames of a region, whose place in this class they know.
    fn add(&mut self, slots: Vec<Slot>) {
        self.made += slots.len();
        // Room for all that were ever made, wherever they are now.
        let missing = self.made - self.free.len();
        self.free.reserve_exact(missing);
        self.free.extend(slots);
    }

    /// The place of a region, which is added if it is not there.
    fn place_of(&mut self, region: &Arc<Region>) -> usize {
        let place = self.regions.iter().position(|one| Arc::ptr_eq(one, region));
        place.unwrap_or_else(|| {
            self.regions.push(Arc::clone(region));
            self.regions.len() - 1
        })
    }
}

/// What the pool's handles and its frames share.
struct Shared {
    config: PoolConfig,
    shapes: Shapes,
    classes: [RefCell<ClassState>; Class::COUNT],
    exhausted: [Cell<u64>; Class::COUNT],
    /// Frames of queues that were lent to readers of a lane and have not come home.
    held: [Cell<usize>; Lane::COUNT],
    device: Option<Device>,
}

impl Shared {
    #[inline]
    fn class(&self, class: Class) -> &RefCell<ClassState> {
        &self.classes[class.index()]
    }

    /// A frame comes home. Its place on the stack was reserved when it was made.
    #[inline]
    fn give_back(&self, class: usize, slot: Slot) {
        let mut state = self.classes[class].borrow_mut();
        debug_assert!(state.free.len() < state.free.capacity());
        state.free.push(slot);
    }
}

/// Writes a byte of each page of the first `bytes`, the one that is there, and says how many bytes
/// lie in these pages. Reading would not do: untouched pages all read from one page of zeros.
fn touch(frame: &mut [u8], bytes: usize) -> usize {
    let bytes = bytes.min(frame.len());
    for at in (0..bytes).step_by(PAGE_BYTES) {
        frame[at] = black_box(frame[at]);
    }
    bytes.next_multiple_of(PAGE_BYTES)
}

/// A handle to the frames of one datapath; its clones are the same pool.
#[derive(Clone)]
pub struct Pool {
    shared: Rc<Shared>,
}

impl Pool {
    /// A pool without frames: lanes reserve theirs when they are opened.
    ///
    /// # Panics
    /// As [`try_new`](Self::try_new) fails: where the memory of a [device](PoolConfig::device) cannot be had.
    #[must_use]
    pub fn new(config: PoolConfig) -> Pool {
        Self::try_new(config).expect("memory for a device's chunks")
    }

    /// A pool without frames, but with the memory of a [device](PoolConfig::device).
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

    /// As the pool was made.
    #[must_use]
    pub fn config(&self) -> &PoolConfig {
        &self.shared.config
    }

    /// Brings the classes of a lane to their configured size, as far as a device's memory suffices;
    /// nothing if they have it.
    ///
    /// # Errors
    /// [`NoMemory`]; what was reserved before stays.
    pub fn reserve_lane(&self, lane: Lane) -> Result<(), NoMemory> {
        let classes = [Class::Receive, Class::Transmit, Class::Oversize];
        for class in classes.map(|class| class(lane)) {
            let own = self.shared.class(class).borrow().own;
            let wanted = self.shared.config.frames_of(class);
            self.reserve(class, wanted.saturating_sub(own))?;
        }
        Ok(())
    }

    /// Makes `count` more frames for a class, within [`MAX_CLASS_FRAMES`], or gives it so many
    /// chunks of the device. Returns how many it got. Before start only: it allocates.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing was reserved then.
    pub fn reserve(&self, class: Class, count: usize) -> Result<usize, NoMemory> {
        let made = match self.shared.config.is_of_device(class) {
            true => self.assign(class, count),
            false => self.make(class, count)?,
        };
        self.shared.class(class).borrow_mut().own += made;
        Ok(made)
    }

    /// Makes frames; returns how many, fewer where the bound is reached.
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
            // SAFETY: `region` is the slots', and alive.
            touch(unsafe { slot.bytes_mut() }, config.prefault_bytes);
        }
        state.add(slots);
        state.regions.push(Arc::new(region));
        Ok(count)
    }

    /// Gives a class chunks of the device; returns how many, fewer where no more are left.
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

    /// The memory shared with a device, to be registered with it.
    #[must_use]
    pub fn device_memory(&self) -> Option<DeviceMemory> {
        let device = self.shared.device.as_ref()?;
        Some(DeviceMemory {
            region: Arc::clone(&device.region),
            chunk_bytes: self.shared.config.device?.chunk_bytes,
        })
    }

    /// Touches the pages of the first `bytes` of each frame of the class that is free now, so that
    /// they are in memory; returns how many bytes that is. What is in the frames stays. A class
    /// that no lane has reserved has no frames, and costs nothing.
    pub fn prefault(&self, class: impl Into<Class>, bytes: usize) -> usize {
        let mut state = self.shared.class(class.into()).borrow_mut();
        let free = state.free.iter_mut();
        // SAFETY: the class keeps the regions of its slots.
        free.map(|slot| touch(unsafe { slot.bytes_mut() }, bytes))
            .sum()
    }

    /// A free frame of the class, empty behind its head room. `None` when all are out, which is
    /// counted in [`exhausted`](Self::exhausted).
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

    /// Hands the chunks that a queue's device is to receive into to `give`, at most so many and as
    /// many as are free; returns how many. One look at the class serves them all: they are many.
    ///
    /// # Panics
    /// If `give` drops one: it would come home to a class that is being looked at.
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

    /// A frame to send so many bytes in, from the lane's transmit frames or, where they are too
    /// small, from its oversize ones.
    #[inline]
    #[must_use]
    pub fn take_for(&self, lane: Lane, bytes: usize) -> Option<Frame> {
        match bytes <= self.transmit_room(lane) {
            true => self.take(Class::Transmit(lane)),
            false => self.take(Class::Oversize(lane)),
        }
    }

    /// Bytes behind the head room of the lane's transmit frames.
    #[inline]
    #[must_use]
    pub fn transmit_room(&self, lane: Lane) -> usize {
        self.shared.shapes.get(Class::Transmit(lane)).room()
    }

    /// Hands a frame of a queue to the reader of a lane: it counts as held by the lane
    /// ([`held`](Self::held)) until it comes home.
    #[inline]
    pub fn lend(&self, frame: &mut Frame, lane: Lane) {
        frame.lend(lane);
    }

    /// Frames of queues that readers of the lane hold.
    #[inline]
    #[must_use]
    pub fn held(&self, lane: Lane) -> usize {
        self.shared.held[lane.index()].get()
    }

    /// Frames of the class that are at home.
    #[inline]
    #[must_use]
    pub fn free(&self, class: impl Into<Class>) -> usize {
        self.shared.class(class.into()).borrow().free.len()
    }

    /// Frames of one class that are out.
    #[must_use]
    pub fn outstanding_of(&self, class: impl Into<Class>) -> usize {
        let class = class.into();
        let state = self.shared.class(class).borrow();
        state.made - state.free.len() - state.retired(class)
    }

    /// Frames of all classes that are out: armed in the datapath, held by jobs, or leased. A
    /// test ends when this is 0.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        Class::all().map(|class| self.outstanding_of(class)).sum()
    }

    /// Frames the class has, free or out.
    #[must_use]
    pub fn capacity(&self, class: impl Into<Class>) -> usize {
        let class = class.into();
        let state = self.shared.class(class).borrow();
        state.made - state.retired(class)
    }

    /// How often a frame of the class was wanted and none was free.
    #[must_use]
    pub fn exhausted(&self, class: impl Into<Class>) -> u64 {
        self.shared.exhausted[class.into().index()].get()
    }

    /// Frames of the class for another thread: beside the class's own, so that a publisher that
    /// holds them takes none from the executor. Those that earlier publishers have brought back
    /// are leased again, others are made: of a device's chunks while some are left, else as frames
    /// of the same size that the device does not know. Before start only: it allocates.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing was leased then.
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

    /// Takes a leased frame back, filled as it is. It becomes an ordinary frame of its class.
    ///
    /// # Panics
    /// If another pool leased it.
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
