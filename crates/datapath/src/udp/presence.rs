//! Interfaces that go away while they are used, and come back.
//!
//! An interface that is deleted takes its memberships in groups with it, and one that comes back
//! under the same name has another number. Sockets survive both, and unicast works again by
//! itself as soon as there is a route; groups have to be joined again, and sent to by the new
//! number. That is done here, when the loop has time: nothing on the way of a datagram looks. An
//! interface whose address has changed counts as gone until its groups are joined again.

use isolane_wire::locator::Locator;

use super::interfaces::Interface;
use super::open::OpenLane;
use super::send::Egress;
use super::socket::Socket;
use crate::lane::Lane;

type Lanes = [Option<Box<OpenLane>>; Lane::COUNT];

/// Finds out by one system call whether the interface that this multicast leaves by is there, and
/// is the one it was. One that is back with its address is joined on again; where that does not
/// work yet, it is tried again next time.
pub(super) fn look_after(interface: &mut Interface, egress: &mut Egress, lanes: &Lanes) {
    let mut open = lanes.iter().flatten();
    let Some(socket) = open.next().map(|lane| &lane.own.socket) else {
        return;
    };
    let Ok(index) = socket.interface_index(&interface.name) else {
        // A name is only a name: memberships and routes are those of the number.
        let renamed = socket.interface_name(interface.index);
        if let Some(name) = renamed.ok().filter(|_| egress.is_present) {
            interface.name = name;
        } else if egress.is_present {
            egress.is_present = false;
            each_group(lanes, |socket, group| {
                // A socket has room for some memberships only; the kernel may have forgotten it.
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

/// Joins all groups again; says whether all could be.
fn rejoin(former: u32, index: u32, lanes: &Lanes) -> bool {
    each_group(lanes, |socket, group| {
        let _ = socket.leave(group, former);
        match socket.join(group, index) {
            // Joined before, by an attempt that failed for another lane.
            Err(error) => error.raw_os_error() == Some(libc::EADDRINUSE),
            Ok(()) => true,
        }
    })
}

/// Whether it is true for the group of each open lane; all are tried.
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
