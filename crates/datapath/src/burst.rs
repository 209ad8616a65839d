//! What one call of a datapath moves: up to [`MAX_BURST`] frames, lists of fixed size that the
//! caller keeps and reuses.

use isolane_wire::locator::Locator;
use isolane_wire::time::Instant;

use crate::limits::{MAX_BURST, MAX_MESSAGES};
use crate::pool::Frame;

/// A datagram that arrived: the frame's filled part.
#[derive(Debug)]
pub struct ReceivedFrame {
    /// Its bytes; dropped, the frame goes home.
    pub frame: Frame,
    /// Who sent it.
    pub from: Locator,
    /// When it arrived at this host, on the monotonic clock, where the datapath stamps.
    pub arrived: Option<Instant>,
}

/// Datagrams that arrived, in the order of each source.
pub type ReceiveBurst = heapless::Vec<ReceivedFrame, MAX_BURST>;

/// The burst has no room for another destination: send it, then go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a burst holds {MAX_BURST} frames and {MAX_MESSAGES} destinations: send it first")]
pub struct BurstFull;

/// What became of a transmit burst. The reasons of refusals are in the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendReport {
    /// Datagrams the datapath accepted.
    pub sent: u32,
    /// Datagrams it did not.
    pub refused: u32,
}

/// One datagram of a transmit burst.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Index of the frame.
    pub frame: u8,
    /// Where it goes.
    pub to: Locator,
}

/// Frames to be sent, and where each goes. Several destinations of one frame need one frame.
#[derive(Debug, Default)]
pub struct TransmitBurst {
    frames: heapless::Vec<Frame, MAX_BURST>,
    /// In the order of the frames, each frame's in the order of `address`.
    messages: heapless::Vec<Message, MAX_MESSAGES>,
}

impl TransmitBurst {
    /// An empty burst.
    #[must_use]
    pub const fn new() -> TransmitBurst {
        TransmitBurst {
            frames: heapless::Vec::new(),
            messages: heapless::Vec::new(),
        }
    }

    /// Adds a frame, which so far goes nowhere: [`address`](Self::address) follows.
    ///
    /// # Errors
    /// The frame comes back if [`MAX_BURST`] are there.
    #[inline]
    pub fn push(&mut self, frame: Frame) -> Result<(), Frame> {
        self.frames.push(frame)
    }

    /// Adds a destination for the frame pushed last.
    ///
    /// # Errors
    /// [`BurstFull`] if [`MAX_MESSAGES`] are there.
    ///
    /// # Panics
    /// If there is no frame.
    #[inline]
    pub fn address(&mut self, to: Locator) -> Result<(), BurstFull> {
        let last = self.frames.len().checked_sub(1);
        let frame = last.expect("a frame is pushed before it is addressed") as u8;
        self.messages
            .push(Message { frame, to })
            .map_err(|_| BurstFull)
    }

    /// Adds a frame and the places it goes to. Places beyond [`MAX_MESSAGES`] are left out.
    ///
    /// # Panics
    /// If there is no room for the frame: [`fits`](Self::fits) says so.
    #[inline]
    pub fn push_to(&mut self, frame: Frame, places: &[Locator]) {
        let number = self.frames.len() as u8;
        assert!(self.frames.push(frame).is_ok(), "no room for a frame");
        for &to in places {
            if self.messages.push(Message { frame: number, to }).is_err() {
                return;
            }
        }
    }

    /// Whether there is room for another frame and so many places.
    #[inline]
    #[must_use]
    pub fn fits(&self, places: usize) -> bool {
        places <= self.room() && !self.is_full()
    }

    /// Destinations that still fit.
    #[inline]
    #[must_use]
    pub fn room(&self) -> usize {
        MAX_MESSAGES - self.messages.len()
    }

    /// Frames in the burst.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Nothing is to be sent.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// No further frame fits.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.frames.is_full()
    }

    /// Lets all frames go home.
    #[inline]
    pub fn clear(&mut self) {
        self.messages.clear();
        self.frames.clear();
    }

    /// Each destination of each frame, in the order of the frames: [`MAX_MESSAGES`] at most.
    #[inline]
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The frame of a message.
    #[inline]
    #[must_use]
    pub fn frame(&self, message: &Message) -> &Frame {
        &self.frames[usize::from(message.frame)]
    }

    /// The frames, to have headers put in front of them, and what [`messages`](Self::messages) has.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut [Frame], &[Message]) {
        (&mut self.frames, &self.messages)
    }

    /// Takes the last frame out, and forgets its destinations.
    #[inline]
    pub fn pop(&mut self) -> Option<Frame> {
        let frame = self.frames.pop()?;
        let left = self.frames.len();
        while let Some(last) = self.messages.last()
            && usize::from(last.frame) == left
        {
            self.messages.pop();
        }
        Some(frame)
    }

    /// Takes all frames out, and forgets their destinations.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = Frame> + '_ {
        self.messages.clear();
        // From the end, so that none is moved.
        std::iter::from_fn(|| self.frames.pop())
    }

    /// Frames without any destination. Messages lie in the order of their frames.
    #[inline]
    #[must_use]
    pub fn unaddressed(&self) -> u64 {
        let mut addressed = 0;
        let mut last = None;
        for message in &self.messages {
            if last.replace(message.frame) != Some(message.frame) {
                addressed += 1;
            }
        }
        (self.frames.len() - addressed) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::Lane;
    use crate::pool::{Pool, PoolConfig};

    const LANE: Lane = Lane::ALL[8];

    /// Frames that hold their number, each with so many destinations, whose ports count through.
    fn burst(pool: &Pool, destinations: &[usize]) -> TransmitBurst {
        let mut burst = TransmitBurst::new();
        let mut port = 0;
        for (number, count) in destinations.iter().enumerate() {
            let mut frame = pool.take(LANE).unwrap();
            frame.append(&[number as u8]).unwrap();
            burst.push(frame).unwrap();
            for _ in 0..*count {
                burst.address(Locator::udpv4([10, 0, 0, 1], port)).unwrap();
                port += 1;
            }
        }
        burst
    }

    #[test]
    fn a_frame_and_its_places_fit_as_long_as_there_is_room_for_all_of_them() {
        let pool = Pool::new(PoolConfig::default());
        pool.reserve_lane(LANE).unwrap();
        let places = [Locator::udpv4([10, 0, 0, 1], 1); MAX_MESSAGES];
        let frame = |number| {
            let mut frame = pool.take(LANE).unwrap();
            frame.append(&[number]).unwrap();
            frame
        };
        let mut burst = burst(&pool, &[1]);
        assert!(burst.fits(MAX_MESSAGES - 1) && !burst.fits(MAX_MESSAGES));
        burst.push_to(frame(7), &places[2..]);
        assert_eq!((burst.len(), burst.room()), (2, 1));
        assert_eq!(burst.frame(&burst.messages()[1])[0], 7);
        assert!(burst.fits(1) && !burst.fits(2));
        while !burst.is_full() {
            burst.push(frame(8)).unwrap();
        }
        assert!(!burst.fits(0));
    }

    #[test]
    fn the_last_frame_leaves_with_its_destinations() {
        let pool = Pool::new(PoolConfig::default());
        pool.reserve_lane(LANE).unwrap();
        let mut burst = burst(&pool, &[1, 0, 2]);
        assert_eq!(burst.pop().expect("a frame")[0], 2);
        assert_eq!((burst.len(), burst.messages().len()), (2, 1));
        assert_eq!(burst.pop().expect("a frame")[0], 1);
        assert_eq!((burst.len(), burst.messages().len()), (1, 1));
        assert_eq!(burst.pop().expect("a frame")[0], 0);
        assert!(burst.messages().is_empty() && burst.pop().is_none());
    }
}
