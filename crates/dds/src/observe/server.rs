//! Server of the observed process: the socket, access control, and the steps that serve clients.

use std::{io, os::fd::OwnedFd};

use isolane_datapath::clock::monotonic_now;
use isolane_executor::{JobConfig, JobId};
use isolane_rtps::Priority;
use rustix::{
    io::Errno,
    net::{
        AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
        listen, send, socket_with, sockopt::socket_peercred,
    },
    process::geteuid,
};

use super::{
    json_writer::JsonWriter, latency::LatencyHistogram, schema::Snapshot, snapshot::Identity,
    socket_name,
};
use crate::{
    error::BuildError,
    limits::{
        MAX_OBSERVERS, OBSERVED_PARTICIPANTS, OBSERVER_BACKLOG, OBSERVER_SEND_BYTES,
        OBSERVERS_ACCEPTED,
    },
    participant::jobs::Task,
    participant::state::State,
};

/// Clients of a participant, and the snapshot that is sent to them.
pub(crate) struct Observer {
    listener: OwnedFd,
    job: JobId,
    identity: Identity,
    clients: heapless::Vec<Client, MAX_OBSERVERS>,
    step: Step,
    snapshot: Option<Box<Snapshot>>,
    text: JsonWriter,
    records_latencies: bool,
}

struct Client {
    socket: OwnedFd,
    /// Bytes of the line sent so far.
    sent: usize,
}

#[derive(Clone, Copy)]
enum Step {
    /// Accepts connections; the number counts those accepted in this second so far.
    Accept(u16),
    Report,
    Datapath,
    Write,
    /// Sends to the client with this index.
    Send(usize),
}

impl Observer {
    /// Accepts some connections, and closes those of other users and those beyond the limit. Returns true if more may
    /// wait.
    fn accept(&mut self) -> bool {
        for _ in 0..OBSERVERS_ACCEPTED {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let Ok(socket) = accept_with(&self.listener, flags) else {
                return false;
            };
            let sent = self.text.bytes().len();
            let is_allowed = is_allowed(&socket);
            if !is_allowed || self.clients.push(Client { socket, sent }).is_err() {
                self.identity.observers_refused += 1;
            }
        }
        true
    }

    /// Drops the clients that have not read the previous line.
    fn drop_slow(&mut self) {
        let (all, length) = (self.clients.len(), self.text.bytes().len());
        self.clients.retain(|client| client.sent == length);
        self.identity.observers_dropped += (all - self.clients.len()) as u64;
    }

    /// Sends a part of the line to a client and returns the next step.
    fn send(&mut self, place: usize) -> Option<Step> {
        let client = self.clients.get_mut(place)?;
        let left = &self.text.bytes()[client.sent..];
        let some = &left[..left.len().min(OBSERVER_SEND_BYTES)];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match send(&client.socket, some, flags) {
            Ok(sent) => {
                client.sent += sent;
                let is_all = client.sent == self.text.bytes().len();
                Some(Step::Send(place + usize::from(is_all)))
            }
            Err(Errno::INTR) => Some(Step::Send(place)),
            // The client does not read; the next line drops it.
            Err(Errno::WOULDBLOCK) => Some(Step::Send(place + 1)),
            // The connection is closed, and another client has its index.
            Err(_) => {
                self.clients.swap_remove(place);
                Some(Step::Send(place))
            }
        }
    }

    /// Executes one step. Returns `None` when all clients are served.
    fn step(&mut self, state: &mut State) -> Option<Step> {
        match self.step {
            Step::Accept(before) => {
                if before == 0 {
                    self.drop_slow();
                }
                let after = before + OBSERVERS_ACCEPTED;
                match self.accept() && after < OBSERVER_BACKLOG {
                    true => Some(Step::Accept(after)),
                    false if self.clients.is_empty() => {
                        self.end_latencies(state);
                        None
                    }
                    false => Some(Step::Report),
                }
            }
            Step::Report => {
                self.snapshot = Some(Box::new(Snapshot::of(state, &self.identity)));
                self.begin_latencies(state);
                Some(Step::Datapath)
            }
            Step::Datapath => {
                self.snapshot.as_mut()?.add_datapath(state);
                self.text.clear();
                self.clients.iter_mut().for_each(|client| client.sent = 0);
                Some(Step::Write)
            }
            Step::Write => match self.text.step(self.snapshot.as_ref()?) {
                true => Some(Step::Write),
                false => Some(Step::Send(0)),
            },
            Step::Send(place) => self.send(place),
        }
    }
}

/// Latencies are recorded only while there are clients.
impl Observer {
    /// Begins an interval of the latencies of all readers.
    fn begin_latencies(&mut self, state: &mut State) {
        self.records_latencies = true;
        let now = monotonic_now();
        for reader in state.protocol.local_readers() {
            let latencies = &mut state.reader_slots[reader.index()].latencies;
            match latencies {
                Some(latencies) => **latencies = LatencyHistogram::new(now),
                None => *latencies = Some(Box::new(LatencyHistogram::new(now))),
            }
        }
    }

    fn end_latencies(&mut self, state: &mut State) {
        if std::mem::take(&mut self.records_latencies) {
            let slots = state.reader_slots.iter_mut();
            slots.for_each(|slot| slot.latencies = None);
        }
    }
}

/// Returns whether the client belongs to this process' user or to root.
pub(super) fn is_allowed(socket: &OwnedFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid.is_root() || peer.uid == geteuid())
}

/// Opens a listening socket with an abstract name.
pub(super) fn listen_at(name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(
        &listener,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    listen(&listener, i32::from(OBSERVER_BACKLOG))?;
    Ok(listener)
}

/// Opens a listening socket with the first free name of this process.
fn listen_at_free_name() -> io::Result<(u32, OwnedFd)> {
    let pid = std::process::id();
    for number in 0..OBSERVED_PARTICIPANTS {
        match listen_at(&socket_name(pid, number)) {
            Ok(listener) => return Ok((number, listener)),
            Err(Errno::ADDRINUSE) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other(format!(
        "the process has {OBSERVED_PARTICIPANTS} participants that are"
    )))
}

impl State {
    /// Makes this participant observable. A failure results in a warning, because observers are optional.
    ///
    /// # Errors
    /// No job is left.
    pub(crate) fn make_observable(&mut self, name: &str, domain: u32) -> Result<(), BuildError> {
        let (number, listener) = match listen_at_free_name() {
            Ok(listening) => listening,
            Err(error) => {
                self.monitoring.not_observable = Some(format!(
                    "`isolane top` cannot see this participant: {error}. Everything else works"
                ));
                return Ok(());
            }
        };
        let config = JobConfig::event("observe", Priority::STATISTICS.get());
        let job = self.add_job(config, Task::Observe)?;
        let identity = Identity {
            number,
            name: name.into(),
            domain,
            ..Identity::default()
        };
        self.make_discovered_listable(identity.clone())?;
        self.monitoring.observer = Some(Box::new(Observer {
            listener,
            job,
            identity,
            clients: heapless::Vec::new(),
            step: Step::Accept(0),
            snapshot: None,
            text: JsonWriter::default(),
            records_latencies: false,
        }));
        Ok(())
    }

    pub(crate) fn observable_at(&self) -> Option<String> {
        let number = self.monitoring.observer.as_ref()?.identity.number;
        Some(socket_name(std::process::id(), number))
    }

    /// Starts serving the clients, once a second, unless that is still in progress.
    #[inline(never)]
    pub(crate) fn begin_observing(&mut self) {
        let observer = self.monitoring.observer.as_ref().map(|it| it.job);
        for job in observer.into_iter().chain(self.begin_listing()) {
            self.executor.activate(job, monotonic_now());
        }
    }

    /// Executes one step for the clients of snapshots. Returns true if there is more to do.
    // Never inlined, so that the loop stays short.
    #[inline(never)]
    pub(crate) fn serve_observers(&mut self) -> bool {
        // Taken out, so that the step can read the whole state.
        let Some(mut observer) = self.monitoring.observer.take() else {
            return false;
        };
        let next = observer.step(self);
        observer.step = next.unwrap_or(Step::Accept(0));
        self.monitoring.observer = Some(observer);
        next.is_some()
    }
}
