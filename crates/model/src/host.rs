//! A host of the system: the name topics refer to, and what of the machine isolane uses there.

use core::num::NonZeroU32;

use isolane_wire::level::Level;

use crate::limits::MAX_INTERFACE_NAME_BYTES;
use crate::protect::HostProtection;
use crate::source::Sourced;
use crate::word::Word;
use crate::xdp::Xdp;

/// A host, `[host.NAME]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Host {
    /// Its name, which topics refer to. Unique in the system.
    pub name: Sourced<String>,
    /// The network interface that carries the topics.
    pub interface: Sourced<String>,
    /// The executor's core; `None` leaves it to the scheduler.
    pub core: Sourced<Option<u16>>,
    /// Priority of the loop's thread under SCHED_FIFO, 1 to 98; `None`: the ordinary class.
    pub priority: Sourced<Option<u8>>,
    /// The process' memory is kept from being paged out.
    pub lock_memory: Sourced<bool>,
    /// What becomes of a core, priority or locked memory that the system refuses.
    pub scheduling: Sourced<Scheduling>,
    /// Participants of others that each participant here knows at most, with ten endpoints each; `None` leaves the library's
    /// default.
    pub max_participants: Sourced<Option<NonZeroU32>>,
    /// Whether the memory for them is taken at the start.
    pub fixed_memory: Sourced<bool>,
    /// Bytes of memory that the samples of each participant's endpoints have, 1 to
    /// [`MAX_SAMPLE_MEMORY`](crate::limits::MAX_SAMPLE_MEMORY).
    pub sample_memory: Sourced<NonZeroU32>,
    /// How frames move.
    pub datapath: Sourced<Datapath>,
    /// Wire class of discovery's datagrams (SO_PRIORITY, DSCP); `None`: one less than the highest level in
    /// use, and at least 1.
    pub discovery_level: Sourced<Option<Level>>,
    /// What all its receivers are protected with together.
    pub protect: HostProtection,
    /// How the datapath `xdp` is set up.
    pub xdp: Xdp,
}

/// What becomes of a core, a priority or locked memory that the system refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// The program goes without, and says so.
    #[default]
    Auto,
    /// The program does not start.
    Required,
}

impl Word for Scheduling {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("required", Self::Required)];
}

/// How frames move between the network and the engine: the datapaths between processes that isolane has.
/// Whether the machine has what one needs is found out when it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Datapath {
    /// AF_XDP where it works, else kernel sockets.
    #[default]
    Auto,
    /// Kernel sockets.
    Udp,
    /// AF_XDP.
    Xdp,
}

impl Word for Datapath {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("udp", Self::Udp), ("xdp", Self::Xdp)];
}

/// Whether Linux can call an interface so: 1 to [`MAX_INTERFACE_NAME_BYTES`] visible characters,
/// none of them `/` or `:`.
pub fn is_interface_name(name: &str) -> bool {
    let letter = |c: u8| c.is_ascii_graphic() && c != b'/' && c != b':';
    (1..=MAX_INTERFACE_NAME_BYTES).contains(&name.len()) && name.bytes().all(letter)
}
