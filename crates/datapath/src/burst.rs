//! Bursts: fixed-size lists of up to [`MAX_BURST`] frames, the unit of every datapath call. The caller owns and reuses
//! them.

use isolane_wire::locator::Locator;
use isolane_wire::time::Instant;

use crate::limits::{MAX_BURST, MAX_MESSAGES};
use crate::pool::Frame;

/// Received datagram, or datagrams of one segmented burst: the filled part of their frame.
#[derive(Debug)]
pub struct ReceivedFrame {
    /// Frame of the datagrams; dropping it returns it to its pool.
    pub frame: Frame,
    /// Source locator.
    pub from: Locator,
    /// Arrival time at this host on the monotonic clock, if the datapath has receive stamps.
    pub arrived: Option<Instant>,
}

/// Received datagrams. Those of one socket or ring are in order of arrival.
pub type ReceiveBurst = heapless::Vec<ReceivedFrame, MAX_BURST>;

/// The burst is full: send it, then continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a burst holds {MAX_BURST} frames and {MAX_MESSAGES} destinations: send it first")]
pub struct BurstFull;

/// Result of sending a burst. The reasons of refusals are in the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendReport {
    /// Datagrams accepted by the datapath.
    pub sent: u32,
    /// Datagrams refused.
    pub refused: u32,
}

/// Datagram of a transmit burst.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Index of the frame.
    pub frame: u8,
    /// Destination locator.
    pub to: Locator,
}

const _: () = assert!(
    MAX_BURST <= u16::BITS as usize,
    "the frames of a burst are one word"
);

/// Frames to send with their destinations. One frame can have several destinations.
#[derive(Debug, Default)]
pub struct TransmitBurst {
    frames: heapless::Vec<Frame, MAX_BURST>,
    /// Destinations in the order of their frames; those of one frame in the order of the calls of `address`.
    messages: heapless::Vec<Message, MAX_MESSAGES>,
}

impl TransmitBurst {
    /// Creates an empty burst.
    #[must_use]
    pub const fn new() -> TransmitBurst {
        TransmitBurst {
            frames: heapless::Vec::new(),
            messages: heapless::Vec::new(),
        }
    }

    /// Adds a frame without destination; [`address`](Self::address) adds destinations.
    ///
    /// # Errors
    /// The frame, if the burst already holds [`MAX_BURST`].
    #[inline]
    pub fn push(&mut self, frame: Frame) -> Result<(), Frame> {
        self.frames.push(frame)
    }

    /// Adds a destination to the last frame.
    ///
    /// # Errors
    /// [`BurstFull`] if the burst already holds [`MAX_MESSAGES`].
    ///
    /// # Panics
    /// If the burst has no frame.
    #[inline]
    pub fn address(&mut self, to: Locator) -> Result<(), BurstFull> {
        let last = self.frames.len().checked_sub(1);
        let frame = last.expect("a frame is pushed before it is addressed") as u8;
        self.messages
            .push(Message { frame, to })
            .map_err(|_| BurstFull)
    }

    /// Adds a frame with its destinations. Destinations beyond [`MAX_MESSAGES`] are ignored.
    ///
    /// # Panics
    /// If the burst has no room for the frame, see [`fits`](Self::fits).
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

    /// Returns true if another frame with `places` destinations fits.
    #[inline]
    #[must_use]
    pub fn fits(&self, places: usize) -> bool {
        places <= self.room() && !self.is_full()
    }

    /// Number of destinations that still fit.
    #[inline]
    #[must_use]
    pub fn room(&self) -> usize {
        MAX_MESSAGES - self.messages.len()
    }

    /// Number of frames.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns true if the burst has no frames.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns true if no further frame fits.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.frames.is_full()
    }

    /// Returns all frames to their pool.
    #[inline]
    pub fn clear(&mut self) {
        self.messages.clear();
        self.frames.clear();
    }

    /// Messages in the order of the frames, at most [`MAX_MESSAGES`].
    #[inline]
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the frame of a message.
    #[inline]
    #[must_use]
    pub fn frame(&self, message: &Message) -> &Frame {
        &self.frames[usize::from(message.frame)]
    }

    /// Returns the frames mutably, to write headers, together with the messages.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut [Frame], &[Message]) {
        (&mut self.frames, &self.messages)
    }

    /// Returns the last frame.
    #[inline]
    #[must_use]
    pub fn last(&self) -> Option<&Frame> {
        self.frames.last()
    }

    /// Returns the last frame mutably.
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut Frame> {
        self.frames.last_mut()
    }

    /// Returns whether the last frame has exactly these destinations, in this order.
    #[inline]
    #[must_use]
    pub fn last_goes_to(&self, places: &[Locator]) -> bool {
        let Some(first) = self.messages.len().checked_sub(places.len()) else {
            return false;
        };
        let (before, own) = self.messages.split_at(first);
        let last = self.frames.len().wrapping_sub(1) as u8;
        before.last().is_none_or(|message| message.frame != last)
            && own
                .iter()
                .map(|message| (message.frame, &message.to))
                .eq(places.iter().map(|to| (last, to)))
    }

    /// Removes and returns the last frame, and removes its destinations.
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

    /// Removes all frames and destinations, and iterates over the frames.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = Frame> + '_ {
        self.messages.clear();
        // Pops from the end, so that no frame is moved.
        std::iter::from_fn(|| self.frames.pop())
    }

    /// Number of datagrams without destination.
    #[inline]
    #[must_use]
    pub fn unaddressed(&self) -> u64 {
        match self.frames.len() == 1 && !self.messages.is_empty() {
            true => 0,
            false => self.count_unaddressed(),
        }
    }

    #[inline(never)]
    fn count_unaddressed(&self) -> u64 {
        let mut addressed: u16 = 0;
        for message in &self.messages {
            addressed |= 1 << message.frame;
        }
        let numbered = self.frames.iter().enumerate();
        let unaddressed = numbered.filter(|(number, _)| addressed & 1 << number == 0);
        let datagrams = unaddressed.map(|(_, frame)| frame.datagram_count());
        datagrams.sum::<usize>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::Lane;
    use crate::pool::{Pool, PoolConfig};

    const LANE: Lane = Lane::ALL[8];

    /// Burst whose frames contain their index and have the given numbers of destinations, with consecutive ports.
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

    #[test]
    fn the_datagrams_of_frames_without_destination_are_counted() {
        let pool = Pool::new(PoolConfig::default());
        pool.reserve_lane(LANE).unwrap();
        let mut burst = burst(&pool, &[0, 2, 0]);
        assert_eq!(burst.unaddressed(), 2);
        let last = burst.last_mut().unwrap();
        last.append(b"more").unwrap();
        last.set_segment_bytes(2);
        assert_eq!(burst.unaddressed(), 1 + 3);
        burst.address(Locator::udpv4([10, 0, 0, 1], 1)).unwrap();
        assert_eq!(burst.unaddressed(), 1);
        while !burst.is_full() {
            burst.push(pool.take(LANE).unwrap()).unwrap();
        }
        assert_eq!(burst.unaddressed(), 1 + 13);
    }

    #[test]
    fn the_last_frame_goes_to_a_list_that_has_all_its_destinations_in_order() {
        let pool = Pool::new(PoolConfig::default());
        pool.reserve_lane(LANE).unwrap();
        let place = |port| Locator::udpv4([10, 0, 0, 1], port);
        let last = [place(1), place(2)];
        let two = burst(&pool, &[1, 2]);
        assert!(two.last_goes_to(&last));
        assert!(!two.last_goes_to(&last[..1]), "a destination less");
        assert!(!two.last_goes_to(&last[1..]), "the first one less");
        assert!(!two.last_goes_to(&[place(2), place(1)]), "another order");
        let more = [place(0), place(1), place(2)];
        assert!(!two.last_goes_to(&more), "one of the frame before");
        let further = [place(9), place(0), place(1), place(2)];
        assert!(!two.last_goes_to(&further), "more than the burst has");
        assert!(!two.last_goes_to(&[]));

        let unaddressed = burst(&pool, &[1, 0]);
        assert!(unaddressed.last_goes_to(&[]));
        assert!(!unaddressed.last_goes_to(&[place(0)]));
        let empty = TransmitBurst::new();
        assert!(!empty.last_goes_to(&[place(0)]));
    }
}
