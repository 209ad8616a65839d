//! LIFESPAN (DDS 1.4 §2.2.3.16): a sample is of use for so long after it was written, and is delivered to
//! nobody afterwards.
//!
//! A writer counts from the writing on, by the monotonic clock: the source time stamp, as the wall clock was then.
//! Nothing expires because the wall clock is set. What has expired leaves its history: it is neither sent nor repaired, late joiners do not get it, and a GAP or the next HEARTBEAT tells readers
//! that it is gone.
//!
//! A reader counts from the source time stamp by *its* wall clock, with the LIFESPAN that the writer has
//! announced, or sent along. A sample cannot have been written after it was received: a time stamp of the
//! future shows that the clocks differ, and then, as where there is none, it counts from the reception, as
//! the standard allows. A clock that is behind the reader's cannot be told from an old sample. What is left
//! is worked out when the sample comes in; after that only the monotonic clock counts, which nobody sets.
//!
//! The end of an instance does not expire: it is no value that could be stale.

use core::time::Duration;

use isolane_wire::{
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use crate::{
    engine::Engine,
    history::{Change, ChangeKind},
    ids::ReaderId,
    limits::EXPIRY_ITEMS,
    writer::WriterStatus,
};

/// When a sample expires that came in at `now`, when the wall clock showed `wall_ns`.
pub(crate) fn expiry(
    now: Instant,
    wall_ns: u64,
    source: Option<Timestamp>,
    lifespan: Duration,
) -> Instant {
    let source = source.filter(|source| *source < Timestamp::INFINITE);
    let age_ns = source.map_or(0, |source| wall_ns.saturating_sub(source.to_nanos()));
    now + lifespan.saturating_sub(Duration::from_nanos(age_ns))
}

/// What [`Engine::expire_history`] has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    Nothing,
    /// Something has expired: what was to be sent next may be gone.
    Some,
    /// There is more, which the next step looks at.
    MoreThanThat,
}

/// When a change was written, by the monotonic clock: as it was then, whatever has become of the wall clock since.
/// Of one that was written before its writer had a LIFESPAN only the time stamp tells.
fn written_at(change: &Change, wall_offset_ns: u64) -> Instant {
    match change.written.as_nanos() {
        0 => Instant::new(change.timestamp.to_nanos().saturating_sub(wall_offset_ns)),
        _ => change.written,
    }
}

impl Engine {
    /// The instant at which the wall clock shows this time.
    pub(crate) fn instant_of(&self, timestamp: Timestamp) -> Instant {
        let offset_ns = self.config.wall_offset_ns;
        Instant::new(timestamp.to_nanos().saturating_sub(offset_ns))
    }

    /// When a sample with this time stamp was written. The stamp is what the wall clock showed, or what the user
    /// says; so far ahead of the time that was told last that it would have been told again since, it is
    /// neither.
    pub(super) fn written_about(&self, timestamp: Timestamp) -> Instant {
        let ahead = self.config.timing.announce_period.saturating_mul(2);
        self.instant_of(timestamp).min(self.latest + ahead)
    }

    /// Removes from a writer's history what has expired, up to the first sample that has not: samples are written
    /// one after the other. It looks at a bounded number of changes; where others are left behind those nothing
    /// of the history may be sent yet.
    pub(crate) fn expire_history(&mut self, now: Instant, index: u16) -> Expired {
        let offset_ns = self.config.wall_offset_ns;
        let Some(writer) = self.writers.get_mut(index) else {
            return Expired::Nothing;
        };
        let Some(clock) = &mut writer.clock else {
            return Expired::Nothing;
        };
        if clock.next_expiry.is_none_or(|expires| now < expires) {
            return Expired::Nothing;
        }
        clock.next_expiry = None;
        let (Some(lifespan), Some(history)) = (clock.lifespan, &mut writer.history) else {
            return Expired::Nothing;
        };
        // Of that the rest still leaves, and it counts as sent.
        let under_way = writer.fragmenter.under_way.map(|at| at.sequence);
        let (mut removed, mut looked_at) = (0, 0);
        while let Some(change) = history.next_from(clock.mortal_from) {
            if looked_at == EXPIRY_ITEMS {
                clock.next_expiry = Some(now);
                break;
            }
            looked_at += 1;
            let sequence: SequenceNumber = change.sequence;
            if change.kind == ChangeKind::Alive {
                let expires = written_at(change, offset_ns) + lifespan;
                if now < expires {
                    clock.next_expiry = Some(expires);
                    break;
                }
                history.remove(sequence);
                removed += 1;
                if sequence < writer.next_unsent || under_way == Some(sequence) {
                    writer.ledger.expired += 1;
                } else {
                    clock.expired_unsent += 1;
                }
            }
            clock.mortal_from = sequence.next();
        }
        let is_more = clock.next_expiry == Some(now);
        if removed > 0 {
            if core::mem::take(&mut writer.wants_room) {
                writer.status |= WriterStatus::ROOM;
            }
            self.note_writer(index);
            // Readers learn by it that what they have not is gone.
            self.arm_heartbeat(now, index);
        }
        match (is_more, removed) {
            (true, _) => Expired::MoreThanThat,
            (false, 0) => Expired::Nothing,
            (false, _) => Expired::Some,
        }
    }

    /// Whether samples of a reader may expire before they are taken: then
    /// [`drop_expired`](Self::drop_expired) comes before a look at them.
    #[must_use]
    pub fn may_expire(&self, id: ReaderId) -> bool {
        let reader = self.readers.get(id.0);
        let cache = reader.and_then(|reader| reader.cache.as_ref());
        cache.is_some_and(|cache| cache.may_expire())
    }

    /// Lets go of a reader's samples that have outlived their LIFESPAN. What [`sample`](Self::sample) shows
    /// afterwards is of use at `now`.
    pub fn drop_expired(&mut self, now: Instant, id: ReaderId) {
        let reader = self.readers.get_mut(id.0);
        let cache = reader.and_then(|reader| reader.cache.as_mut());
        if cache.is_some_and(|cache| cache.expire(now) > 0) {
            self.go_on(id.0);
        }
    }

    /// The same of a bounded number of samples; the cache says when it has others that are due.
    pub(super) fn expire_some(&mut self, now: Instant, index: u16) {
        let reader = self.readers.get_mut(index);
        let cache = reader.and_then(|reader| reader.cache.as_mut());
        if cache.is_some_and(|cache| cache.expire_some(now) > 0) {
            self.go_on(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// When a sample of this age expires that lives for two seconds.
    fn left_after(age: Option<i64>) -> u64 {
        let (now, wall_ns) = (Instant::new(5 * SECOND), 100 * SECOND);
        let source = age.map(|age| Timestamp::from_nanos(wall_ns.wrapping_add_signed(-age)));
        let expires = expiry(now, wall_ns, source, Duration::from_secs(2));
        expires.saturating_since(now).as_nanos() as u64
    }

    #[test]
    fn a_sample_lives_from_its_writing_on_or_from_its_reception_where_the_clocks_differ() {
        let second = SECOND as i64;
        assert_eq!(left_after(Some(second)), SECOND);
        assert_eq!(left_after(Some(3 * second)), 0);
        assert_eq!(left_after(Some(-10 * second)), 2 * SECOND, "of the future");
        assert_eq!(left_after(None), 2 * SECOND);
        let invalid = expiry(
            Instant::new(0),
            0,
            Some(Timestamp::INVALID),
            Duration::from_nanos(1),
        );
        assert_eq!(invalid, Instant::new(1));
    }
}
