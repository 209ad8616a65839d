//! The side that asks, and what it finds: which pair of ports lands on which queues.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use isolane_datapath_xdp::landing::{LandingPort, ReceiveQueues};
use isolane_wire::level::Level;
use serde::{Deserialize, Serialize};

use super::boot_mark::BootMark;
use super::message::{MESSAGE_BYTES, Message};
use super::room::make_room;
use crate::limits::{ANSWER_PATIENCE, MAX_PROBED_PORTS};
use crate::plan::{Place, PlacedFlow};
use crate::steer::Tuple;

/// So many questions without any answer: nobody is there.
const SILENT_AFTER: u32 = 2;

/// What is to be asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// This host's address on the interface.
    pub address: Ipv4Addr,
    /// The answerer's address.
    pub peer: Ipv4Addr,
    /// This host's port and the answerer's, of each pair.
    pub pairs: Vec<(u16, u16)>,
    /// What datagrams are marked as.
    pub level: Level,
    /// How often each pair is asked: a hash says the same each time, a device that spreads by turns
    /// does not.
    pub times: u32,
    /// Random: tells this run's answers from others'.
    pub run: u64,
}

/// Each of these ports with each of those, at most [`MAX_PROBED_PORTS`] of either.
pub fn each_with_each(ports: &[u16], peer_ports: &[u16]) -> Vec<(u16, u16)> {
    let peer_ports = || peer_ports.iter().copied().take(MAX_PROBED_PORTS);
    let ports = ports.iter().copied().take(MAX_PROBED_PORTS);
    ports
        .flat_map(|port| peer_ports().map(move |peer_port| (port, peer_port)))
        .collect()
}

/// Where flows land: each pair of ports, in both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landings {
    /// Each pair that was asked.
    pub pairs: Vec<Pair>,
    /// The run of the answering machine, where it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_boot: Option<BootMark>,
}

/// One pair of ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The asker's.
    pub port: u16,
    /// The answerer's.
    pub peer_port: u16,
    /// Where datagrams landed at the answerer.
    pub there: Landing,
    /// Where the answers landed here.
    pub back: Landing,
    /// Questions without an answer.
    pub lost: u32,
}

/// Datagrams by the queue they came by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landing {
    /// How many came by each queue.
    pub by_queue: BTreeMap<u32, u32>,
    /// How many came by a queue that could not be told.
    pub untold: u32,
}

impl Landing {
    /// The one queue that all came by.
    pub fn only(&self) -> Option<u32> {
        match (self.untold, self.by_queue.len()) {
            (0, 1) => self.by_queue.keys().next().copied(),
            _ => None,
        }
    }

    fn count(&mut self, queue: Option<u32>) {
        match queue {
            Some(queue) => *self.by_queue.entry(queue).or_default() += 1,
            None => self.untold += 1,
        }
    }
}

impl Landings {
    /// The flows of which it is known where they land: each way of each pair that took one queue only, and of
    /// which nothing was lost.
    pub fn flows(&self, address: Ipv4Addr, peer: Ipv4Addr) -> Vec<PlacedFlow> {
        let mut flows = Vec::new();
        for pair in self.pairs.iter().filter(|pair| pair.lost == 0) {
            let question = Tuple {
                source: address,
                destination: peer,
                source_port: pair.port,
                destination_port: pair.peer_port,
            };
            for (tuple, landing) in [(question, &pair.there), (question.reply(), &pair.back)] {
                flows.extend(landing.only().map(|queue| PlacedFlow {
                    tuple,
                    place: Place::Measured { queue },
                }));
            }
        }
        flows
    }
}

impl Landings {
    /// Notes which run of its machine the peer answers from.
    fn meet(&mut self, boot: Option<BootMark>) -> Result<(), PlaceError> {
        match (self.peer_boot, boot) {
            (Some(known), Some(boot)) if known != boot => return Err(PlaceError::Restarted),
            (None, boot) => self.peer_boot = boot,
            _ => {}
        }
        Ok(())
    }
}

impl Pair {
    /// Whether nothing was answered.
    fn is_silent(&self) -> bool {
        self.there == Landing::default()
    }
}

/// Why nothing could be asked.
#[derive(Debug)]
pub enum PlaceError {
    /// A port of this host could not be had: it is taken while a participant runs.
    Port(u16, io::Error),
    /// Nobody answers, at none of the ports.
    Silent,
    /// Answers come from two runs of the peer's machine: it was started anew meanwhile.
    Restarted,
    /// What the system said.
    System(io::Error),
}

/// Asks each pair. Tells `progress` how many are done; ends early, with what there is, if that says so.
///
/// # Errors
/// [`PlaceError`]; [`PlaceError::Silent`] as soon as each of the peer's ports was asked once and none has answered.
pub fn place(
    question: &Question,
    queues: ReceiveQueues,
    mut progress: impl FnMut(usize) -> bool,
) -> Result<Landings, PlaceError> {
    let mut landings = Landings::default();
    let mut number = 0;
    let mut sockets: BTreeMap<u16, LandingPort> = BTreeMap::new();
    let mut ports: Vec<u16> = question.pairs.iter().map(|(port, _)| *port).collect();
    ports.sort_unstable();
    ports.dedup();
    make_room(ports.len(), queues);
    for port in ports {
        let address = SocketAddrV4::new(question.address, port);
        let socket = LandingPort::bind(address, question.level, queues)
            .map_err(|error| PlaceError::Port(port, error))?;
        sockets.insert(port, socket);
    }
    let peer_ports = question.pairs.iter().map(|(_, peer_port)| *peer_port);
    let mut not_asked: BTreeSet<u16> = peer_ports.collect();
    for (port, peer_port) in &question.pairs {
        let Some(socket) = sockets.get(port) else {
            continue;
        };
        let peer = SocketAddrV4::new(question.peer, *peer_port);
        let mut pair = Pair {
            port: socket.address().map_err(PlaceError::System)?.port(),
            peer_port: *peer_port,
            there: Landing::default(),
            back: Landing::default(),
            lost: 0,
        };
        for _ in 0..question.times {
            number += 1;
            let answer = ask(socket, (question.run, number), peer);
            match answer.map_err(PlaceError::System)? {
                Some(answered) => {
                    pair.there.count(answered.there);
                    pair.back.count(answered.back);
                    landings.meet(answered.boot)?;
                }
                None => pair.lost += 1,
            }
            // Where nobody is, waiting again and again says no more.
            if pair.is_silent() && pair.lost >= SILENT_AFTER {
                break;
            }
        }
        landings.pairs.push(pair);
        if !progress(landings.pairs.len()) {
            return Ok(landings);
        }
        not_asked.remove(peer_port);
        // From other ports of this host it would be asked the same.
        if not_asked.is_empty() && landings.pairs.iter().all(Pair::is_silent) {
            return Err(PlaceError::Silent);
        }
    }
    Ok(landings)
}

/// Whether sending may work the next time.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, WouldBlock};
    let is_full = error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error());
    is_full || matches!(error.kind(), WouldBlock | ConnectionRefused)
}

/// What an answer tells: the queues that its question and it came by, and the run of the answering machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) there: Option<u32>,
    pub(super) back: Option<u32>,
    boot: Option<BootMark>,
}

/// One question, of a run and with a number; `None`: no answer.
pub(super) fn ask(
    socket: &LandingPort,
    (run, number): (u64, u32),
    peer: SocketAddrV4,
) -> io::Result<Option<Answered>> {
    let message = Message::Question { run, number };
    match socket.send(&message.emit(), peer) {
        Ok(()) => {}
        // A full queue loses it, as a link may.
        Err(error) if is_passing(&error) => return Ok(None),
        Err(error) => return Err(error),
    }
    let end = Instant::now() + ANSWER_PATIENCE;
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
        // An answer that is late, of another run or of somebody else is none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_was_started_anew_meanwhile_is_found_out() {
        let mut landings = Landings::default();
        let (first, second) = (BootMark::of("first"), BootMark::of("second"));
        landings.meet(None).expect("an answerer that does not tell");
        landings.meet(first).expect("the first that tells");
        landings.meet(first).expect("the same");
        landings.meet(None).expect("nothing is known of this one");
        assert_eq!(landings.peer_boot, first);
        let error = landings.meet(second).expect_err("another run");
        assert!(matches!(error, PlaceError::Restarted));
    }
}
