//! The process' side: the socket, who may connect, and the steps that serve them.

use std::{io, os::fd::OwnedFd};

use isolane_datapath::clock::monotonic_now;
use isolane_engine::Priority;
use isolane_executor::{JobConfig, JobId};
use rustix::{
    io::Errno,
    net::{
        AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
        listen, send, socket_with, sockopt::socket_peercred,
    },
    process::geteuid,
};

use super::{form::Snapshot, snapshot::Identity, socket_name, text::Text};
use crate::{
    error::BuildError,
    limits::{
        MAX_OBSERVERS, OBSERVED_PARTICIPANTS, OBSERVER_BACKLOG, OBSERVER_SEND_BYTES,
        OBSERVERS_ACCEPTED,
    },
    state::{State, Task},
};

/// Who looks at a participant, and what they are shown.
pub(crate) struct Observer {
    listener: OwnedFd,
    job: JobId,
    identity: Identity,
    clients: heapless::Vec<Client, MAX_OBSERVERS>,
    step: Step,
    snapshot: Option<Box<Snapshot>>,
    text: Text,
}

struct Client {
    socket: OwnedFd,
    /// Bytes of the line that it was sent.
    sent: usize,
}

/// What is done next.
#[derive(Clone, Copy)]
enum Step {
    /// Behind so many connections of this second.
    Accept(u16),
    Report,
    LookAtDatapath,
    Write,
    /// To which client.
    Send(usize),
}

impl Observer {
    /// Accepts some connections, and closes those of other users and those beyond the places. True: more may wait.
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

    /// Drops those that have not read the line before this one.
    fn drop_slow(&mut self) {
        let (all, length) = (self.clients.len(), self.text.bytes().len());
        self.clients.retain(|client| client.sent == length);
        self.identity.observers_dropped += (all - self.clients.len()) as u64;
    }

    /// Sends some more of the line to a client; what comes next.
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
            // It does not read. It has until the next line.
            Err(Errno::WOULDBLOCK) => Some(Step::Send(place + 1)),
            // It is gone, and another is in its place.
            Err(_) => {
                self.clients.swap_remove(place);
                Some(Step::Send(place))
            }
        }
    }

    /// One step; `None` is next when all are served.
    fn step(&mut self, state: &State) -> Option<Step> {
        match self.step {
            Step::Accept(before) => {
                if before == 0 {
                    self.drop_slow();
                }
                let after = before + OBSERVERS_ACCEPTED;
                match self.accept() && after < OBSERVER_BACKLOG {
                    true => Some(Step::Accept(after)),
                    false => (!self.clients.is_empty()).then_some(Step::Report),
                }
            }
            Step::Report => {
                self.snapshot = Some(Box::new(Snapshot::of(state, &self.identity)));
                Some(Step::LookAtDatapath)
            }
            Step::LookAtDatapath => {
                self.snapshot.as_mut()?.look_at_datapath(state);
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

/// Whether whoever connected is this process' user, or root.
fn is_allowed(socket: &OwnedFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid.is_root() || peer.uid == geteuid())
}

/// The first free name of this process, and the socket that has it.
fn listen_at_free_name() -> io::Result<(u32, OwnedFd)> {
    let pid = std::process::id();
    for number in 0..OBSERVED_PARTICIPANTS {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let name = SocketAddrUnix::new_abstract_name(socket_name(pid, number).as_bytes())?;
        match bind(&listener, &name) {
            Ok(()) => {
                listen(&listener, i32::from(OBSERVER_BACKLOG))?;
                return Ok((number, listener));
            }
            Err(Errno::ADDRINUSE) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other(format!(
        "the process has {OBSERVED_PARTICIPANTS} participants that are"
    )))
}

impl State {
    /// Lets other processes look at this participant from now on. That they cannot is no reason not to
    /// run, but a note.
    ///
    /// # Errors
    /// No job is left.
    pub(crate) fn make_observable(&mut self, name: &str, domain: u32) -> Result<(), BuildError> {
        let (number, listener) = match listen_at_free_name() {
            Ok(listening) => listening,
            Err(error) => {
                self.not_observable = Some(format!(
                    "`isolane top` cannot see this participant: {error}. Everything else works"
                ));
                return Ok(());
            }
        };
        let config = JobConfig::event("observe", Priority::STATISTICS.get());
        let job = self.add_job(config, Task::Observe)?;
        self.observer = Some(Box::new(Observer {
            listener,
            job,
            identity: Identity {
                number,
                name: name.into(),
                domain,
                ..Identity::default()
            },
            clients: heapless::Vec::new(),
            step: Step::Accept(0),
            snapshot: None,
            text: Text::default(),
        }));
        Ok(())
    }

    /// The name of the socket at which this participant can be looked at.
    pub(crate) fn observable_at(&self) -> Option<String> {
        let number = self.observer.as_ref()?.identity.number;
        Some(socket_name(std::process::id(), number))
    }

    /// Once a second: whoever looks is to be served, unless that is under way.
    pub(crate) fn begin_observing(&mut self) {
        if let Some(observer) = &self.observer {
            self.executor.activate(observer.job, monotonic_now());
        }
    }

    /// One step of serving those who look. True: there is more to do.
    pub(crate) fn serve_observers(&mut self) -> bool {
        // Taken out, so that it can look at everything.
        let Some(mut observer) = self.observer.take() else {
            return false;
        };
        let next = observer.step(self);
        observer.step = next.unwrap_or(Step::Accept(0));
        self.observer = Some(observer);
        next.is_some()
    }
}
