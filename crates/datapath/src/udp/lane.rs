//! Sockets of a lane: opening, options, locators, and the sockets of flows.
//!
//! The executor's loop registers the sockets of a lane in epoll when the lane opens. Flows, which only an embedding
//! datapath uses, open and close later. Flow sockets therefore share one descriptor, an epoll instance nested in the
//! loop's. It tells that a flow socket is readable, but not which, so all are read.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use isolane_wire::{level::Level, locator::Locator};
use libc::c_int;

use super::interfaces::{Interface, no_multicast};
use super::socket::Socket;
use super::transfer::{ON_THE_NETWORK, Receiver, Source};
use crate::contract::{OpenError, Warning};
use crate::lane::Lane;
use crate::limits::MAX_LANE_FLOWS;
use crate::network::{Interfaces, NetworkConfig, SAMPLE_PORTS};
use crate::pool::Class;
use crate::ports;

/// Code of the warning that a receive buffer is smaller than requested.
pub const SMALL_RECEIVE_BUFFER: &str = "small_receive_buffer";

/// Socket option of linux/in.h, missing in libc for some targets.
const IP_MULTICAST_ALL: c_int = 49;

/// Shift of DSCP in the byte of IP_TOS: the upper six bits.
const DSCP_SHIFT: u32 = 2;

pub(super) struct OpenLane {
    /// Socket that sends, and receives unicast.
    pub(super) own: Source,
    /// Socket that receives the lane's group.
    pub(super) group: Option<Source>,
    pub(super) receiver: Receiver,
    pub(super) unicast: Vec<Locator>,
    pub(super) multicast: Vec<Locator>,
    /// Flow sockets, if embedded in another datapath.
    pub(super) flows: Option<FlowSockets>,
    /// Current multicast TTL.
    pub(super) hops: u8,
    /// Index of the socket to receive from first; rotates to prevent starvation.
    pub(super) first: usize,
    /// Bits of the sockets that the last poll found readable, until the next receive. They are in the order of
    /// [`sources`](Self::sources); the last is the flows' descriptor. All bits set without a poll.
    pub(super) readable: u8,
}

impl OpenLane {
    /// Sockets of the lane: unicast, and its group if any.
    pub(super) fn sources(&self) -> impl Iterator<Item = &Source> {
        std::iter::once(&self.own).chain(&self.group)
    }

    /// Updates the locators to the current addresses of the interfaces, with the same ports.
    pub(super) fn move_to(&mut self, interfaces: &[Interface]) {
        let flows = self.flows.iter_mut().flat_map(|flows| &mut flows.open);
        let of_flows = flows.flatten().map(|flow| &mut flow.unicast);
        for unicast in of_flows.chain([&mut self.unicast]) {
            if let Some(port) = unicast.first().map(|locator| locator.port as u16) {
                *unicast = reached_at(interfaces, port);
            }
        }
    }
}

/// Context of opening lanes, which collects warnings.
pub(super) struct Opener<'a> {
    pub(super) config: &'a NetworkConfig,
    pub(super) interfaces: &'a [Interface],
    pub(super) has_flows: bool,
    pub(super) warnings: Vec<Warning>,
}

impl Opener<'_> {
    pub(super) fn open(&mut self, lane: Lane) -> Result<OpenLane, OpenError> {
        let own = self.open_own(lane)?;
        let port = own.port();
        let port = port.map_err(|error| OpenError::of("read a socket's port", error))?;
        let (group, group_port) = ports::group(self.config.domain, lane)?;
        let group_socket = self.open_group(lane, group, group_port)?;
        let multicast = group_socket
            .as_ref()
            .map(|_| Locator::udpv4(group, group_port));
        Ok(OpenLane {
            unicast: reached_at(self.interfaces, port),
            multicast: multicast.into_iter().collect(),
            own: Source::new(own),
            group: group_socket.map(Source::new),
            receiver: Receiver::new(Class::Receive(lane), self.config.timestamps),
            flows: self.has_flows.then(FlowSockets::new).transpose()?,
            hops: ON_THE_NETWORK,
            first: 0,
            readable: u8::MAX,
        })
    }

    /// Opens a flow: its receive-only socket and its unicast locators.
    pub(super) fn open_flow(&mut self, lane: Lane) -> Result<(Socket, Vec<Locator>), OpenError> {
        let socket = new_socket()?;
        match self.config.sample_ports {
            Some(base) => {
                self.bind_first_free(
                    &socket,
                    base,
                    SAMPLE_PORTS / 2..SAMPLE_PORTS,
                    "a topic's unicast",
                )?;
            }
            None => self.bind(&socket, 0, "a topic's unicast")?,
        }
        self.set_receiving_options(&socket, lane)?;
        let port = socket.port();
        let port = port.map_err(|error| OpenError::of("read a socket's port", error))?;
        Ok((socket, reached_at(self.interfaces, port)))
    }

    /// Bind address of unicast sockets. With loopback only, they accept no traffic from other hosts.
    fn own_address(&self) -> [u8; 4] {
        match self.config.interfaces {
            Interfaces::Loopback => [127, 0, 0, 1],
            Interfaces::All | Interfaces::Named(_) => [0; 4],
        }
    }

    fn open_own(&mut self, lane: Lane) -> Result<Socket, OpenError> {
        let socket = new_socket()?;
        match lane {
            Lane::Discovery => self.bind_metatraffic(&socket)?,
            Lane::Level(level) => {
                const PURPOSE: &str = "a level's unicast";
                let level = u16::from(level.get());
                let ports = (level..SAMPLE_PORTS / 2).step_by(Level::COUNT);
                match (
                    self.config.level_ports[usize::from(level)],
                    self.config.sample_ports,
                ) {
                    (Some(port), _) => self.bind(&socket, port, PURPOSE)?,
                    (None, Some(base)) => self.bind_first_free(&socket, base, ports, PURPOSE)?,
                    (None, None) => self.bind(&socket, 0, PURPOSE)?,
                }
            }
        }
        self.set_sending_options(&socket, lane)?;
        self.set_receiving_options(&socket, lane)?;
        Ok(socket)
    }

    /// Binds the port of the configured participant id, or of the first free one. If none is free, the kernel chooses
    /// a port, which is announced. SO_REUSEADDR is not set, because the exclusive port reserves the participant id.
    fn bind_metatraffic(&mut self, socket: &Socket) -> Result<(), OpenError> {
        const PURPOSE: &str = "metatraffic unicast";
        let domain = self.config.domain;
        if let Some(participant_id) = self.config.participant_id {
            let port = ports::metatraffic_unicast(domain, participant_id)?;
            return self.bind(socket, port, PURPOSE);
        }
        let last = ports::last_participant_id(domain)?;
        for participant_id in 0..=last {
            let port = ports::metatraffic_unicast(domain, participant_id)?;
            match self.bind(socket, port, PURPOSE) {
                Err(OpenError::PortInUse { .. }) => {}
                settled => return settled,
            }
        }
        self.bind(socket, 0, PURPOSE)?;
        let port = socket.port();
        let port = port.map_err(|error| OpenError::of("read a socket's port", error))?;
        self.warnings.push(kernel_port(domain, last + 1, port));
        Ok(())
    }

    /// Binds the first free one of the fixed ports at these distances from the first.
    ///
    /// The port of a deleted reader may be free, and is then used again at once, so that a program has the same ports at
    /// every start. RTPS addresses samples by GUIDs: a late sample for the deleted reader is not delivered to another
    /// one. Until its writer knows of the deletion, such a sample counts against the budget of the port's new reader.
    fn bind_first_free(
        &self,
        socket: &Socket,
        base: u16,
        distances: impl Iterator<Item = u16>,
        purpose: &'static str,
    ) -> Result<(), OpenError> {
        // `ports::check_sample_ports` has checked that all of them are ports.
        for port in distances.map(|distance| base + distance) {
            match self.bind(socket, port, purpose) {
                Err(OpenError::PortInUse { .. }) => {}
                settled => return settled,
            }
        }
        Err(OpenError::SamplePortsInUse { base, purpose })
    }

    fn bind(&self, socket: &Socket, port: u16, purpose: &'static str) -> Result<(), OpenError> {
        let bound = socket.bind(self.own_address(), port);
        bound.map_err(|error| match error.raw_os_error() {
            Some(libc::EADDRINUSE) => OpenError::PortInUse { port, purpose },
            _ => OpenError::of("bind a UDP socket", error),
        })
    }

    /// Opens the group's socket, unless no interface supports multicast. The socket is bound to the group's address,
    /// because the groups of all levels share a port.
    fn open_group(
        &mut self,
        lane: Lane,
        group: [u8; 4],
        port: u16,
    ) -> Result<Option<Socket>, OpenError> {
        let joinable = self.interfaces.iter().filter(|one| one.is_multicast);
        if !self.config.multicast || joinable.clone().next().is_none() {
            return Ok(None);
        }
        let socket = new_socket()?;
        // Every participant of the host and domain binds this port, including other vendors'.
        must(
            &socket,
            libc::SOL_SOCKET,
            libc::SO_REUSEADDR,
            1,
            "share a group's port",
        )?;
        let bound = socket.bind(group, port);
        bound.map_err(|error| match error.raw_os_error() {
            Some(libc::EADDRINUSE) => OpenError::PortInUse {
                port,
                purpose: "a group, by a program that does not share it",
            },
            _ => OpenError::of("bind a UDP socket to a group", error),
        })?;
        // Receive only on interfaces joined by this socket, not by any socket of the host.
        must(
            &socket,
            libc::IPPROTO_IP,
            IP_MULTICAST_ALL,
            0,
            "limit a socket to its groups",
        )?;
        let mut joined = false;
        for interface in joinable {
            match socket.join(group, interface.index) {
                Ok(()) => joined = true,
                Err(error) => {
                    let reason = format!("joining the group of {lane} failed: {error}");
                    self.warnings.push(no_multicast(&interface.name, reason));
                }
            }
        }
        if !joined {
            return Ok(None);
        }
        self.set_receiving_options(&socket, lane)?;
        Ok(Some(socket))
    }

    fn set_sending_options(&mut self, socket: &Socket, lane: Lane) -> Result<(), OpenError> {
        let ip = libc::IPPROTO_IP;
        // Groups are local to the network: routers do not forward them.
        must(
            socket,
            ip,
            libc::IP_MULTICAST_TTL,
            c_int::from(ON_THE_NETWORK),
            "limit multicast to one hop",
        )?;
        // Groups also reach other participants on this host.
        must(
            socket,
            ip,
            libc::IP_MULTICAST_LOOP,
            1,
            "reach this host by multicast",
        )?;
        // Without this option, the kernel does not report drops at a full device queue.
        must(
            socket,
            ip,
            libc::IP_RECVERR,
            1,
            "get reports of dropped datagrams",
        )?;
        // The class of discovery depends on the open levels, and is set elsewhere.
        let Some(level) = lane.level() else {
            return Ok(());
        };
        let warning = set_class(socket, lane, level)?;
        self.warnings.extend(warning);
        Ok(())
    }

    fn set_receiving_options(&mut self, socket: &Socket, lane: Lane) -> Result<(), OpenError> {
        let level = libc::SOL_SOCKET;
        must(
            socket,
            level,
            libc::SO_RXQ_OVFL,
            1,
            "get reports of receive overflows",
        )?;
        if self.config.timestamps {
            must(
                socket,
                level,
                libc::SO_TIMESTAMPNS,
                1,
                "stamp received datagrams",
            )?;
        }
        // Of a device lane's frames, only the length of a datagram is prefaulted. A received burst would be longer.
        let device = self.config.pool.device;
        let is_of_device = device.is_some_and(|device| device.lanes & lane.bit() != 0);
        if self.config.segmentation && !is_of_device {
            // Before Linux 5.0, the kernel passes only single datagrams.
            let _ = socket.set(libc::SOL_UDP, libc::UDP_GRO, 1);
        }
        if let Some(wanted) = self.config.receive_buffer_bytes {
            let got = socket.set_receive_buffer(wanted);
            let got = got.map_err(|error| OpenError::of("set a receive buffer", error))?;
            if got < wanted {
                self.warnings.push(small_receive_buffer(lane, wanted, got));
            }
        }
        Ok(())
    }
}

/// Locators of all addresses in use, with this port.
fn reached_at(interfaces: &[Interface], port: u16) -> Vec<Locator> {
    let addresses = interfaces.iter().flat_map(|one| &one.addresses);
    let reached = addresses.map(|address| Locator::udpv4(address.address, port));
    reached.collect()
}

/// Sets the class of sent datagrams: DSCP, and SO_PRIORITY if permitted.
pub(super) fn set_class(
    socket: &Socket,
    lane: Lane,
    level: Level,
) -> Result<Option<Warning>, OpenError> {
    let class = c_int::from(level.dscp()) << DSCP_SHIFT;
    must(
        socket,
        libc::IPPROTO_IP,
        libc::IP_TOS,
        class,
        "mark datagrams with their class",
    )?;
    // SO_PRIORITY is set after IP_TOS, because IP_TOS also sets a priority.
    let priority = c_int::from(level.get());
    let set = socket.set(libc::SOL_SOCKET, libc::SO_PRIORITY, priority);
    let refused = set.err();
    Ok(refused.map(|error| no_priority(lane, level.get(), error)))
}

fn new_socket() -> Result<Socket, OpenError> {
    Socket::new().map_err(|error: io::Error| OpenError::of("open a UDP socket", error))
}

/// Sets a mandatory socket option.
fn must(
    socket: &Socket,
    level: c_int,
    name: c_int,
    value: c_int,
    action: &'static str,
) -> Result<(), OpenError> {
    let set = socket.set(level, name, value);
    set.map_err(|error| OpenError::of(action, error))
}

/// Socket of a flow and its unicast locators.
pub(super) struct FlowSocket {
    pub(super) source: Source,
    pub(super) unicast: Vec<Locator>,
}

/// Sockets of the flows within a lane.
pub(super) struct FlowSockets {
    epoll: OwnedFd,
    /// Flows by number; numbers of closed flows are reused.
    pub(super) open: Vec<Option<FlowSocket>>,
}

impl FlowSockets {
    fn new() -> Result<FlowSockets, OpenError> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            return Err(OpenError::of("make an epoll instance", error));
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(FlowSockets {
            epoll,
            open: Vec::new(),
        })
    }

    /// Adds a socket and registers it in epoll; returns its number, or `None` if all numbers are in use.
    pub(super) fn add(&mut self, flow: FlowSocket) -> io::Result<Option<usize>> {
        let place = self.open.iter().position(Option::is_none);
        let place = place.unwrap_or(self.open.len());
        if place == MAX_LANE_FLOWS {
            return Ok(None);
        }
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: place as u64,
        };
        let (epoll, socket) = (self.epoll.as_raw_fd(), flow.source.socket.raw());
        // SAFETY: `event` is valid for the call; both descriptors are open.
        let added = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, socket, &raw mut event) };
        if added < 0 {
            return Err(io::Error::last_os_error());
        }
        if place == self.open.len() {
            self.open.push(None);
        }
        self.open[place] = Some(flow);
        Ok(Some(place))
    }

    /// Removes a socket; closing it also removes it from epoll.
    pub(super) fn remove(&mut self, place: usize) -> Option<FlowSocket> {
        self.open.get_mut(place)?.take()
    }

    pub(super) fn get(&self, place: usize) -> Option<&FlowSocket> {
        self.open.get(place)?.as_ref()
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.open.iter().flatten().map(|flow| &flow.source)
    }
}

impl AsFd for FlowSockets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Warning that the kernel granted `got` bytes of receive buffer instead of `wanted`.
fn small_receive_buffer(lane: Lane, wanted: usize, got: usize) -> Warning {
    let text = format!(
        "the receive buffer of {lane} has {got} bytes instead of {wanted}: raise \
         net.core.rmem_max, or give the program CAP_NET_ADMIN"
    );
    Warning::of_lane(SMALL_RECEIVE_BUFFER, lane, text)
}

/// Warning that the kernel refused the lane's SO_PRIORITY.
fn no_priority(lane: Lane, priority: u8, reason: impl fmt::Display) -> Warning {
    let text = format!(
        "datagrams of {lane} leave without SO_PRIORITY {priority} ({reason}): queues of this \
         host do not prefer them. Give the program CAP_NET_ADMIN. Their DSCP is set"
    );
    Warning::of_lane("no_priority", lane, text)
}

/// Warning that no discovery port of the RTPS formula (RTPS 2.5 §9.6.2.3) is free, and that the kernel chose `port`
/// after `tried` ports.
fn kernel_port(domain: u32, tried: u32, port: u16) -> Warning {
    let text = format!(
        "all {tried} participant ports of domain {domain} are taken on this host: discovery uses port {port}. \
         Participants that only name this host as a peer do not find this one; multicast, or naming them here, does"
    );
    Warning::of_lane("kernel_port", Lane::Discovery, text)
}
