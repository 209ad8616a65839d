//! Settings of the datapath `xdp` on a host, `[host.NAME.xdp]`.

use core::num::NonZeroU32;

use isolane_wire::level::Level;

use crate::source::Sourced;
use crate::word::Word;

/// Settings of AF_XDP lanes, used if the host's datapath is `xdp`, or `auto` selects it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Xdp {
    /// Device queue of the levels that [`queues`](Self::queues) does not contain.
    pub queue: Sourced<u32>,
    /// Device queues of single levels, in ascending order of levels.
    pub queues: Vec<(Level, Sourced<u32>)>,
    /// Levels with a lane; the others use kernel sockets.
    pub levels: Sourced<Vec<Level>>,
    /// Zero-copy or copy mode.
    pub mode: Sourced<XdpMode>,
    /// Attachment of the classifier.
    pub attach: Sourced<XdpAttach>,
    /// Behaviour of an idle loop.
    pub waiting: Sourced<XdpWaiting>,
    /// Entries of each lane's receive ring.
    pub receive_entries: Sourced<RingEntries>,
    /// Receive frames of a queue; `None`: as many as its rings need.
    pub receive_frames: Sourced<Option<NonZeroU32>>,
    /// Frames of a queue reserved for the highest lane.
    pub critical_reserve: Sourced<u32>,
    /// VLAN id of sent frames; `None` for untagged.
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

/// Default settings.
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

/// AF_XDP copy mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum XdpMode {
    /// Zero-copy if the driver supports it.
    #[default]
    Auto,
    /// Copy by the kernel.
    Copy,
    /// Zero-copy, or no lane at all.
    ZeroCopy,
}

impl Word for XdpMode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("copy", Self::Copy),
        ("zero-copy", Self::ZeroCopy),
    ];
}

/// XDP attachment mode of the classifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum XdpAttach {
    /// Native: in the driver, before a buffer is allocated.
    #[default]
    Native,
    /// Generic: after the driver, if it has no native mode; slower, and does not relieve the driver.
    Generic,
}

impl Word for XdpAttach {
    const WORDS: &'static [(&'static str, Self)] =
        &[("native", Self::Native), ("generic", Self::Generic)];
}

/// Behaviour of an idle loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum XdpWaiting {
    /// Sleep.
    #[default]
    Sleep,
    /// Poll the rings continuously; needs a dedicated core.
    Spin,
    /// Busy-poll the device; needs a dedicated core.
    BusyPoll,
}

impl Word for XdpWaiting {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("sleep", Self::Sleep),
        ("spin", Self::Spin),
        ("busy-poll", Self::BusyPoll),
    ];
}

/// Ring size in entries: a power of two from [`MIN_RING_ENTRIES`](crate::limits::MIN_RING_ENTRIES) to
/// [`MAX_RING_ENTRIES`](crate::limits::MAX_RING_ENTRIES).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RingEntries(u32);

impl RingEntries {
    /// Default size of a lane's ring.
    pub const USUAL: Self = Self(256);

    /// Creates a ring size; `None` outside the bounds or if not a power of two.
    pub const fn new(entries: u32) -> Option<Self> {
        let is_in_bounds = entries >= crate::limits::MIN_RING_ENTRIES
            && entries <= crate::limits::MAX_RING_ENTRIES;
        if is_in_bounds && entries.is_power_of_two() {
            Some(Self(entries))
        } else {
            None
        }
    }

    /// Number of entries.
    pub const fn get(self) -> u32 {
        self.0
    }
}
