//! Writer side of coherent and ordered access: marks of samples, ends of sets, group progress in HEARTBEATs.

use isolane_wire::{
    message::{CoherentSetInfo, DataPrefix, HeartbeatGroup, PayloadKind, group_digest},
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};
use thiserror::Error;

use crate::{
    coherent_access::{Access, Publisher},
    participant::{LocalParticipant, Shared},
    slab::{PublisherId, WriterId},
    work::Filed,
    writer::{
        Writer, Writers,
        history::{Change, ChangeKind, History},
    },
};

/// Reason why a coherent set was not begun or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CoherentError {
    /// The publisher was deleted.
    #[error("the publisher no longer exists")]
    Gone,
    /// No set is open.
    #[error("no coherent set was begun: begin one, write, and then end it")]
    NotBegun,
    /// Too many nested sets are open.
    #[error("too many coherent sets were begun and not ended")]
    TooDeep,
    /// The history of a writer has no room for the end; the set stays open.
    #[error(
        "the history of a writer has no room for the end of the set; end it later or raise max_samples"
    )]
    HistoryFull,
}

/// State of a writer with coherent or ordered access.
#[derive(Debug)]
pub(crate) struct WriterPresents {
    pub(crate) access: Access,
    /// Number of the writer's first sample in the open set, if there is one.
    set: Option<SequenceNumber>,
}

impl WriterPresents {
    pub(crate) fn new(access: Access) -> Self {
        Self { access, set: None }
    }

    /// Returns the set and group numbers of the next sample.
    fn mark(
        &mut self,
        sequence: SequenceNumber,
        publisher: Option<&mut Publisher>,
    ) -> CoherentSetInfo {
        let is_open = publisher.as_ref().is_some_and(|it| it.nested > 0);
        let is_in_set = is_open && self.access.is_coherent;
        let set = is_in_set.then(|| *self.set.get_or_insert(sequence));
        let mut mark = CoherentSetInfo {
            coherent_set: set,
            ..CoherentSetInfo::default()
        };
        if self.access.is_group {
            mark.group_sequence = Some(sequence);
            if let Some(publisher) = publisher {
                let number = publisher.next();
                mark.group_sequence = Some(number);
                mark.group_coherent_set = is_in_set.then(|| *publisher.set.get_or_insert(number));
            }
        }
        mark
    }
}

impl Publisher {
    fn next(&mut self) -> SequenceNumber {
        self.sequence = self.sequence.next();
        self.sequence
    }
}

/// Returns the head of a DATA whose sample has this mark. A mark for the end of a set removes the key hash, the status
/// and the payload, because the end changes no instance.
pub(crate) fn head_of(head: DataPrefix, mark: &CoherentSetInfo) -> DataPrefix {
    if mark.coherent_set != Some(SequenceNumber::UNKNOWN) {
        return head;
    }
    DataPrefix {
        key_hash: None,
        status: None,
        payload: PayloadKind::None,
        ..head
    }
}

impl LocalParticipant {
    /// Begins a coherent set of all writers of a group (DDS 1.4 §2.2.2.4.1.10). Samples written until its
    /// [end](LocalParticipant::end_coherent_changes) become available to readers with coherent access as a whole or not
    /// at all. Sets may be nested; the outermost one counts. INSTANCE scope is treated like TOPIC scope: each
    /// writer's part is a set. A set has no effect unless the group's PRESENTATION is coherent.
    ///
    /// # Errors
    /// [`CoherentError::Gone`], [`CoherentError::TooDeep`].
    pub fn begin_coherent_changes(&mut self, id: PublisherId) -> Result<(), CoherentError> {
        let publisher = self
            .writers
            .publishers
            .get_mut(id)
            .ok_or(CoherentError::Gone)?;
        publisher.nested = publisher
            .nested
            .checked_add(1)
            .ok_or(CoherentError::TooDeep)?;
        Ok(())
    }

    /// Ends a coherent set (DDS 1.4 §2.2.2.4.1.11).
    ///
    /// # Errors
    /// [`CoherentError`]; after `HistoryFull` the set stays open.
    pub fn end_coherent_changes(
        &mut self,
        id: PublisherId,
        timestamp: Timestamp,
    ) -> Result<(), CoherentError> {
        let publisher = self
            .writers
            .publishers
            .get_mut(id)
            .ok_or(CoherentError::Gone)?;
        if publisher.nested != 1 {
            publisher.nested = publisher
                .nested
                .checked_sub(1)
                .ok_or(CoherentError::NotBegun)?;
            return Ok(());
        }
        let (group_set, is_incomplete) = (publisher.set, publisher.is_incomplete);
        for at in 0.. {
            let Some(index) = self.writers.writer_of_group(id, at) else {
                break;
            };
            if self.writers.owes_end(index, group_set) && !self.writers.has_room_for_end(index) {
                self.request_room_notice(index);
                return Err(CoherentError::HistoryFull);
            }
        }
        let mut mark = CoherentSetInfo {
            coherent_set: Some(SequenceNumber::UNKNOWN),
            ..CoherentSetInfo::default()
        };
        if let Some(publisher) = self.writers.publishers.get_mut(id) {
            (publisher.nested, publisher.is_incomplete) = (0, false);
            if publisher.set.take().is_some() {
                mark.group_sequence = Some(publisher.next());
                mark.group_coherent_set = group_set;
                mark.writers = Some(publisher.digest);
            }
        }
        for at in 0.. {
            let Some(index) = self.writers.writer_of_group(id, at) else {
                break;
            };
            if self.writers.owes_end(index, group_set) {
                self.writers
                    .write_end(&mut self.shared, index, mark, is_incomplete, timestamp);
            }
        }
        Ok(())
    }
}

impl Writers {
    /// Marks a new change of a writer.
    #[inline(never)]
    pub(crate) fn mark_written(&mut self, index: WriterId, sequence: SequenceNumber) {
        let writer = &mut self.table[index];
        let (Some(presents), Some(history)) = (&mut writer.presents, &mut writer.history) else {
            return;
        };
        let publisher = writer.publisher;
        let publisher = publisher.and_then(|publisher| self.publishers.get_mut(publisher));
        history.set_mark(sequence, presents.mark(sequence, publisher));
    }

    pub(super) fn join_publisher(&mut self, group: PublisherId, writer: WriterId) {
        if let Some(publisher) = self.publishers.get_mut(group) {
            publisher.writers.push(writer);
        }
        self.refresh_digest(group);
    }

    /// Removes a writer from its group. If samples of the writer are in the open set, the set becomes incomplete.
    pub(crate) fn leave_publisher(&mut self, index: WriterId) {
        let presents = self.table.get(index).and_then(|it| it.presents.as_ref());
        // With TOPIC scope the set of each writer is independent.
        let has_part =
            presents.is_some_and(|presents| presents.access.is_group && presents.set.is_some());
        let group = self.table.get(index).and_then(|it| it.publisher);
        let Some(group) = group else { return };
        if let Some(publisher) = self.publishers.get_mut(group) {
            publisher.writers.retain(|&other| other != index);
            publisher.is_incomplete |= has_part;
        }
        self.refresh_digest(group);
    }

    fn refresh_digest(&mut self, group: PublisherId) {
        let Some(publisher) = self.publishers.get_mut(group) else {
            return;
        };
        let writers = &self.table;
        let entity = |writer: &WriterId| writers.get(*writer).map(|it| it.guid.entity);
        publisher.writers.sort_unstable_by_key(entity);
        let entities = publisher
            .writers
            .iter()
            .map(|it| entity(it).unwrap_or_default());
        publisher.digest = group_digest(entities);
    }

    fn writer_of_group(&self, group: PublisherId, at: usize) -> Option<WriterId> {
        self.publishers.get(group)?.writers.get(at).copied()
    }

    /// Returns whether a writer must send the end of the set; with GROUP access all writers must.
    fn owes_end(&self, index: WriterId, group_set: Option<SequenceNumber>) -> bool {
        let presents = self.table.get(index).and_then(|it| it.presents.as_ref());
        presents.is_some_and(|presents| match presents.access {
            Access {
                is_coherent: true,
                is_group: true,
                ..
            } => group_set.is_some(),
            _ => presents.set.is_some(),
        })
    }

    fn has_room_for_end(&self, index: WriterId) -> bool {
        let Some(writer) = self.table.get(index) else {
            return true;
        };
        let Some(history) = &writer.history else {
            return true;
        };
        let may_go = |first| first < writer.set_ends_may_go_below();
        history.has_room_for_set_end() || history.first_set_end().is_some_and(may_go)
    }

    /// Writes the end of a set. If the set is incomplete, the number before the end is skipped, so that readers detect
    /// the gap.
    fn write_end(
        &mut self,
        shared: &mut Shared,
        index: WriterId,
        mark: CoherentSetInfo,
        is_incomplete: bool,
        timestamp: Timestamp,
    ) {
        let Some(writer) = self.table.get_mut(index).filter(|it| it.is_enabled()) else {
            return;
        };
        let below = writer.set_ends_may_go_below();
        let (Some(presents), Some(history)) = (&mut writer.presents, &mut writer.history) else {
            return;
        };
        if !history.make_room_for_set_end(below) {
            return;
        }
        presents.set = None;
        if is_incomplete {
            writer.last = writer.last.next();
            writer.ledger.set_ends += 1;
        }
        let sequence = writer.last.next();
        let end = Change {
            sequence,
            kind: ChangeKind::Alive,
            key_hash: None,
            timestamp,
            written: Instant::new(0),
            length: 0,
            start: writer.written_bytes,
        };
        history.commit_set_end(end, mark);
        writer.last = sequence;
        writer.ledger.set_ends += 1;
        if writer.fragmenter.cuts() {
            self.schedule_first(shared, index);
        } else if !core::mem::replace(&mut writer.data_filed, true) {
            let queue = writer.data_queue();
            shared.schedule(queue, Filed::Data(index));
        }
    }

    /// Returns the group part of a HEARTBEAT: the group sequence number up to which this writer has sent all its
    /// samples (RTPS 2.5 §8.3.8.6).
    pub(crate) fn heartbeat_group(&self, index: WriterId) -> Option<HeartbeatGroup> {
        let writer = self.table.get(index)?;
        let presents = writer.presents.as_ref()?;
        if !presents.access.is_group {
            return None;
        }
        let publisher = writer.publisher.and_then(|it| self.publishers.get(it));
        let (written, writers) = match publisher {
            Some(publisher) => (publisher.sequence, publisher.digest),
            None => (writer.last, group_digest([writer.guid.entity].into_iter())),
        };
        let current = writer.unsent_number().map_or(written, |unsent| {
            written.min(SequenceNumber(unsent.get() - 1))
        });
        let first = writer.history.as_ref().and_then(|history| {
            let first = history.first()?;
            history.mark_of(first)?.group_sequence
        });
        (current.get() > 0).then_some(HeartbeatGroup {
            current,
            first: first.map_or(current, |first| first.min(current)),
            last: current,
            writers,
            secure_writers: [0; 4],
        })
    }
}

impl Writer {
    /// Returns the number below which a full history may drop ends of sets. With KEEP_LAST it may drop all ends. With
    /// KEEP_ALL it may drop the ends that all readers acknowledged. A VOLATILE writer with KEEP_ALL has removed those
    /// already, so no end may be dropped.
    fn set_ends_may_go_below(&self) -> SequenceNumber {
        let keeps_all = self.history.as_ref().is_some_and(History::keeps_all);
        match (keeps_all, self.volatile) {
            (false, _) => SequenceNumber(i64::MAX),
            (true, false) => self.lowest_unacknowledged(),
            (true, true) => SequenceNumber(0),
        }
    }

    /// Returns the group sequence number of the next sample to be sent.
    fn unsent_number(&self) -> Option<SequenceNumber> {
        let history: &History = self.history.as_ref()?;
        let unsent = history.at_or_after(self.next_unsent)?;
        history.mark_of(unsent)?.group_sequence
    }
}
