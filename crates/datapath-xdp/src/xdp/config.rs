//! Configuration of the datapath.

use isolane_datapath::NetworkConfig;

use crate::classifier::{AttachMode, Enforcement};
use crate::limits::{DEFAULT_CRITICAL_RESERVE, DEFAULT_RING_ENTRIES};
use crate::socket::{BindMode, BusyPoll};

/// Policy for a level whose lane cannot be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Opening the level fails.
    #[default]
    Refuse,
    /// The level uses kernel sockets, and a [`Warning`](isolane_datapath::Warning) gives the reason.
    Sockets,
}

/// Options of lanes, in addition to those of the sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpOptions {
    /// Interface of the lanes. `None` selects the first of the sockets' interfaces that is not loopback.
    pub interface: Option<String>,
    /// Levels with lanes: bit *l* gives level *l* a lane when it is opened. The others use kernel sockets.
    pub levels: u8,
    /// Device queue of each level's lane, from 0. Frames of the level that arrive on another queue come through its
    /// kernel socket.
    pub queues: [u32; 8],
    /// Copy or zero-copy mode.
    pub mode: BindMode,
    /// Attach mode of the classifier. [`AttachMode::Generic`] runs after the costs that lanes avoid: for experiments
    /// only.
    pub attach: AttachMode,
    /// Entries of each level's receive ring, powers of two.
    pub receive_entries: [u32; 8],
    /// Chunks of each queue that its lanes below the highest never take: the critical lane's reserve while other lanes
    /// are not read.
    pub critical_reserve: u32,
    /// Receive chunks of each queue. `None`: the sum of its lanes' rings, held frames and the reserve. With fewer, an
    /// unread lane takes the others' chunks. That is refused
    /// ([`XdpError::UmemTooSmall`](super::XdpError::UmemTooSmall)) unless `overcommit` is set.
    pub receive_frames: Option<u32>,
    /// Accepts fewer chunks than needed and relies on recycling to keep the reserve.
    pub overcommit: bool,
    /// Recycles when few chunks are free: frames of less critical lanes are dropped in the driver, and those waiting in
    /// their rings are reclaimed.
    pub recycling: bool,
    /// Mechanisms the classifier enforces. A disabled mechanism only counts what it would have prevented.
    pub enforcement: Enforcement,
    /// Chunks for frames lent to other threads, in addition to those of lanes.
    pub spare_transmit_chunks: u32,
    /// Busy polling: a poll of the rings drives the device in this thread. `None` leaves that to the kernel.
    pub busy_poll: Option<BusyPoll>,
    /// Verifies UDP checksums of received datagrams. Partial checksums of virtual interfaces are accepted and counted.
    pub verify_checksums: bool,
    /// Computes UDP checksums of sent datagrams; otherwise the field is 0, meaning none.
    pub make_checksums: bool,
    /// VLAN id of the frames' tag; 0 sends a priority tag.
    pub vlan: Option<u16>,
    /// Sends multicast also to readers on this host, through a kernel socket: lanes do not reach them.
    pub local_groups: bool,
    /// Replenishes budgets by kernel timers, where available.
    pub kernel_timers: bool,
    /// Policy for a level whose lane cannot be opened.
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
            receive_entries: [DEFAULT_RING_ENTRIES; 8],
            critical_reserve: DEFAULT_CRITICAL_RESERVE,
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

/// Configuration of [`Xdp`](super::Xdp).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdpConfig {
    /// Configuration of the sockets: domain, interfaces, ports, stamps, frames. For a lane, `pool.receive_frames`
    /// limits the frames its reader holds at once, and `pool.transmit_frames` are chunks.
    pub udp: NetworkConfig,
    /// Options of the lanes.
    pub options: XdpOptions,
}

impl XdpConfig {
    /// Uses all interfaces for sockets, and the first that is not loopback for lanes.
    #[must_use]
    pub fn new(domain: u32) -> XdpConfig {
        XdpConfig {
            udp: NetworkConfig::new(domain),
            options: XdpOptions::default(),
        }
    }
}
