//! Network interfaces of the host: list, selection, link rate, and changes while in use.
//!
//! # Removed and returned interfaces
//!
//! Deleting an interface drops its group memberships, and an interface that returns has another index. Sockets survive
//! both events, and unicast works again once there is a route. Multicast needs the groups joined again, and the new
//! index. The check that does this runs when the loop is idle, never on the path of a datagram. An interface with a
//! changed address counts as removed until its groups are joined again.
//!
//! # Changed addresses
//!
//! A netlink socket reports changes of IPv4 addresses (rtnetlink(7), RTMGRP_IPV4_IFADDR). A message only tells that
//! something changed; [`list`] then reads the addresses.

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use isolane_wire::locator::Locator;
use libc::{c_int, c_void, socklen_t};

use super::lane::OpenLane;
use super::socket::{Socket, interface_request};
use super::transfer::Egress;
use crate::contract::{OpenError, Warning};
use crate::lane::Lane;
use crate::limits::{MAX_ADDRESS_CHANGES, MAX_INTERFACES, USUAL_LINK_BITS_PER_S};
use crate::network::Interfaces;

/// IPv4 address of this host with its prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// IPv4 address.
    pub address: [u8; 4],
    /// Prefix length, 0 to 32.
    pub prefix_bits: u8,
}

/// Interface that is up and has an IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Index in the kernel.
    pub index: u32,
    /// IPv4 addresses, at least one.
    pub addresses: Vec<InterfaceAddress>,
    /// True for loopback.
    pub is_loopback: bool,
    /// True if it supports multicast (IFF_MULTICAST).
    pub is_multicast: bool,
}

impl Interface {
    /// Returns whether the address is in a network of the interface.
    pub(super) fn reaches(&self, address: [u8; 4]) -> bool {
        self.addresses.iter().any(|own| {
            let differing = u32::from_be_bytes(own.address) ^ u32::from_be_bytes(address);
            differing.leading_zeros() >= u32::from(own.prefix_bits)
        })
    }
}

/// Lists all interfaces that are up and have an IPv4 address, in the kernel's order.
///
/// # Errors
/// The error of the system.
pub fn list() -> io::Result<Vec<Interface>> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: `first` is a valid pointer to store the list's head.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found: Vec<Interface> = Vec::new();
    let mut next = first;
    // SAFETY: each entry of the list, and the data it points to, lives until freeifaddrs.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: as above.
        if let Some(interface) = unsafe { read_entry(entry) } {
            add(&mut found, interface);
        }
        next = entry.ifa_next;
    }
    // SAFETY: `first` came from getifaddrs, and no borrow of the list remains.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// Adds an entry; getifaddrs returns one for each address of an interface.
fn add(found: &mut Vec<Interface>, interface: Interface) {
    let known = found.iter_mut().find(|known| known.name == interface.name);
    match known {
        Some(known) => known.addresses.extend(interface.addresses),
        None => found.push(interface),
    }
}

/// # Safety
/// The entry's name and address are valid.
unsafe fn read_entry(entry: &libc::ifaddrs) -> Option<Interface> {
    let flags = entry.ifa_flags as c_int;
    let has = |flag: c_int| flags & flag != 0;
    // SAFETY: an entry's address is null or points to an address of the family it names.
    let family = unsafe { entry.ifa_addr.as_ref() }?.sa_family;
    if i32::from(family) != libc::AF_INET || !has(libc::IFF_UP) {
        return None;
    }
    // SAFETY: the family guarantees that both are null or sockaddr_in.
    let (address, mask) = unsafe { (read_ipv4(entry.ifa_addr)?, read_ipv4(entry.ifa_netmask)) };
    let mask = mask.map_or(u32::MAX, u32::from_be_bytes);
    // SAFETY: an entry's name is a NUL-terminated string.
    let name = unsafe { CStr::from_ptr(entry.ifa_name) };
    // SAFETY: as above.
    let index = unsafe { libc::if_nametoindex(entry.ifa_name) };
    Some(Interface {
        // An additional address may have a label ("eth0:1"), which is the same interface.
        name: name.to_string_lossy().split(':').next()?.to_owned(),
        index,
        addresses: vec![InterfaceAddress {
            address,
            prefix_bits: mask.leading_ones() as u8,
        }],
        is_loopback: has(libc::IFF_LOOPBACK),
        is_multicast: has(libc::IFF_MULTICAST),
    })
}

/// # Safety
/// The name is null or points to a sockaddr_in, of whatever alignment.
unsafe fn read_ipv4(name: *const libc::sockaddr) -> Option<[u8; 4]> {
    if name.is_null() {
        return None;
    }
    // SAFETY: `name` points to a sockaddr_in; the read is unaligned.
    let name = unsafe { name.cast::<libc::sockaddr_in>().read_unaligned() };
    Some(name.sin_addr.s_addr.to_ne_bytes())
}

/// Selects the wanted interfaces. Warns of those beyond the limit, and of those without multicast.
pub(super) fn choose(
    wanted: &Interfaces,
    multicast: bool,
    present: Vec<Interface>,
) -> Result<(Vec<Interface>, Vec<Warning>), OpenError> {
    let mut chosen = match wanted {
        Interfaces::All => {
            let (loopback, others): (Vec<_>, Vec<_>) = present
                .into_iter()
                .partition(|interface| interface.is_loopback);
            if others.is_empty() { loopback } else { others }
        }
        Interfaces::Loopback => present
            .into_iter()
            .filter(|interface| interface.is_loopback)
            .collect(),
        Interfaces::Named(names) => find_all(names, &present)?,
    };
    if chosen.is_empty() {
        return Err(OpenError::NoInterfaces);
    }
    let mut warnings = Vec::new();
    for interface in chosen.drain(chosen.len().min(MAX_INTERFACES)..) {
        warnings.push(too_many_interfaces(&interface.name, MAX_INTERFACES));
    }
    for interface in chosen.iter().filter(|chosen| !chosen.is_multicast) {
        if multicast {
            let reason = "it does not have the flag MULTICAST";
            warnings.push(no_multicast(&interface.name, reason));
        }
    }
    Ok((chosen, warnings))
}

fn find_all(names: &[String], present: &[Interface]) -> Result<Vec<Interface>, OpenError> {
    let mut chosen: Vec<Interface> = Vec::new();
    for name in names {
        let found = present.iter().find(|interface| interface.name == *name);
        let Some(found) = found else {
            let present: Vec<&str> = present.iter().map(|one| one.name.as_str()).collect();
            return Err(OpenError::NoInterface {
                wanted: name.clone(),
                present: present.join(", "),
            });
        };
        if !chosen.contains(found) {
            chosen.push(found.clone());
        }
    }
    Ok(chosen)
}

/// Warning that the interface does not support multicast.
pub(super) fn no_multicast(interface: &str, reason: impl fmt::Display) -> Warning {
    let text = format!(
        "no multicast on interface {interface}: {reason}. Unicast goes on; peers there must be \
         named, or the interface given multicast: ip link set {interface} multicast on"
    );
    Warning::new("no_multicast", text)
}

/// Warning that the host has more interfaces than the limit.
fn too_many_interfaces(interface: &str, limit: usize) -> Warning {
    let text =
        format!("interface {interface} is not used, {limit} others are: name those that are meant");
    Warning::new("too_many_interfaces", text)
}

/// Request number of the ioctl (linux/sockios.h).
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Command that reads link settings (linux/ethtool.h).
const ETHTOOL_GSET: u32 = 1;

/// `struct ethtool_cmd` (linux/ethtool.h).
#[repr(C)]
#[derive(Default)]
struct LinkSettings {
    command: u32,
    supported: u32,
    advertising: u32,
    speed_low: u16,
    port: [u8; 6],
    max_packets: [u32; 2],
    speed_high: u16,
    crossover: [u8; 2],
    partner: u32,
    reserved: [u32; 2],
}

const _: () = assert!(size_of::<LinkSettings>() == 44, "as large as the kernel's");

/// Link rate of an interface in bits per second. `None` if the driver does not report one, as for `lo`, most wireless
/// devices, and links without carrier.
pub(super) fn link_bits_per_s(name: &str) -> Option<u64> {
    speed_mbps(name)
        .ok()
        .flatten()
        .map(|speed| u64::from(speed) * 1_000_000)
}

/// Lowest of several rates. An unknown one counts as [`USUAL_LINK_BITS_PER_S`]; `None` if all are unknown.
pub(super) fn slowest(rates: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let (is_any_known, lowest) = rates.fold((false, u64::MAX), |(is_any_known, lowest), rate| {
        let bits_per_s = rate.unwrap_or(USUAL_LINK_BITS_PER_S);
        (is_any_known || rate.is_some(), lowest.min(bits_per_s))
    });
    is_any_known.then_some(lowest)
}

fn speed_mbps(name: &str) -> io::Result<Option<u32>> {
    let socket = Socket::new()?;
    let mut settings = LinkSettings {
        command: ETHTOOL_GSET,
        ..LinkSettings::default()
    };
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_data = ptr::from_mut(&mut settings).cast();
    // SAFETY: the request points to a structure of the size that the kernel accesses for this command.
    if unsafe { libc::ioctl(socket.raw(), SIOCETHTOOL, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(known_speed(settings.speed_low, settings.speed_high))
}

/// Joins the halves of the speed; 0 and all ones mean unknown (SPEED_UNKNOWN).
fn known_speed(low: u16, high: u16) -> Option<u32> {
    let speed = u32::from(high) << 16 | u32::from(low);
    let is_known = speed != 0 && speed != u32::from(u16::MAX) && speed != u32::MAX;
    is_known.then_some(speed)
}

type Lanes = [Option<Box<OpenLane>>; Lane::COUNT];

/// Checks with one system call that an egress interface exists and has the same index. If the interface has returned
/// with its address, joins the groups again. A failure is retried at the next check.
pub(super) fn rejoin_if_returned(interface: &mut Interface, egress: &mut Egress, lanes: &Lanes) {
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
                // A socket's memberships are limited, so this one is freed. The kernel may have dropped it already.
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

/// Bytes of a message to read; the kernel cuts the rest, which is not needed.
const MESSAGE_BYTES: usize = 16;

/// Subscription to address changes.
pub(super) struct AddressChanges {
    fd: OwnedFd,
}

impl AddressChanges {
    /// Subscribes to changes in this network namespace.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn open() -> io::Result<AddressChanges> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: zeros are a valid address.
        let mut name: libc::sockaddr_nl = unsafe { mem::zeroed() };
        name.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        name.nl_groups = libc::RTMGRP_IPV4_IFADDR as u32;
        let len = size_of_val(&name) as socklen_t;
        // SAFETY: `name` is a sockaddr_nl of the length given, for the time of the call.
        let bound = unsafe { libc::bind(fd.as_raw_fd(), (&raw const name).cast(), len) };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(AddressChanges { fd })
    }

    /// Returns true if an address was added or removed since the last call. One system call if there was no change.
    pub(super) fn take(&self) -> bool {
        let mut any = false;
        for _ in 0..MAX_ADDRESS_CHANGES {
            match self.take_message() {
                Ok(()) => any = true,
                // The socket's buffer overflowed: the lost messages reported changes.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => any = true,
                Err(_) => break,
            }
        }
        any
    }

    fn take_message(&self) -> io::Result<()> {
        let mut message = [0_u8; MESSAGE_BYTES];
        let into: *mut c_void = message.as_mut_ptr().cast();
        let flags: c_int = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: `message` has room for the length given.
        let received = unsafe { libc::recv(self.fd.as_raw_fd(), into, MESSAGE_BYTES, flags) };
        match received {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> InterfaceAddress {
        InterfaceAddress {
            address: [10, 0, 0, last],
            prefix_bits: 24,
        }
    }

    fn interface(name: &str, last: u8, is_multicast: bool) -> Interface {
        Interface {
            name: name.to_owned(),
            index: u32::from(last),
            addresses: vec![address(last)],
            is_loopback: name == "lo",
            is_multicast,
        }
    }

    fn present() -> Vec<Interface> {
        vec![
            interface("lo", 1, false),
            interface("eth0", 2, true),
            interface("eth1", 3, true),
        ]
    }

    fn names(chosen: &[Interface]) -> Vec<&str> {
        chosen.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn all_means_all_but_loopback() {
        let (chosen, warnings) = choose(&Interfaces::All, true, present()).unwrap();
        assert_eq!(names(&chosen), ["eth0", "eth1"]);
        assert_eq!(warnings, []);
    }

    #[test]
    fn loopback_is_taken_where_nothing_else_is_there_and_its_lack_of_multicast_noted() {
        let only = vec![interface("lo", 1, false)];
        let (chosen, warnings) = choose(&Interfaces::All, true, only).unwrap();
        assert_eq!(names(&chosen), ["lo"]);
        let warning = warnings[0].to_string();
        assert!(
            warning.contains("no multicast on interface lo")
                && warning.contains("ip link set lo multicast on"),
            "{warning}"
        );
    }

    #[test]
    fn an_interface_without_multicast_is_no_news_where_none_is_wanted() {
        let (_, warnings) = choose(&Interfaces::Loopback, false, present()).unwrap();
        assert_eq!(warnings, []);
    }

    #[test]
    fn a_name_that_is_not_there_is_answered_with_those_that_are() {
        let wanted = Interfaces::Named(vec!["eth1".to_owned(), "eth7".to_owned()]);
        let message = choose(&wanted, true, present()).unwrap_err().to_string();
        assert!(
            message.contains("no interface eth7") && message.contains("lo, eth0, eth1"),
            "{message}"
        );
    }

    #[test]
    fn interfaces_beyond_the_limit_are_named() {
        let many = (1..=10).map(|n| interface(&format!("eth{n}"), n, true));
        let (chosen, warnings) = choose(&Interfaces::All, true, many.collect()).unwrap();
        assert_eq!((chosen.len(), warnings.len()), (MAX_INTERFACES, 2));
    }

    #[test]
    fn addresses_of_one_interface_are_kept_together() {
        let mut found = vec![interface("eth0", 2, true)];
        add(&mut found, interface("eth0", 9, true));
        assert_eq!(found[0].addresses, [address(2), address(9)]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn the_hosts_own_list_can_be_read() {
        for interface in list().unwrap() {
            assert!(interface.index > 0, "{interface:?}");
            assert!(!interface.addresses.is_empty(), "{interface:?}");
            if interface.is_loopback {
                let expected = InterfaceAddress {
                    address: [127, 0, 0, 1],
                    prefix_bits: 8,
                };
                assert!(interface.addresses.contains(&expected), "{interface:?}");
            }
        }
    }

    #[test]
    fn a_speed_is_put_together_of_both_halves_and_may_be_unknown() {
        assert_eq!(known_speed(1_000, 0), Some(1_000));
        assert_eq!(known_speed(0x86a0, 1), Some(100_000));
        for (low, high) in [(0, 0), (u16::MAX, 0), (u16::MAX, u16::MAX)] {
            assert_eq!(known_speed(low, high), None);
        }
    }

    #[test]
    fn an_interface_without_a_link_or_that_is_not_there_has_no_rate() {
        assert_eq!(link_bits_per_s("lo"), None);
        assert_eq!(link_bits_per_s("none"), None);
        for (rates, lowest) in [
            (&[][..], None),
            (&[None], None),
            (&[None, Some(10_000_000)], Some(10_000_000)),
            (&[Some(10_000_000_000), None], Some(USUAL_LINK_BITS_PER_S)),
            (&[Some(3), Some(2)], Some(2)),
        ] {
            assert_eq!(slowest(rates.iter().copied()), lowest, "{rates:?}");
        }
    }
}
