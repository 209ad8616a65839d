//! UDP socket: a safe interface for the system calls that set it up and read its drops and errors. The module
//! `transfer` sends and receives datagrams.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::{c_int, c_void, socklen_t};

use crate::limits::MAX_BOUNCES;

/// SO_MEMINFO, and the index of the drop counter in its result (linux/sock_diag.h).
const SO_MEMINFO: c_int = 55;
const SK_MEMINFO_DROPS: usize = 8;
const SK_MEMINFO_VARS: usize = 9;

/// Size of the control buffer for one error with its source address, in words of 8 bytes. The buffer consists of words
/// because control messages must be aligned.
const ERROR_CONTROL_WORDS: usize = 16;

pub(super) struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Creates a non-blocking, close-on-exec socket.
    pub(super) fn new() -> io::Result<Socket> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is passed.
        let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
        // SAFETY: the descriptor was just created and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Socket { fd })
    }

    pub(super) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(super) fn bind(&self, address: [u8; 4], port: u16) -> io::Result<()> {
        let name = socket_address(address, port);
        let len = size_of_val(&name) as socklen_t;
        // SAFETY: `name` is a sockaddr_in of the length given, for the time of the call.
        check(unsafe { libc::bind(self.raw(), (&raw const name).cast(), len) })?;
        Ok(())
    }

    /// Bound port.
    pub(super) fn port(&self) -> io::Result<u16> {
        let mut name = socket_address([0; 4], 0);
        let mut len = size_of_val(&name) as socklen_t;
        let raw = self.raw();
        // SAFETY: `name` has room for the length given; the socket's names are sockaddr_in.
        check(unsafe { libc::getsockname(raw, (&raw mut name).cast(), &raw mut len) })?;
        Ok(u16::from_be(name.sin_port))
    }

    /// Sets an option whose value is a plain C structure or number.
    pub(super) fn set<T: Copy>(&self, level: c_int, name: c_int, value: T) -> io::Result<()> {
        let len = size_of::<T>() as socklen_t;
        let value: *const c_void = (&raw const value).cast();
        // SAFETY: `value` points to `len` bytes for the time of the call.
        check(unsafe { libc::setsockopt(self.raw(), level, name, value, len) })?;
        Ok(())
    }

    /// Reads an option whose value is a number.
    pub(super) fn get(&self, level: c_int, name: c_int) -> io::Result<c_int> {
        let mut value: c_int = 0;
        let mut len = size_of::<c_int>() as socklen_t;
        let into: *mut c_void = (&raw mut value).cast();
        // SAFETY: `value` has room for `len` bytes.
        check(unsafe { libc::getsockopt(self.raw(), level, name, into, &raw mut len) })?;
        Ok(value)
    }

    /// Returns whether the kernel supports UDP_SEGMENT (since Linux 4.18); an older one would ignore it.
    pub(super) fn segments(&self) -> bool {
        self.get(libc::SOL_UDP, libc::UDP_SEGMENT).is_ok()
    }

    /// Joins a group on an interface.
    pub(super) fn join(&self, group: [u8; 4], interface: u32) -> io::Result<()> {
        let request = libc::ip_mreqn {
            imr_multiaddr: internet_address(group),
            imr_address: internet_address([0; 4]),
            imr_ifindex: interface as c_int,
        };
        self.set(libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, request)
    }

    /// Leaves a group on an interface, which may no longer exist.
    pub(super) fn leave(&self, group: [u8; 4], interface: u32) -> io::Result<()> {
        let request = libc::ip_mreqn {
            imr_multiaddr: internet_address(group),
            imr_address: internet_address([0; 4]),
            imr_ifindex: interface as c_int,
        };
        self.set(libc::IPPROTO_IP, libc::IP_DROP_MEMBERSHIP, request)
    }

    /// Current index of the interface with a name.
    pub(super) fn interface_index(&self, name: &str) -> io::Result<u32> {
        let mut request = interface_request(name);
        self.ask(libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the kernel has written the number.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex } as u32)
    }

    /// Current name of the interface with an index.
    pub(super) fn interface_name(&self, index: u32) -> io::Result<String> {
        let mut request = interface_request("");
        request.ifr_ifru.ifru_ifindex = index as c_int;
        self.ask(libc::SIOCGIFNAME, &mut request)?;
        let bytes = request.ifr_name.iter().map(|byte| *byte as u8);
        let name = bytes.take_while(|byte| *byte != 0).collect();
        Ok(String::from_utf8(name).unwrap_or_default())
    }

    /// Returns true if the interface is up and `address` is its first IPv4 address.
    pub(super) fn interface_has(&self, name: &str, address: [u8; 4]) -> io::Result<bool> {
        let mut request = interface_request(name);
        self.ask(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the kernel has written the flags.
        let flags = c_int::from(unsafe { request.ifr_ifru.ifru_flags });
        let mut request = interface_request(name);
        self.ask(libc::SIOCGIFADDR, &mut request)?;
        // SAFETY: the kernel has written an address of the socket's family, IPv4.
        let held = unsafe {
            let held = (&raw const request.ifr_ifru.ifru_addr).cast::<libc::sockaddr_in>();
            held.read_unaligned()
        };
        Ok(flags & libc::IFF_UP != 0 && held.sin_addr.s_addr.to_ne_bytes() == address)
    }

    fn ask(&self, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: the requests above take an ifreq, which is valid for the call.
        check(unsafe { libc::ioctl(self.raw(), what, ptr::from_mut(request)) })?;
        Ok(())
    }

    /// Requests a receive buffer of `bytes` bytes and returns the granted size. The kernel doubles the requested size
    /// for its overhead, and reports the doubled number.
    pub(super) fn set_receive_buffer(&self, bytes: usize) -> io::Result<usize> {
        let wanted = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        let forced = self.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wanted);
        if forced.is_err() {
            self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, wanted)?;
        }
        let doubled = self.get(libc::SOL_SOCKET, libc::SO_RCVBUF)?;
        Ok(usize::try_from(doubled / 2).unwrap_or(0))
    }

    /// Maximum kernel memory of the receive queue in bytes.
    pub(super) fn receive_buffer(&self) -> Option<usize> {
        let bytes = self.get(libc::SOL_SOCKET, libc::SO_RCVBUF).ok()?;
        usize::try_from(bytes).ok()
    }

    /// Datagrams dropped by the kernel at this socket since its creation, modulo 2^32. `None` before Linux 4.12.
    pub(super) fn kernel_drops(&self) -> Option<u32> {
        let mut answer = [0_u32; SK_MEMINFO_VARS];
        let mut len = size_of_val(&answer) as socklen_t;
        let (raw, into) = (self.raw(), (&raw mut answer).cast());
        // SAFETY: `answer` has room for `len` bytes.
        let result =
            unsafe { libc::getsockopt(raw, libc::SOL_SOCKET, SO_MEMINFO, into, &raw mut len) };
        let complete = result == 0 && len as usize == size_of_val(&answer);
        complete.then_some(answer[SK_MEMINFO_DROPS])
    }

    /// Takes errors of earlier datagrams from the error queue, at most [`MAX_BOUNCES`], and returns the number of those
    /// that other hosts reported (ICMP). Called after an unexplained failure: the kernel reports such an error once, as
    /// the result of the next call.
    pub(super) fn take_errors(&self) -> u64 {
        let mut bounced = 0;
        for _ in 0..MAX_BOUNCES {
            match self.take_error() {
                Some(origin) if origin == libc::SO_EE_ORIGIN_ICMP => bounced += 1,
                Some(_) => {}
                None => break,
            }
        }
        bounced
    }

    /// Takes the oldest error and returns its origin.
    fn take_error(&self) -> Option<u8> {
        let mut control = [0_u64; ERROR_CONTROL_WORDS];
        // SAFETY: all zeros is a message without buffers.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: `header` names no buffer except `control`, which outlives the call.
        let result = unsafe { libc::recvmsg(self.raw(), &raw mut header, flags) };
        if result < 0 {
            return None;
        }
        let mut origin = libc::SO_EE_ORIGIN_NONE;
        // SAFETY: the kernel filled `control`, and `header` has its length.
        unsafe {
            for_each_control(&header, |level, kind, data, len| {
                let is_error = level == libc::IPPROTO_IP && kind == libc::IP_RECVERR;
                if is_error && len >= size_of::<libc::sock_extended_err>() {
                    let error = data.cast::<libc::sock_extended_err>();
                    origin = error.read_unaligned().ee_origin;
                }
            });
        }
        Some(origin)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Calls `show` for each control message of a received header: level, kind, data and length.
///
/// # Safety
/// `header` was filled by the kernel, and its control buffer is alive.
pub(super) unsafe fn for_each_control(
    header: &libc::msghdr,
    mut show: impl FnMut(c_int, c_int, *const u8, usize),
) {
    // SAFETY: the control buffer is as the kernel filled it.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(ptr::from_ref(header)) };
    // SAFETY: a control message that the macros return lies in the buffer.
    while let Some(control) = unsafe { next.as_ref() } {
        // SAFETY: as above.
        let data = unsafe { libc::CMSG_DATA(next) };
        let head = data as usize - next as usize;
        // A usize with glibc, a socklen_t with musl.
        #[allow(clippy::unnecessary_cast)]
        let len = (control.cmsg_len as usize).saturating_sub(head);
        show(control.cmsg_level, control.cmsg_type, data, len);
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(ptr::from_ref(header), next) };
    }
}

/// Creates an ifreq for an interface; too long a name is cut, and will not be found.
pub(super) fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: zeros are a valid request.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let (_end, places) = request
        .ifr_name
        .split_last_mut()
        .unwrap_or((&mut 0, &mut []));
    for (place, byte) in places.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request
}

pub(super) fn internet_address(address: [u8; 4]) -> libc::in_addr {
    libc::in_addr {
        s_addr: u32::from_ne_bytes(address),
    }
}

pub(super) fn socket_address(address: [u8; 4], port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: internet_address(address),
        sin_zero: [0; 8],
    }
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
