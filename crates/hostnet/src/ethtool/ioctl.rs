//! Ethtool's ioctl (SIOCETHTOOL), in the calling thread's network namespace.

use std::io;
use std::os::fd::AsRawFd;

use crate::link::any_socket;

/// Command, and offset of the driver's name in its answer (`struct ethtool_drvinfo`).
const GET_DRIVER: u32 = 0x3;
const DRIVER_AT: usize = 4;
const DRIVER_BYTES: usize = 196;

/// Driver name of a device. sysfs shows it only if it was mounted for this namespace.
#[must_use]
pub fn driver(interface: &str) -> Option<String> {
    let mut answer = Argument::new(GET_DRIVER, DRIVER_BYTES);
    // SAFETY: the fixed structure.
    unsafe { answer.exchange(interface) }.ok()?;
    let name: [u8; 32] = answer.get(DRIVER_AT);
    let name = name.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty())
}

/// Argument structure of the ioctl, with the command in its first four bytes.
///
/// Its length is a safety condition: the kernel takes the sizes of the lists behind the fixed part from fields of that
/// part, so a caller that sets these fields provides room for the lists.
pub(super) struct Argument(Vec<u64>);

impl Argument {
    /// Zeroed structure of `bytes` bytes with the command set. Its 8-byte words align all fields.
    pub(super) fn new(command: u32, bytes: usize) -> Argument {
        let mut argument = Argument(vec![0; bytes.div_ceil(8)]);
        argument.set(0, command.to_ne_bytes());
        argument
    }

    pub(super) fn byte(&self, at: usize) -> u8 {
        self.0[at / 8].to_ne_bytes()[at % 8]
    }

    /// Bytes from offset `at`.
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

    /// Lets the kernel read and fill the structure.
    ///
    /// # Safety
    /// The structure of the command, with the sizes in its fields, ends within this argument.
    pub(super) unsafe fn exchange(&mut self, interface: &str) -> io::Result<()> {
        let socket = any_socket()?;
        // SAFETY: zero is a value of all its fields.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let name = interface.as_bytes();
        // The last byte stays the terminating zero.
        if name.len() >= request.ifr_name.len() || name.contains(&0) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name) {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = self.0.as_mut_ptr().cast();
        // SAFETY: the request and the argument are alive during the call, and the caller guarantees that the structure
        // the kernel reads and writes ends within the argument.
        match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

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
