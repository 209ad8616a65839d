//! Observable participants of this network namespace, found by their sockets in `/proc/net/unix`, and connections to
//! them. `top` reads their snapshots, `ls` their lists of discovered entities.
//!
//! No operation blocks, because the other process may be stopped, or may not be isolane.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;

use isolane::observe::parse_socket_name;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::limits::UNIX_SOCKETS_BYTES;

/// Address of a participant: its process id in its own PID namespace, and its number within the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) pid: u32,
    pub(super) number: u32,
}

/// Lists the participants that run now.
///
/// # Errors
/// `/proc/net/unix` cannot be read.
pub(super) fn participants() -> io::Result<BTreeSet<Address>> {
    let mut text = Vec::new();
    File::open("/proc/net/unix")?
        .take(UNIX_SOCKETS_BYTES)
        .read_to_end(&mut text)?;
    Ok(listening(&String::from_utf8_lossy(&text)))
}

/// Flags of a listening socket in `/proc/net/unix`. They distinguish it from accepted connections, which have the same
/// name.
const LISTENING: &str = "00010000";

fn listening(text: &str) -> BTreeSet<Address> {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let flags = words.nth(3)?;
        let name = words.nth(3)?.strip_prefix('@')?;
        let (pid, number) = parse_socket_name(name)?;
        (flags == LISTENING).then_some(Address { pid, number })
    };
    text.lines().filter_map(of_line).collect()
}

/// Connects to an abstract socket without blocking.
pub(super) fn open_stream(name: &str) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    Ok(socket.into())
}

/// Process that has opened a socket, according to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) user_id: u32,
    pub(super) program: Option<String>,
}

impl Process {
    pub(super) fn behind(stream: &UnixStream) -> Option<Self> {
        let peer = socket_peercred(stream).ok()?;
        let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).ok()?;
        let program = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        Some(Self {
            pid,
            user_id: peer.uid.as_raw(),
            program: program.map(|name| name.trim_end().to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_of_that_name_are_participants_and_no_others() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 101 /run/isolane/7/0\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 102 @isolane/4711/1\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 103 @isolane/4711/1\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 104 @isolane/4711/0\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 105 @isolane/x/0\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 106\n";
        let found: Vec<(u32, u32)> = listening(text)
            .into_iter()
            .map(|address| (address.pid, address.number))
            .collect();
        assert_eq!(found, [(4711, 0), (4711, 1)]);
    }
}
