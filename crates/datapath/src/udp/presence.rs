//! Interfaces that are removed and return while in use.
//!
//! Deleting an interface drops its group memberships, and an interface that returns has another index. Sockets survive
//! both, and unicast works again once there is a route. Groups must be joined again, and sent to through the new index.
//! This is done when the loop is idle, never on the path of a datagram. An interface with a changed address counts as
//! removed until its groups are joined again.

use isolane_wire::locator::Locator;

use super::interfaces::Interface;
use super::open::OpenLane;
use super::send::Egress;
use super::socket::Socket;
use crate::lane::Lane;

type Lanes = [Option<Box<OpenLane>>; Lane::COUNT];

/// Checks with one system call that an egress interface exists and has the same index. Joins the groups again on one
/// that returned with its address; a failure is retried at the next check.
pub(super) fn look_after(interface: &mut Interface, egress: &mut Egress, lanes: &Lanes) {
    let mut open = lanes.iter().flatten();
    let Some(socket) = open.next().map(|lane| &lane.own.socket) else {
        return;
    };
    let Ok(index) = socket.interface_index(&interface.name) else {
        // Renamed: memberships and routes depend only on the index.
        let renamed = socket.interface_name(interface.index);
        if let Some(name) = renamed.ok().filter(|_| egress.is_present) {
            interface.name = name;
        } else if egress.is_present {
            egress.is_present = false;
            each_group(lanes, |socket, group| {
                // Memberships per socket are limited; the kernel may already have dropped this one.
                let _ = socket.leave(group, interface.index);
                true
            });
        }
        return;
    };
    if egress.is_present && index == interface.index {
        return;
    }
    let is_back = socket.interface_has(&interface.name, egress.address);
    if is_back.unwrap_or(false) && rejoin(interface.index, index, lanes) {
        interface.index = index;
        egress.index = index;
        egress.is_present = true;
    }
}

/// Joins all groups again; returns true if all succeeded.
fn rejoin(former: u32, index: u32, lanes: &Lanes) -> bool {
    each_group(lanes, |socket, group| {
        let _ = socket.leave(group, former);
        match socket.join(group, index) {
            // Already joined by an attempt that failed for another lane.
            Err(error) => error.raw_os_error() == Some(libc::EADDRINUSE),
            Ok(()) => true,
        }
    })
}

/// Calls `is_done` for the group of each open lane; returns true if all calls do.
fn each_group(lanes: &Lanes, mut is_done: impl FnMut(&Socket, [u8; 4]) -> bool) -> bool {
    let mut all = true;
    for lane in lanes.iter().flatten() {
        let groups = lane.multicast.iter().filter_map(Locator::ipv4);
        for (source, group) in lane.group.iter().zip(groups) {
            all &= is_done(&source.socket, group);
        }
    }
    all
}
