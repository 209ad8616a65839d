//! Observable participants of this network namespace, from their sockets in `/proc/net/unix`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};

use isolane::observe::parse_socket_name;

use crate::limits::UNIX_SOCKETS_BYTES;

/// Address of a participant: its process id in its own namespace, and its number within the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) pid: u32,
    pub(super) number: u32,
}

/// Lists the current participants.
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

/// Flags of a listening socket; accepted connections have the same name.
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
