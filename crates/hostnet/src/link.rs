//! Interfaces of the calling thread's network namespace: names, numbers, and what the kernel says.

use std::ffi::{CStr, CString};
use std::io;

use netlink_packet_core::{
    Emitable, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload, Parseable,
};
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::netlink::{Connection, Denial};

/// The name of an interface.
pub fn name_of(index: u32) -> Option<String> {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: the buffer is as long as the call requires, and alive during it.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: the call has written a string with its end into the buffer.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    Some(name.to_string_lossy().into_owned())
}

/// The number of an interface.
pub fn index_of(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with a NUL and is alive during the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

/// All that netlink says of an interface, once: who wants to follow it has an
/// [`Egress`](crate::egress::Egress).
pub fn describe(index: u32) -> io::Result<LinkMessage> {
    let mut request = LinkMessage::default();
    request.header.index = index;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let request = NetlinkPayload::from(RouteNetlinkMessage::GetLink(request));
    let mut message = NetlinkMessage::new(header, request);
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);

    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&bytes, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    match answer.payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => Ok(link),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Whether an interface has an IPv4 address.
///
/// # Errors
/// [`Denial`].
pub fn has_ipv4_address(index: u32) -> Result<bool, Denial> {
    let mut request = AddressMessage::default();
    request.header.family = AddressFamily::Inet;
    let mut payload = vec![0; request.buffer_len()];
    request.emit(&mut payload);
    let mut has_address = false;
    Connection::open(NETLINK_ROUTE)?.dump(libc::RTM_GETADDR, &payload, |answer| {
        if let Ok(message) = AddressMessage::parse(answer) {
            has_address |= message.header.index == index;
        }
    })?;
    Ok(has_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_belong_together() {
        let index = index_of("lo").expect("every namespace has it");
        assert_eq!(name_of(index).as_deref(), Some("lo"));
        assert_eq!(index_of("no such interface"), None);
        assert_eq!(index_of("a\0b"), None);
        assert_eq!(name_of(u32::MAX), None);
    }

    #[test]
    fn an_interface_is_described_if_it_is_there() {
        let index = index_of("lo").expect("every namespace has it");
        assert_eq!(describe(index).unwrap().header.index, index);
        let absent = describe(i32::MAX as u32).unwrap_err();
        assert_eq!(absent.raw_os_error(), Some(libc::ENODEV));
    }
}
