//! The arrange part of the cases: participants, payloads, and waiting a bounded time.

use std::time::{Duration, Instant};

use isolane_wire::locator::Locator;

use super::{Fixture, Options};
use crate::burst::{ReceiveBurst, ReceivedFrame, SendReport, TransmitBurst};
use crate::contract::Datapath;
use crate::lane::Lane;
use crate::ledger::LaneLedger;
use crate::limits::MAX_BURST;
use crate::pool::Frame;

/// The most critical lane.
pub(super) const CRITICAL: Lane = Lane::ALL[8];
/// A lane of bulk.
pub(super) const BULK: Lane = Lane::ALL[2];

/// How often a frame is asked for that may be withheld.
const TRIES: usize = 64;

/// How often an empty lane is looked at before it counts as empty for good.
const LOOKS_AT_EMPTY: usize = 20;

/// A participant, and what it has received.
pub(super) struct Participant<D: Datapath> {
    pub(super) path: D,
    burst: ReceiveBurst,
    patience: Duration,
    settle: Duration,
}

/// Some participants of one fixture, with these lanes open.
pub(super) fn participants<F: Fixture, const N: usize>(
    options: &Options,
    lanes: &[Lane],
) -> [Participant<F::Datapath>; N] {
    let mut fixture = F::new();
    std::array::from_fn(|_| attach(&mut fixture, options, lanes))
}

/// One participant, with these lanes open.
pub(super) fn attach<F: Fixture>(
    fixture: &mut F,
    options: &Options,
    lanes: &[Lane],
) -> Participant<F::Datapath> {
    let mut path = fixture.attach(options);
    for lane in lanes {
        if let Err(error) = path.open_lane(*lane) {
            panic!("{lane} does not open: {error}");
        }
    }
    Participant {
        path,
        burst: ReceiveBurst::new(),
        patience: F::PATIENCE,
        settle: F::SETTLE,
    }
}

/// Two participants with ordinary frames.
pub(super) fn pair<F: Fixture>(lanes: &[Lane]) -> [Participant<F::Datapath>; 2] {
    participants::<F, 2>(&Options::default(), lanes)
}

/// What datagrams begin with that are long enough: so a datapath that lets only RTPS into its lanes
/// takes them for that.
pub(super) const MAGIC: [u8; 4] = *b"RTPS";

/// Bytes that tell which datagram they are, and which of its bytes.
pub(super) fn payload(number: usize, len: usize) -> Vec<u8> {
    let byte = |place: usize| (number.wrapping_mul(31) + place.wrapping_mul(7)) as u8;
    let mut bytes: Vec<u8> = (0..len).map(byte).collect();
    if let Some(front) = bytes.first_chunk_mut() {
        *front = MAGIC;
    }
    bytes
}

impl<D: Datapath> Participant<D> {
    /// Where the lane is reached.
    pub(super) fn address(&self, lane: Lane) -> Locator {
        self.path.unicast(lane)[0]
    }

    pub(super) fn ledger(&self, lane: Lane) -> LaneLedger {
        *self.path.ledger().lane(lane)
    }

    /// A frame filled for sending.
    pub(super) fn frame(&mut self, lane: Lane, bytes: &[u8]) -> Frame {
        let mut frame = self.frame_for(lane, bytes.len());
        frame.append(bytes).expect("the payload fits into a frame");
        frame
    }

    /// A frame for so many bytes.
    pub(super) fn frame_for(&mut self, lane: Lane, bytes: usize) -> Frame {
        // Where frames are withheld on purpose, not all are.
        let mut tries = std::iter::repeat_with(|| self.take(lane, bytes)).take(TRIES);
        let frame = tries.find_map(|frame| frame);
        frame.expect("a free transmit frame")
    }

    /// A free frame; if there is none, what devices are done with comes home first.
    fn take(&mut self, lane: Lane, bytes: usize) -> Option<Frame> {
        let free = self.path.pool().take_for(lane, bytes);
        free.or_else(|| {
            self.path.recycle();
            self.path.pool().take_for(lane, bytes)
        })
    }

    /// Every transmit frame of the lane is at home, as soon as devices are done with them.
    pub(super) fn assert_sent_frames_home(&mut self, lane: Lane) {
        let start = Instant::now();
        while self.path.pool().outstanding_of(lane) > 0 && start.elapsed() < self.patience {
            self.path.recycle();
            std::thread::yield_now();
        }
        assert_eq!(self.path.pool().outstanding_of(lane), 0, "{lane}");
    }

    /// Sends each payload in a frame of its own, in full bursts.
    pub(super) fn send(&mut self, lane: Lane, payloads: &[Vec<u8>], to: &[Locator]) -> SendReport {
        let mut total = SendReport::default();
        let mut burst = TransmitBurst::new();
        for some in payloads.chunks(MAX_BURST) {
            for bytes in some {
                let frame = self.frame(lane, bytes);
                burst.push(frame).expect("room in the burst");
                for locator in to {
                    burst.address(*locator).expect("room for the destination");
                }
            }
            let report = self.path.send_burst(lane, &mut burst);
            assert!(burst.is_empty(), "sending empties the burst");
            total.sent += report.sent;
            total.refused += report.refused;
        }
        total
    }

    /// Sends each payload for which a frame is given out, in full bursts. Says how many frames
    /// those were, and what became of their datagrams.
    pub(super) fn send_some(
        &mut self,
        lane: Lane,
        payloads: &[Vec<u8>],
        to: &[Locator],
    ) -> (usize, SendReport) {
        let (mut frames, mut total) = (0, SendReport::default());
        let mut burst = TransmitBurst::new();
        for some in payloads.chunks(MAX_BURST) {
            for bytes in some {
                let Some(mut frame) = self.take(lane, bytes.len()) else {
                    continue;
                };
                frame.append(bytes).expect("the payload fits into a frame");
                burst.push(frame).expect("room in the burst");
                frames += 1;
                for locator in to {
                    burst.address(*locator).expect("room for the destination");
                }
            }
            let report = self.path.send_burst(lane, &mut burst);
            assert!(burst.is_empty(), "sending empties the burst");
            total.sent += report.sent;
            total.refused += report.refused;
        }
        (frames, total)
    }

    /// One burst, right now.
    pub(super) fn receive_now(&mut self, lane: Lane, limit: usize) -> Vec<ReceivedFrame> {
        self.path.receive_burst(lane, limit, &mut self.burst);
        std::mem::take(&mut self.burst).into_iter().collect()
    }

    /// So many datagrams, in the order of their arrival; fewer if no more come in time. Frames
    /// go home as they come.
    pub(super) fn receive(&mut self, lane: Lane, count: usize) -> Vec<Vec<u8>> {
        let start = Instant::now();
        let mut received = Vec::new();
        while received.len() < count {
            let limit = MAX_BURST.min(count - received.len());
            let taken = self.path.receive_burst(lane, limit, &mut self.burst);
            if taken == 0 {
                if start.elapsed() >= self.patience {
                    break;
                }
                std::thread::yield_now();
            }
            received.extend(self.burst.iter().map(|one| one.frame.to_vec()));
            self.burst.clear();
        }
        received
    }

    /// The next datagram.
    pub(super) fn receive_one(&mut self, lane: Lane) -> Option<ReceivedFrame> {
        let start = Instant::now();
        loop {
            let received = self.receive_now(lane, 1).pop();
            if received.is_some() || start.elapsed() >= self.patience {
                return received;
            }
            std::thread::yield_now();
        }
    }

    /// Everything that is there and still comes within a few looks, and the time a medium takes.
    pub(super) fn drain(&mut self, lane: Lane) -> usize {
        let (mut drained, mut looks) = (0, 0);
        let mut last = Instant::now();
        while looks < LOOKS_AT_EMPTY || last.elapsed() < self.settle {
            match self.path.receive_burst(lane, MAX_BURST, &mut self.burst) {
                0 => {
                    looks += 1;
                    std::thread::yield_now();
                }
                taken => {
                    looks = 0;
                    drained += taken;
                    last = Instant::now();
                }
            }
            self.burst.clear();
        }
        drained
    }

    pub(super) fn assert_empty(&mut self, lane: Lane) {
        let drained = self.drain(lane);
        assert_eq!(drained, 0, "{lane} of {} has more", self.path.name());
    }

    /// The end of every case: ledgers balance, and all frames go home with the datapath.
    pub(super) fn finish(self) {
        let ledger = self.path.ledger();
        if let Err(imbalance) = ledger.balance() {
            panic!("{imbalance}\n{ledger}");
        }
        let pool = self.path.pool().clone();
        drop(self);
        assert_eq!(pool.outstanding(), 0, "a frame did not go home");
    }
}

/// [`Participant::finish`] of several.
pub(super) fn finish<D: Datapath>(participants: impl IntoIterator<Item = Participant<D>>) {
    participants.into_iter().for_each(Participant::finish);
}

/// Checks a lossless hop: what was sent arrived, and nothing else did but copies made on arrival.
pub(super) fn assert_hop(sent: &LaneLedger, arrived: &LaneLedger) {
    let copies = arrived.injected.duplicated;
    let (sent, arrived) = (&sent.transmit, &arrived.receive);
    let accounted = arrived.arrived - copies + sent.bounced;
    assert_eq!(
        sent.sent, accounted,
        "sent {sent:?}, but on the other side {arrived:?}"
    );
}
