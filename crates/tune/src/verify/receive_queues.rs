//! Client of the measurement: receive queues of port pairs between two hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use isolane_hostnet::rx_queue_probe::{ProbeSocket, ReceiveQueues};
use isolane_wire::level::Level;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::probe_server::{BootMark, MESSAGE_BYTES, Message};
use crate::limits::{MAX_PROBED_PORTS, PROBE_TIMEOUT};
use crate::plan::{FlowQueue, KnownQueue};
use crate::steer::Tuple;

/// Questions without any answer after which a pair, or a peer, counts as silent.
const SILENT_AFTER: u32 = 2;

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct ProbeParameters {
    /// Address of this host on the interface.
    pub address: Ipv4Addr,
    /// Address of the answerer.
    pub peer: Ipv4Addr,
    /// Pairs of own and answerer's port.
    pub pairs: Vec<(u16, u16)>,
    /// Level whose priority and marking the datagrams have.
    pub level: Level,
    /// Questions per pair. A hash selects the same queue each time; round-robin distribution does not.
    pub times: u32,
    /// Random identifier that separates this run's answers from others'.
    pub run: u64,
}

/// All pairs of an own port and a peer's port, with at most [`MAX_PROBED_PORTS`] ports on each side.
pub fn all_port_pairs(ports: &[u16], peer_ports: &[u16]) -> Vec<(u16, u16)> {
    let peer_ports = || peer_ports.iter().copied().take(MAX_PROBED_PORTS);
    let ports = ports.iter().copied().take(MAX_PROBED_PORTS);
    ports
        .flat_map(|port| peer_ports().map(move |peer_port| (port, peer_port)))
        .collect()
}

/// Receive queues of port pairs, in both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveQueueReport {
    /// Pairs that were probed.
    pub pairs: Vec<Pair>,
    /// Boot mark of the answering machine, if it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_boot: Option<BootMark>,
}

/// Pair of ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Port of the asker.
    pub port: u16,
    /// Port of the answerer.
    pub peer_port: u16,
    /// Receive queues of the questions, at the answerer.
    pub at_peer: QueueCounts,
    /// Receive queues of the answers, at this host.
    pub at_host: QueueCounts,
    /// Questions without an answer.
    pub lost: u32,
}

/// Datagrams by receive queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueCounts {
    /// Number of datagrams per queue.
    pub by_queue: BTreeMap<u32, u32>,
    /// Number of datagrams whose queue is unknown.
    pub unknown: u32,
}

impl QueueCounts {
    /// Queue of all datagrams, if there is only one.
    pub fn single_queue(&self) -> Option<u32> {
        match (self.unknown, self.by_queue.len()) {
            (0, 1) => self.by_queue.keys().next().copied(),
            _ => None,
        }
    }

    fn count(&mut self, queue: Option<u32>) {
        match queue {
            Some(queue) => *self.by_queue.entry(queue).or_default() += 1,
            None => self.unknown += 1,
        }
    }
}

impl ReceiveQueueReport {
    /// Flows with known receive queues: directions of pairs without loss, in which all datagrams arrived on one queue.
    pub fn flows(&self, address: Ipv4Addr, peer: Ipv4Addr) -> Vec<FlowQueue> {
        let mut flows = Vec::new();
        for pair in self.pairs.iter().filter(|pair| pair.lost == 0) {
            let question = Tuple {
                source: address,
                destination: peer,
                source_port: pair.port,
                destination_port: pair.peer_port,
            };
            for (tuple, landing) in [(question, &pair.at_peer), (question.reply(), &pair.at_host)] {
                flows.extend(landing.single_queue().map(|queue| FlowQueue {
                    tuple,
                    queue: KnownQueue::Measured { queue },
                }));
            }
        }
        flows
    }
}

impl ReceiveQueueReport {
    fn check_boot_mark(&mut self, boot: Option<BootMark>) -> Result<(), ProbeError> {
        match (self.peer_boot, boot) {
            (Some(known), Some(boot)) if known != boot => return Err(ProbeError::Restarted),
            (None, boot) => self.peer_boot = boot,
            _ => {}
        }
        Ok(())
    }
}

impl Pair {
    fn is_unanswered(&self) -> bool {
        self.at_peer == QueueCounts::default()
    }
}

/// Reason that the measurement failed.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// A port of this host could not be bound: participants occupy their ports while they run.
    #[error("port {0}: {1}")]
    Port(u16, io::Error),
    /// No port answers.
    #[error("no answer")]
    Silent,
    /// Answers have two boot marks: the peer's machine restarted during the measurement.
    #[error("the peer rebooted during the measurement")]
    Restarted,
    /// System error.
    #[error(transparent)]
    System(io::Error),
}

/// Probes each pair. Calls `progress` with the number of finished pairs, and returns early if `progress` returns false.
///
/// # Errors
/// [`ProbeError`]; [`ProbeError::Silent`] if no port of the peer answers at all, after two timeouts.
pub fn measure_receive_queues(
    question: &ProbeParameters,
    queues: ReceiveQueues,
    mut progress: impl FnMut(usize) -> bool,
) -> Result<ReceiveQueueReport, ProbeError> {
    let mut landings = ReceiveQueueReport::default();
    let mut number = 0;
    let mut sockets: BTreeMap<u16, ProbeSocket> = BTreeMap::new();
    let mut ports: Vec<u16> = question.pairs.iter().map(|(port, _)| *port).collect();
    ports.sort_unstable();
    ports.dedup();
    raise_descriptor_limit(ports.len(), queues);
    for port in ports {
        let address = SocketAddrV4::new(question.address, port);
        let socket = ProbeSocket::bind(address, question.level, queues)
            .map_err(|error| ProbeError::Port(port, error))?;
        sockets.insert(port, socket);
    }
    if let Some(socket) = sockets.values().next() {
        check_contact(socket, question, &mut number)?;
    }
    for (port, peer_port) in &question.pairs {
        let Some(socket) = sockets.get(port) else {
            continue;
        };
        let peer = SocketAddrV4::new(question.peer, *peer_port);
        let mut pair = Pair {
            port: socket.address().map_err(ProbeError::System)?.port(),
            peer_port: *peer_port,
            at_peer: QueueCounts::default(),
            at_host: QueueCounts::default(),
            lost: 0,
        };
        for _ in 0..question.times {
            number += 1;
            let answer = send_probe(socket, (question.run, number), peer);
            match answer.map_err(ProbeError::System)? {
                Some(answered) => {
                    pair.at_peer.count(answered.there);
                    pair.at_host.count(answered.back);
                    landings.check_boot_mark(answered.boot)?;
                }
                None => pair.lost += 1,
            }
            // Further attempts at a silent port reveal nothing.
            if pair.is_unanswered() && pair.lost >= SILENT_AFTER {
                break;
            }
        }
        landings.pairs.push(pair);
        if !progress(landings.pairs.len()) {
            return Ok(landings);
        }
    }
    Ok(landings)
}

/// Checks that the peer answers at one of its ports. All ports are asked at once, so that the wait for a silent peer
/// does not grow with their number.
fn check_contact(
    socket: &ProbeSocket,
    question: &ProbeParameters,
    number: &mut u32,
) -> Result<(), ProbeError> {
    let peer_ports = question.pairs.iter().map(|(_, peer_port)| *peer_port);
    let peer_ports: BTreeSet<u16> = peer_ports.collect();
    let mut bytes = [0; MESSAGE_BYTES + 1];
    for _ in 0..SILENT_AFTER {
        for peer_port in &peer_ports {
            *number += 1;
            let message = Message::ProbeParameters {
                run: question.run,
                number: *number,
            };
            match socket.send(
                &message.emit(),
                SocketAddrV4::new(question.peer, *peer_port),
            ) {
                Err(error) if !is_transient(&error) => return Err(ProbeError::System(error)),
                _ => {}
            }
        }
        let end = Instant::now() + PROBE_TIMEOUT;
        loop {
            let patience = end.saturating_duration_since(Instant::now());
            if patience == Duration::ZERO {
                break;
            }
            let landed = socket.receive(&mut bytes, patience);
            let Some(landed) = landed.map_err(ProbeError::System)? else {
                continue;
            };
            let answer = bytes.get(..landed.length).and_then(Message::parse);
            if let Some(Message::Answer { run, .. }) = answer
                && (run, *landed.from.ip()) == (question.run, question.peer)
            {
                return Ok(());
            }
        }
    }
    Err(ProbeError::Silent)
}

fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, WouldBlock};
    let is_full = error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error());
    is_full || matches!(error.kind(), WouldBlock | ConnectionRefused)
}

/// Content of an answer: receive queues of question and answer, and the answerer's boot mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) there: Option<u32>,
    pub(super) back: Option<u32>,
    boot: Option<BootMark>,
}

/// Asks one question, identified by run and number; `None` if no answer arrives.
pub(super) fn send_probe(
    socket: &ProbeSocket,
    (run, number): (u64, u32),
    peer: SocketAddrV4,
) -> io::Result<Option<Answered>> {
    let message = Message::ProbeParameters { run, number };
    match socket.send(&message.emit(), peer) {
        Ok(()) => {}
        // A drop at a full transmit queue counts as loss, like a loss on the link.
        Err(error) if is_transient(&error) => return Ok(None),
        Err(error) => return Err(error),
    }
    let end = Instant::now() + PROBE_TIMEOUT;
    let mut bytes = [0; MESSAGE_BYTES + 1];
    loop {
        let patience = end.saturating_duration_since(Instant::now());
        if patience == Duration::ZERO {
            return Ok(None);
        }
        let Some(landed) = socket.receive(&mut bytes, patience)? else {
            continue;
        };
        let answer = bytes.get(..landed.length).and_then(Message::parse);
        // Ignores answers that are late, of another run or from another sender.
        if let Some(Message::Answer {
            run: of_run,
            number: of_number,
            queue,
            boot,
        }) = answer
            && (of_run, of_number, landed.from) == (run, number, peer)
        {
            return Ok(Some(Answered {
                there: queue,
                back: landed.queue,
                boot,
            }));
        }
    }
}

/// Descriptors reserved for the rest of the program.
const OTHERS: u64 = 64;

/// Raises the descriptor limit for `ports` ports as far as permitted. If it is still too low, opening a socket fails.
pub(super) fn raise_descriptor_limit(ports: usize, queues: ReceiveQueues) {
    let wanted = ports as u64 * (u64::from(queues.count()) + 2) + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let most = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    // If the kernel refuses the limit, opening a socket fails later.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(most),
            maximum: limit.maximum,
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_was_started_anew_meanwhile_is_found_out() {
        let mut landings = ReceiveQueueReport::default();
        let (first, second) = (BootMark::of("first"), BootMark::of("second"));
        landings
            .check_boot_mark(None)
            .expect("an answerer that does not tell");
        landings
            .check_boot_mark(first)
            .expect("the first that tells");
        landings.check_boot_mark(first).expect("the same");
        landings
            .check_boot_mark(None)
            .expect("nothing is known of this one");
        assert_eq!(landings.peer_boot, first);
        let error = landings.check_boot_mark(second).expect_err("another run");
        assert!(matches!(error, ProbeError::Restarted));
    }
}
