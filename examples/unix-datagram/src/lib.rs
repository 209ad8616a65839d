//! Example of a user-defined datapath: Unix datagram sockets in the abstract namespace, between processes of one host.
//!
//! Each lane is one socket. A socket's name contains a port number, which appears in locators as UDPv4 127.0.0.1. So
//! participants find each other by [`peer`](isolane::Builder::peer) 127.0.0.1 at the ports of RTPS 2.5 §9.6.2.3. There
//! are no groups. Nothing leaves the host.
//!
//! A full queue at the receiver refuses the datagram at the sender (`would_block`). Linux bounds that queue by
//! `net.unix.max_dgram_qlen` (systemd sets 512; the kernel's default is 10, which is less than a burst).

#![forbid(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use isolane_datapath::burst::{ReceiveBurst, ReceivedFrame, SendReport, TransmitBurst};
use isolane_datapath::kind::{
    DatapathKind, OptionDefault, OptionError, OptionKind, OptionSpec, OptionValue, Options,
};
use isolane_datapath::ledger::{Ledger, ReceiveDrop, Refusal, TransmitLedger};
use isolane_datapath::limits::MAX_UDP_PAYLOAD;
use isolane_datapath::{
    Capabilities, Class, CounterNames, Datapath, DatapathFactory, Lane, NetworkConfig, OpenError,
    Pool, Wakeup, ports,
};
use isolane_wire::locator::Locator;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, recvfrom,
    sendto, socket_with, sockopt,
};

/// Address in all locators.
const HOST: [u8; 4] = [127, 0, 0, 1];
/// First port of the levels' lanes.
const FIRST_LEVEL_PORT: u16 = 32_768;
/// Default of `send_buffer_bytes`: four of the longest datagrams.
const SEND_BUFFER_BYTES: u32 = 262_144;

/// Drop reason: the datagram came from a socket that is no lane of a participant.
pub const UNKNOWN_SENDER: ReceiveDrop = ReceiveDrop::own(0);

/// Names of this datapath's counters in reports.
pub static COUNTERS: CounterNames =
    CounterNames::new(&[(UNKNOWN_SENDER, "unknown_sender")], &[], &[]);

/// Kind of this datapath, for lists such as [`isolane::DATAPATHS`].
#[derive(Debug)]
pub struct UnixKind;

const OPTIONS: [OptionSpec; 1] = [OptionSpec::new(
    "send_buffer_bytes",
    OptionKind::Integer {
        min: 65_536,
        max: 16_777_216,
    },
    OptionDefault::Value(OptionValue::Integer(SEND_BUFFER_BYTES)),
    "SO_SNDBUF of each lane, which bounds what waits at its receivers",
)];

impl DatapathKind for UnixKind {
    fn name(&self) -> &'static str {
        "unix"
    }

    fn summary(&self) -> &'static str {
        "Unix datagram sockets between processes of this host"
    }

    fn options(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    fn configure(&self, options: &Options) -> Result<Box<dyn DatapathFactory>, OptionError> {
        let given = options.integer("send_buffer_bytes");
        Ok(Box::new(UnixOptions {
            send_buffer_bytes: given.unwrap_or(SEND_BUFFER_BYTES),
        }))
    }
}

/// Options of [`Unix`].
#[derive(Clone, Copy, Debug)]
pub struct UnixOptions {
    /// SO_SNDBUF of each lane, in bytes.
    pub send_buffer_bytes: u32,
}

impl Default for UnixOptions {
    fn default() -> Self {
        Self {
            send_buffer_bytes: SEND_BUFFER_BYTES,
        }
    }
}

impl DatapathFactory for UnixOptions {
    fn name(&self) -> &'static str {
        UnixKind.name()
    }

    fn open(self: Box<Self>, network: NetworkConfig) -> Result<Box<dyn Datapath>, OpenError> {
        Ok(Box::new(Unix::new(*self, network)?))
    }
}

/// Open lane.
struct Socket {
    fd: OwnedFd,
    locator: Locator,
}

/// Datapath over Unix datagram sockets.
pub struct Unix {
    options: UnixOptions,
    network: NetworkConfig,
    pool: Pool,
    capabilities: Capabilities,
    sockets: [Option<Socket>; Lane::COUNT],
    ledger: Ledger,
}

impl Unix {
    /// Creates the datapath without lanes.
    ///
    /// # Errors
    /// The domain has no ports, or there is no memory for the pool.
    pub fn new(options: UnixOptions, network: NetworkConfig) -> Result<Self, OpenError> {
        ports::last_participant_id(network.domain)?;
        let pool = Pool::try_new(network.pool)?;
        let frame_bytes = network.pool.frame_bytes - network.pool.head_room_bytes;
        Ok(Self {
            options,
            pool,
            capabilities: Capabilities {
                max_frame_bytes: frame_bytes.min(MAX_UDP_PAYLOAD),
                head_room_bytes: 0,
                receive_copies: 0,
                transmit_copies: 0,
                kernel_copies: 1,
                zero_copy: false,
                multicast: false,
                wakeup: Wakeup::Descriptors,
                timestamps: false,
                priorities: false,
                shaping: false,
                segmented_lanes: 0,
            },
            network,
            sockets: Default::default(),
            ledger: Ledger::default().with_names(&COUNTERS),
        })
    }

    /// Ports that a lane may have, in the order in which they are tried.
    fn candidate_ports(&self, lane: Lane) -> Result<Vec<u16>, OpenError> {
        let domain = self.network.domain;
        let Some(level) = lane.level() else {
            let last = ports::last_participant_id(domain)?;
            let id = self.network.participant_id;
            let ids = id.unwrap_or(0)..=id.unwrap_or(last);
            return ids
                .map(|id| ports::metatraffic_unicast(domain, id))
                .collect();
        };
        Ok(match self.network.level_ports[usize::from(level.get())] {
            Some(port) => vec![port],
            None => (FIRST_LEVEL_PORT..=u16::MAX).collect(),
        })
    }

    fn bind(&self, lane: Lane) -> Result<Socket, OpenError> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let failed = |action| move |error: Errno| OpenError::of(action, error.into());
        let fd = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)
            .map_err(failed("open a Unix socket"))?;
        sockopt::set_socket_send_buffer_size(&fd, self.options.send_buffer_bytes as usize)
            .map_err(failed("set SO_SNDBUF"))?;
        let ports = self.candidate_ports(lane)?;
        for &port in &ports {
            match bind(&fd, &name(port).map_err(failed("name a Unix socket"))?) {
                Ok(()) => {
                    let locator = Locator::udpv4(HOST, port);
                    return Ok(Socket { fd, locator });
                }
                Err(Errno::ADDRINUSE) => {}
                Err(error) => return Err(failed("bind a Unix socket")(error)),
            }
        }
        Err(OpenError::PortInUse {
            port: ports[0],
            purpose: "a Unix socket",
        })
    }
}

/// Name of the socket with a port.
fn name(port: u16) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(format!("isolane/{port}").as_bytes())
}

/// Port in a socket's name; `None` for sockets of other programs.
fn port(name: &SocketAddrUnix) -> Option<u16> {
    let digits = name.abstract_name()?.strip_prefix(b"isolane/")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Sends a datagram.
fn send(
    socket: &Socket,
    to: &Locator,
    bytes: &[u8],
    max_bytes: usize,
    ledger: &mut TransmitLedger,
) -> Result<(), Refusal> {
    let port = match to.ipv4() {
        Some(HOST) => u16::try_from(to.port).map_err(|_| Refusal::UNKNOWN_DESTINATION)?,
        _ => return Err(Refusal::UNKNOWN_DESTINATION),
    };
    if bytes.len() > max_bytes {
        return Err(Refusal::TOO_LONG);
    }
    let to = name(port).map_err(|_| Refusal::UNKNOWN_DESTINATION)?;
    match sendto(&socket.fd, bytes, SendFlags::empty(), &to) {
        Ok(_) => Ok(()),
        Err(Errno::AGAIN) => Err(Refusal::WOULD_BLOCK),
        Err(Errno::CONNREFUSED) => Err(Refusal::CONNECTION_REFUSED),
        Err(Errno::MSGSIZE) => Err(Refusal::TOO_LONG),
        Err(Errno::NOBUFS | Errno::NOMEM) => Err(Refusal::NO_BUFFERS),
        Err(other) => {
            ledger.last_error = other.raw_os_error();
            Err(Refusal::OTHER)
        }
    }
}

impl Datapath for Unix {
    fn name(&self) -> &'static str {
        UnixKind.name()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError> {
        if self.sockets[lane.index()].is_none() {
            let socket = self.bind(lane)?;
            self.pool.reserve_lane(lane)?;
            self.sockets[lane.index()] = Some(socket);
        }
        Ok(())
    }

    fn unicast(&self, lane: Lane) -> &[Locator] {
        let socket = self.sockets[lane.index()].as_ref();
        socket.map_or(&[], |socket| std::slice::from_ref(&socket.locator))
    }

    fn multicast(&self, _: Lane) -> &[Locator] {
        &[]
    }

    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize {
        let Some(socket) = &self.sockets[lane.index()] else {
            return 0;
        };
        let ledger = &mut self.ledger.lane_mut(lane).receive;
        let limit = limit.min(burst.capacity() - burst.len());
        let mut taken = 0;
        while taken < limit {
            let Some(mut frame) = self.pool.take(Class::Receive(lane)) else {
                ledger.starved += 1;
                break;
            };
            let received = recvfrom(&socket.fd, frame.buffer_mut(), RecvFlags::TRUNC);
            let Ok((_, bytes, from)) = received else {
                break;
            };
            taken += 1;
            let from = from.and_then(|from| SocketAddrUnix::try_from(from).ok());
            match from.as_ref().and_then(port) {
                _ if bytes > frame.capacity() => ledger.note_dropped(ReceiveDrop::TRUNCATED, 1),
                None => ledger.note_dropped(UNKNOWN_SENDER, 1),
                Some(port) => {
                    frame.set_range(0..bytes);
                    ledger.note_received(bytes);
                    // This always fits, because `limit` is at most the room of the burst.
                    let _ = burst.push(ReceivedFrame {
                        frame,
                        from: Locator::udpv4(HOST, port),
                        arrived: None,
                    });
                }
            }
        }
        ledger.largest_burst = ledger.largest_burst.max(taken as u64);
        taken
    }

    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport {
        let mut report = SendReport::default();
        let ledger = &mut self.ledger.lane_mut(lane).transmit;
        let unaddressed = burst.unaddressed();
        ledger.note_refused(Refusal::NO_DESTINATION, unaddressed);
        report.refused += unaddressed as u32;
        for message in burst.messages() {
            let bytes = burst.frame(message);
            let sent = match &self.sockets[lane.index()] {
                Some(socket) => send(
                    socket,
                    &message.to,
                    bytes,
                    self.capabilities.max_frame_bytes,
                    ledger,
                ),
                None => Err(Refusal::LANE_CLOSED),
            };
            match sent {
                Ok(()) => {
                    ledger.note_sent(bytes.len());
                    report.sent += 1;
                }
                Err(reason) => {
                    ledger.note_refused(reason, 1);
                    report.refused += 1;
                }
            }
        }
        burst.clear();
        report
    }

    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)> {
        let lanes = Lane::ALL.into_iter().zip(&self.sockets);
        lanes
            .filter_map(|(lane, socket)| Some((lane, socket.as_ref()?.fd.as_fd())))
            .collect()
    }

    fn ready_lanes(&mut self) -> u16 {
        let open = Lane::ALL.into_iter().zip(&self.sockets);
        let open = open.filter(|(_, socket)| socket.is_some());
        open.fold(0, |lanes, (lane, _)| lanes | lane.bit())
    }

    fn ledger(&self) -> Ledger {
        self.ledger
    }
}
