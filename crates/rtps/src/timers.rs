//! Timers of a participant, one for each subject.
//!
//! A flat array: each local endpoint has some timers, each kind of liveliness message and each remote participant one,
//! the own announcement one. The earliest instant of each [`BLOCK`] is cached, so finding an expired timer among a
//! thousand scans one block and the block instants. The next instant is known without a scan.

use alloc::{vec, vec::Vec};

use isolane_wire::time::Instant;

use crate::participant::BUILTIN_ENDPOINTS;
use crate::{
    config::Limits,
    slab::{ReaderId, RemoteParticipantId, WriterId},
    timed_qos::PARTICIPANT_LIVELINESS_KINDS,
};

/// Instant that never comes.
const NEVER: Instant = Instant::new(u64::MAX);

/// Timers per block.
const BLOCK: usize = 64;

#[derive(Debug)]
pub(crate) struct Timers {
    due: Vec<Instant>,
    /// Lower bound of the instants of each block.
    of_blocks: Vec<Instant>,
    earliest: Instant,
}

impl Timers {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            due: vec![NEVER; count],
            of_blocks: vec![NEVER; count.div_ceil(BLOCK)],
            earliest: NEVER,
        }
    }

    /// Adds room for a timer whose subject was just created.
    pub(crate) fn reserve(&mut self, timer: usize) {
        if timer >= self.due.len() {
            let count = (timer + 1).next_multiple_of(BLOCK);
            self.due.resize(count, NEVER);
            self.of_blocks.resize(count / BLOCK, NEVER);
        }
    }

    pub(crate) fn arm(&mut self, timer: usize, at: Instant) {
        self.due[timer] = at;
        let of_block = &mut self.of_blocks[timer / BLOCK];
        *of_block = at.min(*of_block);
        self.earliest = at.min(self.earliest);
    }

    /// Disarms a timer. The cached earliest instant may now be too early; the next [`Self::expire`] corrects it.
    pub(crate) fn disarm(&mut self, timer: usize) {
        self.due[timer] = NEVER;
    }

    /// Arms a timer unless it is due sooner.
    pub(crate) fn bring_forward(&mut self, timer: usize, at: Instant) {
        if at < self.due[timer] {
            self.arm(timer, at);
        }
    }

    pub(crate) fn is_armed(&self, timer: usize) -> bool {
        self.due[timer] != NEVER
    }

    /// Returns when to call [`Self::expire`] next: never later than the first timer.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.earliest != NEVER).then_some(self.earliest)
    }

    /// Disarms and returns one expired timer.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<usize> {
        if now < self.earliest {
            return None;
        }
        let mut found = None;
        let mut earliest = NEVER;
        let blocks = self.due.chunks_mut(BLOCK).zip(&mut self.of_blocks);
        for (nth, (block, of_block)) in blocks.enumerate() {
            if found.is_none() && *of_block <= now {
                let first = block.iter().position(|due| *due <= now);
                if let Some(place) = first {
                    block[place] = NEVER;
                    found = Some(nth * BLOCK + place);
                }
                *of_block = block.iter().copied().min().unwrap_or(NEVER);
            }
            earliest = earliest.min(*of_block);
        }
        self.earliest = earliest;
        found
    }
}

/// Owner of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimerOwner {
    Announce,
    /// Discovery may send again.
    DiscoveryRate,
    Lease(RemoteParticipantId),
    Heartbeat(WriterId),
    WriterTimedQos(WriterId),
    ReaderTimedQos(ReaderId),
    /// A held batch is due.
    Batch(WriterId),
    /// Liveliness assertion for a kind of writers.
    Message(u8),
}

impl TimerOwner {
    pub(crate) const ANNOUNCE: usize = 0;
    pub(crate) const DISCOVERY_RATE: usize = 1;
    const FIRST_OF_ENDPOINTS: usize = 2;

    /// Returns the timer of a participant's lease. These come last because the number of participants grows.
    pub(crate) fn lease(participant: RemoteParticipantId, limits: &Limits) -> usize {
        Self::message(PARTICIPANT_LIVELINESS_KINDS.len() as u8, limits) + usize::from(participant.0)
    }

    pub(crate) fn heartbeat(writer: WriterId, limits: &Limits) -> usize {
        Self::of_endpoint(0, writer.0, limits)
    }

    pub(crate) fn writer_clock(writer: WriterId, limits: &Limits) -> usize {
        Self::of_endpoint(1, writer.0, limits)
    }

    pub(crate) fn reader_clock(reader: ReaderId, limits: &Limits) -> usize {
        Self::of_endpoint(2, reader.0, limits)
    }

    pub(crate) fn batch(writer: WriterId, limits: &Limits) -> usize {
        Self::of_endpoint(3, writer.0, limits)
    }

    pub(crate) fn message(which: u8, limits: &Limits) -> usize {
        Self::of_endpoint(4, u16::from(which), limits)
    }

    /// Returns a timer of a local endpoint; the kinds follow one another.
    fn of_endpoint(kind: usize, endpoint: u16, limits: &Limits) -> usize {
        Self::FIRST_OF_ENDPOINTS + kind * Self::endpoints(limits) + usize::from(endpoint)
    }

    fn endpoints(limits: &Limits) -> usize {
        usize::from(limits.local_endpoints) + usize::from(BUILTIN_ENDPOINTS)
    }

    pub(crate) fn of(timer: usize, limits: &Limits) -> Self {
        let Some(rest) = timer.checked_sub(Self::FIRST_OF_ENDPOINTS) else {
            return match timer {
                Self::ANNOUNCE => Self::Announce,
                _ => Self::DiscoveryRate,
            };
        };
        if let Some(participant) = timer.checked_sub(Self::lease(RemoteParticipantId(0), limits)) {
            return Self::Lease(RemoteParticipantId(participant as u16));
        }
        let endpoints = Self::endpoints(limits);
        let endpoint = (rest % endpoints) as u16;
        match rest / endpoints {
            0 => Self::Heartbeat(WriterId(endpoint)),
            1 => Self::WriterTimedQos(WriterId(endpoint)),
            2 => Self::ReaderTimedQos(ReaderId(endpoint)),
            3 => Self::Batch(WriterId(endpoint)),
            _ => Self::Message(endpoint as u8),
        }
    }

    /// Returns the initial number of timers: without participants or, with [`Limits::fixed_memory`], for the maximum.
    pub(crate) fn count(limits: &Limits) -> usize {
        let participants = match limits.fixed_memory {
            true => limits.participants,
            false => 0,
        };
        Self::lease(RemoteParticipantId(participants), limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_once_and_the_next_one_is_known() {
        let mut timers = Timers::new(3);
        assert_eq!(timers.next(), None);
        timers.arm(0, Instant::new(30));
        timers.arm(2, Instant::new(10));
        assert_eq!(timers.next(), Some(Instant::new(10)));
        assert_eq!(timers.expire(Instant::new(9)), None);
        assert_eq!(timers.expire(Instant::new(40)), Some(0));
        assert_eq!(timers.expire(Instant::new(40)), Some(2));
        assert_eq!(timers.expire(Instant::new(40)), None);
        assert_eq!(timers.next(), None);
        assert!(!timers.is_armed(2));
    }

    #[test]
    fn timers_of_all_blocks_expire_and_those_made_room_for_later_too() {
        let mut timers = Timers::new(BLOCK + 1);
        timers.reserve(3 * BLOCK);
        for timer in [3 * BLOCK, 1, BLOCK] {
            timers.arm(timer, Instant::new(timer as u64));
        }
        assert_eq!(timers.expire(Instant::new(1)), Some(1));
        assert_eq!(timers.next(), Some(Instant::new(BLOCK as u64)));
        let now = Instant::new(1_000);
        assert_eq!(timers.expire(now), Some(BLOCK));
        assert_eq!(timers.expire(now), Some(3 * BLOCK));
        assert_eq!(timers.expire(now), None);
    }

    #[test]
    fn a_disarmed_timer_does_not_expire() {
        let mut timers = Timers::new(2);
        timers.arm(1, Instant::new(10));
        timers.disarm(1);
        assert_eq!(timers.expire(Instant::new(20)), None);
        assert_eq!(timers.next(), None);
    }
}
