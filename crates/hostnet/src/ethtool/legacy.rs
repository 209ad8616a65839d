//! What a driver says of itself (ethtool's ioctls): for the network namespace of the calling
//! thread, which sysfs need not show.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use serde::{Deserialize, Serialize};

/// Commands (linux/ethtool.h).
const FLAGS: u32 = 0x25;
const CHANNELS: u32 = 0x3c;
/// In FLAGS: VLAN tags of received frames are taken off by the device.
const STRIPS_VLAN_TAGS: u32 = 1 << 8;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct ChannelInformation {
    command: u32,
    max_receive: u32,
    max_transmit: u32,
    max_other: u32,
    max_combined: u32,
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// Queues of a device in use, as its driver counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Channels {
    /// Queues that receive only.
    pub receive: u32,
    /// Queues that transmit only.
    pub transmit: u32,
    /// Pairs of both.
    pub combined: u32,
}

impl Channels {
    /// Queues that receive.
    #[must_use]
    pub fn receiving(&self) -> u32 {
        self.receive + self.combined
    }
}

/// A device's queues.
pub fn channels(interface: &str) -> Option<Channels> {
    let mut information = ChannelInformation {
        command: CHANNELS,
        ..ChannelInformation::default()
    };
    ask(interface, &mut information)?;
    Some(Channels {
        receive: information.receive,
        transmit: information.transmit,
        combined: information.combined,
    })
}

/// Whether the device takes VLAN tags off received frames.
pub fn strips_vlan_tags(interface: &str) -> Option<bool> {
    let mut value = Value {
        command: FLAGS,
        data: 0,
    };
    ask(interface, &mut value)?;
    Some(value.data & STRIPS_VLAN_TAGS != 0)
}

/// Fills in the answer to the command that stands in front of `argument`.
fn ask<T>(interface: &str, argument: &mut T) -> Option<()> {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
    // SAFETY: zero is a value of all its fields.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = interface.as_bytes();
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = std::ptr::from_mut(argument).cast();
    // SAFETY: the request and the argument it points to are alive during the call, and the argument
    // is the structure of the command that stands in it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    (result == 0).then_some(())
}

/// The ioctl's number (linux/sockios.h).
const SIOCETHTOOL: libc::c_ulong = 0x8946;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_says_nothing() {
        assert_eq!(channels("a name that is too long"), None);
        assert_eq!(strips_vlan_tags("no-such-one"), None);
    }
}
