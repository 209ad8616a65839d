//! Server of the list of discovered entities in the observed process.
//!
//! The server has one client at a time; others wait in the backlog. The socket wakes the loop, so that a client does
//! not wait for housekeeping. A process whose connection is refused could use that to wake the loop all the time:
//! after a refused connection the loop is not woken until housekeeping has run.

use std::os::fd::OwnedFd;

use isolane_datapath::clock::monotonic_now;
use isolane_executor::{JobConfig, JobId};
use isolane_rtps::{EndpointKind, Priority, RemoteEndpoint};
use isolane_wire::time::Instant;
use rustix::{
    event::epoll::EventFlags,
    io::Errno,
    net::{SendFlags, SocketFlags, accept_with, send},
};

use super::{
    discovered::{DISCOVERED_SCHEMA, Line, ListSource, discovered_socket_name},
    server::{is_allowed, listen_at},
    snapshot::{Identity, protocol_counts},
};
use crate::{
    error::BuildError,
    limits::{LISTED_ITEMS, OBSERVER_BACKLOG, OBSERVER_SEND_BYTES},
    participant::{io::DISCOVERED_INDEX, jobs::Task, state::State},
};

/// Socket for lists of discovered entities, and its client.
pub(crate) struct DiscoveredServer {
    listener: OwnedFd,
    job: JobId,
    identity: Identity,
    since: Instant,
    client: Option<Client>,
    /// True if a connection will wake the loop.
    is_armed: bool,
    /// Connections refused since housekeeping.
    refused: u16,
}

/// Client, and its place in the list.
struct Client {
    socket: OwnedFd,
    section: Section,
    /// Next index within the section.
    index: u16,
    /// Lines being sent.
    text: Vec<u8>,
    sent: usize,
    /// True if it was served since housekeeping.
    is_served: bool,
}

/// Sections of a list, in their order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Source,
    OwnWriters,
    OwnReaders,
    Participants,
    Endpoints,
    End,
    Done,
}

impl DiscoveredServer {
    /// Executes one step. Returns true if there is more to do now.
    fn step(&mut self, state: &State) -> bool {
        let Some(client) = &mut self.client else {
            return self.accept(state);
        };
        if client.sent < client.text.len() {
            return self.send(state);
        }
        match client.section {
            Section::Done => self.client = None,
            _ => client.fill(state, &self.identity, self.since),
        }
        true
    }

    /// Accepts a connection, and closes it if it is of another user.
    fn accept(&mut self, state: &State) -> bool {
        self.is_armed = false;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match accept_with(&self.listener, flags) {
            Ok(socket) if is_allowed(&socket) => {
                self.client = Some(Client::new(socket));
                true
            }
            Ok(_) => {
                self.refused += 1;
                self.refused < OBSERVER_BACKLOG
            }
            Err(_) => {
                let is_armed = || state.io.watch_once(&self.listener, EventFlags::IN);
                self.is_armed = self.refused == 0 && is_armed();
                false
            }
        }
    }

    /// Sends a part of the lines.
    fn send(&mut self, state: &State) -> bool {
        let Some(client) = &mut self.client else {
            return false;
        };
        let left = &client.text[client.sent..];
        let some = &left[..left.len().min(OBSERVER_SEND_BYTES)];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match send(&client.socket, some, flags) {
            Ok(sent) => {
                client.sent += sent;
                client.is_served = true;
                true
            }
            Err(Errno::INTR) => true,
            Err(Errno::WOULDBLOCK) => {
                // If the loop is not woken, housekeeping tries again.
                state.io.watch_once(&client.socket, EventFlags::OUT);
                false
            }
            Err(_) => {
                self.client = None;
                true
            }
        }
    }
}

impl Client {
    fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            section: Section::Source,
            index: 0,
            text: Vec::new(),
            sent: 0,
            is_served: true,
        }
    }

    /// Writes the next lines, at most [`LISTED_ITEMS`] of a section.
    fn fill(&mut self, state: &State, identity: &Identity, since: Instant) {
        self.text.clear();
        (self.sent, self.is_served) = (0, true);
        let (protocol, first) = (&state.protocol, usize::from(self.index));
        let places = self.index..;
        let lines: Vec<(u16, Line)> = match self.section {
            Section::Source => {
                let source = Line::Source(source(state, identity, since));
                let own = Line::participant(&protocol.participant_data());
                self.write(&source);
                own.iter().for_each(|line| self.write(line));
                Vec::new()
            }
            Section::OwnWriters => {
                let ids = protocol.local_writers().skip(first);
                let line = |id| {
                    let data = protocol.writer_data(id);
                    let data = data.filter(|_| protocol.is_writer_enabled(id));
                    data.and_then(|data| Line::endpoint(EndpointKind::Writer, data))
                };
                numbered(places.zip(ids.map(line)))
            }
            Section::OwnReaders => {
                let ids = protocol.local_readers().skip(first);
                let line = |id| {
                    let data = protocol.reader_data(id);
                    let data = data.filter(|_| protocol.is_reader_enabled(id));
                    data.and_then(|data| Line::endpoint(EndpointKind::Reader, data))
                };
                numbered(places.zip(ids.map(line)))
            }
            Section::Participants => {
                let all = protocol.remote_participants_from(self.index);
                numbered(all.map(|(index, peer)| (index, Line::participant(&peer.data))))
            }
            Section::Endpoints => {
                let all = protocol.remote_endpoints_from(self.index);
                let line = |(index, endpoint): (u16, RemoteEndpoint)| {
                    (index, Line::endpoint(endpoint.kind, &endpoint.data))
                };
                numbered(all.map(line))
            }
            Section::End => {
                self.write(&Line::End);
                Vec::new()
            }
            Section::Done => Vec::new(),
        };
        lines.iter().for_each(|(_, line)| self.write(line));
        match lines.last() {
            Some((index, _)) if lines.len() == LISTED_ITEMS => self.index = index + 1,
            _ => (self.section, self.index) = (self.section.next(), 0),
        }
    }

    fn write(&mut self, line: &Line) {
        let written = serde_json::to_writer(&mut self.text, line);
        debug_assert!(written.is_ok(), "memory takes all, and keys are texts");
        self.text.push(b'\n');
    }
}

/// Takes the next lines. An entity without a line is left out.
fn numbered(lines: impl Iterator<Item = (u16, Option<Line>)>) -> Vec<(u16, Line)> {
    let lines = lines.filter_map(|(index, line)| Some((index, line?)));
    lines.take(LISTED_ITEMS).collect()
}

impl Section {
    const fn next(self) -> Self {
        match self {
            Self::Source => Self::OwnWriters,
            Self::OwnWriters => Self::OwnReaders,
            Self::OwnReaders => Self::Participants,
            Self::Participants => Self::Endpoints,
            Self::Endpoints => Self::End,
            Self::End | Self::Done => Self::Done,
        }
    }
}

fn source(state: &State, identity: &Identity, since: Instant) -> ListSource {
    ListSource {
        schema: DISCOVERED_SCHEMA.into(),
        number: identity.number,
        name: identity.name.clone(),
        domain: identity.domain,
        guid_prefix: state.protocol.guid_prefix().to_string(),
        age_us: monotonic_now().saturating_since(since).as_secs_f64() * 1e6,
        counters: protocol_counts(state.protocol.counters()),
    }
}

impl State {
    /// Makes the list of discovered entities available to other processes. A failure results in a warning.
    ///
    /// # Errors
    /// No job is left.
    pub(super) fn make_discovered_listable(
        &mut self,
        identity: Identity,
    ) -> Result<(), BuildError> {
        let name = discovered_socket_name(std::process::id(), identity.number);
        let listener = match listen_at(&name) {
            Ok(listener) => listener,
            Err(error) => {
                self.monitoring.not_observable = Some(format!(
                    "`isolane ls` cannot ask this participant, because its socket {name} cannot be opened: {error}. \
                     Everything else works"
                ));
                return Ok(());
            }
        };
        let config = JobConfig::event("list discovered", Priority::STATISTICS.get());
        let job = self.add_job(config, Task::Observe)?;
        self.jobs.receive[DISCOVERED_INDEX] = Some(job);
        let is_armed = self.io.watch_once(&listener, EventFlags::IN);
        self.monitoring.discovered = Some(Box::new(DiscoveredServer {
            listener,
            job,
            identity,
            since: monotonic_now(),
            client: None,
            is_armed,
            refused: 0,
        }));
        Ok(())
    }

    /// Drops a client that has not read for a second. Returns the job if it is to look for connections, because they do
    /// not wake the loop.
    pub(super) fn begin_listing(&mut self) -> Option<JobId> {
        let server = self.monitoring.discovered.as_mut()?;
        server.refused = 0;
        if let Some(client) = &mut server.client
            && !std::mem::take(&mut client.is_served)
        {
            server.client = None;
        }
        (!server.is_armed).then_some(server.job)
    }

    /// Executes one step for a client, if the server's job runs. Returns whether there is more to do now; `None` if
    /// another job runs.
    pub(super) fn serve_discovered(&mut self) -> Option<bool> {
        let job = self.executor.running()?;
        // Taken out, so that the step can read the whole state.
        let mut server = self
            .monitoring
            .discovered
            .take_if(|server| server.job == job)?;
        let again = server.step(self);
        self.monitoring.discovered = Some(server);
        Some(again)
    }
}
