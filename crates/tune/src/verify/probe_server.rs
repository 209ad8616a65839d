//! Server of a measurement: answers probes with their receive queue. Its messages:
//!
//! ```text
//!  0  "isolane?" or "isolane!"   question or answer
//!  8  run                        random identifier of the asker's run: answers of other runs are ignored
//! 16  number                     of the question
//! 20  queue                      of an answer: receive queue of its question; all ones if unknown
//! 24  mark                       of an answer: boot mark of the answering machine; zero if unknown
//! 32  zeros, to 64 bytes         length of a small sample
//! ```
//!
//! Numbers are big endian.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use crc::{CRC_64_XZ, Crc};
use isolane_hostnet::rx_queue_probe::{ProbeSocket, ReceiveQueues};
use isolane_wire::level::Level;
use serde::{Deserialize, Serialize};

use super::receive_queues::raise_descriptor_limit;
use crate::limits::{MAX_ANSWERS_PER_SECOND, MAX_PROBED_PORTS};

/// Interval at which a waiting thread checks whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Counters of a probe server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Answered questions.
    pub questions: u64,
    /// Datagrams that were not questions.
    pub foreign: u64,
    /// Questions dropped by the rate limit.
    pub too_fast: u64,
}

/// Probe server, bound to its ports.
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

/// Length of every message in bytes.
pub const MESSAGE_BYTES: usize = 64;

const QUESTION: &[u8; 8] = b"isolane?";
const ANSWER: &[u8; 8] = b"isolane!";
const NO_QUEUE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Question: on which queue does this datagram arrive?
    ProbeParameters {
        /// Run of the asker.
        run: u64,
        /// Number of the question.
        number: u32,
    },
    /// Answer: the queue on which the question arrived.
    Answer {
        /// Run of the question.
        run: u64,
        /// Number of the question.
        number: u32,
        /// Receive queue of the question.
        queue: Option<u32>,
        /// Boot mark of the answering machine.
        boot: Option<BootMark>,
    },
}

impl Message {
    /// Parses a message; `None` for any other datagram.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; MESSAGE_BYTES] = bytes.try_into().ok()?;
        let (kind, rest) = bytes.split_first_chunk::<8>()?;
        let (run, rest) = rest.split_first_chunk::<8>()?;
        let (number, rest) = rest.split_first_chunk::<4>()?;
        let (queue, rest) = rest.split_first_chunk::<4>()?;
        let (boot, _) = rest.split_first_chunk::<8>()?;
        let run = u64::from_be_bytes(*run);
        let number = u32::from_be_bytes(*number);
        let queue = u32::from_be_bytes(*queue);
        match kind {
            QUESTION => Some(Self::ProbeParameters { run, number }),
            ANSWER => Some(Self::Answer {
                run,
                number,
                queue: (queue != NO_QUEUE).then_some(queue),
                boot: BootMark::read(u64::from_be_bytes(*boot)),
            }),
            _ => None,
        }
    }

    pub(super) fn emit(self) -> [u8; MESSAGE_BYTES] {
        let (kind, run, number, queue, boot) = match self {
            Self::ProbeParameters { run, number } => (QUESTION, run, number, None, None),
            Self::Answer {
                run,
                number,
                queue,
                boot,
            } => (ANSWER, run, number, queue, boot),
        };
        let queue = queue.unwrap_or(NO_QUEUE);
        let mut bytes = [0; MESSAGE_BYTES];
        let fields = kind
            .iter()
            .copied()
            .chain(run.to_be_bytes())
            .chain(number.to_be_bytes())
            .chain(queue.to_be_bytes())
            .chain(BootMark::number(boot).to_be_bytes());
        for (byte, field) in bytes.iter_mut().zip(fields) {
            *byte = field;
        }
        bytes
    }
}

const MARK: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);

/// Identifier of one boot of one machine: checksum of the kernel's random boot id, written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BootMark(u64);

impl BootMark {
    /// Mark of a boot id; `None` if the id is empty.
    #[must_use]
    pub fn of(boot_id: &str) -> Option<Self> {
        let mark = MARK.checksum(boot_id.as_bytes());
        (!boot_id.is_empty()).then_some(mark).and_then(Self::read)
    }

    /// Mark in a message; zero means none.
    fn read(mark: u64) -> Option<Self> {
        (mark != 0).then_some(Self(mark))
    }

    /// Number in a message; zero for none.
    fn number(this: Option<Self>) -> u64 {
        this.map_or(0, |Self(mark)| mark)
    }
}

impl fmt::Display for BootMark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl From<BootMark> for String {
    fn from(mark: BootMark) -> Self {
        mark.to_string()
    }
}

impl TryFrom<String> for BootMark {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mark = u64::from_str_radix(&text, 16).ok();
        mark.and_then(Self::read)
            .filter(|mark| mark.to_string() == text)
            .ok_or("the mark of a boot is 16 hexadecimal digits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else_is() {
        let messages = [
            Message::ProbeParameters { run: 7, number: 1 },
            Message::Answer {
                run: u64::MAX,
                number: 2,
                queue: None,
                boot: None,
            },
            Message::Answer {
                run: 1 << 40,
                number: 3,
                queue: Some(5),
                boot: BootMark::of("a run"),
            },
        ];
        for message in messages {
            let bytes = message.emit();
            assert_eq!(Message::parse(&bytes), Some(message));
            assert_eq!(Message::parse(&bytes[1..]), None);
            let mut other = bytes;
            other[0] = b'I';
            assert_eq!(Message::parse(&other), None);
        }
    }
}

#[cfg(test)]
mod boot_mark_tests {
    use super::*;

    #[test]
    fn each_run_of_a_machine_has_a_mark_of_its_own() {
        let of = |boot_id: &str| BootMark::of(boot_id).expect("a mark");
        let first = of("0b5b4a3e-98a5-4c7e-a9d8-95f8b9a3a3b1");
        assert_ne!(first, of("0b5b4a3e-98a5-4c7e-a9d8-95f8b9a3a3b2"));
        assert_eq!(BootMark::of(""), None);
        let text = String::from(first);
        assert_eq!(text.len(), 16);
        assert_eq!(BootMark::try_from(text), Ok(first));
        for other in ["", "0000000000000000", "+00000000000001f", "xyz"] {
            BootMark::try_from(String::from(other)).expect_err(other);
        }
    }
}
