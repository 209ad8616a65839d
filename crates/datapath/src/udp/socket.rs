//! One UDP socket: system calls behind a safe type. Set-up only, besides `kernel_drops` and
//! `take_errors`; what moves datagrams is in `receive` and `send`.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::{c_int, c_void, socklen_t};

use crate::limits::MAX_BOUNCES;

/// SO_MEMINFO and the place of the drop counter in its answer (linux/sock_diag.h).
const SO_MEMINFO: c_int = 55;
const SK_MEMINFO_DROPS: usize = 8;
const SK_MEMINFO_VARS: usize = 9;

/// Room for one error with the address it came from, in words so that it is aligned.
const ERROR_CONTROL_WORDS: usize = 16;

pub(super) struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Non-blocking, closed on exec.
    pub(super) fn new() -> io::Result<Socket> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is passed.
        let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
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

    /// The port that the kernel chose.
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

    /// An option whose value is a number.
    pub(super) fn get(&self, level: c_int, name: c_int) -> io::Result<c_int> {
        let mut value: c_int = 0;
        let mut len = size_of::<c_int>() as socklen_t;
        let into: *mut c_void = (&raw mut value).cast();
        // SAFETY: `value` has room for `len` bytes.
        check(unsafe { libc::getsockopt(self.raw(), level, name, into, &raw mut len) })?;
        Ok(value)
    }

    /// Joins a group on one interface.
    pub(super) fn join(&self, group: [u8; 4], interface: u32) -> io::Result<()> {
        let request = libc::ip_mreqn {
            imr_multiaddr: internet_address(group),
            imr_address: internet_address([0; 4]),
            imr_ifindex: interface as c_int,
        };
        self.set(libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, request)
    }

    /// Leaves a group on one interface, which may not be there any more.
    pub(super) fn leave(&self, group: [u8; 4], interface: u32) -> io::Result<()> {
        let request = libc::ip_mreqn {
            imr_multiaddr: internet_address(group),
            imr_address: internet_address([0; 4]),
            imr_ifindex: interface as c_int,
        };
        self.set(libc::IPPROTO_IP, libc::IP_DROP_MEMBERSHIP, request)
    }

    /// The number that the interface of this name has now.
    pub(super) fn interface_index(&self, name: &str) -> io::Result<u32> {
        let mut request = interface_request(name);
        self.ask(libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the kernel has written the number.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex } as u32)
    }

    /// The name that the interface of this number has now.
    pub(super) fn interface_name(&self, index: u32) -> io::Result<String> {
        let mut request = interface_request("");
        request.ifr_ifru.ifru_ifindex = index as c_int;
        self.ask(libc::SIOCGIFNAME, &mut request)?;
        let bytes = request.ifr_name.iter().map(|byte| *byte as u8);
        let name = bytes.take_while(|byte| *byte != 0).collect();
        Ok(String::from_utf8(name).unwrap_or_default())
    }

    /// Whether the interface of this name is up, and the first of its IPv4 addresses is this one.
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

    /// Asks for a receive buffer of so many bytes, and says how many there are. The kernel
    /// doubles what is asked for, for its own overhead, and reports the doubled number.
    pub(super) fn set_receive_buffer(&self, bytes: usize) -> io::Result<usize> {
        let wanted = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        let forced = self.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wanted);
        if forced.is_err() {
            self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, wanted)?;
        }
        let doubled = self.get(libc::SOL_SOCKET, libc::SO_RCVBUF)?;
        Ok(usize::try_from(doubled / 2).unwrap_or(0))
    }

    /// Bytes of kernel memory that the receive queue may take.
    pub(super) fn receive_buffer(&self) -> Option<usize> {
        let bytes = self.get(libc::SOL_SOCKET, libc::SO_RCVBUF).ok()?;
        usize::try_from(bytes).ok()
    }

    /// Datagrams the kernel has dropped at this socket since it was made, modulo 2^32. `None`
    /// where the kernel does not say (before Linux 4.12).
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

    /// Takes errors of earlier datagrams off the socket, [`MAX_BOUNCES`] at most, and says how
    /// many of them other hosts reported (ICMP). To be called when a call failed for no reason
    /// of its own: the kernel reports such an error once in place of the next call's result.
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

    /// The origin of the oldest error.
    fn take_error(&self) -> Option<u8> {
        let mut control = [0_u64; ERROR_CONTROL_WORDS];
        // SAFETY: all zeros is a message without buffers.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: `header` names no buffer but `control`, which lives longer than the call.
        let result = unsafe { libc::recvmsg(self.raw(), &raw mut header, flags) };
        if result < 0 {
            return None;
        }
        let mut origin = libc::SO_EE_ORIGIN_NONE;
        // SAFETY: the kernel filled `control`, and `header` says how far.
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

/// Shows each control message of a received header: its level, kind, data and its length.
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

/// A question about the interface of this name; a name that is too long is cut, and not found.
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
