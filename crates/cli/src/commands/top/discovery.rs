//! Discovery of observable participants of this network namespace, by their sockets in `/proc/net/unix`, with their
//! connections and last snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use isolane::observe::parse_socket_name;

use super::connection::Connection;
use super::sample::{Sample, Seen};
use crate::limits::{UNIX_SOCKETS_BYTES, WATCHED_PARTICIPANTS};

/// Interval of the search for participants.
const FIND_EVERY: Duration = Duration::from_millis(500);
/// Interval of connection attempts after a failure.
const TRY_EVERY: Duration = Duration::from_secs(2);

pub(crate) struct Watcher {
    /// Domain of the shown participants; `None`: all.
    domain: Option<u32>,
    connections: BTreeMap<Address, (Connection, Instant)>,
    found: Option<Instant>,
}

impl Watcher {
    pub(crate) fn new(domain: Option<u32>) -> Self {
        Self {
            domain,
            connections: BTreeMap::new(),
            found: None,
        }
    }

    /// Searches for participants when due, and reads received data.
    ///
    /// # Errors
    /// The system's list of sockets cannot be read.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if self.found.is_none_or(|at| now - at >= FIND_EVERY) {
            self.found = Some(now);
            self.find(now)?;
        }
        for (connection, _) in self.connections.values_mut() {
            connection.read();
        }
        Ok(())
    }

    fn find(&mut self, now: Instant) -> io::Result<()> {
        let present = participants()?;
        self.connections
            .retain(|address, _| present.contains(address));
        for address in present {
            let known = self.connections.get(&address);
            let is_due = known.is_none_or(|(connection, tried)| {
                connection.is_closed() && now - *tried >= TRY_EVERY
            });
            if is_due && (known.is_some() || self.connections.len() < WATCHED_PARTICIPANTS) {
                let mut connection = Connection::open(address);
                if let Some((former, _)) = self.connections.remove(&address) {
                    // Keeps the last snapshots of the former connection.
                    (connection.latest, connection.before) = (former.latest, former.before);
                }
                self.connections.insert(address, (connection, now));
            }
        }
        Ok(())
    }

    /// Returns whether each participant has two snapshots for rates, or a problem.
    pub(crate) fn is_settled(&self) -> bool {
        let mut all = self.connections.values();
        all.all(|(connection, _)| connection.is_settled())
    }

    /// Current state of all participants.
    pub(crate) fn sample(&self) -> Sample {
        let is_of_domain = |connection: &Connection| {
            let of = connection.latest.as_ref();
            let of = of.map(|snapshot| snapshot.participant.domain);
            self.domain
                .is_none_or(|wanted| of.is_none_or(|of| of == wanted))
        };
        let all = self.connections.values().map(|(connection, _)| connection);
        let shown = all.filter(|connection| is_of_domain(connection));
        let mut seen: Vec<Seen> = shown.map(Seen::of).collect();
        seen.sort_by_key(|seen| {
            (
                std::cmp::Reverse(seen.highest_level()),
                seen.pid,
                seen.number,
            )
        });
        Sample::new(seen)
    }
}

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
