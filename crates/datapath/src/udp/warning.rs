//! Warnings of the sockets. Each says what is missing, why, and what to do.

use std::fmt;

use crate::lane::Lane;
use crate::warning::Warning;

/// Code of the warning that a receive buffer is smaller than requested.
pub const SMALL_RECEIVE_BUFFER: &str = "small_receive_buffer";

/// The interface does not support multicast.
pub(super) fn no_multicast(interface: &str, reason: impl fmt::Display) -> Warning {
    let text = format!(
        "no multicast on interface {interface}: {reason}. Unicast goes on; peers there must be \
         named, or the interface given multicast: ip link set {interface} multicast on"
    );
    Warning::new("no_multicast", text)
}

/// The host has more interfaces than the limit.
pub(super) fn too_many_interfaces(interface: &str, limit: usize) -> Warning {
    let text =
        format!("interface {interface} is not used, {limit} others are: name those that are meant");
    Warning::new("too_many_interfaces", text)
}

/// The kernel granted a smaller receive buffer, in bytes.
pub(super) fn small_receive_buffer(lane: Lane, wanted: usize, got: usize) -> Warning {
    let text = format!(
        "the receive buffer of {lane} has {got} bytes instead of {wanted}: raise \
         net.core.rmem_max, or give the program CAP_NET_ADMIN"
    );
    Warning::of_lane(SMALL_RECEIVE_BUFFER, lane, text)
}

/// The kernel refused the lane's SO_PRIORITY.
pub(super) fn no_priority(lane: Lane, priority: u8, reason: impl fmt::Display) -> Warning {
    let text = format!(
        "datagrams of {lane} leave without SO_PRIORITY {priority} ({reason}): queues of this \
         host do not prefer them. Give the program CAP_NET_ADMIN. Their DSCP is set"
    );
    Warning::of_lane("no_priority", lane, text)
}

/// No discovery port of the RTPS formula (RTPS 2.5 §9.6.2.3) is free; the kernel chose `port` after `tried` ports.
pub(super) fn kernel_port(domain: u32, tried: u32, port: u16) -> Warning {
    let text = format!(
        "all {tried} participant ports of domain {domain} are taken on this host: discovery uses port {port}. \
         Participants that only name this host as a peer do not find this one; multicast, or naming them here, does"
    );
    Warning::of_lane("kernel_port", Lane::Discovery, text)
}
