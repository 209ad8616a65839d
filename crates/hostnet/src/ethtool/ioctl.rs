//! Steering of received frames to queues, as drivers offer it: the receive hash with its table
//! ([`rss`](super::rss)), and rules for single flows ([`ntuple`](super::ntuple)).
//!
//! By ethtool's ioctls, which every kernel has: netlink tells the hash since Linux 6.2, sets it since
//! 6.17, and knows no rules. All act on the network namespace of the calling thread.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// The command, and where its answer holds the driver's name (`struct ethtool_drvinfo`).
const GET_DRIVER: u32 = 0x3;
const DRIVER_AT: usize = 4;
const DRIVER_BYTES: usize = 196;

/// The name of a device's driver: the one that sysfs shows only where it was mounted for this
/// namespace.
#[must_use]
pub fn driver(interface: &str) -> Option<String> {
    let mut answer = Argument::new(GET_DRIVER, DRIVER_BYTES);
    // SAFETY: the fixed structure.
    unsafe { answer.exchange(interface) }.ok()?;
    let name: [u8; 32] = answer.get(DRIVER_AT);
    let name = name.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty())
}

/// A structure of ethtool's ioctl: as many bytes as the kernel reads and writes for the command in
/// its first four.
///
/// The length is the safety of it: the kernel takes the sizes of what follows the fixed part from
/// fields of it, so whoever fills these in gives a buffer that holds as much.
pub(super) struct Argument(Vec<u64>);

impl Argument {
    /// Room for so many bytes, all zero but the command. It is made of words of eight bytes, since
    /// the structures hold such.
    pub(super) fn new(command: u32, bytes: usize) -> Argument {
        let mut argument = Argument(vec![0; bytes.div_ceil(8)]);
        argument.set(0, command.to_ne_bytes());
        argument
    }

    pub(super) fn byte(&self, at: usize) -> u8 {
        self.0[at / 8].to_ne_bytes()[at % 8]
    }

    /// The bytes that begin there.
    pub(super) fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|index| self.byte(at + index))
    }

    pub(super) fn number(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.get(at))
    }

    pub(super) fn long(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.get(at))
    }

    pub(super) fn set<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        for (index, byte) in (at..).zip(bytes) {
            let mut word = self.0[index / 8].to_ne_bytes();
            word[index % 8] = byte;
            self.0[index / 8] = u64::from_ne_bytes(word);
        }
    }

    /// Has the kernel read and fill it.
    ///
    /// # Safety
    /// With the sizes that stand in it the command's structure ends within it.
    pub(super) unsafe fn exchange(&mut self, interface: &str) -> io::Result<()> {
        let socket = UdpSocket::bind(("0.0.0.0", 0))?;
        // SAFETY: zero is a value of all its fields.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let name = interface.as_bytes();
        // The last byte stays the zero that ends the name.
        if name.len() >= request.ifr_name.len() || name.contains(&0) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name) {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = self.0.as_mut_ptr().cast();
        // SAFETY: the request and the argument are alive during the call, and the caller says that
        // the structure the kernel reads and writes ends within the argument.
        match unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// The ioctl's number (linux/sockios.h).
const SIOCETHTOOL: libc::c_ulong = 0x8946;

#[cfg(test)]
mod tests {
    use super::super::ntuple::rules;
    use super::super::rss::receive_hash;
    use super::*;

    #[test]
    fn bytes_stand_where_they_were_put() {
        let mut argument = Argument::new(7, 20);
        assert_eq!((argument.number(0), argument.0.len()), (7, 3));
        argument.set(6, [1, 2, 3, 4]);
        assert_eq!(argument.get(6), [1, 2, 3, 4]);
        assert_eq!(argument.get(4), [0, 0]);
        assert_eq!(argument.number(0), 7);
    }

    #[test]
    fn what_a_device_lacks_is_an_error_with_the_systems_reason() {
        let error = receive_hash("no-such-one").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        let error = rules("a name that is too long").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        let error = receive_hash("lo").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
