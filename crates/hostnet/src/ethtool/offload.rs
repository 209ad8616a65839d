//! Switching a network device's offloads, by the ioctl that every kernel has.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// An offload, by the number of the ethtool command that sets it (linux/ethtool.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Offload {
    /// TCP segmentation by the device.
    TcpSegmentation = 0x1f,
    /// Segmentation of any protocol just before the device.
    GenericSegmentation = 0x24,
    /// Merging of received segments.
    GenericReceive = 0x2c,
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Switches an offload of `interface` on or off, in the network namespace `socket` was opened in.
pub fn switch(socket: impl AsFd, interface: &str, offload: Offload, is_on: bool) -> io::Result<()> {
    let mut value = EthtoolValue {
        command: offload as u32,
        data: is_on.into(),
    };
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_data: (&raw mut value).cast(),
        },
    };
    // The last byte stays the terminating zero.
    if interface.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCETHTOOL reads an `ifreq` whose data points to an `ethtool_value`; both outlive
    // the call.
    let result = unsafe {
        libc::ioctl(
            socket.as_fd().as_raw_fd(),
            libc::SIOCETHTOOL as _,
            &raw mut request,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
