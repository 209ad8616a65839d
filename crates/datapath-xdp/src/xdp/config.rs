//! How the datapath is set up.

use isolane_datapath::UdpConfig;

use crate::classifier::{AttachMode, Enforcement};
use crate::socket::{BindMode, BusyPoll};

/// What becomes of a level whose lane cannot be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Opening it is an error.
    #[default]
    Refuse,
    /// It goes by kernel sockets, with a [`Note`](isolane_datapath::Note) that says why.
    Sockets,
}

/// Settings of lanes, beside those of the sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpOptions {
    /// The interface whose frames come to lanes; `None` takes the first of the sockets' interfaces
    /// that leaves the host.
    pub interface: Option<String>,
    /// Bit *l*: level *l* gets a lane when it is opened. The others stay on kernel sockets.
    pub levels: u8,
    /// The device's queue that each level's lane is on, from 0. Frames of the level that arrive on
    /// another queue come by its kernel socket.
    pub queues: [u32; 8],
    /// Whether the device reads and writes our memory itself.
    pub mode: BindMode,
    /// Where the classifier runs. [`AttachMode::Generic`] is behind the costs it is to save: only for
    /// trying things out.
    pub attach: AttachMode,
    /// Entries of each level's receive ring, powers of two.
    pub receive_entries: [u32; 8],
    /// Chunks of each queue that lanes below its highest never take: room for what is critical while
    /// nobody reads the rest.
    pub critical_reserve: u32,
    /// Chunks of each queue to receive into. `None`: as many as its lanes' rings and held frames and
    /// the reserve need. With fewer, a lane that nobody reads takes the others' chunks, so that is
    /// refused ([`XdpError::UmemTooSmall`](super::XdpError::UmemTooSmall)) unless `overcommit` says
    /// that recycling is trusted to keep the reserve.
    pub receive_frames: Option<u32>,
    /// Fewer chunks than are needed are accepted.
    pub overcommit: bool,
    /// When few chunks are free, frames of less critical lanes are dropped at the driver, and those
    /// that wait in their rings are taken back.
    pub recycling: bool,
    /// What the classifier enforces; with something switched off it counts what that would have
    /// prevented.
    pub enforcement: Enforcement,
    /// Chunks for frames that are lent to other threads, beside those of lanes.
    pub spare_transmit_chunks: u32,
    /// Has a look at the rings drive the device in this thread; `None` leaves that to the kernel.
    pub busy_poll: Option<BusyPoll>,
    /// UDP checksums of what arrives are looked at. Those that a virtual interface left unfinished
    /// are accepted, and counted.
    pub verify_checksums: bool,
    /// What is sent has a UDP checksum; else 0, "there is none".
    pub make_checksums: bool,
    /// The VLAN that frames are tagged with; 0: a tag with the priority alone.
    pub vlan: Option<u16>,
    /// What is sent to a group also reaches readers on this host, by a kernel socket: lanes reach
    /// nobody here.
    pub local_groups: bool,
    /// Budgets are filled up by the kernel's timers, where it has them.
    pub kernel_timers: bool,
    /// What becomes of a level whose lane cannot be had.
    pub on_failure: OnFailure,
}

impl Default for XdpOptions {
    fn default() -> XdpOptions {
        XdpOptions {
            interface: None,
            levels: u8::MAX,
            queues: [0; 8],
            mode: BindMode::Auto,
            attach: AttachMode::Native,
            receive_entries: [256; 8],
            critical_reserve: 64,
            receive_frames: None,
            overcommit: false,
            recycling: true,
            enforcement: Enforcement::default(),
            spare_transmit_chunks: 128,
            busy_poll: None,
            verify_checksums: true,
            make_checksums: true,
            vlan: None,
            local_groups: true,
            kernel_timers: true,
            on_failure: OnFailure::Refuse,
        }
    }
}

/// Settings of [`Xdp`](super::Xdp).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdpConfig {
    /// Of the sockets beside the lanes: domain, interfaces, ports, stamps, frames. A lane's
    /// `pool.receive_frames` are those that its reader may hold at once; its `pool.transmit_frames`
    /// are chunks.
    pub udp: UdpConfig,
    /// Of the lanes.
    pub options: XdpOptions,
}

impl XdpConfig {
    /// All interfaces for sockets, the first that leaves the host for lanes.
    #[must_use]
    pub fn new(domain: u32) -> XdpConfig {
        XdpConfig {
            udp: UdpConfig::new(domain),
            options: XdpOptions::default(),
        }
    }
}
