//! Connection to an observed participant, with its last two snapshots.
//!
//! All operations are non-blocking: the other side may be stopped, or not be isolane.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use isolane::observe::{SCHEMA, Snapshot, socket_name};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    sockopt::socket_peercred,
};

use super::discovery::Address;
use crate::limits::SNAPSHOT_BYTES;

/// Time without a snapshot, which is sent each second, after which a participant counts as silent.
const SILENT_AFTER: Duration = Duration::from_millis(3_500);

pub(super) struct Connection {
    pub(super) address: Address,
    /// Process, program and user according to the kernel; `None` if unknown.
    pub(super) process: Option<Process>,
    stream: Option<UnixStream>,
    /// Received part of the next line.
    line: Vec<u8>,
    pub(super) latest: Option<Snapshot>,
    pub(super) before: Option<Snapshot>,
    /// Time of the last snapshot, or of the connection.
    heard: Instant,
    /// Reason why no snapshots arrive.
    problem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) user_id: u32,
    pub(super) program: Option<String>,
}

impl Connection {
    /// Connects, or records the failure.
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
        match open_stream(address) {
            Ok(stream) => {
                connection.process = Process::behind(&stream);
                connection.stream = Some(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                connection.problem = Some(match is_stopped(address.pid) {
                    true => String::from("does not answer: it is stopped"),
                    false => String::from(
                        "does not accept: its queue of connections is full. Its loop is not run, or another program \
                         connects all the time (ss -xp)",
                    ),
                });
            }
            Err(error) => connection.problem = Some(format!("cannot be asked: {error}")),
        }
        connection
    }

    /// Reads received data.
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
                        break Some("sends something that is no snapshot".into());
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

    /// Reason why the other side closed the connection, which it does not state.
    fn ended(&self) -> String {
        let own = rustix::process::geteuid();
        match &self.process {
            _ if self.latest.is_some() => "has ended, or was not read for a while".into(),
            Some(process) if !own.is_root() && process.user_id != own.as_raw() => format!(
                "belongs to user {}: run isolane top as that user, or as root",
                process.user_id
            ),
            _ => "refuses another observer: it has the most it accepts".into(),
        }
    }

    /// Current problem, if any.
    pub(super) fn problem(&self) -> Option<String> {
        let is_silent = self.heard.elapsed() > SILENT_AFTER;
        let silent = || match is_stopped(self.address.pid) {
            true => "is silent: it is stopped",
            false => "is silent: its loop is not run, or never idle",
        };
        let problem = self.problem.clone();
        problem.or_else(|| is_silent.then(|| silent().to_owned()))
    }

    /// Returns whether it has two snapshots for rates, or a problem.
    pub(super) fn is_settled(&self) -> bool {
        self.before.is_some() || self.problem().is_some()
    }

    /// Returns whether a new connection attempt makes sense.
    pub(super) fn is_closed(&self) -> bool {
        self.stream.is_none()
    }
}

/// Removes the last complete line; earlier lines are outdated.
fn take_line(bytes: &mut Vec<u8>) -> Result<Snapshot, String> {
    let no_snapshot = || String::from("sends something that is no snapshot");
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

/// Returns whether a signal or a debugger has stopped the process (proc(5), states T and t).
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('T' | 't'))
}

fn open_stream(address: Address) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let name = socket_name(address.pid, address.number);
    connect(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    Ok(socket.into())
}

impl Process {
    fn behind(stream: &UnixStream) -> Option<Self> {
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
    fn the_newest_whole_line_counts_and_what_follows_it_stays() {
        let mut bytes = b"{}\n{\"schema\":\"other/9\"}\n{\"sch".to_vec();
        let why = take_line(&mut bytes).expect_err("no snapshot");
        assert!(why.contains("other/9") && why.contains(SCHEMA), "{why}");
        for nonsense in [&b"\xff\xfe\n"[..], b"[1, 2]\n", b"\n", b"{\"schema\":7}\n"] {
            assert!(take_line(&mut nonsense.to_vec()).is_err());
        }
    }
}
