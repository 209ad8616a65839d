//! Both ends without a participant: loops over the datapath that look at the critical lane and never
//! at the lane of bulk, which is open all the same.
//!
//! An executor looks at all its lanes, so a reader that does not drain needs another loop. What is
//! shown is the datapath's part alone: that what nobody reads takes nothing from what is critical. A
//! message is a whole RTPS datagram, or a classifier that knows RTPS would leave it to the kernel; the
//! cable stamps it as it does any other.

use std::os::fd::AsFd;

use isolane::Level;
use isolane_datapath::{
    Datapath, Interfaces, Lane, OpenError, ReceiveBurst, TransmitBurst, Udp, UdpConfig,
};
use isolane_datapath_xdp::xdp::{Xdp, XdpConfig};
use isolane_wire::locator::Locator;
use rustix::event::{PollFd, PollFlags, poll};

use super::{EndConfig, PingReport, PongReport};
use crate::child::{self, Word};
use crate::clock::{NANOS_PER_SECOND, now_ns, timespec};
use crate::limits::LOST_AFTER_MS;
use crate::namespace::Host;
use crate::process::Note;
use crate::record::{PingRecorder, PongRecorder, Verdict};
use crate::scenario::end::{self, EndError, measured_level};
use crate::scenario::flow::{EndCounts, LaneCounts};
use crate::scenario::transport::{BULK_LEVEL, Transport};
use crate::scenario::{ConfigError, RttMessage, Site};
use crate::stop::Stop;
use crate::target::message_with;

/// Where the critical lane is reached on both hosts: below the ports that Linux gives away.
const PORT: u16 = 28_700;
/// Datagrams taken at a time.
const BURST: usize = 16;
/// Bursts of bulk that are counted in the end, at most: a long ring and a socket's buffer.
const MAX_BULK_BURSTS: usize = 4_096;
/// From the word to go to the first message.
const LEAD_NS: u64 = 100_000_000;
/// How often an end looks whether its parent has said something.
const LOOK_NS: u64 = 20_000_000;

/// The end where round trips start, as [`run_ping`](super::run_ping).
pub fn run_bare_ping(
    config: &EndConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<PingReport, EndError> {
    config.check()?;
    let notes = end::take_resources(config.core);
    let mut end = BareEnd::open(config)?;
    let mut recorder = PingRecorder::new(config.samples, config.seed);
    ready(&notes.0);
    while !is_told_to_go(stop)? {
        end.wait(stop, LOOK_NS)?;
        end.receive(|_, _| {});
    }
    let start_ns = now_ns() + LEAD_NS;
    let due_ns = |id: u32| start_ns + u64::from(id) * config.period_ns();
    let end_ns = due_ns(config.samples) + LOST_AFTER_MS * (NANOS_PER_SECOND / 1_000);
    let mut next = 0;
    while now_ns() < end_ns {
        if stop.is_requested() {
            return Err(EndError::Stopped);
        }
        while next < config.samples && due_ns(next) <= now_ns() {
            recorder.sent(next, due_ns(next), now_ns());
            end.send(next, recorder.nonce(next));
            next += 1;
        }
        let wake_ns = match next < config.samples {
            true => due_ns(next),
            false => end_ns,
        };
        end.wait(stop, wake_ns.saturating_sub(now_ns()))?;
        end.receive(|id, nonce| {
            recorder.returned(id, nonce, now_ns());
        });
    }
    Ok(PingReport {
        recorder,
        offered: end.offered,
        refused: end.refused,
        counts: end.counts(),
        bulk_acknowledged: None,
    })
}

/// The end where they turn, as [`run_pong`](super::run_pong).
pub fn run_bare_pong(
    config: &EndConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<PongReport, EndError> {
    config.check()?;
    let notes = end::take_resources(config.core);
    let mut end = BareEnd::open(config)?;
    let mut recorder = PongRecorder::new(config.samples, config.seed);
    let mut arrived = Vec::with_capacity(BURST);
    ready(&notes.0);
    while !stop.is_requested() {
        end.wait(stop, LOOK_NS)?;
        end.receive(|id, nonce| arrived.push((id, nonce, now_ns())));
        for (id, nonce, received_ns) in arrived.drain(..) {
            if recorder.received(id, nonce, received_ns) == Verdict::First {
                recorder.replied(id, now_ns());
                end.send(id, nonce);
            }
        }
    }
    Ok(PongReport {
        recorder,
        offered: end.offered,
        refused: end.refused,
        counts: end.counts(),
        bulk_acknowledged: None,
    })
}

fn is_told_to_go(stop: &Stop) -> Result<bool, EndError> {
    match child::heard(stop).map_err(system("hear the parent"))? {
        None => Ok(false),
        Some(Word::Go) => Ok(true),
        Some(Word::Stop) => Err(EndError::Stopped),
    }
}

fn system(action: &'static str) -> impl FnOnce(std::io::Error) -> EndError {
    move |source| EndError::System { action, source }
}

/// A datapath with two lanes, of which one is looked at.
struct BareEnd {
    datapath: Box<dyn Datapath>,
    /// The critical lane of the other end.
    to: Locator,
    incoming: ReceiveBurst,
    outgoing: TransmitBurst,
    message: Message,
    /// Messages to be sent.
    offered: u64,
    /// Of these, those for which no frame was free.
    refused: u64,
    /// Messages received.
    delivered: u64,
}

impl BareEnd {
    fn open(config: &EndConfig) -> Result<BareEnd, EndError> {
        let Site::Host(host) = config.site else {
            let disturbance = "bulk that nobody drains";
            return Err(ConfigError::DisturbanceNeedsHosts { disturbance }.into());
        };
        let open = || -> Result<Box<dyn Datapath>, OpenError> {
            let mut datapath = datapath(config.transport, host)?;
            for lane in [critical_lane(), bulk_lane()] {
                datapath.open_lane(lane)?;
            }
            Ok(datapath)
        };
        Ok(BareEnd {
            datapath: open()?,
            to: Locator::udpv4(host.other().address().octets(), PORT),
            incoming: ReceiveBurst::new(),
            outgoing: TransmitBurst::new(),
            message: Message::of_size(config.payload_bytes)?,
            offered: 0,
            refused: 0,
            delivered: 0,
        })
    }

    /// Sleeps until something arrives in the critical lane, or the parent speaks, or so long.
    fn wait(&self, stop: &Stop, most_ns: u64) -> Result<(), EndError> {
        let descriptors = self.datapath.descriptors();
        let critical = descriptors
            .iter()
            .filter(|(lane, _)| *lane == critical_lane());
        let mut sources: Vec<PollFd<'_>> = critical
            .map(|(_, descriptor)| PollFd::new(descriptor, PollFlags::IN))
            .collect();
        sources.push(PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN));
        match poll(&mut sources, Some(&timespec(most_ns))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(system("wait")(error.into())),
        }
    }

    /// Takes what is in the critical lane, a burst at most, and tells of each message.
    fn receive(&mut self, mut message: impl FnMut(u32, u32)) {
        if self.datapath.wants_recycling() {
            self.datapath.recycle();
        }
        self.datapath
            .receive_burst(critical_lane(), BURST, &mut self.incoming);
        for datagram in &self.incoming {
            if let Some((id, nonce)) = self.message.read(&datagram.frame) {
                self.delivered += 1;
                message(id, nonce);
            }
        }
        self.incoming.clear();
    }

    fn send(&mut self, id: u32, nonce: u32) {
        self.offered += 1;
        self.message.set(id, nonce);
        let bytes = &self.message.datagram;
        let pool = self.datapath.pool();
        let filled = pool
            .take_for(critical_lane(), bytes.len())
            .and_then(|mut frame| frame.append(bytes).is_ok().then_some(frame));
        let Some(frame) = filled else {
            self.datapath.recycle();
            self.refused += 1;
            return;
        };
        // One frame to one destination always fits an empty burst.
        if self.outgoing.push(frame).is_ok() && self.outgoing.address(self.to).is_ok() {
            self.datapath
                .send_burst(critical_lane(), &mut self.outgoing);
        }
    }

    /// Takes what waits in the lane of bulk, after all is over: until then nobody has looked at it.
    fn count_bulk(&mut self) {
        // As many as a ring or a socket holds; strangers have stopped, or this ends all the same.
        for _ in 0..MAX_BULK_BURSTS {
            let taken = self
                .datapath
                .receive_burst(bulk_lane(), BURST, &mut self.incoming);
            self.incoming.clear();
            if taken == 0 {
                return;
            }
        }
    }

    /// What this end counted: each message is a sample of a datagram of its own.
    fn counts(&mut self) -> EndCounts {
        self.count_bulk();
        let ledger = self.datapath.ledger();
        let mut counts = EndCounts {
            written: self.offered - self.refused,
            delivered: self.delivered,
            strangers: Some(LaneCounts::of(&ledger, bulk_lane())),
            ..EndCounts::default()
        };
        counts.take_lane(measured_level(), &ledger, self.datapath.name());
        counts.rejected = counts.received.saturating_sub(self.delivered);
        counts
    }
}

fn critical_lane() -> Lane {
    Lane::Level(measured_level())
}

fn bulk_lane() -> Lane {
    Lane::Level(Level::clamp(BULK_LEVEL.into()))
}

fn datapath(transport: Transport, host: Host) -> Result<Box<dyn Datapath>, OpenError> {
    let mut config = UdpConfig::new(0);
    config.interfaces = Interfaces::Named(vec![host.interface().to_owned()]);
    config.level_ports[usize::from(measured_level().get())] = Some(PORT);
    match transport {
        Transport::Udp => Ok(Box::new(Udp::new(config)?)),
        Transport::Xdp(lanes) => Ok(Box::new(Xdp::new(XdpConfig {
            udp: config,
            options: lanes.options(host.interface()),
        })?)),
    }
}

/// The datagram of a round trip, as its writer would send it.
struct Message {
    datagram: Vec<u8>,
    /// Where its id is; behind it, its nonce.
    id_at: usize,
}

impl Message {
    /// With a sample of that size at its end, where the cable looks for it.
    fn of_size(payload_bytes: u32) -> Result<Message, ConfigError> {
        RttMessage::check_size(payload_bytes, RttMessage::MAX_BYTES)?;
        let mut sample = vec![0; payload_bytes as usize];
        let padding = payload_bytes - RttMessage::MIN_BYTES;
        sample[8..12].copy_from_slice(&padding.to_le_bytes());
        let datagram = message_with(&sample);
        let id_at = datagram.len() - sample.len().next_multiple_of(4);
        Ok(Message { datagram, id_at })
    }

    fn set(&mut self, id: u32, nonce: u32) {
        let place = &mut self.datagram[self.id_at..][..8];
        place[..4].copy_from_slice(&id.to_le_bytes());
        place[4..].copy_from_slice(&nonce.to_le_bytes());
    }

    /// Id and nonce of a datagram that is such a message.
    fn read(&self, datagram: &[u8]) -> Option<(u32, u32)> {
        let is_one = datagram.len() == self.datagram.len();
        let (id, rest) = datagram.get(self.id_at..)?.split_first_chunk()?;
        let nonce = rest.first_chunk()?;
        is_one.then(|| (u32::from_le_bytes(*id), u32::from_le_bytes(*nonce)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_carries_id_and_nonce_where_the_cable_looks() {
        for bytes in [12, 62, 64, 1_024] {
            let mut message = Message::of_size(bytes).unwrap();
            message.set(7, 0xabcd_ef01);
            let datagram = message.datagram.clone();
            assert_eq!(message.read(&datagram), Some((7, 0xabcd_ef01)));
            let sample = &datagram[datagram.len() - bytes.next_multiple_of(4) as usize..];
            assert_eq!(sample[..4], 7_u32.to_le_bytes());
            assert_eq!(message.read(&datagram[1..]), None);
        }
        assert!(Message::of_size(11).is_err());
    }
}
