//! Warnings of the lanes. Each says what is missing, why, and what to do.

use std::fmt;

use isolane_datapath::{Lane, Warning};

use super::error::XdpError;

/// Code of the warning that levels which should have lanes use kernel sockets.
pub const NO_DEVICE_LANES: &str = "no_device_lanes";

fn about(code: &'static str, interface: &str, what: impl fmt::Display) -> Warning {
    Warning::new(code, format!("interface {interface}: {what}"))
}

/// Warning that levels configured for device lanes use kernel sockets.
pub(super) fn no_device_lanes(interface: &str, reason: &XdpError) -> Warning {
    let text =
        format!("interface {interface} gets no lanes, and uses kernel sockets instead: {reason}");
    Warning::new(NO_DEVICE_LANES, text)
}

/// Warning that requested budgets are not enforced until the first lane opens.
pub(super) fn budgets_wait(interface: &str) -> Warning {
    let what = "budgets of levels and of the interface are not enforced until an endpoint of a level with a lane is \
                created: the levels of the present endpoints have no lane";
    about("budgets_wait", interface, what)
}

/// Warning that requested budgets are not enforced, because there are no lanes.
pub(super) fn no_budgets(interface: &str) -> Warning {
    let what = "budgets of levels and of the interface are not enforced, because without lanes, nothing counts \
                datagrams before they are received";
    about("no_budgets", interface, what)
}

/// Warning that the budget of a level is not enforced, because the level has no lane.
pub(super) fn no_budget_of(interface: &str, lane: Lane) -> Warning {
    let what = format!(
        "the budget of {lane} is not enforced, because it has no lane that counts datagrams"
    );
    Warning {
        lane: Some(lane),
        ..about("no_budget", interface, what)
    }
}

/// Warning that this process, not the kernel, replenishes the budgets.
pub(super) fn replenished_here(interface: &str) -> Warning {
    let what = "this program's loop refills the budgets, about each millisecond and whenever it runs, because the \
                kernel has no timers for this (Linux 5.15 and later have them)";
    about("replenished_here", interface, what)
}

/// Warning that the interface was removed.
pub(super) fn interface_gone(interface: &str) -> Warning {
    let what = "it was deleted or moved to another network namespace; its lanes are gone, and kernel sockets replace \
                them. Create the participant again when the interface is back";
    about("interface_gone", interface, what)
}

/// Warning that received frames have no time stamps.
pub(super) fn no_stamps(interface: &str) -> Warning {
    let what = "received frames have no room for timestamps (its driver leaves none, or an XDP program before \
                isolane's used it), so datagrams of lanes have none";
    about("no_stamps", interface, what)
}

/// Warning that a lane's flows could not be registered after a change of address.
pub(super) fn address_changed(interface: &str, lane: Lane, error: &XdpError) -> Warning {
    let what = format!(
        "its address has changed, and {lane} uses kernel sockets from now on: {error}. Create the participant again"
    );
    Warning {
        lane: Some(lane),
        ..about("address_changed", interface, what)
    }
}

/// Warning that frames of the new MTU do not fit the chunks.
pub(super) fn mtu_raised(interface: &str, mtu_bytes: usize, room_bytes: usize) -> Warning {
    let what = format!(
        "its MTU was raised to {mtu_bytes} bytes: frames longer than {room_bytes} do not fit the chunks that lanes \
         were opened with, and are dropped (fill_empty). Lower the MTU again, or create the participant again"
    );
    about("mtu_raised", interface, what)
}
