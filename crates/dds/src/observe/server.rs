//! Server of the observed process: the socket, access control, and the steps that serve clients.

use std::{io, os::fd::OwnedFd};

use isolane_datapath::clock::monotonic_now;
use isolane_executor::{JobConfig, JobId};
use isolane_rtps::{Priority, ReaderId};
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
        MAX_OBSERVERS, OBSERVED_LATENCIES, OBSERVED_PARTICIPANTS, OBSERVER_BACKLOG,
        OBSERVER_SEND_BYTES, OBSERVERS_ACCEPTED,
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
    /// Readers of the snapshot, in its order.
    readers: Vec<Option<ReaderId>>,
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
    /// Adds the latencies of some readers, from this position in the snapshot on.
    Latencies(usize),
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
                let (snapshot, readers) = Snapshot::of(state, &self.identity);
                (self.snapshot, self.readers) = (Some(Box::new(snapshot)), readers);
                Some(Step::Latencies(0))
            }
            Step::Latencies(place) if place < self.readers.len() => {
                self.add_latencies(state, place);
                Some(Step::Latencies(place + OBSERVED_LATENCIES))
            }
            Step::Latencies(_) => Some(Step::Datapath),
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
    /// Adds the latencies of some readers to the snapshot, and begins the next interval of these readers.
    fn add_latencies(&mut self, state: &mut State, place: usize) {
        self.records_latencies = true;
        let now = monotonic_now();
        let samples = self.snapshot.iter_mut().flat_map(|it| &mut it.readers);
        let some = samples.zip(&self.readers).skip(place);
        for (sample, reader) in some.take(OBSERVED_LATENCIES) {
            // A reader may have been deleted since the report.
            let reader = reader.filter(|id| state.protocol.reader_data(*id).is_some());
            let Some(reader) = reader else {
                continue;
            };
            let latencies = &mut state.reader_slots[reader.index()].latencies;
            match latencies {
                Some(latencies) => sample.latency = Some(latencies.end_interval(now)),
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
            readers: Vec::new(),
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
