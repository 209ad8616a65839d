//! Participants of a case, payloads, and bounded waiting.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use isolane_datapath::burst::ReceivedFrame;
use isolane_datapath::ledger::{LaneLedger, ReceiveLedger, TransmitLedger};
use isolane_datapath::limits::MAX_BURST;
use isolane_datapath::{Datapath, Frame, Lane, ReceiveBurst, SendReport, TransmitBurst};
use isolane_wire::locator::Locator;

use super::{Fixture, Options};
use crate::fault::Injected;

/// Most critical lane.
pub(super) const CRITICAL: Lane = Lane::ALL[8];
/// Less critical lane, for bulk data.
pub(super) const BULK: Lane = Lane::ALL[2];

/// Attempts to take a frame from a pool that a fault may have exhausted. The number exceeds the `recycle` calls after
/// which an exhausted pool gets its frames back.
const TRIES: usize = 64;

/// Consecutive empty receive calls after which a lane counts as empty.
const LOOKS_AT_EMPTY: usize = 20;

/// Ledger of a lane, with the faults injected into it.
pub(super) struct Accounts {
    pub(super) receive: ReceiveLedger,
    pub(super) transmit: TransmitLedger,
    pub(super) injected: Injected,
}

impl AddAssign<&Accounts> for Accounts {
    fn add_assign(&mut self, other: &Accounts) {
        let lane = |of: &Accounts| LaneLedger {
            receive: of.receive,
            transmit: of.transmit,
            ..LaneLedger::default()
        };
        let mut sum = lane(self);
        sum += &lane(other);
        (self.receive, self.transmit) = (sum.receive, sum.transmit);
        self.injected += &other.injected;
    }
}

/// Datapath under test with its receive burst.
pub(super) struct Participant<D: Datapath> {
    pub(super) path: D,
    burst: ReceiveBurst,
    patience: Duration,
    settle: Duration,
    injected: fn(&D, Lane) -> Injected,
}

/// Attaches participants to a new fixture, and opens their lanes.
pub(super) fn participants<F: Fixture, const N: usize>(
    options: &Options,
    lanes: &[Lane],
) -> [Participant<F::Datapath>; N] {
    let mut fixture = F::new();
    std::array::from_fn(|_| attach(&mut fixture, options, lanes))
}

/// Attaches one participant, and opens its lanes.
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
        injected: F::injected,
    }
}

/// Attaches two participants with the default frame pool.
pub(super) fn pair<F: Fixture>(lanes: &[Lane]) -> [Participant<F::Datapath>; 2] {
    participants::<F, 2>(&Options::default(), lanes)
}

/// First bytes of payloads that are long enough: a datapath that filters for RTPS lets such payloads through.
pub(super) const MAGIC: [u8; 4] = *b"RTPS";

/// Returns a payload whose bytes depend on its number and their position.
pub(super) fn payload(number: usize, len: usize) -> Vec<u8> {
    let byte = |place: usize| (number.wrapping_mul(31) + place.wrapping_mul(7)) as u8;
    let mut bytes: Vec<u8> = (0..len).map(byte).collect();
    if let Some(front) = bytes.first_chunk_mut() {
        *front = MAGIC;
    }
    bytes
}

impl<D: Datapath> Participant<D> {
    /// Returns the unicast locator of the lane.
    pub(super) fn address(&self, lane: Lane) -> Locator {
        self.path.unicast(lane)[0]
    }

    pub(super) fn ledger(&self, lane: Lane) -> Accounts {
        let ledger = self.path.ledger();
        let LaneLedger {
            receive, transmit, ..
        } = *ledger.lane(lane);
        Accounts {
            receive,
            transmit,
            injected: (self.injected)(&self.path, lane),
        }
    }

    /// Takes a transmit frame and fills it.
    pub(super) fn frame(&mut self, lane: Lane, bytes: &[u8]) -> Frame {
        let mut frame = self.frame_for(lane, bytes.len());
        frame.append(bytes).expect("the payload fits into a frame");
        frame
    }

    /// Takes a transmit frame with room for `bytes`.
    pub(super) fn frame_for(&mut self, lane: Lane, bytes: usize) -> Frame {
        let mut tries = std::iter::repeat_with(|| self.take(lane, bytes)).take(TRIES);
        let frame = tries.find_map(|frame| frame);
        frame.expect("a free transmit frame")
    }

    /// Takes a free frame. Recycles first if there is none.
    fn take(&mut self, lane: Lane, bytes: usize) -> Option<Frame> {
        let free = self.path.pool().take_for(lane, bytes);
        free.or_else(|| {
            self.path.recycle();
            self.path.pool().take_for(lane, bytes)
        })
    }

    /// Asserts that every transmit frame of the lane returns to the pool, by `recycle` if not at once.
    pub(super) fn assert_sent_frames_home(&mut self, lane: Lane) {
        let start = Instant::now();
        let mut tries = 0;
        while self.path.pool().outstanding_of(lane) > 0
            && (tries < TRIES || start.elapsed() < self.patience)
        {
            self.path.recycle();
            tries += 1;
            std::thread::yield_now();
        }
        assert_eq!(self.path.pool().outstanding_of(lane), 0, "{lane}");
    }

    /// Sends each payload in its own frame, in full bursts.
    pub(super) fn send(&mut self, lane: Lane, payloads: &[Vec<u8>], to: &[Locator]) -> SendReport {
        let frame_for = |of: &mut Self, bytes| Some(of.frame_for(lane, bytes));
        self.send_in_frames(lane, payloads, to, frame_for).1
    }

    /// Sends each payload for which a frame is free, in full bursts. Returns the number of frames
    /// and the report of their datagrams.
    pub(super) fn send_some(
        &mut self,
        lane: Lane,
        payloads: &[Vec<u8>],
        to: &[Locator],
    ) -> (usize, SendReport) {
        self.send_in_frames(lane, payloads, to, |of, bytes| of.take(lane, bytes))
    }

    /// Sends each payload for which `frame_for` returns a frame with room for this number of bytes.
    fn send_in_frames(
        &mut self,
        lane: Lane,
        payloads: &[Vec<u8>],
        to: &[Locator],
        frame_for: impl Fn(&mut Self, usize) -> Option<Frame>,
    ) -> (usize, SendReport) {
        let (mut frames, mut total) = (0, SendReport::default());
        let mut burst = TransmitBurst::new();
        for some in payloads.chunks(MAX_BURST) {
            for bytes in some {
                let Some(mut frame) = frame_for(self, bytes.len()) else {
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

    /// Receives one burst without waiting.
    pub(super) fn receive_now(&mut self, lane: Lane, limit: usize) -> Vec<ReceivedFrame> {
        self.path.receive_burst(lane, limit, &mut self.burst);
        std::mem::take(&mut self.burst).into_iter().collect()
    }

    /// Receives `count` datagrams in the order of arrival, fewer if no more arrive in time. Their frames return to the
    /// pool at once.
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
            let datagrams = self.burst.iter().flat_map(|one| one.frame.datagrams());
            received.extend(datagrams.map(<[u8]>::to_vec));
            self.burst.clear();
        }
        received
    }

    /// Receives the next datagram.
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

    /// Receives and drops datagrams until the lane stays empty. Returns their number.
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

    /// Ends a case: asserts that the ledger balances and all frames return to the pool.
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

/// Ends a case for several participants.
pub(super) fn finish<D: Datapath>(participants: impl IntoIterator<Item = Participant<D>>) {
    participants.into_iter().for_each(Participant::finish);
}

/// Asserts a lossless hop: all sent datagrams arrived, and no others but injected copies.
pub(super) fn assert_hop(sent: &Accounts, arrived: &Accounts) {
    let copies = arrived.injected.duplicated;
    let (sent, arrived) = (&sent.transmit, &arrived.receive);
    let accounted = arrived.arrived - copies + sent.bounced;
    assert_eq!(
        sent.sent, accounted,
        "sent {sent:?}, but on the other side {arrived:?}"
    );
}
