//! The datapath of AF_XDP lanes.
//!
//! ```text
//!             ┌─ classifier ── lane 7 ──┐                          ┌── lane 7 ──┐
//!   frame ──► │  (by port,   ─ lane 1 ──┼─► receive_burst   send ──┼── lane 1 ──┼─► device's queue
//!             │   budgets)   ─ socket ──┘   (in turns)      burst  └── socket ──┘─► kernel's stack
//!             └─ everything else ─► kernel
//! ```
//!
//! Each level that is opened gets a receive ring and a transmit ring on a queue of one device, in
//! memory that device and program share: the pool's. Sockets for the same ports and groups stay open
//! beside them ([`Udp`]), with the same frames. They are the second way in, for what the
//! classifier leaves to the kernel (fragments, other queues, other interfaces, this host), and the
//! way out for what lanes do not reach (a neighbour not known yet, this host, what is longer than a
//! frame). Discovery has sockets only.
//!
//! # What is promised
//!
//! * No payload is copied in user space on its way in, none on its way out to one destination or a
//!   group. Each further unicast destination of a frame costs a copy.
//! * A lane that nobody reads takes no chunk that another lane needs: memory is counted out for every
//!   lane before the first frame moves (`plan`).
//! * Each lane transmits through a ring of its own, so nothing less critical stands in front of it.
//! * What is lost has a name in the ledger, also where the kernel or the classifier lost it.
//!
//! # What goes around lanes
//!
//! Lanes reach no reader on this host. What is sent to a group therefore also goes to a kernel socket
//! that keeps it on this host (without a hop), so that local readers get it once, and the network
//! gets it once. A datagram that took the kernel's way may be overtaken by a later one on the
//! lane: when a neighbour has just become known, or where small ones follow a large one.
//!
//! # When the interface changes
//!
//! Down and up again, another MTU that fits, another name, routes and neighbours are followed as the
//! kernel tells of them. What tells is a descriptor of discovery's lane: the loop takes news in
//! between what is more urgent, a few at a time, and a frame on its way never looks. Until they are
//! taken in, some milliseconds where the loop has time, frames go where they went before. An address
//! that is added later is not announced, as with `udp`.
//!
//! When the interface is deleted or moved to another network namespace, its lanes are gone for good:
//! the device's queues and memory went with it. Frames that it had not sent are counted as refused, a
//! [`Note`] says so, and the kernel's sockets go on with the same ports. One that comes back under the
//! same name is another interface: the sockets work there as soon as it has its address (groups are
//! joined again by housekeeping), the classifier is not attached to it, and lanes that are opened then
//! are sockets too. Lanes are had again by making the participant again.

mod asked;
mod auto;
mod config;
mod contract;
mod device;
mod error;
mod headers;
mod lanes;
mod martian;
mod observe;
mod plan;
mod receive;
mod recycle;
mod send;
mod single;
mod slots;

use std::fmt;

use isolane_datapath::limits::{MAX_NOTES, MAX_UDP_PAYLOAD};
use isolane_datapath::{
    Capabilities, Datapath, Lane, Note, OpenError, Pool, Refusal, SendReport, TransmitBurst, Udp,
    Wakeup, udp::interfaces,
};
use isolane_wire::level::Level;

use self::asked::Asked;
pub use self::auto::why_not;
pub use self::config::{OnFailure, XdpConfig, XdpOptions};
use self::device::Device;
pub use self::error::XdpError;
use self::martian::MartianFilter;
use self::plan::Plan;
use self::receive::Looks;
use self::send::{Outward, checksum_of};
use crate::egress::{Egress, EgressConfig};
use crate::limits::FRAME_HEAD_ROOM_BYTES;

/// What is known of the interface that lanes are on.
struct Way {
    interface: String,
    index: u32,
    addresses: Vec<[u8; 4]>,
    plan: Plan,
    egress: Egress,
    /// From the first lane on, until the interface is gone.
    device: Option<Box<Device>>,
    is_gone: bool,
    /// The device could not be had when it was last tried.
    is_refused: bool,
}

/// A participant's lanes, and the sockets beside them.
pub struct Xdp {
    options: XdpOptions,
    // Before the pool's memory, by its own share of it; before the sockets that reserve its ports.
    way: Option<Box<Way>>,
    udp: Udp,
    pool: Pool,
    capabilities: Capabilities,
    notes: Vec<Note>,
    asked: Asked,
    looks: Looks,
    /// What the last look has shown, by lane; all where nobody has looked.
    readable: [u8; Lane::COUNT],
    /// Lanes whose first descriptor is none of the kernel's sockets for datagrams, but a ring, or, of
    /// discovery, what tells of routes and neighbours. A bit in `readable` keeps its meaning when the
    /// ring is gone.
    firsts: u16,
}

impl Xdp {
    /// Looks at the host's interfaces, routes and neighbours; opens nothing yet. The device is taken
    /// and the classifier attached with the first level's lane, once.
    ///
    /// # Errors
    /// [`OpenError`]: as of sockets, or an interface that can have no lanes.
    pub fn new(config: XdpConfig) -> Result<Xdp, OpenError> {
        let XdpConfig { mut udp, options } = config;
        let mut notes = Vec::new();
        let way = match find_way(&udp, &options) {
            Ok(way) => Some(Box::new(way)),
            Err((interface, source)) => {
                refuse_or_note(&options, interface, source, &mut notes)?;
                None
            }
        };
        if let Some(way) = &way {
            udp.pool = way.plan.pool;
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
        let firsts = way.as_ref().map_or(0, |_| Lane::Discovery.bit());
        let mut martians = MartianFilter::default();
        if let Some(way) = &way {
            martians.follow(&way.egress);
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
            way,
            udp,
            pool,
            capabilities,
            notes,
            asked: Asked::default(),
            readable: [u8::MAX; Lane::COUNT],
            firsts,
        })
    }

    /// How lanes were set up.
    #[must_use]
    pub fn options(&self) -> &XdpOptions {
        &self.options
    }

    /// Whether the lane has rings of the device, beside its sockets.
    #[must_use]
    pub fn is_on_device(&self, lane: Lane) -> bool {
        let open = self.device().zip(lane.level());
        open.is_some_and(|(device, level)| device.lanes[usize::from(level.get())].is_some())
    }

    fn device(&self) -> Option<&Device> {
        self.way.as_ref()?.device.as_deref()
    }

    fn device_mut(&mut self) -> Option<&mut Device> {
        self.way.as_mut()?.device.as_deref_mut()
    }

    fn note(&mut self, note: Note) {
        if self.notes.len() < MAX_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Sends by the lane's ring what it reaches, and the rest by sockets; `None` if it has no ring, or
    /// there is nothing to be sent.
    fn send_by_lane(&mut self, level: Level, burst: &mut TransmitBurst) -> Option<SendReport> {
        if burst.is_empty() {
            return None;
        }
        let way = self.way.as_deref_mut()?;
        let device = way.device.as_deref_mut()?;
        let place = usize::from(level.get());
        let of = Lane::Level(level);
        let ledger = self.udp.lane_ledger_mut(of);
        let outward = Outward {
            checksum: checksum_of(&self.options),
            groups: self.capabilities.multicast,
        };
        // Back in its place when `held` has the frames that the kernel has. Should anything on the way
        // panic, the lane is closed before its frames go home with the burst, which is the caller's.
        let mut lane = device.lanes[place].take()?;
        let split = device.send(
            &mut lane,
            &mut way.egress,
            outward,
            &self.pool,
            ledger,
            burst,
        );
        let mut report = split.report;
        let by_sockets = [
            (split.kernel, None),
            // Groups leave by the other interfaces too.
            (split.groups, Some(way.index)),
        ];
        for (which, beside) in by_sockets {
            if which != 0 && (beside.is_none() || self.udp.multicasts_beside(way.index)) {
                let sent = self.udp.send_messages(of, burst, which, beside);
                report.sent += sent.sent;
                report.refused += sent.refused;
            }
        }
        if split.groups != 0 && self.options.local_groups {
            let udp = &mut self.udp;
            let copies = udp.send_to_this_host(of, burst, split.groups, way.index);
            let counts = &mut udp.lane_ledger_mut(of).counts;
            counts.note(isolane_datapath::Counted::KernelLocalGroup, copies.into());
        }
        let unaddressed = burst.unaddressed();
        let transmit = &mut self.udp.lane_ledger_mut(of).transmit;
        transmit.note_refused(Refusal::NoDestination, unaddressed);
        report.refused += unaddressed as u32;
        device.keep(split.frames, burst);
        device.take_completed(lane.queue);
        device.note_left(place, lane.left);
        device.lanes[place] = Some(lane);
        Some(report)
    }
}

/// With [`OnFailure::Sockets`] a note, else the error.
fn refuse_or_note(
    options: &XdpOptions,
    interface: String,
    source: XdpError,
    notes: &mut Vec<Note>,
) -> Result<(), OpenError> {
    match options.on_failure {
        OnFailure::Refuse => Err(OpenError::Device {
            interface,
            source: Box::new(source),
        }),
        OnFailure::Sockets => {
            notes.push(Note::NoDeviceLanes {
                interface,
                reason: source.to_string(),
            });
            Ok(())
        }
    }
}

/// The interface for lanes, and how its memory is to be divided.
fn find_way(
    udp: &isolane_datapath::UdpConfig,
    options: &XdpOptions,
) -> Result<Way, (String, XdpError)> {
    let present = interfaces::list().unwrap_or_default();
    let wanted = lanes::choose(udp, options, &present);
    let interface = wanted.map_err(|error| (lanes::wanted_names(udp, options), error))?;
    let name = interface.name.clone();
    let fail = |error: XdpError| (name.clone(), error);
    let egress = Egress::open(&EgressConfig {
        interface_index: interface.index,
        vlan: options.vlan,
    });
    let egress = egress.map_err(|error| fail(error.into()))?;
    let mtu_bytes = egress.device().mtu_bytes;
    let plan = Plan::new(options, udp.pool, &name, mtu_bytes).map_err(fail)?;
    Ok(Way {
        index: interface.index,
        addresses: lanes::addresses_of(&interface),
        plan,
        egress,
        device: None,
        is_gone: false,
        is_refused: false,
        interface: name,
    })
}

impl Drop for Xdp {
    fn drop(&mut self) {
        // Sockets and rings are closed before frames go home.
        self.close_device();
    }
}

impl fmt::Debug for Xdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Xdp")
            .field("options", &self.options)
            .field("udp", &self.udp)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}
