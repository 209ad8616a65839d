//! Server of a measurement: answers probes with their receive queue.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use isolane_hostnet::rx_queue_probe::{ProbeSocket, ReceiveQueues};
use isolane_wire::level::Level;

use super::message::{BootMark, MESSAGE_BYTES, Message};
use super::receive_queues::raise_descriptor_limit;
use crate::limits::{MAX_ANSWERS_PER_SECOND, MAX_PROBED_PORTS};

/// Interval at which a waiting thread checks whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Counters of an answerer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Answered questions.
    pub questions: u64,
    /// Datagrams that were not questions.
    pub foreign: u64,
    /// Questions dropped by the rate limit.
    pub too_fast: u64,
}

/// Answerer, bound to its ports.
#[derive(Debug)]
pub struct ProbeServer {
    ports: Vec<ProbeSocket>,
    boot: Option<BootMark>,
}

impl ProbeServer {
    /// Binds the ports.
    ///
    /// # Errors
    /// The port that could not be bound, and the reason: participants occupy their ports while they run.
    pub fn open(
        queues: ReceiveQueues,
        address: Ipv4Addr,
        ports: &[u16],
        level: Level,
    ) -> Result<Self, (u16, io::Error)> {
        raise_descriptor_limit(ports.len().min(MAX_PROBED_PORTS), queues);
        let ports = ports
            .iter()
            .take(MAX_PROBED_PORTS)
            .map(|port| {
                let address = SocketAddrV4::new(address, *port);
                ProbeSocket::bind(address, level, queues).map_err(|error| (*port, error))
            })
            .collect::<Result<_, _>>()?;
        let boot = BootMark::of(&crate::probe::here().boot_id);
        Ok(Self { ports, boot })
    }

    /// Bound ports; a requested port of zero is replaced by the one that the kernel assigned.
    pub fn ports(&self) -> Vec<u16> {
        let addresses = self.ports.iter().filter_map(|port| port.address().ok());
        addresses.map(|address| address.port()).collect()
    }

    /// Answers until `time` has passed or `stop` is set.
    ///
    /// # Errors
    /// The system error of a socket.
    pub fn serve(&self, time: Duration, stop: &AtomicBool) -> io::Result<ServerCounters> {
        let end = Instant::now() + time;
        thread::scope(|scope| {
            let threads: Vec<_> = self
                .ports
                .iter()
                .map(|port| scope.spawn(move || serve_one(port, self.boot, end, stop)))
                .collect();
            let mut all = ServerCounters::default();
            for thread in threads {
                let one = thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("an answering thread panicked")))?;
                all.questions += one.questions;
                all.foreign += one.foreign;
                all.too_fast += one.too_fast;
            }
            Ok(all)
        })
    }
}

fn serve_one(
    port: &ProbeSocket,
    boot: Option<BootMark>,
    end: Instant,
    stop: &AtomicBool,
) -> io::Result<ServerCounters> {
    let mut done = ServerCounters::default();
    let mut bytes = [0; MESSAGE_BYTES + 1];
    let (mut second, mut in_second) = (Instant::now(), 0);
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        let Some(landed) = port.receive(&mut bytes, LOOK)? else {
            continue;
        };
        let message = bytes.get(..landed.length).and_then(Message::parse);
        let Some(Message::ProbeParameters { run, number }) = message else {
            done.foreign += 1;
            continue;
        };
        if second.elapsed() >= Duration::from_secs(1) {
            (second, in_second) = (Instant::now(), 0);
        }
        in_second += 1;
        if in_second > MAX_ANSWERS_PER_SECOND {
            done.too_fast += 1;
            continue;
        }
        let answer = Message::Answer {
            run,
            number,
            queue: landed.queue,
            boot,
        };
        // A lost answer needs no handling, because the asker repeats the question.
        if port.send(&answer.emit(), landed.from).is_ok() {
            done.questions += 1;
        }
    }
    Ok(done)
}
