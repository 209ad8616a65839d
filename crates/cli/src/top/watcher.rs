//! All participants that are looked at: who has come, who has gone, what they said last.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::find::{Address, participants};
use super::sample::{Sample, Seen};
use crate::limits::WATCHED_PARTICIPANTS;

/// How often it is looked who has come.
const FIND_EVERY: Duration = Duration::from_millis(500);
/// How often somebody who could not be asked is asked again.
const TRY_EVERY: Duration = Duration::from_secs(2);

pub(crate) struct Watcher {
    /// Only participants of this domain.
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

    /// Looks who is there, and takes in what has come.
    ///
    /// # Errors
    /// The system does not say who is there.
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
                    // What it said last is worth more than nothing.
                    (connection.latest, connection.before) = (former.latest, former.before);
                }
                self.connections.insert(address, (connection, now));
            }
        }
        Ok(())
    }

    /// Whether everybody who is there has said enough for rates, or will not.
    pub(crate) fn is_settled(&self) -> bool {
        let mut all = self.connections.values();
        all.all(|(connection, _)| connection.is_settled())
    }

    /// What all of them do.
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
