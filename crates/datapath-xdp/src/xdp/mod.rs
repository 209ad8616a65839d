//! Datapath over AF_XDP lanes and kernel sockets.
//!
//! ```text
//!             ┌─ classifier ── lane 7 ──┐                          ┌── lane 7 ──┐
//!   frame ──► │  (by port,   ─ lane 1 ──┼─► receive_burst   send ──┼── lane 1 ──┼─► device's queue
//!             │   budgets)   ─ socket ──┘   (in turns)      burst  └── socket ──┘─► kernel's stack
//!             └─ everything else ─► kernel
//! ```
//!
//! Each opened level gets a receive ring and a transmit ring on a queue of one device. Their frames are in the pool's
//! memory, which is shared with the device. Kernel sockets for the same ports and groups stay open ([`Udp`]) and use
//! the same frames. They receive what the classifier passes to the kernel (fragments, other queues, other interfaces,
//! this host). They send what lanes cannot (unresolved neighbours, this host, datagrams longer than a frame).
//! Discovery has sockets only.
//!
//! # Guarantees
//!
//! * No payload is copied in user space on reception, nor on transmission to one destination or group. Each further
//!   unicast destination of a frame costs a copy.
//! * An unread lane takes no chunk that another lane needs: the memory of every lane is planned before the first frame
//!   moves (`plan`).
//! * Each lane has its own transmit ring, so no frame of a less critical lane precedes its frames there.
//! * Every loss is counted in the ledger by reason, including losses in the kernel and the classifier.
//!
//! # Multicast and order
//!
//! Lanes do not reach readers on this host. Multicast therefore also goes to a kernel socket with TTL 0, so that local
//! readers and the network each get it once. A lane's datagram can overtake an earlier one sent through the kernel:
//! just after a neighbour was resolved, or when small datagrams follow a large one.
//!
//! # Interface changes
//!
//! Link state, an MTU that fits, a new name, routes and neighbours are followed by netlink notifications. The netlink
//! socket is a descriptor of discovery's lane: the loop applies a few notifications at a time between more urgent
//! work, never while sending a frame. Until a notification is applied, usually for some milliseconds, sent frames use
//! the previous state. Changed addresses are followed by the checks of `udp`; the flows are then registered again.
//!
//! When the interface is deleted or moved to another network namespace, its lanes are closed for good, with the
//! device's queues and memory. Unsent frames are counted as refused, a [`Warning`] reports it, and the kernel sockets
//! continue with the same ports. An interface that returns under the same name is a new one. Sockets work there once
//! it has its address (housekeeping joins the groups again), but the classifier is not attached, and lanes opened then
//! use sockets only. Recreate the participant to get lanes again.

mod contract;
pub mod counters;
mod device;
mod error;
mod flows;
mod headers;
mod kind;
mod lanes;
mod martian;
mod observe;
mod plan;
mod receive;
mod recycle;
mod send;
pub mod warning;

use std::fmt;

use isolane_datapath::limits::{MAX_UDP_PAYLOAD, MAX_WARNINGS};
use isolane_datapath::{
    Capabilities, Datapath, Lane, OpenError, Pool, Refusal, SendReport, TransmitBurst, Udp, Wakeup,
    Warning, udp::interfaces,
};
use isolane_wire::level::Level;

use self::device::Device;
pub use self::error::XdpError;
use self::flows::PendingLimits;
pub use self::kind::{OnFailure, XdpConfig, XdpKind, XdpOptions, why_not};
use self::martian::MartianFilter;
use self::plan::Plan;
use self::receive::Looks;
use self::send::{Outward, checksum_of};
use crate::limits::FRAME_HEAD_ROOM_BYTES;
use crate::routing::{Router, RouterConfig};

/// Interface of the lanes.
struct XdpInterface {
    name: String,
    index: u32,
    addresses: Vec<[u8; 4]>,
    plan: Plan,
    router: Router,
    /// Present from the first lane until the interface is gone.
    device: Option<Box<Device>>,
    is_gone: bool,
    /// Whether the last attempt to open the device failed.
    is_refused: bool,
}

/// Lanes of a participant, with their kernel sockets.
pub struct Xdp {
    options: XdpOptions,
    // Dropped before the pool, whose memory it shares, and before the sockets, which reserve its ports.
    interface: Option<Box<XdpInterface>>,
    udp: Udp,
    pool: Pool,
    capabilities: Capabilities,
    warnings: Vec<Warning>,
    pending_limits: PendingLimits,
    looks: Looks,
    /// Readable descriptors found by the last poll, by lane; all bits set without a poll.
    readable: [u8; Lane::COUNT],
    /// Lanes whose first descriptor is not a datagram socket, but a ring or, for discovery, the netlink socket.
    /// Unchanged when the ring is gone, so that the bits in `readable` keep their meaning.
    firsts: u16,
}

impl Xdp {
    /// Reads the host's interfaces, routes and neighbours. Opening the first lane of a level opens the device and
    /// attaches the classifier.
    ///
    /// # Errors
    /// [`OpenError`]: that of the sockets, or an interface that cannot have lanes.
    pub fn new(config: XdpConfig) -> Result<Xdp, OpenError> {
        let XdpConfig { mut udp, options } = config;
        let mut warnings = Vec::new();
        let interface = match find_interface(&udp, &options) {
            Ok(interface) => Some(Box::new(interface)),
            Err((interface, source)) => {
                refuse_or_warn(&options, interface, source, &mut warnings)?;
                None
            }
        };
        if let Some(interface) = &interface {
            udp.pool = interface.plan.pool;
        }
        let pool = Pool::try_new(udp.pool)?;
        let stamps = udp.timestamps;
        let frame_bytes = udp.pool.frame_bytes;
        let udp = Udp::embedded(udp, pool.clone())?;
        let of_sockets = *udp.capabilities();
        let capabilities = Capabilities {
            max_frame_bytes: frame_bytes.min(MAX_UDP_PAYLOAD),
            head_room_bytes: FRAME_HEAD_ROOM_BYTES,
            wakeup: Wakeup::Descriptors,
            ..of_sockets
        };
        let firsts = interface.as_ref().map_or(0, |_| Lane::Discovery.bit());
        let mut martians = MartianFilter::default();
        if let Some(interface) = &interface {
            martians.follow(&interface.router);
        }
        Ok(Xdp {
            looks: Looks {
                wants_stamps: stamps,
                finds_stamps: stamps,
                reserve: options.critical_reserve,
                checksums: options.verify_checksums,
                max_bytes: capabilities.max_frame_bytes,
                martians,
            },
            options,
            interface,
            udp,
            pool,
            capabilities,
            warnings,
            pending_limits: PendingLimits::default(),
            readable: [u8::MAX; Lane::COUNT],
            firsts,
        })
    }

    /// Options of the lanes.
    #[must_use]
    pub fn options(&self) -> &XdpOptions {
        &self.options
    }

    /// Returns whether the lane has rings, in addition to its sockets.
    #[must_use]
    pub fn is_on_device(&self, lane: Lane) -> bool {
        let open = self.device().zip(lane.level());
        open.is_some_and(|(device, level)| device.lanes[usize::from(level.get())].is_some())
    }

    fn device(&self) -> Option<&Device> {
        self.interface.as_ref()?.device.as_deref()
    }

    fn device_mut(&mut self) -> Option<&mut Device> {
        self.interface.as_mut()?.device.as_deref_mut()
    }

    fn warn(&mut self, warning: Warning) {
        if self.warnings.len() < MAX_WARNINGS && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Sends through the lane's ring the messages that the device can deliver, and the others through sockets. `None`
    /// without a ring or with an empty burst.
    fn send_by_lane(&mut self, level: Level, burst: &mut TransmitBurst) -> Option<SendReport> {
        if burst.is_empty() {
            return None;
        }
        let interface = self.interface.as_deref_mut()?;
        let device = interface.device.as_deref_mut()?;
        let place = usize::from(level.get());
        let of = Lane::Level(level);
        let ledger = self.udp.lane_ledger_mut(of);
        let outward = Outward {
            checksum: checksum_of(&self.options),
            groups: self.capabilities.multicast,
        };
        // The lane is put back when `held` has the frames that the kernel has. If anything in between panics, the lane
        // is closed before its frames return to the pool with the caller's burst.
        let mut lane = device.lanes[place].take()?;
        let split = device.send(
            &mut lane,
            &mut interface.router,
            outward,
            &self.pool,
            ledger,
            burst,
        );
        let mut report = split.report;
        let by_sockets = [
            (split.kernel, None),
            // Multicast also leaves by the other interfaces.
            (split.groups, Some(interface.index)),
        ];
        for (which, except) in by_sockets {
            if which != 0 && (except.is_none() || self.udp.multicasts_on_others(interface.index)) {
                let sent = self.udp.send_messages(of, burst, which, except);
                report.sent += sent.sent;
                report.refused += sent.refused;
            }
        }
        if split.groups != 0 && self.options.local_groups {
            let udp = &mut self.udp;
            let copies = udp.send_to_this_host(of, burst, split.groups, interface.index);
            let counts = &mut udp.lane_ledger_mut(of).events;
            counts.note(counters::KERNEL_LOCAL_GROUP, copies.into());
        }
        let unaddressed = burst.unaddressed();
        let transmit = &mut self.udp.lane_ledger_mut(of).transmit;
        transmit.note_refused(Refusal::NO_DESTINATION, unaddressed);
        report.refused += unaddressed as u32;
        device.keep(split.frames, burst);
        device.take_completed(lane.queue);
        device.note_left(place, lane.left);
        device.lanes[place] = Some(lane);
        Some(report)
    }
}

/// Adds a warning with [`OnFailure::Sockets`]; otherwise returns the error.
fn refuse_or_warn(
    options: &XdpOptions,
    interface: String,
    source: XdpError,
    warnings: &mut Vec<Warning>,
) -> Result<(), OpenError> {
    match options.on_failure {
        OnFailure::Refuse => Err(source.on(interface)),
        OnFailure::Sockets => {
            warnings.push(warning::no_device_lanes(&interface, &source));
            Ok(())
        }
    }
}

/// Selects the interface of the lanes and plans the UMEM.
fn find_interface(
    udp: &isolane_datapath::NetworkConfig,
    options: &XdpOptions,
) -> Result<XdpInterface, (String, XdpError)> {
    let present = interfaces::list().unwrap_or_default();
    let wanted = lanes::choose(udp, options, &present);
    let interface = wanted.map_err(|error| (lanes::wanted_names(udp, options), error))?;
    let name = interface.name.clone();
    let fail = |error: XdpError| (name.clone(), error);
    let router = Router::open(&RouterConfig {
        interface_index: interface.index,
        vlan: options.vlan,
    });
    let router = router.map_err(|error| fail(error.into()))?;
    let mtu_bytes = router.device().mtu_bytes;
    let plan = Plan::new(options, udp.pool, &name, mtu_bytes).map_err(fail)?;
    Ok(XdpInterface {
        index: interface.index,
        addresses: lanes::addresses_of(&interface),
        plan,
        router,
        device: None,
        is_gone: false,
        is_refused: false,
        name,
    })
}

impl Drop for Xdp {
    fn drop(&mut self) {
        // Closes sockets and rings before the frames return to the pool.
        self.close_device();
    }
}

impl fmt::Debug for Xdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Xdp")
            .field("options", &self.options)
            .field("udp", &self.udp)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}
