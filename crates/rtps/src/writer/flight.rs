//! Bytes in flight of a KEEP_ALL writer: sent, and not acknowledged by every reliable reader.
//!
//! RTPS readers announce no window. A history larger than the reader's socket would overflow the socket, and each repair
//! costs more than a sample. So first transmissions wait for acknowledgements when the bytes in flight reach a limit,
//! and at least two samples are in flight. The limit grows while it holds the writer up and no reader asks for a
//! repair. A KEEP_ALL writer waits for its readers anyway; a KEEP_LAST writer does not.

use isolane_wire::{sequence::SequenceNumber, time::Instant};

use crate::{
    limits::{FLIGHT_BYTES, FLIGHT_GROWTH, MAX_FLIGHT_BYTES},
    slab::{ReaderProxyId, Slab},
    writer::{Writer, reliability::ReaderProxy},
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    /// Payload bytes in flight.
    pub(crate) bytes: u64,
    /// Lowest number that is in flight to a reader that counts.
    lowest: SequenceNumber,
    limit_bytes: usize,
    /// Earliest time of the next increase of the limit.
    grows_at: Instant,
    /// True while first transmissions wait for an acknowledgement.
    is_held: bool,
}

impl Flight {
    pub(crate) const NONE: Self = Self {
        bytes: 0,
        lowest: SequenceNumber(1),
        limit_bytes: FLIGHT_BYTES,
        grows_at: Instant::new(0),
        is_held: false,
    };

    /// Returns the number of sent bytes after which an acknowledgement is demanded.
    pub(crate) fn demand_after(&self) -> usize {
        self.limit_bytes / 4
    }

    /// Notes that a reader has asked for a repair.
    pub(crate) fn note_loss(&mut self, now: Instant) {
        self.limit_bytes = FLIGHT_BYTES;
        self.grows_at = now + FLIGHT_GROWTH;
    }

    /// Notes that all reliable readers have acknowledged further samples.
    pub(crate) fn note_progress(&mut self, now: Instant) {
        if self.is_held && now >= self.grows_at {
            self.limit_bytes = MAX_FLIGHT_BYTES.min(2 * self.limit_bytes);
            self.grows_at = now + FLIGHT_GROWTH;
        }
    }
}

impl Writer {
    /// Counts the bytes in flight anew, after acknowledgements. A reader that still gets the history does not count: it
    /// would hold up new samples for the others.
    pub(crate) fn refresh_in_flight(&mut self, proxies: &Slab<ReaderProxyId, ReaderProxy>) {
        let Some(history) = self.history.as_ref().filter(|it| it.keeps_all()) else {
            return;
        };
        let start = |sequence| {
            let kept = history.at_or_after(sequence);
            let change = kept.and_then(|kept| history.get(kept));
            change.map_or(self.written_bytes, |(change, _)| change.start)
        };
        let lowest: SequenceNumber = match self.volatile {
            true => self.lowest_acknowledged,
            false => self.lowest_where(proxies, |proxy| proxy.history_next.is_none()),
        };
        let lowest = lowest.min(self.next_unsent);
        self.flight.lowest = lowest;
        self.flight.bytes = start(self.next_unsent).saturating_sub(start(lowest));
    }

    fn is_window_full(&self) -> bool {
        self.flight.bytes >= self.flight.limit_bytes as u64
            && self.keeps_all()
            && self.level.is_some()
            && self.has_reliable_reader()
            && self.flight.lowest.next() < self.next_unsent
    }

    /// Returns whether the next first transmission waits for an acknowledgement, and notes that.
    pub(crate) fn holds_for_window(&mut self) -> bool {
        self.flight.is_held = self.is_window_full();
        self.flight.is_held
    }

    /// Returns whether first transmissions no longer wait.
    pub(crate) fn is_released(&mut self) -> bool {
        self.flight.is_held && !self.holds_for_window()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_grows_while_it_holds_the_writer_up_and_nothing_is_lost() {
        let mut flight = Flight::NONE;
        let mut now = Instant::new(1);
        flight.note_progress(now);
        assert_eq!(flight.limit_bytes, FLIGHT_BYTES, "nothing waits");
        flight.is_held = true;
        flight.note_progress(now);
        flight.note_progress(now);
        assert_eq!(flight.limit_bytes, 2 * FLIGHT_BYTES, "once in a while");
        for _ in 0..10 {
            now = now + FLIGHT_GROWTH;
            flight.note_progress(now);
        }
        assert_eq!(flight.limit_bytes, MAX_FLIGHT_BYTES);
        flight.note_loss(now);
        flight.note_progress(now);
        assert_eq!(flight.limit_bytes, FLIGHT_BYTES);
        flight.note_progress(now + FLIGHT_GROWTH);
        assert_eq!(flight.limit_bytes, 2 * FLIGHT_BYTES);
    }
}
