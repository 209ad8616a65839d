//! How the datapath `xdp` is set up on a host, `[host.NAME.xdp]`.

use core::num::NonZeroU32;

use isolane_wire::level::Level;

use crate::source::Sourced;
use crate::word::Word;

/// The settings of AF_XDP lanes. They have an effect where the host's datapath is `xdp`, or `auto`
/// becomes it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Xdp {
    /// The device's queue of every level's lane that [`queues`](Self::queues) does not name.
    pub queue: Sourced<u32>,
    /// Queues of single levels, in their order.
    pub queues: Vec<(Level, Sourced<u32>)>,
    /// The levels that get a lane; the others stay on kernel sockets.
    pub levels: Sourced<Vec<Level>>,
    /// Whether the device reads and writes the frames itself.
    pub mode: Sourced<XdpMode>,
    /// Where the classifier runs.
    pub attach: Sourced<XdpAttach>,
    /// What the loop does with nothing to do.
    pub waiting: Sourced<XdpWaiting>,
    /// Entries of each lane's receive ring.
    pub receive_entries: Sourced<RingEntries>,
    /// Frames of a queue to receive into; `None`: as many as its rings need.
    pub receive_frames: Sourced<Option<NonZeroU32>>,
    /// Frames of a queue that lanes below the highest cannot take.
    pub critical_reserve: Sourced<u32>,
    /// The VLAN of frames sent; `None`: no tag.
    pub vlan: Sourced<Option<u16>>,
}

impl Xdp {
    /// Queue of a level's lane.
    pub fn queue_of(&self, level: Level) -> u32 {
        let mut named = self.queues.iter();
        let named = named.find(|(of, _)| *of == level);
        named.map_or(self.queue.value, |(_, queue)| queue.value)
    }
}

/// What nobody says anything about.
impl Default for Xdp {
    fn default() -> Self {
        Self {
            queue: Sourced::default_value(0),
            queues: Vec::new(),
            levels: Sourced::default_value(Level::ALL.to_vec()),
            mode: Sourced::default_value(XdpMode::default()),
            attach: Sourced::default_value(XdpAttach::default()),
            waiting: Sourced::default_value(XdpWaiting::default()),
            receive_entries: Sourced::default_value(RingEntries::USUAL),
            receive_frames: Sourced::default_value(None),
            critical_reserve: Sourced::default_value(crate::limits::DEFAULT_CRITICAL_RESERVE),
            vlan: Sourced::default_value(None),
        }
    }
}

/// Whether the device reads and writes the frames itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum XdpMode {
    /// Where its driver can.
    #[default]
    Auto,
    /// The kernel copies.
    Copy,
    /// It does, or there is no lane.
    ZeroCopy,
}

impl Word for XdpMode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("copy", Self::Copy),
        ("zero-copy", Self::ZeroCopy),
    ];
}

/// Where the classifier runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum XdpAttach {
    /// In the driver, before a packet costs a buffer.
    #[default]
    Native,
    /// Behind the driver, where it cannot: slower, and no protection of the driver.
    Generic,
}

impl Word for XdpAttach {
    const WORDS: &'static [(&'static str, Self)] =
        &[("native", Self::Native), ("generic", Self::Generic)];
}

/// What the loop does with nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum XdpWaiting {
    /// It sleeps.
    #[default]
    Sleep,
    /// It looks at the rings again at once: for a core of its own.
    Spin,
    /// It drives the device: for a core of its own.
    BusyPoll,
}

impl Word for XdpWaiting {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("sleep", Self::Sleep),
        ("spin", Self::Spin),
        ("busy-poll", Self::BusyPoll),
    ];
}

/// Entries of a ring: a power of two within [`MIN_RING_ENTRIES`](crate::limits::MIN_RING_ENTRIES) and
/// [`MAX_RING_ENTRIES`](crate::limits::MAX_RING_ENTRIES).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RingEntries(u32);

impl RingEntries {
    /// What a lane has unless somebody says otherwise.
    pub const USUAL: Self = Self(256);

    /// A ring's size, if a ring can have it.
    pub const fn new(entries: u32) -> Option<Self> {
        let is_in_bounds = entries >= crate::limits::MIN_RING_ENTRIES
            && entries <= crate::limits::MAX_RING_ENTRIES;
        if is_in_bounds && entries.is_power_of_two() {
            Some(Self(entries))
        } else {
            None
        }
    }

    /// The number of entries.
    pub const fn get(self) -> u32 {
        self.0
    }
}
