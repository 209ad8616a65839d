//! LIVELINESS (DDS 1.4 §2.2.3.11): asserted by writers, monitored by readers.
//!
//! A writer of a manual kind must assert its liveliness once a lease, by writing or explicitly. Otherwise its
//! liveliness is lost until the next assertion, and the user is notified once.
//!
//! A reader measures the announced lease of each matched writer from its last sign of life. Anything from the writer,
//! or its participant's message, counts for AUTOMATIC. A sample, or the participant's message of that kind, counts for
//! MANUAL_BY_PARTICIPANT; a sample, or a HEARTBEAT with the liveliness flag, for MANUAL_BY_TOPIC. A writer silent for
//! longer is not alive, and its instances count it as unregistered until it is heard again.
//!
//! An expired lease is checked again after [`LEASE_GRACE`] or an eighth of the lease, whichever is shorter. A process
//! that was stopped must first read what has arrived meanwhile.

use core::time::Duration;

use isolane_wire::{
    guid::Guid,
    message::Heartbeat,
    qos::{LivelinessKind, QosPolicies},
    time::Instant,
};

use crate::{
    limits::LEASE_GRACE,
    participant::{Facts, Shared},
    reader::{Reader, ReaderStatus, Readers},
    slab::{ReaderId, WriterProxyId},
    timed_qos::{lifespan::LeastAge, period},
};

/// Number of times a writer has lost its liveliness (*LivelinessLostStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivelinessLost {
    /// Total since creation.
    pub total: u32,
    /// Increase since the status was last taken.
    pub change: u32,
}

/// Numbers of a reader's matched writers that are alive and not alive (*LivelinessChangedStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivelinessChanged {
    /// Writers now alive.
    pub alive: u32,
    /// Matched writers now not alive.
    pub not_alive: u32,
    /// Change of `alive` since the status was last taken.
    pub alive_change: i32,
    /// Change of `not_alive` since the status was last taken.
    pub not_alive_change: i32,
    /// Writer of the last change.
    pub last: Guid,
}

/// Assertion state of a writer with a manual kind.
#[derive(Debug)]
pub(crate) struct LivelinessAssertion {
    pub(crate) kind: LivelinessKind,
    pub(crate) lease: Duration,
    asserted: Instant,
    is_lost: bool,
    lost: u32,
    reported: u32,
}

impl LivelinessAssertion {
    pub(crate) fn new(kind: LivelinessKind, lease: Duration, now: Instant) -> Self {
        Self {
            kind,
            lease,
            asserted: now,
            is_lost: false,
            lost: 0,
            reported: 0,
        }
    }

    pub(crate) fn assert(&mut self, at: Instant) {
        self.asserted = self.asserted.max(at);
        self.is_lost = false;
    }

    /// End of the lease; `None` if liveliness is already lost. `by_participant` is the time of the participant's last
    /// assertion.
    pub(crate) fn ends(&self, by_participant: Option<Instant>) -> Option<Instant> {
        let for_all = self.kind == LivelinessKind::ManualByParticipant;
        let said = by_participant.filter(|_| for_all).max(Some(self.asserted));
        said.filter(|_| !self.is_lost).map(|said| said + self.lease)
    }

    /// Checks the lease, and returns whether liveliness is lost by this check.
    pub(crate) fn is_lost_now(&mut self, now: Instant, by_participant: Option<Instant>) -> bool {
        let is_lost = self.ends(by_participant).is_some_and(|ends| ends <= now);
        if is_lost {
            self.is_lost = true;
            self.lost = self.lost.wrapping_add(1);
        }
        is_lost
    }

    pub(crate) fn take(&mut self) -> Option<LivelinessLost> {
        let change = self.lost.wrapping_sub(self.reported);
        self.reported = self.lost;
        (change > 0).then_some(LivelinessLost {
            total: self.lost,
            change,
        })
    }
}

/// Lease of a matched writer, as monitored by a reader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease {
    pub(crate) kind: LivelinessKind,
    pub(crate) duration: Duration,
    heard: Instant,
    /// Time at which a check found it expired.
    missed: Option<Instant>,
    pub(crate) is_alive: bool,
    /// True if it has expired and the writer has not been heard since.
    pub(crate) is_silent: bool,
}

/// Change of a writer's liveliness found by a check of its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LivelinessTransition {
    Lost,
    Back,
}

impl Lease {
    pub(crate) fn new(kind: LivelinessKind, duration: Duration, now: Instant) -> Self {
        Self {
            kind,
            duration,
            heard: now,
            missed: None,
            is_alive: true,
            is_silent: false,
        }
    }

    /// Replaces kind and duration by those of another lease.
    pub(crate) fn changed_to(self, terms: Self) -> Self {
        Self {
            kind: terms.kind,
            duration: terms.duration,
            ..self
        }
    }

    /// Records a sign of life.
    pub(crate) fn hear(&mut self, at: Instant) {
        if at > self.heard {
            self.heard = at;
            self.is_silent = false;
        }
    }

    /// Returns whether a HEARTBEAT asserts liveliness (RTPS 2.5 §8.4.13.4).
    pub(crate) fn is_heard_by(&self, heartbeat: &Heartbeat) -> bool {
        heartbeat.liveliness || self.kind == LivelinessKind::Automatic
    }

    /// Checks the lease. Returns the change, and the time of the next check.
    fn look(&mut self, now: Instant) -> (Option<LivelinessTransition>, Option<Instant>) {
        let ends = self.heard + self.duration;
        if now < ends {
            self.missed = None;
            let was_alive = core::mem::replace(&mut self.is_alive, true);
            return (
                (!was_alive).then_some(LivelinessTransition::Back),
                Some(ends),
            );
        }
        if !self.is_alive {
            return (None, None);
        }
        let grace = LEASE_GRACE.min(self.duration / 8);
        match self.missed.map(|since| now.saturating_since(since)) {
            Some(waited) if waited < grace => {}
            Some(waited) if waited <= grace + LEASE_GRACE => {
                (self.is_alive, self.is_silent) = (false, true);
                self.missed = None;
                return (Some(LivelinessTransition::Lost), None);
            }
            _ => self.missed = Some(now),
        }
        (None, self.missed.map(|since| since + grace))
    }
}

/// Counts of a reader's matched writers, alive and not alive.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LivelinessTally {
    alive: u32,
    not_alive: u32,
    reported_alive: u32,
    reported_not_alive: u32,
    last: Option<Guid>,
    is_news: bool,
}

impl LivelinessTally {
    pub(crate) fn join(&mut self, writer: Guid) {
        self.alive += 1;
        self.note(writer);
    }

    pub(crate) fn part(&mut self, writer: Guid, was_alive: bool) {
        if was_alive {
            self.alive -= 1;
        } else {
            self.not_alive -= 1;
        }
        self.note(writer);
    }

    fn turn(&mut self, writer: Guid, turn: LivelinessTransition) {
        match turn {
            LivelinessTransition::Lost => {
                (self.alive, self.not_alive) = (self.alive - 1, self.not_alive + 1);
            }
            LivelinessTransition::Back => {
                (self.alive, self.not_alive) = (self.alive + 1, self.not_alive - 1);
            }
        }
        self.note(writer);
    }

    fn note(&mut self, writer: Guid) {
        self.last = Some(writer);
        self.is_news = true;
    }

    pub(crate) fn has_silent(&self) -> bool {
        self.not_alive > 0
    }

    pub(crate) fn take(&mut self) -> Option<LivelinessChanged> {
        let last = self.last?;
        if !core::mem::take(&mut self.is_news) {
            return None;
        }
        let taken = LivelinessChanged {
            alive: self.alive,
            not_alive: self.not_alive,
            alive_change: self.alive.wrapping_sub(self.reported_alive) as i32,
            not_alive_change: self.not_alive.wrapping_sub(self.reported_not_alive) as i32,
            last,
        };
        (self.reported_alive, self.reported_not_alive) = (self.alive, self.not_alive);
        Some(taken)
    }
}

impl Readers {
    /// Checks the leases of all writers matched with a reader. Returns the time of the next check.
    pub(super) fn look_at_leases(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        now: Instant,
        reader_index: ReaderId,
    ) -> Option<Instant> {
        let mut next = None;
        for at in 0.. {
            let reader = self.table.get(reader_index)?;
            let Some(&proxy_index) = reader.proxies.get(at) else {
                return next;
            };
            let proxy = self.proxies.get(proxy_index);
            let found = proxy.and_then(|proxy| Some((proxy.guid, proxy.clock.lease?)));
            let Some((guid, mut lease)) = found else {
                continue;
            };
            if let Some(heard) = facts.heard_of_participant(shared, now, guid.prefix, lease.kind) {
                lease.hear(heard);
            }
            let (turn, look) = lease.look(now);
            next = [next, look].into_iter().flatten().min();
            if let Some(proxy) = self.proxies.get_mut(proxy_index) {
                proxy.clock.lease = Some(lease);
            }
            if let Some(turn) = turn {
                self.turn_writer(shared, now, reader_index, proxy_index, guid, turn);
            }
        }
        next
    }

    /// Processes a change of a matched writer's liveliness.
    pub(super) fn turn_writer(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: ReaderId,
        proxy: WriterProxyId,
        guid: Guid,
        turn: LivelinessTransition,
    ) {
        let reader = &mut self.table[index];
        reader.liveliness.turn(guid, turn);
        reader.status |= ReaderStatus::LIVELINESS_CHANGED;
        if turn == LivelinessTransition::Lost {
            reader.release_owner(proxy);
            self.end_instances_of(shared, now, index, proxy, guid);
        }
    }

    /// Ends the instances of a writer that is not alive, after a delayed sample of it was delivered. Such a sample must
    /// not keep its instance alive.
    pub(crate) fn end_if_silent(&mut self, shared: &mut Shared, proxy: WriterProxyId) {
        let found = self.proxies.get(proxy);
        if let Some(found) = found.filter(|found| found.clock.is_silent()) {
            self.end_instances_of(shared, shared.latest, found.reader, proxy, found.guid);
        }
    }

    fn end_instances_of(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: ReaderId,
        proxy: WriterProxyId,
        guid: Guid,
    ) {
        let reader = &mut self.table[index];
        if let Some(cache) = &mut reader.cache {
            cache.count_as_shown(self.shown);
            cache.writer_not_alive(proxy, guid, now);
            shared.counters.instance_ends_unseen += cache.take_unseen();
            if cache.available() > 0 {
                reader.status |= ReaderStatus::DATA_AVAILABLE;
            }
        }
    }
}

/// State of a matched writer's timed policies.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WriterLiveness {
    /// True if its samples are checked against policies on arrival.
    pub(crate) is_watched: bool,
    pub(crate) lifespan: Option<Duration>,
    /// Minimum age of its samples with a LIFESPAN on arrival.
    pub(crate) least_age: LeastAge,
    pub(crate) lease: Option<Lease>,
    /// OWNERSHIP_STRENGTH.
    pub(crate) strength: i32,
}

impl WriterLiveness {
    pub(crate) fn of(reader: &Reader, offered: &QosPolicies, now: Instant) -> Self {
        let kind = offered.liveliness.kind;
        let lease = period(offered.liveliness.lease);
        let lease = lease.map(|duration| Lease::new(kind, duration, now));
        let lifespan = offered.lifespan.to_core();
        Self {
            is_watched: reader.judges() || lifespan.is_some() || lease.is_some(),
            lifespan,
            least_age: LeastAge::default(),
            lease,
            strength: offered.ownership_strength,
        }
    }

    /// Applies the policies of a later announcement.
    pub(crate) fn followed_by(self, next: Self) -> Self {
        let lease = next.lease.map(|next| match self.lease {
            Some(lease) => lease.changed_to(next),
            None => next,
        });
        Self {
            lease,
            least_age: self.least_age,
            ..next
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.lease.is_none_or(|lease| lease.is_alive)
    }

    /// Returns whether the writer is not alive and has not been heard since.
    pub(crate) fn is_silent(&self) -> bool {
        self.lease.is_some_and(|lease| lease.is_silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::new(milliseconds * 1_000_000)
    }

    #[test]
    fn a_lease_runs_out_after_a_grace_and_what_is_heard_revives_it() {
        let mut lease = Lease {
            kind: LivelinessKind::Automatic,
            duration: Duration::from_millis(80),
            heard: at(0),
            missed: None,
            is_alive: true,
            is_silent: false,
        };
        assert_eq!(lease.look(at(79)), (None, Some(at(80))));
        assert_eq!(lease.look(at(80)), (None, Some(at(90))));
        assert_eq!(lease.look(at(90)), (Some(LivelinessTransition::Lost), None));
        assert_eq!(lease.look(at(200)), (None, None));
        assert!(lease.is_silent);
        lease.hear(at(200));
        assert!(!lease.is_silent && !lease.is_alive, "it is looked at first");
        assert_eq!(
            lease.look(at(200)),
            (Some(LivelinessTransition::Back), Some(at(280)))
        );
        // A check that comes late, after a stop of the process, waits once more.
        assert_eq!(lease.look(at(1_000)), (None, Some(at(1_010))));
        assert_eq!(lease.look(at(2_000)), (None, Some(at(2_010))));
        lease.hear(at(1_990));
        assert_eq!(lease.look(at(2_010)), (None, Some(at(2_070))));
    }

    #[test]
    fn liveliness_is_lost_once_until_it_is_asserted_again() {
        let kind = LivelinessKind::ManualByTopic;
        let mut signal = LivelinessAssertion::new(kind, Duration::from_millis(10), at(0));
        assert!(!signal.is_lost_now(at(9), Some(at(9))));
        assert!(signal.is_lost_now(at(10), Some(at(9))), "not for all");
        assert!(!signal.is_lost_now(at(50), None));
        signal.assert(at(60));
        assert!(signal.is_lost_now(at(70), None));
        let lost = signal.take().unwrap();
        assert_eq!((lost.total, lost.change), (2, 2));
        assert_eq!(signal.take(), None);
    }
}
