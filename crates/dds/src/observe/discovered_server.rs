//! Server of the list of discovered entities in the observed process.
//!
//! The server has one client at a time; others wait in the backlog. The socket wakes the loop, so that a client does
//! not wait for housekeeping. A process whose connection is refused could use that to wake the loop all the time:
//! after a refused connection the loop is not woken until housekeeping has run. The same applies after a failed
//! `accept`: without a free descriptor, the connection would stay in the backlog and wake the loop again at once.

use std::os::fd::OwnedFd;

use isolane_datapath::clock::monotonic_now;
use isolane_executor::{JobConfig, JobId};
use isolane_rtps::{
    Announces, EndpointKind, Priority, RemoteEndpoint, limits::DISCOVERY_SLOT_BYTES,
};
use isolane_wire::time::Instant;
use rustix::{
    event::epoll::EventFlags,
    io::Errno,
    net::{SendFlags, SocketFlags, accept_with, send},
};

use super::{
    discovery_list::{DISCOVERED_SCHEMA, Line, ListSource, discovered_socket_name},
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
    /// First housekeeping after the participant was enabled.
    since: Option<Instant>,
    client: Option<Client>,
    /// True if a connection will wake the loop.
    is_armed: bool,
    /// Connections refused since housekeeping.
    refused: u16,
    /// Maximum length in bytes of a listed announcement: [`DISCOVERY_SLOT_BYTES`], less in a test.
    max_bytes: usize,
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
    /// Entities of the list that have no line.
    omitted: u64,
    /// True if bytes were sent since housekeeping.
    is_served: bool,
    /// True if the socket was full since housekeeping.
    is_blocked: bool,
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
            _ => client.fill(state, (&self.identity, self.since), self.max_bytes),
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
            Err(Errno::INTR) => true,
            Err(Errno::WOULDBLOCK) => {
                let is_armed = || state.io.watch_once(&self.listener, EventFlags::IN);
                self.is_armed = self.refused == 0 && is_armed();
                false
            }
            // No descriptor or no memory: the connection stays in the backlog, and housekeeping tries again.
            Err(_) => false,
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
                client.is_blocked = true;
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
            omitted: 0,
            is_served: false,
            is_blocked: false,
        }
    }

    /// Writes the next lines, at most [`LISTED_ITEMS`] of a section.
    fn fill(
        &mut self,
        state: &State,
        (identity, since): (&Identity, Option<Instant>),
        max_bytes: usize,
    ) {
        self.text.clear();
        self.sent = 0;
        let (protocol, from) = (&state.protocol, self.index);
        match self.section {
            Section::Source => {
                self.write(&Line::Source(source(state, identity, since)));
                // A disabled participant does not announce itself (DDS 1.4 §2.2.2.1.1.7).
                let own = protocol.is_enabled().then(|| protocol.participant_data());
                self.write_entities(
                    own.map(|data| (0, Line::participant(&data, max_bytes)))
                        .into_iter(),
                );
            }
            Section::OwnWriters => {
                let ids = protocol.local_writers_from(from);
                let enabled = ids.filter(|(_, id)| protocol.is_writer_enabled(*id));
                self.write_entities(enabled.filter_map(|(index, id)| {
                    let data = protocol.writer_data(id)?;
                    Some((index, Line::endpoint(EndpointKind::Writer, data, max_bytes)))
                }));
            }
            Section::OwnReaders => {
                let ids = protocol.local_readers_from(from);
                let enabled = ids.filter(|(_, id)| protocol.is_reader_enabled(*id));
                self.write_entities(enabled.filter_map(|(index, id)| {
                    let data = protocol.reader_data(id)?;
                    Some((index, Line::endpoint(EndpointKind::Reader, data, max_bytes)))
                }));
            }
            Section::Participants => {
                let all = protocol.remote_participants_from(from);
                self.write_entities(
                    all.map(|(index, peer)| (index, Line::participant(&peer.data, max_bytes))),
                );
            }
            Section::Endpoints => {
                let all = protocol.remote_endpoints_from(from);
                self.write_entities(all.map(|(index, endpoint): (u16, RemoteEndpoint)| {
                    (
                        index,
                        Line::endpoint(endpoint.kind, &endpoint.data, max_bytes),
                    )
                }));
            }
            Section::End => {
                let omitted = self.omitted;
                self.write(&Line::End { omitted });
                self.section = Section::Done;
            }
            Section::Done => {}
        }
    }

    /// Writes the next lines of a section, and continues with the next section after its last line. Counts the entities
    /// that have no line.
    fn write_entities(&mut self, lines: impl Iterator<Item = (u16, Option<Line>)>) {
        let (mut items, mut last) = (0, 0);
        for (index, line) in lines.take(LISTED_ITEMS) {
            match line {
                Some(line) => self.write(&line),
                None => self.omitted += 1,
            }
            (items, last) = (items + 1, index);
        }
        match last.checked_add(1) {
            Some(next) if items == LISTED_ITEMS => self.index = next,
            _ => (self.section, self.index) = (self.section.next(), 0),
        }
    }

    fn write(&mut self, line: &Line) {
        let written = serde_json::to_writer(&mut self.text, line);
        debug_assert!(written.is_ok(), "memory takes all, and keys are texts");
        self.text.push(b'\n');
    }
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

fn source(state: &State, identity: &Identity, since: Option<Instant>) -> ListSource {
    let age = since.map(|since| monotonic_now().saturating_since(since));
    ListSource {
        schema: DISCOVERED_SCHEMA.into(),
        number: identity.number,
        name: identity.name.clone(),
        domain: identity.domain,
        guid_prefix: state.protocol.guid_prefix().to_string(),
        age_us: age.unwrap_or_default().as_secs_f64() * 1e6,
        discovers_all: state.protocol.announces() == Announces::All,
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
        let job = self.add_job(config, Task::ListDiscovered)?;
        self.jobs.receive[DISCOVERED_INDEX] = Some(job);
        let is_armed = self.io.watch_once(&listener, EventFlags::IN);
        self.monitoring.discovered = Some(Box::new(DiscoveredServer {
            listener,
            job,
            identity,
            since: None,
            client: None,
            is_armed,
            refused: 0,
            max_bytes: DISCOVERY_SLOT_BYTES,
        }));
        Ok(())
    }

    /// Drops a client whose socket was full since the last housekeeping, and that has read nothing since. Returns the job
    /// if it is to look for connections, because they do not wake the loop.
    pub(super) fn begin_listing(&mut self) -> Option<JobId> {
        let server = self.monitoring.discovered.as_mut()?;
        if server.since.is_none() && self.protocol.is_enabled() {
            server.since = Some(monotonic_now());
        }
        server.refused = 0;
        let stopped = |client: &mut Client| client.is_blocked && !client.is_served;
        server.client.take_if(stopped);
        if let Some(client) = &mut server.client {
            (client.is_served, client.is_blocked) = (false, false);
        }
        (!server.is_armed).then_some(server.job)
    }

    /// Executes one step for a client of the list. Returns true if there is more to do now.
    // Never inlined, so that the loop stays short.
    #[inline(never)]
    pub(crate) fn serve_list(&mut self) -> bool {
        // Taken out, so that the step can read the whole state.
        let Some(mut server) = self.monitoring.discovered.take() else {
            return false;
        };
        let again = server.step(self);
        self.monitoring.discovered = Some(server);
        again
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::BufReader,
        os::{
            linux::net::SocketAddrExt,
            unix::net::{SocketAddr, UnixStream},
        },
        thread,
        time::Duration,
    };

    use crate::{Network, Participant, Qos, TopicType, observe::DiscoveredList};

    #[derive(TopicType)]
    #[topic(crate = "crate::types")]
    struct Tick {
        _number: u32,
    }

    #[test]
    fn an_entity_with_a_longer_announcement_is_counted_and_has_no_line() {
        let network = Network::new(1);
        let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
        let participant = builder.observable(true).build().unwrap();
        let long = Qos::reliable().user_data(&[7; 256]);
        let _writers = [
            ("a", Qos::reliable()),
            ("b", long.clone()),
            ("c", Qos::reliable()),
        ]
        .map(|(topic, qos)| participant.create_writer::<Tick>(topic, &qos).unwrap());
        let _reader = participant.create_reader::<Tick>("d", &long).unwrap();
        let set = |max_bytes| {
            let mut state = participant.core().state.borrow_mut();
            state.monitoring.discovered.as_mut().unwrap().max_bytes = max_bytes;
        };
        let list = || {
            let name = participant.observable_at().unwrap() + "/discovered";
            let reader = thread::spawn(move || {
                let address = SocketAddr::from_abstract_name(name).unwrap();
                let stream = UnixStream::connect_addr(&address).unwrap();
                DiscoveredList::read(BufReader::new(stream), |_| true).unwrap()
            });
            let is_read = participant.run_until(Duration::from_secs(30), || reader.is_finished());
            assert!(is_read, "nothing was answered");
            let list = reader.join().unwrap().expect("it is wanted");
            let endpoints = list.endpoints.iter();
            let topics: Vec<String> = endpoints
                .map(|endpoint| endpoint.data.topic_name.as_str().to_owned())
                .collect();
            (list.participants.len(), topics.concat(), list.omitted)
        };
        assert_eq!(list(), (1, String::from("abcd"), 0));
        set(320);
        assert_eq!(list(), (1, String::from("ac"), 2));
        set(0);
        assert_eq!(list(), (0, String::new(), 5));
    }
}
