//! LIFESPAN (DDS 1.4 §2.2.3.16): a sample is of use for so long after it was written, and is delivered to
//! nobody afterwards.
//!
//! A writer counts from the writing on, by the monotonic clock: the source time stamp, as the wall clock was then.
//! Nothing expires because the wall clock is set. What has expired leaves its history: it is neither sent nor repaired, late joiners do not get it, and a GAP or the next HEARTBEAT tells readers
//! that it is gone.
//!
//! A reader counts from the source time stamp by its own wall clock, with the LIFESPAN that the writer has
//! announced, or sent along. That needs clocks that agree closely enough; where they do not, a reader counts from
//! the reception, as the standard allows:
//! - without a time stamp, and where it lies ahead: a sample cannot have been written after it was received.
//! - where it is implausibly far behind. A writer does not send what has expired, so samples that are all
//!   older than the LIFESPAN when they arrive show that the writer's clock is behind. The measure is the least
//!   difference of reception and time stamp among the last samples of a writer ([`LeastAge`]). It is believed
//!   at once if it exceeds the LIFESPAN by more than [`PLAUSIBLE_DELAY`], and otherwise after [`AGED_SAMPLES`]
//!   samples. The age of a sample is then what it is older than that.
//!
//! What is left is worked out when the sample arrives; after that only the monotonic clock counts, which nobody
//! sets. [`Counters::expired_on_arrival`](crate::Counters) counts what is not delivered by this rule.
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
    limits::{AGED_SAMPLES, EXPIRY_ITEMS, LEAST_AGE_WINDOW, PLAUSIBLE_DELAY},
    writer::WriterStatus,
};

/// Least difference of reception and source time stamp among the last samples of a writer: the shortest delay and
/// the difference of the clocks. Of samples in the last [`LEAST_AGE_WINDOW`] and the window before it, so that it
/// follows a clock that is set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LeastAge {
    window_begin: Instant,
    least_ns: u64,
    former_least_ns: u64,
    samples: u8,
}

impl LeastAge {
    /// Takes note of a sample's age, and returns the least.
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

    /// How much of a sample's age is the difference of the clocks, if that is longer than samples live.
    fn clock_difference_ns(&mut self, now: Instant, age_ns: u64, lifespan: Duration) -> u64 {
        let least = Duration::from_nanos(self.note(now, age_ns));
        let is_shown = least >= lifespan.saturating_add(PLAUSIBLE_DELAY)
            || (least >= lifespan && self.samples >= AGED_SAMPLES);
        if is_shown { least.as_nanos() as u64 } else { 0 }
    }
}

/// When a sample expires that arrived at `now`, when the wall clock showed `wall_ns`.
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

    /// For how long samples of these ages, a second apart, live with a LIFESPAN of two seconds.
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
        // Barely behind: it takes some samples.
        let barely = left_after([Some(2 * S + S / 10); 10]);
        assert_eq!(
            barely.map(|left| left > 0).iter().filter(|it| **it).count(),
            3
        );
        // A first sample that was late shows a difference until the next one.
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
