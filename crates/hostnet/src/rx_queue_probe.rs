//! UDP socket that reports the receive queue of each datagram: steering as seen above the stack, independent of driver
//! counters and names.
//!
//! One socket per queue shares the port (SO_REUSEPORT). A classic BPF filter of four steps selects among them by the
//! queue that the driver recorded on the frame (`SKF_AD_QUEUE`), so the receiving socket identifies the queue.
//! SO_INCOMING_NAPI_ID does not work: on an unconnected socket it keeps its first value.
//!
//! Drivers record the queue plus one, and zero if unknown. veth records nothing: the frame keeps the number of the
//! sender's transmit queue, which equals that of the receive queue.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use isolane_wire::level::Level;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_ip_tos, set_socket_reuseport};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

use crate::limits::MAX_PROBED_QUEUES;
use crate::xdp_facts::XdpFacts;

/// Offset of the DSCP in the byte that IP_TOS sets.
const DSCP_SHIFT: u32 = 2;

/// Receive queues of an interface that a probe distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveQueues {
    count: u32,
    /// Number that the driver records for queue 0.
    first: u32,
}

impl ReceiveQueues {
    /// Receive queues of an interface of this network namespace; `None` if there is none of that name.
    #[must_use]
    pub fn of(interface: &str) -> Option<Self> {
        let device = XdpFacts::look(interface).device?;
        let count = device.receive_queues().unwrap_or(1);
        let is_veth = device.driver.as_deref() == Some("veth");
        Some(Self {
            count: count.clamp(1, MAX_PROBED_QUEUES),
            first: u32::from(!is_veth),
        })
    }

    /// Number of queues.
    #[must_use]
    pub fn count(self) -> u32 {
        self.count
    }

    /// Number of sockets: one per queue, and one for datagrams of unknown queue.
    fn sockets(self) -> u32 {
        self.first + self.count + 1
    }

    /// Queue of a socket's datagrams.
    fn of_socket(self, socket: u32) -> Option<u32> {
        let queue = socket.checked_sub(self.first)?;
        (queue < self.count).then_some(queue)
    }
}

/// UDP port that sends datagrams with a level's marking, and reports the queue of received ones.
#[derive(Debug)]
pub struct ProbeSocket {
    /// Sockets by the number that the driver records; the last is for all others.
    sockets: Vec<UdpSocket>,
    queues: ReceiveQueues,
}

/// Received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    /// Length of its data, truncated to the buffer.
    pub length: usize,
    /// Address of the sender.
    pub from: SocketAddrV4,
    /// Receive queue; `None` if it is none of the interface's, as for datagrams sent by this host.
    pub queue: Option<u32>,
}

impl ProbeSocket {
    /// Binds a port. Sent datagrams have the level's SO_PRIORITY and DSCP.
    ///
    /// # Errors
    /// The address is in use or not of this host; the kernel refuses the priority (7 needs CAP_NET_ADMIN).
    pub fn bind(address: SocketAddrV4, level: Level, queues: ReceiveQueues) -> io::Result<Self> {
        // With SO_REUSEPORT, `bind` would silently join a port that another process shares, and the queues would be
        // wrong. Without it, as here, `bind` then fails.
        if address.port() != 0 {
            drop(UdpSocket::bind(address)?);
        }
        let first = shared_socket(address, level)?;
        // With port 0 the kernel has chosen one, which the other sockets use too.
        let SocketAddr::V4(address) = first.local_addr()? else {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        };
        let mut sockets = vec![first];
        for _ in 1..queues.sockets() {
            sockets.push(shared_socket(address, level)?);
        }
        let port = Self { sockets, queues };
        port.choose_by_queue()?;
        Ok(port)
    }

    /// Attaches the filter, which selects the socket of the recorded number, or the last one.
    fn choose_by_queue(&self) -> io::Result<()> {
        let last = self.queues.sockets() - 1;
        let step = |code: u32, jump_if: u8, jump_else: u8, k: u32| libc::sock_filter {
            code: code as u16,
            jt: jump_if,
            jf: jump_else,
            k,
        };
        let noted = (libc::SKF_AD_OFF + libc::SKF_AD_QUEUE) as u32;
        let mut steps = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, noted),
            step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, last),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, last),
            step(libc::BPF_RET | libc::BPF_A, 0, 0, 0),
        ];
        let program = libc::sock_fprog {
            len: steps.len() as u16,
            filter: steps.as_mut_ptr(),
        };
        // The group has one filter, set through any of its sockets.
        set(self.first()?, libc::SO_ATTACH_REUSEPORT_CBPF, &program)
    }

    fn first(&self) -> io::Result<&UdpSocket> {
        let first = self.sockets.first();
        first.ok_or(io::ErrorKind::AddrNotAvailable.into())
    }

    /// Address of the port.
    pub fn address(&self) -> io::Result<SocketAddrV4> {
        match self.first()?.local_addr()? {
            SocketAddr::V4(address) => Ok(address),
            SocketAddr::V6(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Sends a datagram.
    pub fn send(&self, bytes: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.first()?.send_to(bytes, to).map(drop)
    }

    /// Receives the next datagram; `None` if none comes within `patience`.
    pub fn receive(&self, bytes: &mut [u8], patience: Duration) -> io::Result<Option<Landed>> {
        let wait = |socket| PollFd::new(socket, PollFlags::IN);
        let mut waiting: Vec<PollFd<'_>> = self.sockets.iter().map(wait).collect();
        let timeout = Timespec::try_from(patience).ok();
        match poll(&mut waiting, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let is_ready = |waiting: &PollFd<'_>| !waiting.revents().is_empty();
        let found = waiting.iter().position(is_ready);
        let Some((found, socket)) = found.and_then(|at| Some((at, self.sockets.get(at)?))) else {
            return Ok(None);
        };
        match socket.recv_from(bytes) {
            Ok((length, SocketAddr::V4(from))) => Ok(Some(Landed {
                length,
                from,
                queue: self.queues.of_socket(found as u32),
            })),
            Ok(_) => Ok(None),
            Err(error) => match error.kind() {
                // ConnectionRefused belongs to an earlier datagram that no socket received.
                io::ErrorKind::WouldBlock
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// Socket that shares its port with other sockets of the same user.
fn shared_socket(address: SocketAddrV4, level: Level) -> io::Result<UdpSocket> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    set_socket_reuseport(&socket, true)?;
    // The type of service sets a priority too, so it comes first.
    set_ip_tos(&socket, level.dscp() << DSCP_SHIFT)?;
    let socket = UdpSocket::from(socket);
    let priority = libc::c_int::from(level.get());
    set(&socket, libc::SO_PRIORITY, &priority)?;
    bind(&socket, &address)?;
    Ok(socket)
}

/// Sets an option of SOL_SOCKET whose value is a plain C structure or number.
fn set<T>(socket: &UdpSocket, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value is of the stated length and alive during the call, as are the steps that a program's structure
    // points to.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const LOCAL: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    const FOUR: ReceiveQueues = ReceiveQueues { count: 4, first: 1 };

    #[test]
    fn what_comes_from_this_host_came_by_no_queue() {
        let level = Level::new(6).expect("a level");
        let [one, other] = [0, 1].map(|_| ProbeSocket::bind(LOCAL, level, FOUR).expect("a port"));
        let to = other.address().expect("an address");
        one.send(b"?", to).expect("sent");
        let mut bytes = [0; 8];
        let patience = Duration::from_secs(5);
        let landed = other.receive(&mut bytes, patience).expect("no error");
        let landed = landed.expect("a datagram");
        let from = one.address().expect("an address");
        assert_eq!((landed.length, landed.from), (1, from));
        assert_eq!(landed.queue, None);
        let none = one.receive(&mut bytes, Duration::ZERO).expect("no error");
        assert_eq!(none, None);
    }

    #[test]
    fn a_driver_notes_its_queue_and_one() {
        let queues = |socket| FOUR.of_socket(socket);
        assert_eq!([0, 1, 4, 5].map(queues), [None, Some(0), Some(3), None]);
        let veth = ReceiveQueues { count: 2, first: 0 };
        let queues = |socket| veth.of_socket(socket);
        assert_eq!([0, 1, 2].map(queues), [Some(0), Some(1), None]);
    }

    #[test]
    fn a_port_that_somebody_has_alone_cannot_be_shared() {
        let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = taken.local_addr().expect("an address").port();
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let level = Level::new(0).expect("a level");
        let error = ProbeSocket::bind(address, level, FOUR).expect_err("taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
