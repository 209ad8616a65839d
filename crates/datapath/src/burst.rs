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
pub(crate) struct Message {
    /// Index of the frame.
    pub(crate) frame: u8,
    pub(crate) to: Locator,
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
    pub fn address(&mut self, to: Locator) -> Result<(), BurstFull> {
        let last = self.frames.len().checked_sub(1);
        let frame = last.expect("a frame is pushed before it is addressed") as u8;
        self.messages
            .push(Message { frame, to })
            .map_err(|_| BurstFull)
    }

    /// Destinations that still fit.
    #[must_use]
    pub fn room(&self) -> usize {
        MAX_MESSAGES - self.messages.len()
    }

    /// Frames in the burst.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Nothing is to be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// No further frame fits.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.frames.is_full()
    }

    /// Lets all frames go home.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.frames.clear();
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(crate) fn frame(&self, message: &Message) -> &Frame {
        &self.frames[usize::from(message.frame)]
    }

    /// Frames without any destination. Messages lie in the order of their frames.
    pub(crate) fn unaddressed(&self) -> u64 {
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
