//! Datapath over UDP sockets: available everywhere, and the baseline for comparisons with other datapaths.
//!
//! # Sockets
//!
//! Each lane has one socket that sends and receives unicast, and one that receives its group:
//!
//! | lane | unicast | group |
//! | --- | --- | --- |
//! | discovery | 7410 + 250 · domain + 2 · participant | 239.255.0.1:7400 + 250 · domain |
//! | level l | a port chosen by the kernel | 239.255.(16+l).(domain):7401 + 250 · domain |
//!
//! Lanes share no socket, so a flooded lane fills only its own receive buffer. A level's datagrams have SO_PRIORITY l
//! (queue of the host) and DSCP class selector l (queue of a switch). Discovery's datagrams have the class of the
//! highest open level minus one, at least 1, unless [`NetworkConfig::discovery_level`] sets another.
//!
//! # Copies and system calls
//!
//! There are no user-space copies: recvmmsg writes into the frame that the protocol reads, and sendmmsg reads the frame
//! that a writer filled. The kernel copies once in each direction.
//!
//! | operation | system calls |
//! | --- | --- |
//! | receive, the first socket fills the limit | 1 recvmmsg |
//! | receive, a poll has shown one socket readable | 1 recvmmsg |
//! | receive, otherwise (also an empty lane) | 2 recvmmsg; 1 if the lane has no group |
//! | send | 1 sendmmsg for up to 64 messages (datagrams or segmented bursts), and 1 for each refused one |
//! | send, the kernel stops within a burst | 1 recvmsg for the error, and 1 sendmmsg |
//! | send, the kernel refuses a segmented burst | 1 sendmsg for each of its datagrams; later bursts of that size leave as single datagrams by sendmmsg |
//! | an error reported by a host (ICMP) | 1 recvmsg for each, up to 16, and the call again |
//! | reading the ledger | 1 getsockopt a socket |
//! | checking the interfaces | 1 recv, 1 ioctl for each multicast interface, a few more after a change |
//!
//! A datagram counts once for each destination, and for a group once for each interface. With receive stamps, the
//! clocks are read once a burst, without a system call.
//!
//! # Losses
//!
//! The kernel drops datagrams that exceed a socket's buffer, and reports the count with the next datagram
//! (SO_RXQ_OVFL). It counts a segmented burst as one. [`Datapath::ledger`] also reads the counter, for drops
//! after the last datagram. With IP_RECVERR, the kernel reports a full device queue as an error instead of dropping
//! silently. ICMP port unreachable counts as `bounced`.
//!
//! # Removed interfaces
//!
//! Sockets are bound to ports, not interfaces, and remain. Unicast datagrams to a removed interface are refused as
//! [`UNREACHABLE`], unless another route exists (such as a default route). Multicast is refused as [`INTERFACE_GONE`]
//! after the next [`Datapath::check_interfaces`], without a system call. No descriptor becomes readable, so the loop
//! does not spin.
//!
//! When an interface of the same name and address returns, unicast works at once. Multicast works after the next
//! check, which joins the groups again. An interface that only goes down and up keeps its memberships.
//!
//! # Changed addresses
//!
//! The next check reads the interface's new addresses (DHCP, roaming), joins groups again, and reports new locators;
//! ports stay. An interface without any address keeps its former ones until it has another. An interface that was not
//! in use at the start, or that returns under another name, is not followed.
//!
//! [`UNREACHABLE`]: crate::Refusal::UNREACHABLE
//! [`INTERFACE_GONE`]: crate::Refusal::INTERFACE_GONE

pub mod interfaces;
mod lane;
mod socket;
mod transfer;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};

use isolane_wire::{level::Level, locator::Locator};

use self::interfaces::{AddressChanges, Interface};
pub use self::lane::SMALL_RECEIVE_BUFFER;
use self::lane::{FlowSocket, OpenLane, Opener};
use self::transfer::{Egress, Segmentation, SendArrays, Source};
use crate::burst::{ReceiveBurst, SendReport, TransmitBurst};
use crate::contract::{Capabilities, Datapath, OpenError, Wakeup, Warning};
use crate::kind::{
    DatapathFactory, DatapathKind, OptionDefault, OptionError, OptionKind, OptionSpec, OptionValue,
    Options,
};
use crate::lane::Lane;
use crate::ledger::{LaneLedger, Ledger, ReceiveDrop};
use crate::limits::{MAX_INTERFACES, MAX_LANE_FLOWS, MAX_UDP_PAYLOAD, MAX_WARNINGS};
use crate::network::{Interfaces, NetworkConfig};
use crate::pool::Pool;

/// Options of the datapath over kernel sockets, in addition to the network configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdpOptions {
    /// True to send and receive segmented bursts ([`NetworkConfig::segmentation`]).
    pub segmentation: bool,
}

impl Default for UdpOptions {
    fn default() -> UdpOptions {
        UdpOptions { segmentation: true }
    }
}

impl UdpOptions {
    /// Sets whether segmented bursts are sent and received.
    #[must_use]
    pub fn segmentation(self, segmentation: bool) -> UdpOptions {
        UdpOptions { segmentation }
    }
}

const OPTIONS: [OptionSpec; 1] = [OptionSpec::new(
    "segmentation",
    OptionKind::Bool,
    OptionDefault::Value(OptionValue::Bool(true)),
    "send and receive up to 64 KiB as one kernel packet (UDP_SEGMENT, UDP_GRO), where the kernel supports it",
)];

impl DatapathFactory for UdpOptions {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn open(self: Box<Self>, mut network: NetworkConfig) -> Result<Box<dyn Datapath>, OpenError> {
        network.segmentation &= self.segmentation;
        Ok(Box::new(Udp::new(network)?))
    }
}

/// Kind of the datapath over kernel sockets.
#[derive(Debug)]
pub struct UdpKind;

impl DatapathKind for UdpKind {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn summary(&self) -> &'static str {
        "kernel sockets; works on every machine"
    }

    fn options(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    fn configure(&self, options: &Options) -> Result<Box<dyn DatapathFactory>, OptionError> {
        let segmentation = options.bool("segmentation").unwrap_or(true);
        Ok(Box::new(UdpOptions { segmentation }))
    }
}

/// UDP sockets of a participant.
pub struct Udp {
    config: NetworkConfig,
    interfaces: Vec<Interface>,
    /// Address change notifications; `None` on loopback only, whose address is constant.
    address_changes: Option<AddressChanges>,
    /// True if addresses have changed and could not be read yet.
    is_address_list_due: bool,
    /// Interfaces on which multicast is sent.
    egress: heapless::Vec<Egress, MAX_INTERFACES>,
    lanes: [Option<Box<OpenLane>>; Lane::COUNT],
    /// True if lanes support separate flows.
    has_flows: bool,
    /// Level of discovery's socket; `None` while closed.
    discovery_level: Option<Level>,
    send_arrays: SendArrays,
    segmentation: Segmentation,
    pool: Pool,
    capabilities: Capabilities,
    ledger: Ledger,
    warnings: Vec<Warning>,
}

impl Udp {
    /// Selects the interfaces; opens no sockets yet.
    ///
    /// # Errors
    /// [`OpenError`]: a domain without ports, or missing interfaces.
    pub fn new(config: NetworkConfig) -> Result<Udp, OpenError> {
        let pool = Pool::new(config.pool);
        Udp::with_pool(config, pool)
    }

    fn with_pool(mut config: NetworkConfig, pool: Pool) -> Result<Udp, OpenError> {
        crate::ports::last_participant_id(config.domain)?;
        if let Some(base) = config.sample_ports {
            crate::ports::check_sample_ports(base, config.domain)?;
        }
        // Before the addresses are read, so that no change is missed.
        let address_changes = match config.interfaces {
            Interfaces::Loopback => None,
            Interfaces::All | Interfaces::Named(_) => Some(
                AddressChanges::open()
                    .map_err(|error| OpenError::of("open a netlink socket for addresses", error))?,
            ),
        };
        let present = interfaces::list();
        let present = present.map_err(|error| OpenError::of("list the interfaces", error))?;
        let (interfaces, warnings) =
            interfaces::choose(&config.interfaces, config.multicast, present)?;
        let egress: heapless::Vec<Egress, MAX_INTERFACES> = interfaces
            .iter()
            .filter(|interface| config.multicast && interface.is_multicast)
            .map(|interface| Egress {
                index: interface.index,
                address: interface.addresses[0].address,
                is_present: true,
            })
            .collect();
        let pool_config = pool.config();
        let max_frame_bytes = match pool_config.device {
            // Oversize frames have no head room.
            Some(_) => pool_config.frame_bytes,
            None => pool_config.frame_bytes - pool_config.head_room_bytes,
        };
        // A segmented packet of the kernel must fit a receive frame.
        config.segmentation &= pool_config.frame_bytes >= MAX_UDP_PAYLOAD;
        let segmentation = Segmentation::new(config.segmentation);
        let capabilities = Capabilities {
            max_frame_bytes: max_frame_bytes.min(MAX_UDP_PAYLOAD),
            head_room_bytes: 0,
            receive_copies: 0,
            transmit_copies: 0,
            kernel_copies: 1,
            zero_copy: false,
            multicast: !egress.is_empty(),
            wakeup: Wakeup::Descriptors,
            timestamps: config.timestamps,
            priorities: true,
            shaping: false,
            segmented_lanes: match config.segmentation {
                true => Lane::ALL_BITS & !pool_config.device.map_or(0, |device| device.lanes),
                false => 0,
            },
        };
        Ok(Udp {
            config,
            interfaces,
            address_changes,
            is_address_list_due: false,
            egress,
            lanes: Default::default(),
            has_flows: false,
            discovery_level: None,
            send_arrays: SendArrays::new(),
            segmentation,
            pool,
            capabilities,
            ledger: Ledger::default(),
            warnings,
        })
    }

    /// Interfaces in use.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Reads the addresses of the interfaces in use. Returns true if any has changed.
    fn follow_addresses(&mut self) -> bool {
        let Ok(present) = interfaces::list() else {
            return false;
        };
        self.is_address_list_due = false;
        let mut is_any_changed = false;
        for interface in &mut self.interfaces {
            let Some(now) = present.iter().find(|one| one.name == interface.name) else {
                // A down interface is not listed, and there may be no message when it comes up with another address.
                self.is_address_list_due = true;
                continue;
            };
            if now.addresses == interface.addresses {
                continue;
            }
            interface.addresses.clone_from(&now.addresses);
            is_any_changed = true;
            let mut egresses = self.egress.iter_mut();
            if let Some(egress) = egresses.find(|egress| egress.index == interface.index) {
                egress.address = interface.addresses[0].address;
                // The following interface check joins the groups again.
                egress.is_present = false;
            }
        }
        if is_any_changed {
            for lane in self.lanes.iter_mut().flatten() {
                lane.move_to(&self.interfaces);
            }
        }
        is_any_changed
    }

    /// Sets the level of discovery's datagrams, which depends on the open lanes.
    fn set_discovery_class(&mut self) -> Result<(), OpenError> {
        let is_open = |lane: &Lane| self.lane(*lane).is_some();
        let open = Lane::ALL.into_iter().filter(is_open);
        let highest = open.filter_map(Lane::level).max();
        let below = highest.map_or(0, |highest| highest.get().saturating_sub(1));
        let below = Level::ALL[usize::from(below.max(1))];
        let wanted = self.config.discovery_level.unwrap_or(below);
        let Some(discovery) = self.lane(Lane::Discovery) else {
            return Ok(());
        };
        if self.discovery_level != Some(wanted) {
            let note = lane::set_class(&discovery.own.socket, Lane::Discovery, wanted)?;
            self.discovery_level = Some(wanted);
            self.warn_all(note);
        }
        Ok(())
    }

    fn warn_all(&mut self, warnings: impl IntoIterator<Item = Warning>) {
        let room = MAX_WARNINGS.saturating_sub(self.warnings.len());
        self.warnings.extend(warnings.into_iter().take(room));
    }

    fn lane(&self, lane: Lane) -> Option<&OpenLane> {
        self.lanes[lane.index()].as_deref()
    }
}

impl fmt::Debug for Udp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Udp")
            .field("config", &self.config)
            .field("interfaces", &self.interfaces)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// Use within a datapath with rings: the sockets share its frames, send what its lanes cannot, and provide flows.
impl Udp {
    /// Creates sockets that use an existing pool, and support [flows](Self::open_flow_socket).
    ///
    /// # Errors
    /// Those of [`Udp::new`].
    pub fn embedded(config: NetworkConfig, pool: Pool) -> Result<Udp, OpenError> {
        let mut udp = Udp::with_pool(config, pool)?;
        udp.has_flows = true;
        Ok(udp)
    }

    /// Configuration of the sockets.
    #[must_use]
    pub fn config(&self) -> &NetworkConfig {
        &self.config
    }

    /// Ledger of a lane, in which the embedding datapath counts as well.
    #[inline]
    pub fn lane_ledger_mut(&mut self, lane: Lane) -> &mut LaneLedger {
        self.ledger.lane_mut(lane)
    }

    /// Returns true if multicast is sent on an interface other than this one.
    #[must_use]
    pub fn multicasts_on_others(&self, interface: u32) -> bool {
        self.egress.iter().any(|one| one.index != interface)
    }

    /// Closes a lane after another part of it could not be opened.
    pub fn close_lane(&mut self, lane: Lane) {
        self.lanes[lane.index()] = None;
    }

    /// Opens a flow in an open lane and returns its number. Its datagrams arrive in the lane's bursts.
    ///
    /// # Errors
    /// [`OpenError`]; nothing is changed.
    pub fn open_flow_socket(&mut self, lane: Lane) -> Result<usize, OpenError> {
        let mut opener = Opener {
            config: &self.config,
            interfaces: &self.interfaces,
            has_flows: true,
            warnings: Vec::new(),
        };
        let open = self.lanes[lane.index()].as_deref_mut();
        let Some(flows) = open.and_then(|open| open.flows.as_mut()) else {
            return Err(OpenError::NoFlows { datapath: "udp" });
        };
        let (socket, unicast) = opener.open_flow(lane)?;
        let flow = FlowSocket {
            source: Source::new(socket),
            unicast,
        };
        let place = flows.add(flow);
        let place = place.map_err(|error| OpenError::of("watch a socket with epoll", error))?;
        place.ok_or(OpenError::TooManyFlows {
            limit: MAX_LANE_FLOWS,
        })
    }

    /// Unicast locators of a flow.
    #[must_use]
    pub fn flow_socket_unicast(&self, lane: Lane, number: usize) -> &[Locator] {
        let flows = self.lane(lane).and_then(|open| open.flows.as_ref());
        let flow = flows.and_then(|flows| flows.get(number));
        flow.map_or(&[], |flow| &flow.unicast)
    }

    /// Closes a flow.
    pub fn close_flow_socket(&mut self, lane: Lane, number: usize) {
        let open = self.lanes[lane.index()].as_deref_mut();
        let flow = open.and_then(|open| open.flows.as_mut()?.remove(number));
        if let Some(flow) = flow {
            // Keep the kernel's drop count.
            let unseen = flow.source.drops_unseen();
            let receive = &mut self.ledger.lane_mut(lane).receive;
            receive.note_dropped(ReceiveDrop::KERNEL_OVERFLOW, unseen);
        }
    }
}

impl Datapath for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError> {
        if self.lanes[lane.index()].is_some() {
            return Ok(());
        }
        let mut opener = Opener {
            config: &self.config,
            interfaces: &self.interfaces,
            has_flows: self.has_flows,
            warnings: Vec::new(),
        };
        let opened = opener.open(lane);
        let warnings = opener.warnings;
        self.warn_all(warnings);
        let opened = opened?;
        if !opened.own.socket.segments() {
            self.capabilities.segmented_lanes = 0;
            self.segmentation = Segmentation::new(false);
        }
        self.lanes[lane.index()] = Some(Box::new(opened));
        if let Err(error) = self.set_discovery_class() {
            self.lanes[lane.index()] = None;
            return Err(error);
        }
        let reserved = self.pool.reserve_lane(lane);
        reserved.inspect_err(|_| self.lanes[lane.index()] = None)?;
        Ok(())
    }

    fn networks(&self) -> Vec<([u8; 4], u8)> {
        let addresses = self.interfaces.iter().flat_map(|one| &one.addresses);
        addresses
            .map(|one| (one.address, one.prefix_bits))
            .collect()
    }

    fn link_bits_per_s(&self) -> Option<u64> {
        let links = self.interfaces.iter().filter(|one| !one.is_loopback);
        interfaces::slowest(links.map(|one| interfaces::link_bits_per_s(&one.name)))
    }

    fn receive_buffer(&self, lane: Lane) -> Option<usize> {
        let sockets = self.lane(lane)?.sources();
        sockets.filter_map(|one| one.socket.receive_buffer()).min()
    }

    fn unicast(&self, lane: Lane) -> &[Locator] {
        self.lane(lane).map_or(&[], |open| &open.unicast)
    }

    fn multicast(&self, lane: Lane) -> &[Locator] {
        self.lane(lane).map_or(&[], |open| &open.multicast)
    }

    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize {
        let Some(open) = self.lanes[lane.index()].as_deref_mut() else {
            return 0;
        };
        open.receive(limit, &self.pool, self.ledger.lane_mut(lane), burst)
    }

    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport {
        self.transmit(lane, burst)
    }

    fn set_readable(&mut self, lane: Lane, readable: u8) {
        if let Some(open) = self.lanes[lane.index()].as_deref_mut() {
            open.readable = readable;
        }
    }

    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)> {
        let mut descriptors = Vec::new();
        for lane in Lane::ALL {
            let Some(open) = self.lane(lane) else {
                continue;
            };
            let sockets = open.sources();
            descriptors.extend(sockets.map(|source| (lane, source.socket.as_fd())));
            descriptors.extend(open.flows.iter().map(|flows| (lane, flows.as_fd())));
        }
        descriptors
    }

    /// Returns all open lanes, because only epoll can inspect the kernel's queues.
    fn ready_lanes(&mut self) -> u16 {
        let open = Lane::ALL
            .into_iter()
            .filter(|lane| self.lane(*lane).is_some());
        open.fold(0, |set, lane| set | lane.bit())
    }

    fn check_interfaces(&mut self) -> bool {
        let changes = self.address_changes.as_ref();
        self.is_address_list_due |= changes.is_some_and(AddressChanges::take);
        let is_moved = self.is_address_list_due && self.follow_addresses();
        let mut is_any_back = is_moved;
        for egress in &mut self.egress {
            let was_present = egress.is_present;
            let mut interfaces = self.interfaces.iter_mut();
            let interface = interfaces.find(|interface| interface.index == egress.index);
            if let Some(interface) = interface {
                interfaces::rejoin_if_returned(interface, egress, &self.lanes);
            }
            is_any_back |= egress.is_present && !was_present;
        }
        if is_any_back {
            // An interface that has returned may be another device.
            self.segmentation = Segmentation::new(self.capabilities.segmented_lanes != 0);
        }
        is_moved
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = self.ledger;
        for lane in Lane::ALL {
            let Some(open) = self.lane(lane) else {
                continue;
            };
            let flows = open.flows.iter().flat_map(|flows| flows.sources());
            let sources = open.sources().chain(flows);
            let unseen = sources.map(|source| source.drops_unseen()).sum();
            let receive = &mut ledger.lane_mut(lane).receive;
            receive.note_dropped(ReceiveDrop::KERNEL_OVERFLOW, unseen);
        }
        ledger
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}
