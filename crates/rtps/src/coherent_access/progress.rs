//! Progress of a reader in the sets and the group of one writer, and admission of the next sample in order.

use isolane_wire::{
    builtin_data::EndpointData,
    guid::EntityId,
    message::{CoherentSetInfo, GroupDigest},
    sequence::SequenceNumber,
};

use crate::{
    coherent_access::{Access, heartbeat_request::HeartbeatRequest},
    content_filter::{ContentFilter, drop_filtered},
    counters::ReaderLedger,
    reader::{
        Reader, WriterProxy,
        cache::{Cache, Place, Refused},
        read_take::SampleInfo,
    },
    slab::WriterProxyId,
};

/// Set with at least one received sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenSet {
    /// Number of the set's first sample, in the numbering of `Place`.
    pub(crate) set: SequenceNumber,
    /// No sample of the set is missing so far.
    pub(crate) is_whole: bool,
}

/// Set that has ended at one writer, and was neither made available nor dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedSet {
    pub(crate) set: SequenceNumber,
    /// Number of the end.
    pub(crate) end: SequenceNumber,
    /// Digest of the group's writers at the end, if given.
    pub(super) writers: Option<GroupDigest>,
    pub(crate) is_whole: bool,
}

/// Numbering of a writer's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbering {
    /// Numbered in its group.
    Group,
    /// Numbered by the writer alone, although it announced a group, which it has still to leave.
    Stranger,
    /// Numbered by the writer alone.
    Alone,
}

/// Progress of a reader with one writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// Group of the writer.
    pub(crate) publisher: EntityId,
    numbering: Numbering,
    /// All that the writer wrote up to this number was processed.
    pub(crate) horizon: SequenceNumber,
    pub(crate) open: Option<OpenSet>,
    pub(crate) ended: Option<EndedSet>,
    /// If a sample is missing, the highest number that it can have.
    hole: Option<SequenceNumber>,
    pub(super) question: HeartbeatRequest,
    /// The next ACKNACK requests a HEARTBEAT.
    pub(crate) asks: bool,
    /// The writer is deleted or dead.
    pub(super) is_deleted: bool,
    /// Another writer of the ring was deleted. Sets received later may have ended before the deletion.
    pub(super) is_doubtful: bool,
    pub(super) next_peer: WriterProxyId,
    /// Last pass over all rings that has visited this proxy.
    pub(super) looked: u64,
}

impl Progress {
    pub(crate) const NONE: Self = Self {
        publisher: EntityId::UNKNOWN,
        numbering: Numbering::Alone,
        horizon: SequenceNumber(0),
        open: None,
        ended: None,
        hole: None,
        question: HeartbeatRequest::NONE,
        asks: false,
        is_deleted: false,
        is_doubtful: false,
        next_peer: WriterProxyId(u16::MAX),
        looked: 0,
    };

    /// Creates the progress with a newly matched writer.
    pub(crate) fn with(reader: &Reader, writer: &EndpointData) -> Self {
        let access = reader.cache.as_ref().and_then(Cache::access);
        let is_group = access.is_some_and(|access| access.is_group);
        let group = writer.group.filter(|_| is_group);
        Self {
            publisher: group.unwrap_or(writer.guid.entity),
            numbering: match is_group {
                true => Numbering::Group,
                false => Numbering::Alone,
            },
            ..Self::NONE
        }
    }

    /// Returns whether the writer's samples are numbered in its group, as far as known.
    #[inline]
    pub(crate) fn is_numbered(&self) -> bool {
        self.numbering == Numbering::Group
    }

    /// Returns whether the writer must leave its group.
    pub(super) fn is_undescribed(&self) -> bool {
        self.numbering == Numbering::Stranger
    }

    /// Notes that the writer does not number its samples in its group.
    pub(super) fn note_stranger(&mut self) {
        self.numbering = Numbering::Stranger;
    }

    /// Makes the writer a group by itself, processed up to `horizon`.
    pub(super) fn number_alone(&mut self, writer: EntityId, horizon: SequenceNumber) {
        *self = Self {
            publisher: writer,
            numbering: Numbering::Alone,
            horizon,
            open: None,
            ended: None,
            hole: None,
            question: HeartbeatRequest::NONE,
            ..*self
        };
    }

    /// Advances the horizon to `number`.
    pub(crate) fn reach(&mut self, number: SequenceNumber) {
        self.horizon = self.horizon.max(number);
    }

    /// Notes the group progress of the writer, all of whose sent samples were processed.
    pub(crate) fn hear(&mut self, number: SequenceNumber) {
        self.reach(number);
        if self.hole.is_some() {
            self.hole = self.hole.map(|hole| hole.min(number));
        }
    }

    /// Notes a sample that will never arrive.
    pub(crate) fn lose(&mut self) {
        self.hole = Some(SequenceNumber(i64::MAX));
        if let Some(open) = &mut self.open {
            open.is_whole = false;
        }
    }

    /// Marks the writer's part in a set as incomplete.
    pub(super) fn mark_incomplete(&mut self, set: SequenceNumber) {
        if let Some(ended) = self.ended.as_mut().filter(|ended| ended.set == set) {
            ended.is_whole = false;
        }
        if let Some(open) = self.open.as_mut().filter(|open| open.set == set) {
            open.is_whole = false;
        }
    }

    /// Marks all sets that the writer has a part in as incomplete.
    pub(super) fn mark_all_incomplete(&mut self) {
        for set in [self.open.map(|it| it.set), self.ended.map(|it| it.set)] {
            set.into_iter().for_each(|set| self.mark_incomplete(set));
        }
    }

    /// Processes the end of a set.
    fn end(&mut self, place: &Place) {
        self.reach(place.number);
        let open = self.open.take();
        let is_whole = match (open, place.set) {
            (Some(open), set) => open.is_whole && set.is_none_or(|set| set == open.set),
            // The writer had no part in the set, unless its part is missing.
            (None, Some(set)) => self.hole.is_none_or(|hole| hole < set),
            (None, None) => return,
        };
        let set = place.set.or(open.map(|open| open.set));
        self.ended = set.map(|set| EndedSet {
            set,
            end: place.number,
            writers: place.writers,
            is_whole,
        });
        self.hole = None;
    }
}

/// Result of admitting the next sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Becomes available.
    Show,
    /// Is held until its set has ended.
    Hold,
    /// Is finished and counted.
    Done,
}

/// Notes the place of a sample about to be stored at a reader.
pub(crate) fn note_place(
    proxy: &WriterProxy,
    reader: &mut Reader,
    sequence: SequenceNumber,
    mark: &CoherentSetInfo,
    is_end: bool,
) {
    let Some(cache) = &mut reader.cache else {
        return;
    };
    let Some(access) = cache.access() else { return };
    cache.note_place(place_of(proxy, access, sequence, mark, is_end));
}

fn place_of(
    proxy: &WriterProxy,
    access: Access,
    sequence: SequenceNumber,
    mark: &CoherentSetInfo,
    is_end: bool,
) -> Place {
    let by_itself = Place {
        publisher: proxy.guid,
        number: sequence,
        set: mark.set().filter(|_| access.is_coherent),
        first: mark.set(),
        is_ordered: false,
        is_end,
        writers: mark.writers,
        shown: 0,
    };
    let group_set = mark.group_coherent_set.filter(|set| set.get() > 0);
    // A set without a group sequence number is a set of the writer alone.
    let is_alone = !proxy.progress.is_numbered() || (mark.set().is_some() && group_set.is_none());
    let number = mark.group_sequence.filter(|it| it.get() > 0 && !is_alone);
    number.map_or(by_itself, |number| Place {
        publisher: proxy.numbered_by(),
        number,
        set: group_set.filter(|_| access.is_coherent),
        is_ordered: access.is_ordered,
        ..by_itself
    })
}

/// Stores a sample, or the end of a set, until it is admitted.
pub(crate) fn keep_in_turn(
    index: WriterProxyId,
    proxy: &mut WriterProxy,
    reader: &mut Reader,
    info: SampleInfo,
    payload: &[u8],
) -> Result<(), Refused> {
    let sequence = info.sequence;
    let writers = reader.proxies.len();
    let Some(cache) = &mut reader.cache else {
        return Ok(());
    };
    let is_next = sequence == proxy.expected;
    let place = cache.next_place().filter(|_| is_next);
    if let Some(place) = place.filter(|place| place.publisher == proxy.numbered_by()) {
        proxy.progress.reach(SequenceNumber(place.number.get() - 1));
    }
    let displaced = cache.wait_within_share(writers, is_next, index, info, payload)?;
    if let Some(displaced) = displaced {
        proxy.unmark(displaced);
        reader.ledger.deferred += 1;
    }
    proxy.mark(sequence);
    Ok(())
}

/// Admits the next expected sample of a writer, which waits in the cache; `index` is the proxy's.
///
/// # Errors
/// The sample must wait: other samples come first, or there is no room.
pub(crate) fn admit(
    index: WriterProxyId,
    proxy: &mut WriterProxy,
    cache: &mut Cache,
    ledger: &mut ReaderLedger,
    filter: Option<&ContentFilter>,
) -> Result<Admission, Refused> {
    let Some(place) = place_in_turn(index, proxy, cache) else {
        return Err(Refused::Order);
    };
    let progress = &mut proxy.progress;
    progress.reach(SequenceNumber(place.number.get() - 1));
    if place.is_end {
        progress.end(&place);
        cache.forget_first_waiting(index);
        ledger.set_ends += 1;
        return Ok(Admission::Done);
    }
    if let Some(open) = progress.open.filter(|open| place.set != Some(open.set)) {
        // The next sample is of another set, so the open set has ended, although no message said so.
        progress.open = None;
        progress.ended = Some(EndedSet {
            set: open.set,
            end: SequenceNumber(place.number.get() - 1),
            writers: None,
            is_whole: open.is_whole,
        });
        return Err(Refused::Order);
    }
    let Some(set) = place.set else {
        let has_turn = !place.is_ordered || place.number <= cache.permitted();
        if has_turn {
            progress.hole = None;
        }
        return has_turn.then_some(Admission::Show).ok_or(Refused::Order);
    };
    let is_first = place.first == Some(proxy.expected);
    let open = progress.open.get_or_insert(OpenSet {
        set,
        is_whole: is_first,
    });
    progress.hole = None;
    // A filtered sample takes no slot and replaces no sample.
    if open.is_whole && filter.is_some_and(|filter| drop_filtered(filter, cache, index)) {
        progress.reach(place.number);
        ledger.content_filtered += 1;
        return Ok(Admission::Done);
    }
    if open.is_whole && !cache.makes_set_room(index) {
        return Err(Refused::Sets);
    }
    if !open.is_whole {
        progress.reach(place.number);
        ledger.incomplete += 1 + cache.drop_sets_of(index);
        cache.forget_first_waiting(index);
        return Ok(Admission::Done);
    }
    Ok(Admission::Hold)
}

/// Returns the place of the next sample; `None` if it must wait.
fn place_in_turn(
    index: WriterProxyId,
    proxy: &mut WriterProxy,
    cache: &mut Cache,
) -> Option<Place> {
    let place = cache.first_waiting_place(index)?;
    if proxy.progress.ended.is_some() {
        return None;
    }
    if place.publisher == proxy.numbered_by() {
        return Some(place);
    }
    if proxy.progress.numbering != Numbering::Alone {
        proxy.progress.note_stranger();
        return None;
    }
    // The sample arrived before the writer became a group by itself.
    let place = place.alone(proxy.guid.entity, proxy.expected, cache.access()?);
    cache.move_first_waiting(index, place);
    Some(place)
}
