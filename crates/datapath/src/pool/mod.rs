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
//! A class is made of *regions*, one for each time it grew, each one allocation divided into
//! frames of equal size. A datapath that registers memory with a device later (AF_XDP's UMEM, a
//! DMA mapping) registers regions. Regions are zeroed by the allocator, which for pieces of this
//! size means fresh pages of the system: a frame costs addresses until its bytes are written,
//! page by page, so frames of 64 KiB do not cost 64 KiB when datagrams are small. Who minds the
//! page fault of a frame's first use has the pages touched before start ([`Pool::prefault`],
//! [`PoolConfig::prefault_bytes`]), and says how many bytes of each frame will be used.
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

mod failing;
mod frame;
mod region;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;

use isolane_wire::level::Level;

use self::failing::Failing;
pub use self::frame::{Frame, FrameFull, LeasedFrame};
use self::region::{PAGE_BYTES, Region, Slot};
use crate::chance::Generator;
use crate::lane::Lane;
use crate::limits::{FRAME_BYTES, MAX_CLASS_FRAMES, RECEIVE_FRAMES, TRANSMIT_FRAMES};

/// The frames of one lane in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Armed for arriving datagrams, then read.
    Receive(Lane),
    /// Filled by writers and by the protocol, then sent.
    Transmit(Lane),
}

impl Class {
    const COUNT: usize = 2 * Lane::COUNT;

    const fn index(self) -> usize {
        match self {
            Class::Receive(lane) => lane.index(),
            Class::Transmit(lane) => Lane::COUNT + lane.index(),
        }
    }
}

/// Whoever takes a frame for a lane without saying more means to send.
impl From<Lane> for Class {
    fn from(lane: Lane) -> Class {
        Class::Transmit(lane)
    }
}

/// Whoever takes a frame for a level without saying more means to send.
impl From<Level> for Class {
    fn from(level: Level) -> Class {
        Class::Transmit(Lane::Level(level))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Receive(lane) => write!(f, "receive {lane}"),
            Class::Transmit(lane) => write!(f, "transmit {lane}"),
        }
    }
}

/// How many frames a lane has once it is open, and how large they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Bytes of each frame, head room included; at most [`FRAME_BYTES`].
    pub frame_bytes: usize,
    /// Bytes kept free in front of what is filled into a transmit frame, for the datapath's
    /// headers (none for sockets).
    pub head_room_bytes: usize,
    /// Bytes at the front of each frame whose pages are touched when the frame is made, so that
    /// its first use is no page fault; 0 leaves all to their first use. Only lanes that are opened
    /// have frames.
    pub prefault_bytes: usize,
    /// Receive frames of each lane, by [`Lane::index`].
    pub receive_frames: [usize; Lane::COUNT],
    /// Transmit frames of each lane, by [`Lane::index`].
    pub transmit_frames: [usize; Lane::COUNT],
}

impl Default for PoolConfig {
    fn default() -> PoolConfig {
        PoolConfig {
            frame_bytes: FRAME_BYTES,
            head_room_bytes: 0,
            prefault_bytes: 0,
            receive_frames: [RECEIVE_FRAMES; Lane::COUNT],
            transmit_frames: [TRANSMIT_FRAMES; Lane::COUNT],
        }
    }
}

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
    /// Leased frames that were dropped instead of brought back.
    fn retired(&self) -> usize {
        self.regions.iter().map(|region| region.retired()).sum()
    }
}

/// What the pool's handles and its frames share.
struct Shared {
    config: PoolConfig,
    classes: [RefCell<ClassState>; Class::COUNT],
    exhausted: [Cell<u64>; Class::COUNT],
    failing: Failing,
}

impl Shared {
    fn class(&self, class: Class) -> &RefCell<ClassState> {
        &self.classes[class.index()]
    }

    /// A frame comes home. Its place on the stack was reserved when it was made.
    fn give_back(&self, class: Class, slot: Slot) {
        let mut state = self.class(class).borrow_mut();
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
    #[must_use]
    pub fn new(mut config: PoolConfig) -> Pool {
        config.frame_bytes = config.frame_bytes.min(FRAME_BYTES);
        config.head_room_bytes = config.head_room_bytes.min(config.frame_bytes);
        let shared = Shared {
            config,
            classes: std::array::from_fn(|_| RefCell::default()),
            exhausted: std::array::from_fn(|_| Cell::new(0)),
            failing: Failing::off(),
        };
        Pool {
            shared: Rc::new(shared),
        }
    }

    /// As the pool was made.
    #[must_use]
    pub fn config(&self) -> &PoolConfig {
        &self.shared.config
    }

    /// Brings both classes of a lane to their configured size; nothing if they have it.
    pub fn reserve_lane(&self, lane: Lane) {
        let config = &self.shared.config;
        let wanted = [
            (Class::Receive(lane), config.receive_frames[lane.index()]),
            (Class::Transmit(lane), config.transmit_frames[lane.index()]),
        ];
        for (class, count) in wanted {
            let own = self.shared.class(class).borrow().own;
            self.reserve(class, count.saturating_sub(own));
        }
    }

    /// Makes `count` more frames for a class, within [`MAX_CLASS_FRAMES`]. Before start only: it
    /// allocates.
    pub fn reserve(&self, class: Class, count: usize) {
        let made = self.make(class, count);
        self.shared.class(class).borrow_mut().own += made;
    }

    /// Makes frames; returns how many, fewer where the bound is reached.
    fn make(&self, class: Class, count: usize) -> usize {
        let mut state = self.shared.class(class).borrow_mut();
        let count = count.min(MAX_CLASS_FRAMES - state.made);
        if count == 0 {
            return 0;
        }
        let number = state.regions.len();
        let config = &self.shared.config;
        let (region, mut slots) = Region::new(number, count, config.frame_bytes);
        for slot in &mut slots {
            // SAFETY: `region` is the slots', and alive.
            touch(unsafe { slot.bytes_mut() }, config.prefault_bytes);
        }
        state.made += count;
        // Room for all that were ever made, wherever they are now.
        let missing = state.made - state.free.len();
        state.free.reserve_exact(missing);
        state.free.extend(slots);
        state.regions.push(Arc::new(region));
        count
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
    #[must_use]
    pub fn take(&self, class: impl Into<Class>) -> Option<Frame> {
        let class = class.into();
        let is_given = !self.shared.failing.fails(class);
        let frame = is_given.then(|| self.take_free(class)).flatten();
        if frame.is_none() {
            let exhausted = &self.shared.exhausted[class.index()];
            exhausted.set(exhausted.get() + 1);
        }
        frame
    }

    fn take_free(&self, class: Class) -> Option<Frame> {
        let slot = self.shared.class(class).borrow_mut().free.pop()?;
        let head_room = match class {
            Class::Receive(_) => 0,
            Class::Transmit(_) => self.shared.config.head_room_bytes,
        };
        Some(Frame::new(
            Rc::clone(&self.shared),
            class,
            slot,
            head_room..head_room,
        ))
    }

    /// Frames of one class that are out.
    #[must_use]
    pub fn outstanding_of(&self, class: impl Into<Class>) -> usize {
        let state = self.shared.class(class.into()).borrow();
        state.made - state.free.len() - state.retired()
    }

    /// Frames of all classes that are out: armed in the datapath, held by jobs, or leased. A
    /// test ends when this is 0.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        let classes = Lane::ALL
            .into_iter()
            .flat_map(|lane| [Class::Receive(lane), Class::Transmit(lane)]);
        classes.map(|class| self.outstanding_of(class)).sum()
    }

    /// Frames the class has, free or out.
    #[must_use]
    pub fn capacity(&self, class: impl Into<Class>) -> usize {
        let state = self.shared.class(class.into()).borrow();
        state.made - state.retired()
    }

    /// How often a frame of the class was wanted and none was free.
    #[must_use]
    pub fn exhausted(&self, class: impl Into<Class>) -> u64 {
        self.shared.exhausted[class.into().index()].get()
    }

    /// From now on, of a million transmit frames that these lanes want, so many are not given out.
    pub(crate) fn set_failing(&self, per_million: u32, lanes: u16, generator: Generator) {
        self.shared.failing.set(per_million, lanes, generator);
    }

    /// Transmit frames of the lane that were not given out on purpose.
    pub(crate) fn failed(&self, lane: Lane) -> u64 {
        self.shared.failing.failed(lane)
    }

    /// Frames of the class for another thread: beside the class's own, so that a publisher that
    /// holds them takes none from the executor. Those that earlier publishers have brought back
    /// are leased again, others are made. Before start only: it allocates.
    #[must_use]
    pub fn lease(&self, class: impl Into<Class>, count: usize) -> Vec<LeasedFrame> {
        let class = class.into();
        let missing = {
            let state = self.shared.class(class).borrow();
            let wanted = state.own + state.leased + count;
            wanted.saturating_sub(state.made)
        };
        self.make(class, missing);
        let frames = (0..count).map_while(|_| self.take_free(class));
        frames.map(Frame::into_leased).collect()
    }

    /// Takes a leased frame back, filled as it is. It becomes an ordinary frame of its class.
    ///
    /// # Panics
    /// If another pool leased it.
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
