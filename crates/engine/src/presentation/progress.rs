//! How far a reader is with one writer, in the sets and in the group that the writer's samples belong to; and what
//! becomes of a sample whose turn it is among those of its writer.

use isolane_wire::{
    discovery::EndpointData,
    guid::EntityId,
    rtps::{GroupDigest, SetMark},
    sequence::SequenceNumber,
};

use super::{Access, asking::Question};
use crate::{
    cache::{Cache, Place, Refused, SampleInfo},
    content_filter::{ContentFilter, drop_unwanted},
    reader::{Reader, ReaderLedger, WriterProxy},
};

/// A set of which a part has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenSet {
    /// The number of its first sample, as places are numbered.
    pub(crate) set: SequenceNumber,
    /// Nothing of it is missing so far.
    pub(crate) is_whole: bool,
}

/// A set that has ended at one writer, and is neither shown nor dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedSet {
    pub(crate) set: SequenceNumber,
    /// The number of its end.
    pub(crate) end: SequenceNumber,
    /// Which writers the group had then, if it says so.
    pub(super) writers: Option<GroupDigest>,
    pub(crate) is_whole: bool,
}

/// What a writer's samples are numbered among.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbering {
    /// Those of its group.
    Group,
    /// Not those of its group, as it has turned out: it is yet to leave it.
    Stranger,
    /// Its own.
    Alone,
}

/// How far a reader is with one writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// The group of the writer.
    pub(crate) publisher: EntityId,
    numbering: Numbering,
    /// All that the writer wrote up to this number has had its turn.
    pub(crate) horizon: SequenceNumber,
    pub(crate) open: Option<OpenSet>,
    pub(crate) ended: Option<EndedSet>,
    /// Something is missing, none of it beyond this number.
    hole: Option<SequenceNumber>,
    pub(super) question: Question,
    /// The next ACKNACK asks for a HEARTBEAT.
    pub(crate) asks: bool,
    /// Its writer is deleted, or dead.
    pub(super) is_deleted: bool,
    /// Another of its ring was: what comes of sets may be from before that.
    pub(super) is_doubtful: bool,
    /// The next proxy in its ring of those that are seen together.
    pub(super) next_peer: u16,
    /// The look at all rings that has come by this one last.
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
        question: Question::NONE,
        asks: false,
        is_deleted: false,
        is_doubtful: false,
        next_peer: u16::MAX,
        looked: 0,
    };

    /// With a writer that has just been met.
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

    /// Whether its samples are numbered among those of its group, for all that is known.
    #[inline]
    pub(crate) fn is_numbered(&self) -> bool {
        self.numbering == Numbering::Group
    }

    /// Whether it is to leave its group.
    pub(super) fn is_stranger(&self) -> bool {
        self.numbering == Numbering::Stranger
    }

    /// It turns out not to number its samples among those of its group.
    pub(super) fn note_stranger(&mut self) {
        self.numbering = Numbering::Stranger;
    }

    /// It is a group of its own, of which all up to this number has had its turn.
    pub(super) fn number_alone(&mut self, writer: EntityId, horizon: SequenceNumber) {
        *self = Self {
            publisher: writer,
            numbering: Numbering::Alone,
            horizon,
            open: None,
            ended: None,
            hole: None,
            question: Question::NONE,
            ..*self
        };
    }

    /// All up to this number has had its turn.
    pub(crate) fn reach(&mut self, number: SequenceNumber) {
        self.horizon = self.horizon.max(number);
    }

    /// The writer says that all it has sent, which has had its turn, was written up to this number.
    pub(crate) fn hear(&mut self, number: SequenceNumber) {
        self.reach(number);
        if self.hole.is_some() {
            self.hole = self.hole.map(|hole| hole.min(number));
        }
    }

    /// Something that the writer wrote will never come.
    pub(crate) fn lose(&mut self) {
        self.hole = Some(SequenceNumber(i64::MAX));
        if let Some(open) = &mut self.open {
            open.is_whole = false;
        }
    }

    /// Its part in a set counts for nothing.
    pub(super) fn tear(&mut self, set: SequenceNumber) {
        if let Some(ended) = self.ended.as_mut().filter(|ended| ended.set == set) {
            ended.is_whole = false;
        }
        if let Some(open) = self.open.as_mut().filter(|open| open.set == set) {
            open.is_whole = false;
        }
    }

    /// The same of all sets that it has a part in.
    pub(super) fn tear_all(&mut self) {
        for set in [self.open.map(|it| it.set), self.ended.map(|it| it.set)] {
            set.into_iter().for_each(|set| self.tear(set));
        }
    }

    /// The writer says that a set has ended.
    fn end(&mut self, place: &Place) {
        self.reach(place.number);
        let open = self.open.take();
        let is_whole = match (open, place.set) {
            (Some(open), set) => open.is_whole && set.is_none_or(|set| set == open.set),
            // It had no part in it, unless that is what is missing.
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

/// What becomes of the sample whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is shown.
    Show,
    /// It is held until its set has ended.
    Hold,
    /// It is done with, and counted.
    Done,
}

/// Takes note of where a sample belongs that is about to be stored at a reader.
pub(crate) fn note_place(
    proxy: &WriterProxy,
    reader: &mut Reader,
    sequence: SequenceNumber,
    mark: &SetMark,
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
    mark: &SetMark,
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
    // A set that says nothing of its group is none of that.
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

/// Stores a sample, or the end of a set, until its turn has come, which is to be looked at then.
pub(crate) fn keep_in_turn(
    index: u16,
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

/// What becomes of the sample that a writer's proxy expects, which waits in the cache; `index` is the proxy's.
///
/// # Errors
/// Its turn has not come: others are before it, or there is no room.
pub(crate) fn admit(
    index: u16,
    proxy: &mut WriterProxy,
    cache: &mut Cache,
    ledger: &mut ReaderLedger,
    filter: Option<&ContentFilter>,
) -> Result<Turn, Refused> {
    let Some(place) = place_in_turn(index, proxy, cache) else {
        return Err(Refused::Order);
    };
    let progress = &mut proxy.progress;
    progress.reach(SequenceNumber(place.number.get() - 1));
    if place.is_end {
        progress.end(&place);
        cache.forget_first_waiting(index);
        ledger.set_ends += 1;
        return Ok(Turn::Done);
    }
    if let Some(open) = progress.open.filter(|open| place.set != Some(open.set)) {
        // It has ended without a word.
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
        return has_turn.then_some(Turn::Show).ok_or(Refused::Order);
    };
    let is_first = place.first == Some(proxy.expected);
    let open = progress.open.get_or_insert(OpenSet {
        set,
        is_whole: is_first,
    });
    progress.hole = None;
    // What is not wanted takes no slot from what is, and pushes nothing of it out.
    if open.is_whole && filter.is_some_and(|filter| drop_unwanted(filter, cache, index)) {
        progress.reach(place.number);
        ledger.unwanted += 1;
        return Ok(Turn::Done);
    }
    if open.is_whole && !cache.makes_set_room(index) {
        return Err(Refused::Sets);
    }
    if !open.is_whole {
        progress.reach(place.number);
        ledger.incomplete += 1 + cache.drop_sets_of(index);
        cache.forget_first_waiting(index);
        return Ok(Turn::Done);
    }
    Ok(Turn::Hold)
}

/// Where the sample belongs that waits for its turn; `None`: it waits still.
fn place_in_turn(index: u16, proxy: &mut WriterProxy, cache: &mut Cache) -> Option<Place> {
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
    // It came before that turned out.
    let place = place.alone(proxy.guid.entity, proxy.expected, cache.access()?);
    cache.move_first_waiting(index, place);
    Some(place)
}
