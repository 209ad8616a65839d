//! HEARTBEATs to all readers of a writer, their timer, and the release of acknowledged changes (RTPS 2.5 §8.4.9.2).

use core::time::Duration;

use isolane_wire::{rtps::Heartbeat, time::Instant};

use crate::{
    engine::{BUILTIN_ENDPOINTS, Engine, Subject},
    ids::WriterId,
    limits::PARTICIPANTS_PER_HEARTBEAT_PERIOD,
    work::{Destinations, Work, WorkKind},
    writer::{Writer, WriterStatus},
};

impl Engine {
    pub(super) fn send_heartbeat(&mut self, index: u16, buffer: &mut [u8]) -> Option<Work> {
        let header = self.header;
        let group = self.heartbeat_group(index);
        let writer = self.writers.get_mut(index)?;
        writer.heartbeat_filed = false;
        let clock = writer.clock.as_mut();
        let liveliness = clock.is_some_and(|clock| core::mem::take(&mut clock.asserts));
        if writer.destinations.is_empty() || !liveliness && !writer.has_reliable_reader() {
            // The reliable readers it was filed for were removed.
            return None;
        }
        let heartbeat = Heartbeat {
            liveliness,
            group,
            // A best-effort writer needs no response.
            ..writer.heartbeat(!writer.reliable)
        };
        let level = writer.level;
        let bytes = self.finish(
            buffer,
            |message| message.heartbeat(&heartbeat).map(|_| ()),
            header,
        );
        let to = Destinations::Writer(WriterId(index));
        Some(Work {
            kind: WorkKind::Heartbeat,
            level,
            bytes,
            to,
        })
    }

    pub(crate) fn file_heartbeat(&mut self, writer_index: u16) {
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        if !writer.reliable {
            return;
        }
        let priority = writer.protocol_priority();
        if !core::mem::replace(&mut writer.heartbeat_filed, true) {
            self.file(priority, WorkKind::Heartbeat, writer_index);
        }
        for at in 0.. {
            let writer = self.writers.get(writer_index);
            let Some(&index) = writer.and_then(|writer| writer.proxies.get(at)) else {
                return;
            };
            let proxy = self.reader_proxies.get(index);
            if proxy.is_some_and(|proxy| !proxy.is_reached && !proxy.is_silent()) {
                self.file_repair(index);
            }
        }
    }

    /// Returns whether a reliable reader has not acknowledged all sent samples, or is still awaited to answer for the
    /// first time.
    fn owes_heartbeat(&self, writer: &Writer) -> bool {
        writer.reliable
            && writer.has_reliable_reader()
            && writer.proxies.iter().any(|&proxy| {
                self.reader_proxies.get(proxy).is_some_and(|proxy| {
                    proxy.reliable
                        && !proxy.is_silent()
                        && (proxy.is_awaited() || proxy.done_to() < writer.next_unsent)
                })
            })
    }

    /// Starts the heartbeat timer if a HEARTBEAT is owed. A running timer stays as it is; on expiry it checks again.
    pub(crate) fn arm_heartbeat(&mut self, now: Instant, writer_index: u16) {
        let timer = Subject::heartbeat(writer_index, &self.config.limits);
        if self.timers.is_armed(timer) {
            return;
        }
        let shortest_ns = self.shortest_heartbeat_period_ns(writer_index);
        let writer = self.writers.get(writer_index);
        if let Some(writer) = writer.filter(|writer| self.owes_heartbeat(writer)) {
            let period_ns = writer.heartbeat_period_ns.max(shortest_ns);
            self.timers
                .arm(timer, now + Duration::from_nanos(period_ns));
        }
    }

    /// Minimum time between two HEARTBEATs of a writer that await a response. For the built-in writers it grows with
    /// the number of participants ([`PARTICIPANTS_PER_HEARTBEAT_PERIOD`]).
    fn shortest_heartbeat_period_ns(&self, writer_index: u16) -> u64 {
        let timing = &self.config.timing;
        let period_ns = timing.heartbeat_period.as_nanos() as u64;
        if writer_index >= BUILTIN_ENDPOINTS {
            return period_ns;
        }
        let periods = self.participants.len() / PARTICIPANTS_PER_HEARTBEAT_PERIOD;
        let longest_ns = timing.heartbeat_period_max.as_nanos() as u64;
        let spread_ns = period_ns.saturating_mul(periods as u64).min(longest_ns);
        period_ns.max(spread_ns)
    }

    /// Stops the heartbeat timer when everything is acknowledged, to avoid needless wakeups.
    fn rest_heartbeat(&mut self, writer_index: u16) {
        let timer = Subject::heartbeat(writer_index, &self.config.limits);
        let writer = self.writers.get(writer_index);
        if self.timers.is_armed(timer) && writer.is_some_and(|writer| !self.owes_heartbeat(writer))
        {
            self.timers.disarm(timer);
        }
    }

    /// Resets the heartbeat period to the minimum after a sign of life of a reader. A dead reader that has let the
    /// period grow must not delay repairs for the others.
    pub(crate) fn hasten_heartbeat(&mut self, now: Instant, writer_index: u16) {
        let period_ns = self.shortest_heartbeat_period_ns(writer_index);
        let timer = Subject::heartbeat(writer_index, &self.config.limits);
        if let Some(writer) = self.writers.get_mut(writer_index) {
            writer.heartbeat_period_ns = period_ns;
            if self.timers.is_armed(timer) {
                let due = now + Duration::from_nanos(period_ns);
                self.timers.bring_forward(timer, due);
            }
        }
    }

    /// Handles the heartbeat timer: files a HEARTBEAT and doubles the period.
    pub(crate) fn heartbeat_due(&mut self, now: Instant, writer_index: u16) {
        let max_ns = self.config.timing.heartbeat_period_max.as_nanos() as u64;
        let writer = self.writers.get(writer_index);
        if writer.is_none_or(|writer| !self.owes_heartbeat(writer)) {
            return;
        }
        let still_waits = writer.is_some_and(|writer| writer.heartbeat_filed);
        self.file_heartbeat(writer_index);
        if !still_waits {
            self.count_unanswered(writer_index);
        }
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        writer.heartbeat_period_ns = writer.heartbeat_period_ns.saturating_mul(2).min(max_ns);
        self.arm_heartbeat(now, writer_index);
    }

    /// Counts another HEARTBEAT for readers that have never answered. Readers that have used up their number are no
    /// longer waited for.
    fn count_unanswered(&mut self, writer_index: u16) {
        let Some(writer) = self.writers.get(writer_index) else {
            return;
        };
        let mut gone_silent = 0;
        let mut last = None;
        for &index in &writer.proxies {
            if let Some(proxy) = self.reader_proxies.get_mut(index)
                && proxy.reliable
                && proxy.is_awaited()
            {
                proxy.unanswered += 1;
                if proxy.is_silent() {
                    gone_silent += 1;
                    last = Some((WriterId(writer_index), proxy.guid));
                }
            }
        }
        if gone_silent > 0 {
            self.counters.readers_silent += gone_silent;
            self.last_silent = last;
            self.refresh_destinations(writer_index);
            self.refresh_lowest(writer_index);
            self.release_acknowledged(writer_index);
        }
    }

    /// Recomputes the lowest sequence number acknowledged by all reliable readers.
    pub(crate) fn refresh_lowest(&mut self, writer_index: u16) {
        if let Some(writer) = self.writers.get_mut(writer_index) {
            writer.lowest_acknowledged = writer.lowest_of(&self.reader_proxies);
        }
    }

    /// Removes changes that all reliable readers have acknowledged and no late joiner will request.
    pub(crate) fn release_acknowledged(&mut self, writer_index: u16) {
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        debug_assert_eq!(
            writer.lowest_acknowledged,
            writer.lowest_of(&self.reader_proxies)
        );
        let lowest = writer.lowest_unacknowledged();
        let all_acknowledged = lowest > writer.last;
        let mut removed = 0;
        if (writer.volatile || !writer.reliable)
            && let Some(history) = &mut writer.history
        {
            removed = history.remove_below(lowest);
        }
        if all_acknowledged {
            writer.status |= WriterStatus::ALL_ACKNOWLEDGED;
        }
        if writer.wants_room && (removed > 0 || writer.may_replace(lowest)) {
            writer.wants_room = false;
            writer.status |= WriterStatus::ROOM;
        }
        if !writer.status.is_empty() {
            self.note_writer(writer_index);
        }
        if all_acknowledged {
            self.rest_heartbeat(writer_index);
        }
    }
}
