//! Connections to the observable participants of this network namespace, each with the last two snapshots received
//! from it.
//!
//! No operation blocks, because the other process may be stopped, or may not be isolane.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use isolane::observe::{SCHEMA, Snapshot, socket_name};

use super::sample::{Sample, Seen};
use crate::commands::observable::{Address, Process, open_stream, participants};
use crate::limits::{SNAPSHOT_BYTES, WATCHED_PARTICIPANTS};

/// Interval between searches for participants.
const FIND_EVERY: Duration = Duration::from_millis(500);
/// Interval between attempts to connect to a participant.
const TRY_EVERY: Duration = Duration::from_secs(2);

pub(crate) struct Watcher {
    /// Domain of the shown participants; `None`: all domains.
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

    /// Searches for participants if `FIND_EVERY` has passed, and reads received snapshots.
    ///
    /// # Errors
    /// `/proc/net/unix` cannot be read.
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
                    // The new connection takes over the last snapshots of the closed one.
                    (connection.latest, connection.before) = (former.latest, former.before);
                }
                self.connections.insert(address, (connection, now));
            }
        }
        Ok(())
    }

    /// Returns whether each participant has sent two snapshots, as rates need, or has a problem.
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

/// Time without a snapshot after which a participant counts as silent. Participants send one each second.
const SILENT_AFTER: Duration = Duration::from_millis(3_500);

pub(super) struct Connection {
    pub(super) address: Address,
    /// Process, user and program, according to the kernel; `None` if unknown.
    pub(super) process: Option<Process>,
    stream: Option<UnixStream>,
    /// Received part of the next snapshot, which is one line.
    line: Vec<u8>,
    pub(super) latest: Option<Snapshot>,
    pub(super) before: Option<Snapshot>,
    /// Time of the last snapshot; before the first snapshot, time of the connection.
    heard: Instant,
    /// Reason why no snapshots arrive, if there was an error.
    problem: Option<String>,
}

impl Connection {
    /// Connects to a participant. A failure becomes the connection's problem.
    pub(super) fn open(address: Address) -> Self {
        let mut connection = Self {
            address,
            process: None,
            stream: None,
            line: Vec::new(),
            latest: None,
            before: None,
            heard: Instant::now(),
            problem: None,
        };
        match open_stream(&socket_name(address.pid, address.number)) {
            Ok(stream) => {
                connection.process = Process::behind(&stream);
                connection.stream = Some(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                connection.problem = Some(match is_stopped(address.pid) {
                    true => String::from("does not answer: the process is stopped"),
                    false => String::from(
                        "accepts no connection: its queue of connections is full. Its loop is not run, or another \
                         program connects all the time (ss -xp)",
                    ),
                });
            }
            Err(error) => connection.problem = Some(format!("cannot be asked: {error}")),
        }
        connection
    }

    /// Reads received data, and keeps the last two snapshots.
    pub(super) fn read(&mut self) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        let mut some = [0; 16 << 10];
        let ended = loop {
            match stream.read(&mut some) {
                Ok(0) => break Some(self.ended()),
                Ok(length) => {
                    self.line.extend_from_slice(&some[..length]);
                    if self.line.len() > SNAPSHOT_BYTES {
                        break Some("sends data that is no snapshot".into());
                    }
                    if some[..length].contains(&b'\n')
                        && let Err(why) = take_line(&mut self.line).map(|snapshot| {
                            self.before = self.latest.replace(snapshot);
                            self.heard = Instant::now();
                        })
                    {
                        break Some(why);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        if ended.is_some() {
            self.problem = ended;
            self.stream = None;
        }
    }

    /// Probable reason why the participant closed the connection. The participant does not state it.
    fn ended(&self) -> String {
        let own = rustix::process::geteuid();
        match &self.process {
            _ if self.latest.is_some() => "has ended, or was not read for a while".into(),
            Some(process) if !own.is_root() && process.user_id != own.as_raw() => format!(
                "belongs to user {}: run isolane top as that user, or as root",
                process.user_id
            ),
            _ => "refuses another observer: it already has the most that it accepts".into(),
        }
    }

    /// Reason why no snapshots arrive now: an error, or a silent participant.
    pub(super) fn problem(&self) -> Option<String> {
        let is_silent = self.heard.elapsed() > SILENT_AFTER;
        let silent = || match is_stopped(self.address.pid) {
            true => "is silent: the process is stopped",
            false => "is silent: its loop is not run, or is never idle",
        };
        let problem = self.problem.clone();
        problem.or_else(|| is_silent.then(|| silent().to_owned()))
    }

    /// Returns whether two snapshots have arrived, or there is a problem.
    pub(super) fn is_settled(&self) -> bool {
        self.before.is_some() || self.problem().is_some()
    }

    /// Returns whether the connection is closed, so that a new attempt is needed.
    pub(super) fn is_closed(&self) -> bool {
        self.stream.is_none()
    }
}

/// Parses the last complete line, and removes it and all earlier lines, which are outdated.
fn take_line(bytes: &mut Vec<u8>) -> Result<Snapshot, String> {
    let no_snapshot = || String::from("sends data that is no snapshot");
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let end = end.ok_or_else(no_snapshot)?;
    let begin = bytes[..end].iter().rposition(|byte| *byte == b'\n');
    let line = &bytes[begin.map_or(0, |at| at + 1)..end];
    let value: serde_json::Value = serde_json::from_slice(line).map_err(|_| no_snapshot())?;
    let schema = value["schema"].as_str().unwrap_or_default();
    if schema != SCHEMA {
        let schema: String = schema.escape_debug().take(40).collect();
        return Err(format!(
            "speaks {schema:?} where this isolane reads {SCHEMA:?}: use the same version"
        ));
    }
    let snapshot = serde_json::from_value(value).map_err(|_| no_snapshot())?;
    bytes.drain(..=end);
    Ok(snapshot)
}

/// Returns whether a signal or a debugger has stopped the process (states T and t in proc(5)).
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('T' | 't'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_whole_line_counts_and_what_follows_it_stays() {
        let mut bytes = b"{}\n{\"schema\":\"other/9\"}\n{\"sch".to_vec();
        let why = take_line(&mut bytes).expect_err("no snapshot");
        assert!(why.contains("other/9") && why.contains(SCHEMA), "{why}");
        for nonsense in [&b"\xff\xfe\n"[..], b"[1, 2]\n", b"\n", b"{\"schema\":7}\n"] {
            assert!(take_line(&mut nonsense.to_vec()).is_err());
        }
    }
}
