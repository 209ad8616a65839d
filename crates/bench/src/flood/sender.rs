//! One direction's source: paced datagrams in turn over many streams.
//!
//! Time is cut into quanta of a millisecond. In each, what has become due is sent in batches, every
//! batch on the next stream: over time all streams carry the same, and a system call moves many
//! datagrams.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

use super::{FIRST_PORT, FloodError, SenderConfig, SenderReport};
use crate::clock::{NANOS_PER_SECOND, now_ns, timespec};
use crate::limits::{BATCH_FRAMES, FLOOD_CATCH_UP_NS};
use crate::process::{self, Note, Notes};
use crate::stop::Stop;
use crate::system::{batch, option};

/// How often due datagrams are sent.
const QUANTUM_NS: u64 = 1_000_000;
/// Kernel memory for datagrams the device has not taken: a quantum's worth at any sensible rate.
const SEND_BYTES: u32 = 4 << 20;

/// How many datagrams are due, by the time that has passed.
#[derive(Debug)]
struct Pace {
    per_s: f64,
    /// Datagrams already sent or given up.
    handled: u64,
    missed: u64,
}

impl Pace {
    fn new(per_s: f64) -> Pace {
        Pace {
            per_s,
            handled: 0,
            missed: 0,
        }
    }

    /// What is to be sent at that time. What is too old to be caught up with is given up.
    fn due(&mut self, elapsed_ns: u64) -> u64 {
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

/// Sends in the calling process and network namespace until `stop` or the end of the configured
/// time.
pub fn run_sender(
    config: &SenderConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<SenderReport, FloodError> {
    config.check()?;
    let mut notes = Notes::default();
    if let Some(core) = config.core {
        notes.collect(process::pin_to_core(core));
    }
    notes.collect(process::exact_timers());
    let streams = open_streams(config)?;
    let payload = vec![0; config.payload_bytes as usize];
    ready(&notes.0);

    let mut report = SenderReport::default();
    let mut pace = Pace::new(config.datagrams_per_s);
    let mut turn = streams.iter().cycle();
    let start_ns = now_ns();
    let end_ns = start_ns + u64::from(config.seconds) * NANOS_PER_SECOND;
    let mut quantum_ns = start_ns;
    loop {
        let mut due = pace.due(now_ns() - start_ns);
        while due > 0
            && let Some(stream) = turn.next()
        {
            let batch = due.min(BATCH_FRAMES as u64);
            let sent = batch::send_copies(stream, &payload, batch as usize).unwrap_or(0) as u64;
            report.sent += sent;
            report.refused += batch - sent;
            due -= batch;
        }
        let now = now_ns();
        // A quantum that was slept through is not repeated: `due` has its datagrams.
        quantum_ns = (quantum_ns + QUANTUM_NS).max(now);
        if quantum_ns >= end_ns || stopped_before(stop, quantum_ns - now)? {
            report.elapsed_ns = now - start_ns;
            report.missed = pace.missed;
            report.notes = notes.0;
            return Ok(report);
        }
    }
}

/// Waits for so long, or for the stop.
fn stopped_before(stop: &Stop, wait_ns: u64) -> Result<bool, FloodError> {
    let mut source = [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
    match poll(&mut source, Some(&timespec(wait_ns))) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(FloodError::system("wait")(error.into())),
    }
}

fn open_streams(config: &SenderConfig) -> Result<Vec<UdpSocket>, FloodError> {
    (0..config.streams)
        .map(|stream| {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.connect((config.to, FIRST_PORT + stream))?;
            option::set_send_buffer(&socket, SEND_BYTES)?;
            Ok(socket)
        })
        .collect::<Result<_, _>>()
        .map_err(FloodError::system("open its streams"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_holds_the_rate_over_uneven_quanta() {
        let mut pace = Pace::new(4587.2);
        let mut sent = 0;
        for elapsed_ns in [
            0,
            1_000_000,
            1_100_000,
            8_000_000,
            20_000_000,
            1_000_000_000,
        ] {
            // Never asleep so long that something is given up: looks every 5 ms in between.
            let mut at = 0;
            while at < elapsed_ns {
                at = (at + 5_000_000).min(elapsed_ns);
                sent += pace.due(at);
            }
        }
        assert_eq!((sent, pace.missed), (4587, 0));
    }

    #[test]
    fn a_sender_held_up_gives_up_what_would_be_a_burst() {
        let mut pace = Pace::new(1000.0);
        assert_eq!(pace.due(500_000_000), 20);
        assert_eq!(pace.missed, 480);
        assert_eq!(pace.due(501_000_000), 1);
    }
}
