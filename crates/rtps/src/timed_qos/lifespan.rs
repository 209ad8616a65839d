//! LIFESPAN (DDS 1.4 §2.2.3.16): a sample expires a fixed time after it was written.
//!
//! A writer measures from the time of writing by the monotonic clock, so setting the wall clock expires nothing.
//! Expired samples leave its history; a GAP or the next HEARTBEAT informs readers.
//!
//! A reader measures from the source timestamp by its own wall clock, with the LIFESPAN announced by the writer or sent
//! inline. As the standard allows, it measures from reception if there is no timestamp, or if the timestamp is in the
//! future or implausibly far in the past. A writer sends no expired samples, so if all samples arrive older than the
//! LIFESPAN, its clock must be behind. The least age of its recent samples ([`LeastAge`]) then counts as the clock
//! difference, and is subtracted from every age. One sample suffices if it is older than the LIFESPAN by
//! [`PLAUSIBLE_DELAY`]; otherwise [`AGED_SAMPLES`] are needed.
//!
//! The remaining time is computed on arrival and then measured by the monotonic clock.
//! [`Counters::expired_on_arrival`](crate::Counters) counts samples dropped on arrival. The end of an instance does not
//! expire.

use core::time::Duration;

use isolane_wire::{
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use crate::{
    limits::{AGED_SAMPLES, EXPIRY_ITEMS, LEAST_AGE_WINDOW, PLAUSIBLE_DELAY},
    participant::{Facts, LocalParticipant, Shared},
    slab::{ReaderId, WriterId},
    writer::{
        WriterStatus, Writers,
        history::{Change, ChangeKind},
    },
};

/// Least age of a writer's recent samples on arrival: the shortest delay plus the clock difference. It covers the
/// current [`LEAST_AGE_WINDOW`] and the previous one, and so follows a clock that is set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LeastAge {
    window_begin: Instant,
    least_ns: u64,
    former_least_ns: u64,
    samples: u8,
}

impl LeastAge {
    /// Records a sample's age and returns the least.
    fn note(&mut self, now: Instant, age_ns: u64) -> u64 {
        if self.samples == 0 || now >= self.window_begin + LEAST_AGE_WINDOW {
            self.former_least_ns = if self.samples == 0 {
                age_ns
            } else {
                self.least_ns
            };
            self.least_ns = age_ns;
            self.window_begin = now;
        }
        self.samples = self.samples.saturating_add(1);
        self.least_ns = self.least_ns.min(age_ns);
        self.least_ns.min(self.former_least_ns)
    }

    /// Part of a sample's age that is attributed to the clock difference; 0 unless all recent samples arrive older than
    /// their lifespan.
    fn clock_difference_ns(&mut self, now: Instant, age_ns: u64, lifespan: Duration) -> u64 {
        let least = Duration::from_nanos(self.note(now, age_ns));
        let is_shown = least >= lifespan.saturating_add(PLAUSIBLE_DELAY)
            || (least >= lifespan && self.samples >= AGED_SAMPLES);
        if is_shown { least.as_nanos() as u64 } else { 0 }
    }
}

/// Returns the expiry of a sample received at `now`, when the wall clock showed `wall_ns`.
pub(crate) fn expiry(
    now: Instant,
    wall_ns: u64,
    source: Option<Timestamp>,
    lifespan: Duration,
    least_age: &mut LeastAge,
) -> Instant {
    let Some(source) = source.filter(|source| *source < Timestamp::INFINITE) else {
        return now + lifespan;
    };
    let age_ns = wall_ns.saturating_sub(source.to_nanos());
    let age_ns = age_ns - least_age.clock_difference_ns(now, age_ns, lifespan);
    now + lifespan.saturating_sub(Duration::from_nanos(age_ns))
}

/// Result of [`Writers::expire_history`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    Nothing,
    /// Samples expired: the next one to be sent may be gone.
    Some,
    /// The step's bound was reached; more may have expired.
    Incomplete,
}

/// Time at which a change was written, by the monotonic clock at that time. If its writer had no LIFESPAN then, the
/// time is derived from its timestamp.
fn written_at(change: &Change, wall_offset_ns: u64) -> Instant {
    match change.written.as_nanos() {
        0 => Instant::new(change.timestamp.to_nanos().saturating_sub(wall_offset_ns)),
        _ => change.written,
    }
}

impl LocalParticipant {
    /// Returns whether samples of a reader may expire before they are taken. If so, call
    /// [`drop_expired`](LocalParticipant::drop_expired) before reading them.
    #[must_use]
    pub fn may_expire(&self, id: ReaderId) -> bool {
        let reader = self.readers.get(id);
        let cache = reader.and_then(|reader| reader.cache.as_ref());
        cache.is_some_and(|cache| cache.may_expire())
    }

    /// Drops a reader's expired samples. [`sample`](LocalParticipant::sample) then returns only samples valid at `now`.
    pub fn drop_expired(&mut self, now: Instant, id: ReaderId) {
        let facts = Facts::of(&self.writers, &self.discovery);
        self.readers
            .remove_samples(&mut self.shared, facts, id, |cache| cache.expire(now) > 0);
    }
}

impl Shared {
    /// Converts a wall clock time to the monotonic clock.
    pub(crate) fn instant_of(&self, timestamp: Timestamp) -> Instant {
        let offset_ns = self.config.wall_offset_ns;
        Instant::new(timestamp.to_nanos().saturating_sub(offset_ns))
    }

    /// Estimates when a sample with this source timestamp was written. The timestamp comes from the wall clock or from
    /// the user. The result is at most two announcement periods after the participant's latest time.
    pub(super) fn written_about(&self, timestamp: Timestamp) -> Instant {
        let ahead = self.config.timing.announce_period.saturating_mul(2);
        self.instant_of(timestamp).min(self.latest + ahead)
    }
}

impl Writers {
    /// Removes expired changes from a writer's history, up to the first one not expired, since changes are stored in
    /// writing order. A step checks a bounded number. While more are to be checked, nothing of the history may be sent.
    pub(crate) fn expire_history(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: WriterId,
    ) -> Expired {
        let offset_ns = shared.config.wall_offset_ns;
        let Some(writer) = self.table.get_mut(index) else {
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
        // The remaining fragments of this sample are still sent, and it counts as sent.
        let under_way = writer.fragmenter.under_way.map(|at| at.sequence);
        let (mut removed, mut looked_at) = (0, 0);
        while let Some(change) = history.next_from(clock.expirable_from) {
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
            clock.expirable_from = sequence.next();
        }
        let is_more = clock.next_expiry == Some(now);
        if removed > 0 {
            if core::mem::take(&mut writer.wants_room) {
                writer.status |= WriterStatus::ROOM;
            }
            self.note_writer(shared, index);
            // The HEARTBEAT informs readers that the removed changes are gone.
            self.arm_heartbeat(shared, now, index);
        }
        match (is_more, removed) {
            (true, _) => Expired::Incomplete,
            (false, 0) => Expired::Nothing,
            (false, _) => Expired::Some,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Remaining times of samples with these ages, received a second apart, with a LIFESPAN of two seconds.
    fn left_after<const N: usize>(ages: [Option<i64>; N]) -> [u64; N] {
        let mut least_age = LeastAge::default();
        let mut second = 5;
        ages.map(|age| {
            second += 1;
            let (now, wall_ns) = (
                Instant::new(second * SECOND),
                (1_000_000_000 + second) * SECOND,
            );
            let source = age.map(|age| Timestamp::from_nanos(wall_ns.wrapping_add_signed(-age)));
            let life = Duration::from_secs(2);
            let expires = expiry(now, wall_ns, source, life, &mut least_age);
            expires.saturating_since(now).as_nanos() as u64
        })
    }

    const S: i64 = SECOND as i64;

    #[test]
    fn a_sample_lives_from_its_writing_on_or_from_its_reception_where_the_clocks_differ() {
        assert_eq!(left_after([Some(S), Some(3 * S)]), [SECOND, 0]);
        assert_eq!(left_after([Some(-10 * S)]), [2 * SECOND], "of the future");
        assert_eq!(left_after([None]), [2 * SECOND]);
        let invalid = expiry(
            Instant::new(0),
            0,
            Some(Timestamp::INVALID),
            Duration::from_nanos(1),
            &mut LeastAge::default(),
        );
        assert_eq!(invalid, Instant::new(1));
    }

    #[test]
    fn a_clock_that_is_behind_by_more_than_samples_live_shows_by_their_ages() {
        let day = 86_400 * S;
        assert_eq!(left_after([Some(day); 3]), [2 * SECOND; 3]);
        let late = [Some(day), Some(day + S), Some(day + 3 * S), Some(day)];
        assert_eq!(left_after(late), [2 * SECOND, SECOND, 0, 2 * SECOND]);
        // A clock that is barely behind shows only after several samples.
        let barely = left_after([Some(2 * S + S / 10); 10]);
        assert_eq!(
            barely.map(|left| left > 0).iter().filter(|it| **it).count(),
            3
        );
        // A late first sample suggests a clock difference until the next one.
        assert_eq!(
            left_after([Some(day), Some(0), Some(day)]),
            [2 * SECOND, 2 * SECOND, 0]
        );
    }

    #[test]
    fn a_clock_that_is_set_back_is_followed_after_two_windows() {
        let ages: [_; 30] = core::array::from_fn(|at| Some(if at < 5 { 0 } else { 3_600 * S }));
        let left = left_after(ages);
        assert!(left[5..15].iter().all(|left| *left == 0));
        assert!(
            left[22..].iter().all(|left| *left == 2 * SECOND),
            "{left:?}"
        );
    }
}
