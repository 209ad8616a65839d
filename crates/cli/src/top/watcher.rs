//! Observed participants: discovery, connections and last snapshots.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::find::{Address, participants};
use super::sample::{Sample, Seen};
use crate::limits::WATCHED_PARTICIPANTS;

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
