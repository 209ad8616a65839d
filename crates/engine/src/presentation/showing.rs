//! When samples that belong together, or in an order, are shown.
//!
//! What decides is how far the *peers* are: the writers of one publisher that readers of one subscriber are matched
//! with; for a reader without GROUP access each writer by itself. A set is shown when it has ended at all of them
//! with nothing missing, and dropped when all are known to be past its end and one of them had no such end. A
//! sample that has an order is shown when all others are known to have nothing before it.
//!
//! Who has not said how far it is, is asked for a HEARTBEAT, and asked again by the reader's clock.

use isolane_wire::{guid::Guid, sequence::SequenceNumber, time::Instant};

use super::progress::{EndedSet, OpenSet};
use crate::{
    cache::{Cache, Refused},
    engine::{Engine, Subject},
    limits::ASK_AGAIN,
    reader::ReaderStatus,
};

/// Readers and writers that see and are seen together.
#[derive(Debug, Clone, Copy)]
struct Circle {
    reader: u16,
    subscriber: Option<u16>,
    publisher: Guid,
    is_ordered: bool,
}

/// What is known of the peers together.
#[derive(Debug, Clone, Copy)]
struct Survey {
    /// Every peer has had its turn up to here, or has nothing up to here.
    known: SequenceNumber,
    /// The set that ends first of those that have ended somewhere.
    ended: Option<EndedSet>,
    /// The sample that comes first of those that wait for their turn alone, and its proxy.
    candidate: Option<(SequenceNumber, u16)>,
}

impl Engine {
    /// Shows what can be shown since something has come of a writer; `index` is its proxy's.
    #[inline(never)]
    pub(crate) fn present(&mut self, index: u16) {
        if let Some(circle) = self.circle_of(index) {
            self.present_all(&circle, false);
        }
    }

    /// With `is_late` others have been waited for already.
    fn present_all(&mut self, circle: &Circle, is_late: bool) {
        let subscriber = circle.subscriber.and_then(|it| self.subscribers.get(it));
        if subscriber.is_some_and(|subscriber| subscriber.is_accessed) {
            return;
        }
        while self.present_next(circle, is_late) {}
    }

    fn circle_of(&self, index: u16) -> Option<Circle> {
        let proxy = self.writer_proxies.get(index)?;
        let reader = self.readers.get(proxy.reader)?;
        let access = reader.cache.as_ref()?.access()?;
        Some(Circle {
            reader: proxy.reader,
            subscriber: reader.subscriber.filter(|_| access.is_group),
            publisher: Guid {
                prefix: proxy.guid.prefix,
                entity: proxy.progress.publisher,
            },
            is_ordered: access.is_ordered,
        })
    }

    /// The `nth` reader that sees together with others.
    fn reader_of(&self, circle: &Circle, nth: usize) -> Option<u16> {
        match circle.subscriber {
            Some(subscriber) => self.subscribers.get(subscriber)?.readers.get(nth).copied(),
            None => (nth == 0).then_some(circle.reader),
        }
    }

    /// The proxies of the peers.
    fn peers<'a>(&'a self, circle: &'a Circle) -> impl Iterator<Item = u16> + 'a {
        let readers = (0..).map_while(move |nth| self.reader_of(circle, nth));
        let proxies = readers.flat_map(move |reader| {
            let reader = self.readers.get(reader);
            reader.map(|reader| &reader.proxies[..]).unwrap_or_default()
        });
        proxies.copied().filter(move |&proxy| {
            self.writer_proxies.get(proxy).is_some_and(|proxy| {
                proxy.guid.prefix == circle.publisher.prefix
                    && proxy.progress.publisher == circle.publisher.entity
            })
        })
    }

    fn peer_at(&self, circle: &Circle, nth: usize) -> Option<u16> {
        self.peers(circle).nth(nth)
    }

    pub(super) fn cache_of(&self, reader: u16) -> Option<&Cache> {
        self.readers.get(reader)?.cache.as_ref()
    }

    /// The number of the sample of a peer that would be next, and waits.
    fn next_number(&self, index: u16) -> Option<SequenceNumber> {
        let proxy = self.writer_proxies.get(index)?;
        let cache = self.cache_of(proxy.reader)?;
        let is_next = cache.first_waiting(index) == Some(proxy.expected);
        let place = cache.first_waiting_place(index).filter(|_| is_next);
        place.map(|place| place.number)
    }

    /// Up to which number a peer is known to have nothing that has not had its turn.
    fn known(&self, index: u16) -> SequenceNumber {
        let proxy = self.writer_proxies.get(index);
        let horizon = proxy.map_or(SequenceNumber(0), |proxy| proxy.progress.horizon);
        let next = self.next_number(index);
        next.map_or(horizon, |next| horizon.max(SequenceNumber(next.get() - 1)))
    }

    fn survey(&self, circle: &Circle) -> Survey {
        let mut survey = Survey {
            known: SequenceNumber(i64::MAX),
            ended: None,
            candidate: None,
        };
        for peer in self.peers(circle) {
            survey.known = survey.known.min(self.known(peer));
            let progress = self.writer_proxies.get(peer).map(|proxy| proxy.progress);
            if let Some(ended) = progress.and_then(|progress| progress.ended) {
                let first = survey.ended.filter(|first| first.end <= ended.end);
                survey.ended = first.or(Some(ended));
            } else if let Some(next) = self.next_number(peer) {
                let first = survey.candidate.filter(|&(first, _)| first <= next);
                survey.candidate = first.or(Some((next, peer)));
            }
        }
        survey
    }

    /// Shows the next set or sample that can be shown; false: there is none.
    fn present_next(&mut self, circle: &Circle, is_late: bool) -> bool {
        let survey = self.survey(circle);
        if let Some(ended) = survey.ended {
            if survey.known >= ended.end {
                return self.settle(circle, ended);
            }
            // The other ends are on their way, and repaired if they are lost.
            self.wait_for(circle, ended.end, is_late);
        }
        let Some((number, peer)) = survey.candidate.filter(|_| circle.is_ordered) else {
            return false;
        };
        if survey.ended.is_some_and(|ended| ended.set < number) {
            return false;
        }
        // No other sample has this number: who is past the one before has nothing that comes first. Another reader of
        // the same writer has the same sample.
        let others = self.peers(circle).filter(|&other| other != peer);
        if others
            .map(|other| self.known(other))
            .any(|known| known.next() < number)
        {
            self.wait_for(circle, number, true);
            return false;
        }
        self.show_next(peer, number)
    }

    /// Shows the sample of a peer whose turn is next; false: there is no room for it.
    fn show_next(&mut self, index: u16, number: SequenceNumber) -> bool {
        let Some(proxy) = self.writer_proxies.get(index) else {
            return false;
        };
        let (before, reader) = (proxy.expected, proxy.reader);
        self.permit(reader, number);
        self.advance_alone(index, SequenceNumber(0));
        self.permit(reader, SequenceNumber(0));
        let after = self.writer_proxies.get(index).map(|proxy| proxy.expected);
        after.is_some_and(|after| after > before)
    }

    fn permit(&mut self, reader: u16, number: SequenceNumber) {
        self.shown += 1;
        let (shown, reader) = (self.shown, self.readers.get_mut(reader));
        if let Some(cache) = reader.and_then(|reader| reader.cache.as_mut()) {
            cache.permit(number, shown);
        }
    }

    /// All peers are past the end of a set: it is shown, or dropped. False: its readers have no room for it now.
    fn settle(&mut self, circle: &Circle, ended: EndedSet) -> bool {
        if self.is_whole_everywhere(circle, ended.set) {
            let mut has_room = true;
            for nth in 0.. {
                let Some(index) = self.reader_of(circle, nth) else {
                    break;
                };
                has_room &= self.makes_room_for(index, circle.publisher, ended.set);
            }
            if !has_room {
                return false;
            }
            self.show_set(circle, ended.set);
        }
        self.drop_sets_to(circle, ended.set);
        for nth in 0.. {
            let Some(peer) = self.peer_at(circle, nth) else {
                break;
            };
            self.advance_alone(peer, SequenceNumber(0));
        }
        true
    }

    fn is_whole_everywhere(&self, circle: &Circle, set: SequenceNumber) -> bool {
        self.peers(circle).all(|peer| {
            let proxy = self.writer_proxies.get(peer);
            let ended = proxy.and_then(|proxy| proxy.progress.ended);
            ended.is_some_and(|ended| ended.set == set && ended.is_whole)
        })
    }

    /// Whether a reader has room for a set; if not, it goes on when the user has taken something.
    fn makes_room_for(&mut self, index: u16, publisher: Guid, set: SequenceNumber) -> bool {
        let Some(reader) = self.readers.get_mut(index) else {
            return true;
        };
        let cache = reader.cache.as_ref();
        let has_room = cache.is_none_or(|cache| cache.has_room_for_set(publisher, set));
        if !has_room {
            reader.refuse(Refused::Full);
        }
        has_room
    }

    fn show_set(&mut self, circle: &Circle, set: SequenceNumber) {
        self.shown += 1;
        let at = self.shown;
        for nth in 0.. {
            let Some(index) = self.reader_of(circle, nth) else {
                return;
            };
            let Some(reader) = self.readers.get_mut(index) else {
                continue;
            };
            let shown = match &mut reader.cache {
                Some(cache) => cache.show_set(circle.publisher, set, at),
                None => 0,
            };
            if shown > 0 {
                reader.status |= ReaderStatus::DATA_AVAILABLE;
                self.note_reader(index);
                self.wind_reader(index);
            }
        }
    }

    /// Nothing is held any more of a set, nor of any before it.
    fn drop_sets_to(&mut self, circle: &Circle, set: SequenceNumber) {
        for nth in 0.. {
            let Some(index) = self.reader_of(circle, nth) else {
                break;
            };
            if let Some(reader) = self.readers.get_mut(index)
                && let Some(cache) = &mut reader.cache
            {
                reader.ledger.incomplete += cache.drop_sets_to(circle.publisher, set);
            }
        }
        self.for_each_peer(circle, |ended, open| {
            ended.take_if(|ended| ended.set <= set);
            if let Some(open) = open.as_mut().filter(|open| open.set <= set) {
                open.is_whole = false;
            }
        });
    }

    fn for_each_peer(
        &mut self,
        circle: &Circle,
        change: impl Fn(&mut Option<EndedSet>, &mut Option<OpenSet>),
    ) {
        for nth in 0.. {
            let Some(peer) = self.peer_at(circle, nth) else {
                return;
            };
            if let Some(proxy) = self.writer_proxies.get_mut(peer) {
                change(&mut proxy.progress.ended, &mut proxy.progress.open);
            }
        }
    }

    /// Peers are not known to be past a number. They are asked how far they are, each once: now, or when nothing
    /// has come of them for a while.
    fn wait_for(&mut self, circle: &Circle, number: SequenceNumber, asks_now: bool) {
        if asks_now {
            self.ask(circle, number);
        }
        let again = self.latest + ASK_AGAIN;
        let Some(reader) = self.readers.get_mut(circle.reader) else {
            return;
        };
        if reader.ask_at.is_none() {
            reader.ask_at = Some(again);
            let timer = Subject::reader_clock(circle.reader, &self.config.limits);
            self.timers.bring_forward(timer, again);
        }
    }

    fn ask(&mut self, circle: &Circle, number: SequenceNumber) {
        for nth in 0.. {
            let Some(peer) = self.peer_at(circle, nth) else {
                break;
            };
            if self.known(peer).next() >= number {
                continue;
            }
            let Some(proxy) = self.writer_proxies.get_mut(peer) else {
                continue;
            };
            if proxy.progress.asked < number {
                (proxy.progress.asked, proxy.progress.asks) = (number, true);
                self.file_acknack(peer);
            }
        }
    }

    /// Asks again where a reader waits still.
    pub(crate) fn ask_writers_again(&mut self, now: Instant, index: u16) {
        let Some(reader) = self.readers.get_mut(index) else {
            return;
        };
        if reader.ask_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        for nth in 0.. {
            let reader = self.readers.get(index);
            let Some(&proxy) = reader.and_then(|reader| reader.proxies.get(nth)) else {
                return;
            };
            if let Some(circle) = self.circle_of(proxy) {
                for peer in 0.. {
                    let Some(peer) = self.peer_at(&circle, peer) else {
                        break;
                    };
                    if let Some(proxy) = self.writer_proxies.get_mut(peer) {
                        proxy.progress.asked = SequenceNumber(0);
                    }
                }
                self.present_all(&circle, true);
            }
        }
    }

    /// A writer goes from a reader: a set that has ended at all is shown now, room or not; one that has not is
    /// dropped.
    pub(crate) fn part_sets(&mut self, index: u16) {
        let Some(circle) = self.circle_of(index) else {
            return;
        };
        let progress = self.writer_proxies.get(index).map(|proxy| proxy.progress);
        let (ended, open) = progress.map_or((None, None), |it| (it.ended, it.open));
        if let Some(ended) = ended
            && self.is_whole_everywhere(&circle, ended.set)
        {
            self.show_set(&circle, ended.set);
            self.drop_sets_to(&circle, ended.set);
        }
        let torn = open.map(|open| open.set).max(ended.map(|ended| ended.set));
        if let Some(torn) = torn {
            self.for_each_peer(&circle, |ended, open| {
                if let Some(ended) = ended.as_mut().filter(|ended| ended.set == torn) {
                    ended.is_whole = false;
                }
                if let Some(open) = open.as_mut().filter(|open| open.set == torn) {
                    open.is_whole = false;
                }
            });
        }
        let reader = self.readers.get_mut(circle.reader);
        if let Some(reader) = reader
            && let Some(cache) = &mut reader.cache
        {
            reader.ledger.incomplete += cache.drop_sets_of(index);
        }
    }

    /// What others of a group wait for no longer: a writer has gone from a reader, one of whose other proxies
    /// this was.
    pub(crate) fn present_others(&mut self, reader: u16) {
        for nth in 0.. {
            let found = self.readers.get(reader);
            let Some(&proxy) = found.and_then(|reader| reader.proxies.get(nth)) else {
                break;
            };
            self.present(proxy);
        }
        let subscriber = self.readers.get(reader).and_then(|it| it.subscriber);
        let Some(subscriber) = subscriber else { return };
        for nth in 0.. {
            let found = self.subscribers.get(subscriber);
            let Some(&other) = found.and_then(|it| it.readers.get(nth)) else {
                return;
            };
            let found = self.readers.get(other).filter(|_| other != reader);
            let count = found.map_or(0, |reader| reader.proxies.len());
            for at in 0..count {
                let found = self.readers.get(other);
                if let Some(&proxy) = found.and_then(|reader| reader.proxies.get(at)) {
                    self.present(proxy);
                }
            }
        }
    }
}
