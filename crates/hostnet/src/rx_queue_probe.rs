//! A UDP port that tells by which receive queue each datagram came: how steering is looked at from above
//! the stack, whatever the driver counts and names.
//!
//! As many sockets share the port as there are queues (SO_REUSEPORT), and a filter of two steps
//! chooses among them: that of the queue the driver noted on the frame (`queue` of linux/filter.h).
//! So the socket a datagram is found in names its queue, exactly and for each datagram. (What the
//! kernel notes on sockets themselves, SO_INCOMING_NAPI_ID, stays what it was first where a socket
//! is not connected.)
//!
//! A driver notes its queue and one; nought, where nobody noted it. veth notes nothing: the number of
//! the sender's transmit queue stays on the frame, and that is its receive queue.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use isolane_wire::level::Level;

use crate::limits::MAX_LANDING_QUEUES;
use crate::xdp_facts::XdpFacts;

/// DSCP takes the upper six bits of the byte that IP_TOS sets.
const DSCP_SHIFT: u32 = 2;

/// The receive queues of an interface, as far as landings are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveQueues {
    count: u32,
    /// What a driver notes for queue 0.
    first: u32,
}

impl ReceiveQueues {
    /// Those of this network namespace's interface; `None` if there is none of that name.
    #[must_use]
    pub fn of(interface: &str) -> Option<Self> {
        let device = XdpFacts::look(interface).device?;
        let count = device.receive_queues().unwrap_or(1);
        let is_veth = device.driver.as_deref() == Some("veth");
        Some(Self {
            count: count.clamp(1, MAX_LANDING_QUEUES),
            first: u32::from(!is_veth),
        })
    }

    /// How many there are.
    #[must_use]
    pub fn count(self) -> u32 {
        self.count
    }

    /// Sockets of a port: one a queue, and one for what came by none.
    fn sockets(self) -> u32 {
        self.first + self.count + 1
    }

    /// The queue of a socket's datagrams.
    fn of_socket(self, socket: u32) -> Option<u32> {
        let queue = socket.checked_sub(self.first)?;
        (queue < self.count).then_some(queue)
    }
}

/// A UDP port whose datagrams are marked as those of a level are, and tell their queue.
#[derive(Debug)]
pub struct ProbeSocket {
    /// By what the driver notes; the last one for what it should not.
    sockets: Vec<UdpSocket>,
    queues: ReceiveQueues,
}

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    /// Its bytes, of which what did not fit is cut off.
    pub length: usize,
    /// Who sent it.
    pub from: SocketAddrV4,
    /// The queue it came by; `None`: by none of the interface's, as from this host.
    pub queue: Option<u32>,
}

impl ProbeSocket {
    /// Takes a port. Datagrams it sends have the level's SO_PRIORITY and DSCP.
    ///
    /// # Errors
    /// The address is taken or not of this host; the kernel refuses the priority (7 needs
    /// CAP_NET_ADMIN).
    pub fn bind(address: SocketAddrV4, level: Level, queues: ReceiveQueues) -> io::Result<Self> {
        // A port that somebody has, this program's own user too, would be shared silently, and its datagrams told by
        // the wrong queue: whoever does not share finds it taken.
        if address.port() != 0 {
            drop(UdpSocket::bind(address)?);
        }
        let first = shared_socket(address, level)?;
        // With port 0 the kernel chose one: the others are to have the same.
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

    /// The filter: the socket of the noted number, the last one if there is none.
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
        // The group has one filter, and any of its sockets takes it.
        match self.sockets.first() {
            Some(socket) => set(
                socket,
                libc::SOL_SOCKET,
                libc::SO_ATTACH_REUSEPORT_CBPF,
                &program,
            ),
            None => Ok(()),
        }
    }

    /// Where it is.
    ///
    /// # Errors
    /// What the system said.
    pub fn address(&self) -> io::Result<SocketAddrV4> {
        match self.sockets.first().map(UdpSocket::local_addr) {
            Some(Ok(SocketAddr::V4(address))) => Ok(address),
            Some(Err(error)) => Err(error),
            _ => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// What the system said.
    pub fn send(&self, bytes: &[u8], to: SocketAddrV4) -> io::Result<()> {
        match self.sockets.first() {
            Some(socket) => socket.send_to(bytes, to).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The next datagram; `None` if none came for so long.
    ///
    /// # Errors
    /// What the system said.
    pub fn receive(&self, bytes: &mut [u8], patience: Duration) -> io::Result<Option<Landed>> {
        let mut waiting: Vec<libc::pollfd> = self
            .sockets
            .iter()
            .map(|socket| libc::pollfd {
                fd: socket.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            })
            .collect();
        let milliseconds = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the list is alive during the call, and of the length given.
        let ready = unsafe {
            libc::poll(
                waiting.as_mut_ptr(),
                waiting.len() as libc::nfds_t,
                milliseconds,
            )
        };
        if ready < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        }
        let is_ready = |waiting: &libc::pollfd| waiting.revents != 0;
        let Some(found) = waiting.iter().position(is_ready) else {
            return Ok(None);
        };
        let Some(socket) = self.sockets.get(found) else {
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
                // An earlier datagram found nobody: the kernel says so in place of a later call's result.
                io::ErrorKind::WouldBlock
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// A socket that shares its port with others of this process's user.
fn shared_socket(address: SocketAddrV4, level: Level) -> io::Result<UdpSocket> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let descriptor = unsafe { libc::socket(libc::AF_INET, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    let socket = UdpSocket::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    set(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, &1)?;
    let class = libc::c_int::from(level.dscp()) << DSCP_SHIFT;
    // The type of service sets a priority of its own, so it comes first.
    set(&socket, libc::IPPROTO_IP, libc::IP_TOS, &class)?;
    let priority = libc::c_int::from(level.get());
    set(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &priority)?;
    let name = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(address.ip().octets()),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: the name is a sockaddr_in of the length given, alive during the call.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const name).cast(),
            size_of_val(&name) as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(socket),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets an option whose value is a plain C structure or number.
fn set<T>(socket: &UdpSocket, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value is of the stated length and alive during the call; what a program's structure
    // points to is alive as long as the caller's steps.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
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
