//! Separate network namespace of the program, and interfaces in it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::ptr;

use isolane_wire::locator::Locator;
use isolane_wire::{ipv4, udp};

/// TUN interface whose other end is this program.
pub(crate) struct Tunnel(File);

impl Tunnel {
    pub(crate) fn open(name: &str, address: [u8; 4]) -> io::Result<Tunnel> {
        const SETTINGS: libc::c_int = libc::IFF_TUN | libc::IFF_NO_PI;
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        let mut request = interface_request(name);
        request.ifr_ifru.ifru_flags = SETTINGS as libc::c_short;
        control(&file, libc::TUNSETIFF, &mut request)?;

        set_address(name, address)?;
        set_up(name, true)?;
        Ok(Tunnel(file))
    }

    /// Injects an empty datagram.
    pub(crate) fn inject(&self, from: [u8; 4], to: Locator) {
        let ip = ipv4::Repr {
            source: from,
            destination: to.ipv4().expect("an IPv4 group"),
            protocol: ipv4::PROTOCOL_UDP,
            dscp: 0,
            time_to_live: 1,
            dont_fragment: true,
            identification: 0,
            payload_len: udp::HEADER_BYTES,
        };
        let datagram = udp::Repr {
            source_port: 4_000,
            destination_port: to.port as u16,
            payload_len: 0,
        };
        let mut packet = [0; ipv4::HEADER_BYTES + udp::HEADER_BYTES];
        let at = ip.emit(&mut packet);
        datagram.emit(&mut packet[at..]);
        (&self.0).write_all(&packet).expect("a packet comes in");
    }

    /// Returns the next IPv4 packet with UDP; the kernel sends other packets, too.
    pub(crate) fn next_udp(&self) -> Vec<u8> {
        let mut packet = vec![0; 2_048];
        loop {
            let len = (&self.0).read(&mut packet).expect("a packet went out");
            let is_udp = packet[0] == 0x45 && packet[9] == 17;
            if is_udp {
                packet.truncate(len);
                return packet;
            }
        }
    }
}

/// Enters a new network namespace; without root, one within a new user namespace.
pub(crate) fn enter_namespace() -> io::Result<()> {
    for flags in [libc::CLONE_NEWNET, libc::CLONE_NEWUSER | libc::CLONE_NEWNET] {
        // SAFETY: no memory is passed; this is the program's only thread.
        if unsafe { libc::unshare(flags) } == 0 {
            return Ok(());
        }
    }
    Err(io::Error::last_os_error())
}

pub(crate) fn set_loopback_flags(flags: libc::c_int) -> io::Result<()> {
    set_flags("lo", flags)
}

fn set_flags(name: &str, flags: libc::c_int) -> io::Result<()> {
    // Bound to nothing: loopback may be down.
    // SAFETY: no memory is passed.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    control(&socket, libc::SIOCSIFFLAGS, &mut request)
}

fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: zeros are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// Sets an interface up or down.
pub(crate) fn set_up(name: &str, is_up: bool) -> io::Result<()> {
    let flags = if is_up { libc::IFF_UP } else { 0 };
    set_flags(name, flags | libc::IFF_MULTICAST)
}

/// Sets the address of an interface, in a network of 24 bits.
pub(crate) fn set_address(name: &str, address: [u8; 4]) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    assign(&socket, name, libc::SIOCSIFADDR, address)?;
    assign(&socket, name, libc::SIOCSIFNETMASK, [255, 255, 255, 0])
}

/// Sets the address or the mask of an interface.
fn assign(socket: &UdpSocket, name: &str, what: libc::Ioctl, address: [u8; 4]) -> io::Result<()> {
    let mut named = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(address),
        },
        sin_zero: [0; 8],
    };
    let mut request = interface_request(name);
    // SAFETY: both are socket addresses of 16 bytes, made of plain numbers.
    request.ifr_ifru.ifru_addr = unsafe { (&raw mut named).cast::<libc::sockaddr>().read() };
    control(socket, what, &mut request)
}

fn control(file: &impl AsRawFd, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every request of this program takes an ifreq.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), what, ptr::from_mut(request)) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
