//! Paced traffic sources, shared by the [background load](crate::background_load) and the [multicast
//! load](crate::multicast_load).
//!
//! A process per direction sends identical datagrams at a stated rate, in batches, round-robin over its sockets. The
//! number of due datagrams follows from the elapsed time, so one system call sends many, and a late call does not lower
//! the rate. The report states how many datagrams the kernel accepted, because a slow machine may not reach the rate.
//!
//! Traffic for a level goes to the level's multicast group in domain 0. Each datagram is a complete RTPS message with
//! one sample of an unknown writer. A participant with a reader of that level receives and parses it, and finds no
//! matching reader. The datagram therefore costs a participant the receive work of bulk without affecting its sample
//! counts.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

use isolane_wire::guid::{EntityId, GuidPrefix};
use isolane_wire::level::Level;
use isolane_wire::message::{DataPrefix, HEADER_BYTES, Header, PayloadKind};
use isolane_wire::sequence::SequenceNumber;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::{set_ip_multicast_if, set_ip_tos};
use serde::{Deserialize, Serialize};

use crate::clock::{NANOS_PER_SECOND, now_ns, timespec};
use crate::limits::{
    BATCH_FRAMES, FLOOD_CATCH_UP_NS, MAX_FLOOD_DATAGRAMS, MAX_FLOOD_PAYLOAD_BYTES,
    MAX_FLOOD_SECONDS, MAX_STORM_FRAMES_PER_S, MAX_STORM_SOCKETS, MAX_STREAMS,
};
use crate::process::{self, Note, Notes};
use crate::scenario::transport::CRITICAL_LEVEL;
use crate::stop::Stop;
use crate::system::socket;

/// Interval between sends, in nanoseconds.
const QUANTUM_NS: u64 = 1_000_000;

/// Receivers of the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Sockets of other programs on the hosts, unrelated to isolane.
    #[default]
    Foreign,
    /// Readers of a level, 0 to 7, of the participants under test.
    Level(u8),
}

impl Target {
    /// Payload of about `payload_bytes`.
    fn content(self, payload_bytes: u32) -> Vec<u8> {
        let mut content = vec![0; payload_bytes as usize];
        if let Target::Level(_) = self
            && let Some(length) = write_sample(&mut content)
        {
            content.truncate(length);
        }
        content
    }
}

/// Configuration of one direction's source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Receivers the datagrams are addressed to.
    pub target: Target,
    /// Destination of each socket.
    pub destinations: Vec<SocketAddrV4>,
    /// Address of the outgoing interface for multicast; the routes decide without it.
    pub interface: Option<Ipv4Addr>,
    /// Send buffer of each socket in bytes, for datagrams the device has not taken; the kernel's default without it.
    pub send_buffer_bytes: Option<u32>,
    /// UDP payload of each datagram, in bytes.
    pub payload_bytes: u32,
    /// Datagrams per second, summed over all sockets.
    pub datagrams_per_s: f64,
    /// Duration in seconds after which the source ends by itself.
    pub seconds: u32,
    /// CPU core to pin the source to.
    pub core: Option<usize>,
}

/// Counts of one source. Every due datagram was sent, refused or missed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceReport {
    /// Datagrams the kernel accepted.
    pub sent: u64,
    /// Datagrams the kernel did not accept.
    pub refused: u64,
    /// Datagrams given up because the source was delayed too long to catch up.
    pub missed: u64,
    /// Nanoseconds from the start to the last batch.
    pub elapsed_ns: u64,
    /// Steps the machine did not allow.
    pub notes: Vec<Note>,
}

/// Reasons why a load cannot run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The datagrams would be fragmented.
    #[error("a payload of {0} bytes does not fit one frame: at most {MAX_FLOOD_PAYLOAD_BYTES} do")]
    Payload(u32),
    /// The duration exceeds the bound.
    #[error("a load of {0} s is too long: it lasts at most {MAX_FLOOD_SECONDS} s")]
    Seconds(u32),
    /// The level is not within 0 to 7.
    #[error("there is no level {0}: levels are 0 to 7")]
    Level(u8),
    /// The number of datagrams is too high, or not a number.
    #[error("{0} datagrams each way: a flood has at most {MAX_FLOOD_DATAGRAMS}")]
    Datagrams(f64),
    /// The number of streams is zero or too high.
    #[error("{0} streams each way: a flood has 1 to {MAX_STREAMS}")]
    Streams(u16),
    /// The rate is too high, or not a number.
    #[error("{0} frames per second each way: a storm has at most {MAX_STORM_FRAMES_PER_S}")]
    Rate(f64),
    /// The number of sockets is zero or too high.
    #[error("{0} sockets on each host: a storm has 1 to {MAX_STORM_SOCKETS}")]
    Sockets(u16),
    /// A system call on the sockets failed.
    #[error("cannot {action}: {source}")]
    System {
        /// Operation that failed.
        action: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl LoadError {
    pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> LoadError {
        move |source| LoadError::System { action, source }
    }
}

impl Source {
    /// Checks the bounds, except the rate's: the caller bounds the rate, because the cost of a datagram depends on its
    /// receiver.
    pub fn check(&self) -> Result<(), LoadError> {
        match self.target {
            Target::Level(level) if Level::new(level).is_none() => Err(LoadError::Level(level)),
            _ if self.payload_bytes > MAX_FLOOD_PAYLOAD_BYTES => {
                Err(LoadError::Payload(self.payload_bytes))
            }
            _ if self.seconds > MAX_FLOOD_SECONDS => Err(LoadError::Seconds(self.seconds)),
            _ => Ok(()),
        }
    }

    /// Sends in the calling process and network namespace until `stop` or the end of the duration. Each batch is one
    /// system call on the next socket, so all sockets carry the same load over time.
    pub fn run(&self, stop: &Stop, ready: impl FnOnce(&[Note])) -> Result<SourceReport, LoadError> {
        self.check()?;
        let mut notes = Notes::pinned(self.core);
        notes.collect(process::exact_timers());
        let open = |&destination| self.open(destination);
        let sockets: io::Result<Vec<UdpSocket>> = self.destinations.iter().map(open).collect();
        let sockets = sockets.map_err(LoadError::system("open the source's sockets"))?;
        let payload = self.target.content(self.payload_bytes);
        ready(&notes.0);

        let mut turn = sockets.iter().cycle();
        let mut report = send_paced(self.datagrams_per_s, self.seconds, stop, |mut due| {
            let mut sent = 0;
            while due > 0
                && let Some(socket) = turn.next()
            {
                let batch = due.min(BATCH_FRAMES as u64);
                sent += socket::send_copies(socket, &payload, batch as usize).unwrap_or(0) as u64;
                due -= batch;
            }
            sent
        })
        .map_err(LoadError::system("wait"))?;
        report.notes = notes.0;
        Ok(report)
    }

    fn open(&self, destination: SocketAddrV4) -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        if let Some(interface) = &self.interface {
            set_ip_multicast_if(&socket, interface)?;
        }
        // The group's receivers on this host get only the other host's datagrams.
        socket.set_multicast_loop_v4(false)?;
        socket.connect(destination)?;
        if let Some(bytes) = self.send_buffer_bytes {
            socket::set_send_buffer(&socket, bytes)?;
        }
        // Bulk normally has the least urgent class. Bulk that shares the critical lane needs the lane's class;
        // otherwise the link would put it on another queue.
        if self.target == Target::Level(CRITICAL_LEVEL) {
            let class = Level::clamp(CRITICAL_LEVEL.into());
            set_ip_tos(&socket, class.dscp() << 2)?;
        }
        Ok(socket)
    }
}

impl SourceReport {
    /// Datagrams sent per second.
    pub(crate) fn sent_per_s(&self) -> f64 {
        match self.elapsed_ns {
            0 => 0.0,
            elapsed_ns => self.sent as f64 * NANOS_PER_SECOND as f64 / elapsed_ns as f64,
        }
    }
}

/// Number of due datagrams as a function of elapsed time.
#[derive(Debug)]
struct Due {
    per_s: f64,
    /// Datagrams already sent or given up.
    handled: u64,
    missed: u64,
}

impl Due {
    fn new(per_s: f64) -> Due {
        Due {
            per_s,
            handled: 0,
            missed: 0,
        }
    }

    /// Number of datagrams to send at `elapsed_ns`. Counts datagrams too old to catch up as missed.
    fn at(&mut self, elapsed_ns: u64) -> u64 {
        let datagrams =
            |time_ns: u64| (time_ns as f64 * self.per_s / NANOS_PER_SECOND as f64) as u64;
        let behind = datagrams(elapsed_ns).saturating_sub(self.handled);
        let most = datagrams(FLOOD_CATCH_UP_NS).max(1);
        let missed = behind.saturating_sub(most);
        self.missed += missed;
        self.handled += behind;
        behind - missed
    }
}

/// Calls `send` with the number of due datagrams until `stop` or the end of `seconds`. `send` returns how many the
/// kernel accepted.
fn send_paced(
    per_s: f64,
    seconds: u32,
    stop: &Stop,
    mut send: impl FnMut(u64) -> u64,
) -> io::Result<SourceReport> {
    let mut paced = SourceReport::default();
    let mut due = Due::new(per_s);
    let start_ns = now_ns();
    let end_ns = start_ns + u64::from(seconds) * NANOS_PER_SECOND;
    let mut quantum_ns = start_ns;
    loop {
        let datagrams = due.at(now_ns() - start_ns);
        let sent = send(datagrams);
        paced.sent += sent;
        paced.refused += datagrams - sent;
        let now = now_ns();
        // The next batch includes the datagrams of a missed interval.
        quantum_ns = (quantum_ns + QUANTUM_NS).max(now);
        if quantum_ns >= end_ns || stopped_before(stop, quantum_ns - now)? {
            paced.elapsed_ns = now - start_ns;
            paced.missed = due.missed;
            return Ok(paced);
        }
    }
}

/// Waits for `wait_ns` or the stop; returns whether the stop came.
fn stopped_before(stop: &Stop, wait_ns: u64) -> io::Result<bool> {
    let mut source = [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
    match poll(&mut source, Some(&timespec(wait_ns))) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Multicast address of a level's readers in domain 0: 239.255.(16 + level).0:7401.
pub(crate) fn level_group(level: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(239, 255, 16 + level, 0), 7401)
}

/// Minimum length in bytes of a datagram with a sample.
pub(crate) const MIN_SAMPLE_DATAGRAM_BYTES: u32 = 48;

/// Fills a datagram of zeros with an RTPS message that has the longest sample of an unknown writer that fits. Returns
/// the length of the message, which is padded to a multiple of four, or `None` without a change if no sample fits.
fn write_sample(datagram: &mut [u8]) -> Option<usize> {
    let heads = HEADER_BYTES + HEAD.buffer_len();
    let payload_bytes = datagram.len().checked_sub(heads)? & !3;
    if payload_bytes < ENCAPSULATION.len() {
        return None;
    }
    Header::new(STRANGER).emit(datagram);
    HEAD.emit(&mut datagram[HEADER_BYTES..], payload_bytes);
    datagram[heads..][..ENCAPSULATION.len()].copy_from_slice(&ENCAPSULATION);
    Some(heads + payload_bytes)
}

const STRANGER: GuidPrefix = GuidPrefix([0xb0; 12]);
/// CDR, little-endian.
const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];
const HEAD: DataPrefix = DataPrefix {
    reader: EntityId::UNKNOWN,
    // A user-defined writer without a key (RTPS 2.5 §9.3.1.2).
    writer: EntityId([0, 0, 1, 0x03]),
    sequence: SequenceNumber(1),
    key_hash: None,
    status: None,
    payload: PayloadKind::Data,
};

#[cfg(test)]
mod tests {
    use super::*;
    use isolane_wire::message::Submessages;

    #[test]
    fn a_source_without_bounds_is_refused() {
        let source = Source {
            target: Target::Foreign,
            destinations: Vec::new(),
            interface: None,
            send_buffer_bytes: None,
            payload_bytes: 1024,
            datagrams_per_s: 1000.0,
            seconds: 60,
            core: None,
        };
        assert!(source.check().is_ok());
        let with = |change: fn(&mut Source)| {
            let mut source = source.clone();
            change(&mut source);
            source.check()
        };
        let long = with(|source| source.seconds = MAX_FLOOD_SECONDS + 1);
        assert!(matches!(long, Err(LoadError::Seconds(_))));
        let nowhere = with(|source| source.target = Target::Level(8));
        assert!(matches!(nowhere, Err(LoadError::Level(8))));
        let fragments = with(|source| source.payload_bytes = MAX_FLOOD_PAYLOAD_BYTES + 1);
        assert!(matches!(fragments, Err(LoadError::Payload(_))));
    }

    #[test]
    fn the_pace_holds_the_rate_over_uneven_quanta() {
        let mut due = Due::new(4587.2);
        let mut sent = 0;
        for elapsed_ns in [
            0,
            1_000_000,
            1_100_000,
            8_000_000,
            20_000_000,
            1_000_000_000,
        ] {
            // Looks every 5 ms, so that nothing is given up.
            let mut at = 0;
            while at < elapsed_ns {
                at = (at + 5_000_000).min(elapsed_ns);
                sent += due.at(at);
            }
        }
        assert_eq!((sent, due.missed), (4587, 0));
    }

    #[test]
    fn a_sender_held_up_gives_up_what_would_be_a_burst() {
        let mut due = Due::new(1000.0);
        assert_eq!(due.at(500_000_000), 20);
        assert_eq!(due.missed, 480);
        assert_eq!(due.at(501_000_000), 1);
    }

    #[test]
    fn every_due_datagram_was_sent_refused_or_missed() {
        let (stop, stopper) = Stop::pair().unwrap();
        let mut calls = 0;
        let mut stopper = Some(stopper);
        let paced = send_paced(10_000.0, 60, &stop, |due| {
            calls += 1;
            if calls == 5 {
                drop(stopper.take());
            }
            due / 2
        });
        let paced = paced.unwrap();
        let due = paced.sent + paced.refused + paced.missed;
        let by_time = paced.elapsed_ns as f64 / 1e9 * 10_000.0;
        assert!(due as f64 <= by_time, "{paced:?}");
        assert!(paced.sent <= paced.refused);
        assert_eq!(calls, 5);
    }

    #[test]
    fn bulk_for_a_level_is_a_message_of_the_requested_length() {
        for bytes in [64, 512, 1024, 1472] {
            let content = Target::Level(1).content(bytes);
            assert_eq!(content.len(), bytes as usize);
            assert!(Header::parse(&content).is_ok());
            assert_eq!(Submessages::new(&content, HEADER_BYTES).count(), 1);
        }
        assert_eq!(Target::Level(1).content(10), [0; 10], "none fits");
        let is_message = |bytes| Header::parse(&Target::Level(1).content(bytes)).is_ok();
        let least = MIN_SAMPLE_DATAGRAM_BYTES;
        assert!(is_message(least) && !is_message(least - 1));
    }

    #[test]
    fn bulk_for_foreign_sockets_is_no_message() {
        let content = Target::Foreign.content(512);
        assert!(Header::parse(&content).is_err());
    }

    #[test]
    fn a_levels_group_is_as_defined() {
        assert_eq!(level_group(1).to_string(), "239.255.17.0:7401");
    }
}
