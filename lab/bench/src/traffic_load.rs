//! Loads between the two test hosts in both directions: the [background load](crate::background_load) and the
//! [multicast load](crate::multicast_load).
//!
//! Each host has a process with a [source](crate::traffic_source), and one with the [`Receivers`] of the other host's
//! source. A load for a level of the participants under test has no receivers, because the participants receive it.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use serde::{Deserialize, Serialize};

use crate::child::{ChildError, Program, Role, Running};
use crate::limits::SLOT_BYTES;
use crate::namespace::{Host, TestHosts};
use crate::process::{Note, Notes};
use crate::stop::Stop;
use crate::system::socket;
use crate::traffic_source::{LoadError, Source, SourceReport};

/// Time that the receivers count after the sources have stopped, for frames still in the cable.
const DRAIN: Duration = Duration::from_millis(200);

/// Configuration of one host's receiving sockets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receivers {
    /// Address and port of each socket.
    pub addresses: Vec<SocketAddrV4>,
    /// Address of the interface on which the sockets join their multicast group; `None` for unicast addresses.
    pub interface: Option<Ipv4Addr>,
    /// Receive buffer size of each socket, in bytes.
    pub receive_buffer_bytes: u32,
    /// True when datagrams are read as they arrive; otherwise they are read only at the end.
    pub is_read: bool,
    /// CPU core of the process.
    pub core: Option<usize>,
}

/// Counts of one host's receiving sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiversReport {
    /// Number of sockets.
    pub sockets: u16,
    /// Datagrams read, in total.
    pub received: u64,
    /// Datagrams dropped by full sockets, in total.
    pub overflowed: u64,
    /// Minimum number of datagrams that reached a socket.
    pub least: u64,
    /// Maximum number of datagrams that reached a socket.
    pub most: u64,
    /// Steps the machine did not allow.
    pub notes: Vec<Note>,
}

impl Receivers {
    /// Holds the sockets in the calling process and network namespace until `stop`, then reads what is still in their
    /// buffers, and returns the datagrams that they received and dropped.
    pub fn run(
        &self,
        stop: &Stop,
        ready: impl FnOnce(&[Note]),
    ) -> Result<ReceiversReport, LoadError> {
        let notes = Notes::pinned(self.core);
        let open = |address: &SocketAddrV4| self.open(address);
        let sockets: io::Result<Vec<UdpSocket>> = self.addresses.iter().map(open).collect();
        let sockets = sockets.map_err(LoadError::system("open the receivers' sockets"))?;
        ready(&notes.0);
        let mut scratch = vec![0; SLOT_BYTES];
        let mut received = vec![0; sockets.len()];
        let polled_sockets = if self.is_read { &sockets[..] } else { &[] };
        loop {
            let mut polled = vec![PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
            let of_sockets = polled_sockets.iter();
            polled.extend(of_sockets.map(|socket| PollFd::new(socket, PollFlags::IN)));
            match poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(LoadError::system("wait")(error.into())),
            }
            let is_ready = |index: usize| !polled[index].revents().is_empty();
            let is_stopping = is_ready(0);
            for (index, socket) in sockets.iter().enumerate() {
                if is_stopping || (self.is_read && is_ready(index + 1)) {
                    let count = socket::drain(socket, &mut scratch);
                    received[index] += count.map_err(LoadError::system("receive"))?;
                }
            }
            if is_stopping {
                break;
            }
        }
        let mut report = ReceiversReport {
            sockets: sockets.len() as u16,
            least: u64::MAX,
            notes: notes.0,
            ..ReceiversReport::default()
        };
        for (socket, received) in sockets.iter().zip(received) {
            let overflowed = socket::overflowed(socket);
            let overflowed = overflowed.map_err(LoadError::system("read its drops"))?;
            report.received += received;
            report.overflowed += overflowed;
            report.least = report.least.min(received + overflowed);
            report.most = report.most.max(received + overflowed);
        }
        Ok(report)
    }

    fn open(&self, address: &SocketAddrV4) -> io::Result<UdpSocket> {
        let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        // SO_REUSEADDR has to precede bind, because all sockets of a group share one address.
        sockopt::set_socket_reuseaddr(&socket, self.interface.is_some())?;
        bind(&socket, address)?;
        if let Some(interface) = &self.interface {
            sockopt::set_ip_add_membership(&socket, address.ip(), interface)?;
        }
        socket::set_receive_buffer(&socket, self.receive_buffer_bytes)?;
        Ok(socket.into())
    }
}

/// Configuration of a load in both directions.
pub trait TrafficLoad: Clone {
    /// Result of one direction.
    type Direction;

    /// Checks the configuration against its bounds.
    fn check(&self) -> Result<(), LoadError>;

    /// Source on a host, which sends to the other host.
    fn source(&self, from: Host) -> Source;

    /// Receivers of hosts A and B, if any.
    fn receivers(&self) -> Option<[Receivers; 2]>;

    /// Result of the direction between a source and receivers.
    fn direction(&self, source: &SourceReport, receivers: &ReceiversReport) -> Self::Direction;
}

/// Result of a load in both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadReport<D> {
    /// Direction from host A to host B.
    pub a_to_b: D,
    /// Direction from host B to host A.
    pub b_to_a: D,
    /// Steps the machine did not allow.
    pub notes: Vec<Note>,
}

impl<D> LoadReport<D> {
    /// Both directions with their names.
    pub(crate) fn directions(&self) -> [(&'static str, &D); 2] {
        [("A to B", &self.a_to_b), ("B to A", &self.b_to_a)]
    }
}

/// Processes of a load in both directions. Dropping the value kills the processes without a report.
#[derive(Debug)]
pub struct RunningLoad<L> {
    // Sources before receivers: fields drop in order, and sources must not send to closed ports.
    sources: [Running; 2],
    receivers: Option<[Running; 2]>,
    config: L,
}

impl<L: TrafficLoad> RunningLoad<L> {
    /// Starts the receivers of both hosts, if any, then both sources, and returns when all are ready.
    pub fn start(
        testbed: &TestHosts,
        program: &Program,
        config: &L,
    ) -> Result<RunningLoad<L>, ChildError> {
        let checked = config.check();
        checked.map_err(|error| ChildError::Failed(error.to_string()))?;
        let start = |[a, b]: [Role; 2]| -> Result<[Running; 2], ChildError> {
            Ok([
                Running::start(testbed, Host::A, program, &a)?,
                Running::start(testbed, Host::B, program, &b)?,
            ])
        };
        let receivers = config.receivers();
        let receivers = receivers.map(|both| start(both.map(Role::TrafficReceivers)));
        Ok(RunningLoad {
            receivers: receivers.transpose()?,
            sources: start(Host::BOTH.map(|host| Role::TrafficSource(config.source(host))))?,
            config: config.clone(),
        })
    }

    /// Stops the sources, drains the cable, stops the receivers and returns the report.
    pub fn finish(self) -> Result<LoadReport<L::Direction>, ChildError> {
        let [source_a, source_b]: [SourceReport; 2] = Running::finish_both(self.sources)?;
        thread::sleep(DRAIN);
        let receivers = self.receivers.map(Running::finish_both).transpose()?;
        let [at_a, at_b]: [ReceiversReport; 2] = receivers.unwrap_or_default();
        Ok(LoadReport {
            a_to_b: self.config.direction(&source_a, &at_b),
            b_to_a: self.config.direction(&source_b, &at_a),
            notes: [source_a.notes, source_b.notes, at_a.notes, at_b.notes].concat(),
        })
    }
}
