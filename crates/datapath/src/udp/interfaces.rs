//! Network interfaces of the host, and their selection.

use std::ffi::CStr;
use std::io;
use std::ptr;

use super::warning;
use crate::contract::{OpenError, Warning};
use crate::limits::MAX_INTERFACES;
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
    let flags = entry.ifa_flags as libc::c_int;
    let has = |flag: libc::c_int| flags & flag != 0;
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

/// Selects the wanted interfaces, with a warning for what is missing.
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
        warnings.push(warning::too_many_interfaces(
            &interface.name,
            MAX_INTERFACES,
        ));
    }
    for interface in chosen.iter().filter(|chosen| !chosen.is_multicast) {
        if multicast {
            let reason = "it does not have the flag MULTICAST";
            warnings.push(warning::no_multicast(&interface.name, reason));
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
}
