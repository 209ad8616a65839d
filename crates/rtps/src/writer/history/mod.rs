//! HistoryCache of a writer (RTPS 2.5 §8.2.2), with all its memory allocated at creation.
//!
//! A sample is serialised into a free slot (`reserve`), then becomes a change with the next sequence number (`commit`).
//! Under KEEP_LAST a commit removes the oldest change of its instance; under KEEP_ALL a full history refuses. The
//! writer removes changes that every reader has acknowledged and no late joiner will request.
//!
//! Under KEEP_ALL and TRANSIENT_LOCAL nothing would be removed, and a full history would refuse for good. There a new
//! change replaces the oldest that every reader has acknowledged, as if DURABILITY_SERVICE (DDS 1.4 §2.2.3.5) were
//! KEEP_LAST of `max_samples`.
//!
//! HISTORY counts values (DDS 1.4 §2.2.3.18). A dispose or unregister (an *end*) is no value and removes none: it is
//! kept in addition to the values of its instance, so that slow and late readers get the last value, then the end. From
//! the instance's next value on, the end counts against the depth like a value. With a depth of one, the next value
//! replaces the former value and its end. The number of additional ends is bounded at creation. At the bound, or after
//! several ends of an instance, a new end replaces a former end that it covers, or else the oldest change of the
//! instance.
//!
//! An ordered queue finds changes by sequence number: the first and the last in constant time, others by binary search.
//! Only a removal from the middle (KEEP_LAST with many instances) moves entries, at most as many as the history holds.
//! The slots of an instance form a list that begins with its oldest change.
//!
//! A change in fragmented transmission is *pinned*: if it is replaced, its slot is freed when the last fragment is
//! sent. Otherwise a KEEP_LAST writer that writes faster than it sends would never complete a sample. One extra slot is
//! allocated for the pinned change.
//!
//! # Durability
//!
//! A writer keeps history for late joiners (DDS 1.4 §2.2.3.4, §2.2.3.5). TRANSIENT and PERSISTENT require a service
//! that keeps samples beyond the life of their writer. isolane has none: the writer offers the requested kind and
//! serves its history itself while it lives. It also keeps what DURABILITY_SERVICE asks the service to keep: a
//! KEEP_LAST writer keeps the greater of the two depths. If the service is KEEP_ALL, its resource limits give its
//! depth, because a write to a KEEP_LAST writer must never be refused for lack of room. For the same reason only the
//! writer's own RESOURCE_LIMITS limit the number of instances. `service_cleanup_delay` has no effect: ended instances
//! are kept as by a TRANSIENT_LOCAL writer.

mod set_ends;

use alloc::{collections::VecDeque, vec, vec::Vec};

use isolane_wire::{
    cdr::KeyHash,
    message::CoherentSetInfo,
    qos::{DurabilityKind, DurabilityService, HistoryKind, QosPolicies},
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use crate::{
    hash::{Index, index},
    limits::{DEFAULT_SAMPLES, EXTRA_INSTANCE_ENDS},
    sample_memory::{SampleMemory, Sizes},
    slab::{Chain, SlotLinks},
    writer::{history::set_ends::SetEnds, write::WriteSample},
};

/// Kind of a change (RTPS 2.5 §8.2.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// Value of the instance.
    Alive,
    /// Dispose of the instance.
    Dispose,
    /// Unregister: this writer no longer writes the instance.
    Unregister,
    /// Dispose and unregister in one change, as with WRITER_DATA_LIFECYCLE (DDS 1.4 §2.2.3.21).
    DisposeAndUnregister,
}

impl ChangeKind {
    /// Returns whether the change unregisters the instance.
    #[must_use]
    pub fn unregisters(self) -> bool {
        matches!(self, Self::Unregister | Self::DisposeAndUnregister)
    }

    /// Returns whether the change disposes the instance.
    #[must_use]
    pub fn disposes(self) -> bool {
        matches!(self, Self::Dispose | Self::DisposeAndUnregister)
    }

    /// Returns whether this end has every effect (dispose, unregister) of a former end.
    pub(crate) fn repeats(self, former: Self) -> bool {
        let is_end = former != Self::Alive && self != Self::Alive;
        is_end && self.disposes() >= former.disposes() && self.unregisters() >= former.unregisters()
    }
}

/// Change in the history; its payload is in `memory`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) sequence: SequenceNumber,
    pub(crate) kind: ChangeKind,
    pub(crate) key_hash: Option<KeyHash>,
    pub(crate) timestamp: Timestamp,
    /// Monotonic time of the write, if the writer has a time-based policy; otherwise 0.
    pub(crate) written: Instant,
    pub(crate) length: u32,
    /// Payload bytes that the writer wrote before this change.
    pub(crate) start: u64,
}

impl Change {
    const EMPTY: Self = Self {
        sequence: SequenceNumber::UNKNOWN,
        kind: ChangeKind::Alive,
        key_hash: None,
        timestamp: Timestamp::INVALID,
        written: Instant::new(0),
        length: 0,
        start: 0,
    };

    /// Metadata of the sample, as it was written.
    pub(crate) fn sample(&self) -> WriteSample {
        WriteSample {
            kind: self.kind,
            key_hash: self.key_hash,
            timestamp: self.timestamp,
        }
    }
}

/// HISTORY kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// KEEP_LAST: the last `depth` changes of each instance.
    Last { depth: u16 },
    /// KEEP_ALL: all changes until acknowledged.
    All,
}

/// Reason why no slot could be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HistoryFull {
    /// KEEP_ALL: every slot has a change that a reader still needs.
    Unacknowledged,
    /// KEEP_LAST: the instance is new, and all slots belong to others.
    Instances,
}

/// Capacities of a history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryPlan {
    keep: Keep,
    sizes: Sizes,
    /// Maximum number of changes, without additional ends and spare slots.
    room: u16,
    ends: u16,
    spare: u16,
}

impl HistoryPlan {
    /// Plans a history of `samples` changes. A spare slot lets a change be serialised before the one it replaces is
    /// removed.
    pub(crate) fn new(keep: Keep, samples: u16, sizes: Sizes) -> Self {
        Self {
            keep,
            sizes,
            room: samples.min(u16::MAX - 2),
            ends: 0,
            spare: 1,
        }
    }

    /// Adds room for ends of instances in addition to the HISTORY depth.
    pub(crate) fn with_ends(self, ends: u16) -> Self {
        let ends = ends.min(u16::MAX - 1 - self.spare - self.room);
        Self { ends, ..self }
    }

    /// Adds a slot for a pinned change.
    pub(crate) fn with_pin(self) -> Self {
        let spare = 2;
        Self {
            spare,
            room: self.room.min(u16::MAX - 1 - spare),
            ..self
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let slots = [self.room, self.ends, self.spare].map(usize::from);
        self.sizes.bytes(slots.iter().sum())
    }
}

#[derive(Debug)]
pub(crate) struct History {
    keep: Keep,
    memory: SampleMemory,
    changes: Vec<Change>,
    /// (sequence, slot), ascending, without ends of coherent sets.
    order: VecDeque<(SequenceNumber, u16)>,
    instances: Index<KeyHash, Chain>,
    links: SlotLinks,
    reserved: Option<u16>,
    /// Maximum number of changes, without additional ends.
    room: usize,
    /// Maximum number of additional ends.
    ends_room: usize,
    /// Number of additional ends: changes beyond the HISTORY depth of their instance.
    ends: usize,
    pinned: Option<Pinned>,
    /// Set and group marks by slot; empty if the writer has none.
    marks: Vec<CoherentSetInfo>,
    set_ends: SetEnds,
}

/// Change whose slot must not be reused yet.
#[derive(Debug, Clone, Copy)]
struct Pinned {
    sequence: SequenceNumber,
    slot: u16,
    is_removed: bool,
}

impl History {
    pub(crate) fn memory_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.memory.pieces_mut()
    }

    /// Creates a history. The error is the number of bytes that could not be allocated.
    pub(crate) fn try_new(plan: HistoryPlan, seed: u64) -> Result<Self, usize> {
        let HistoryPlan {
            keep,
            sizes,
            room,
            ends,
            spare,
        } = plan;
        let slots = room + ends + spare;
        let memory = SampleMemory::try_new(slots, sizes).ok_or(plan.bytes())?;
        Ok(Self {
            keep,
            memory,
            changes: vec![Change::EMPTY; usize::from(slots)],
            order: VecDeque::with_capacity(usize::from(slots)),
            instances: index(usize::from(slots), seed),
            links: SlotLinks::new(slots),
            reserved: None,
            room: usize::from(room),
            ends_room: usize::from(ends),
            ends: 0,
            pinned: None,
            marks: Vec::new(),
            set_ends: SetEnds::default(),
        })
    }

    pub(crate) fn set_mark(&mut self, sequence: SequenceNumber, mark: CoherentSetInfo) {
        if let Some(slot) = self.slot_of(sequence) {
            self.marks[usize::from(slot)] = mark;
        }
    }

    /// Returns the set and group marks of a change, also of a removed one that is pinned.
    #[inline]
    pub(crate) fn mark_of(&self, sequence: SequenceNumber) -> Option<&CoherentSetInfo> {
        match self.marks.is_empty() {
            true => None,
            false => self.find_mark(sequence),
        }
    }

    #[inline(never)]
    fn find_mark(&self, sequence: SequenceNumber) -> Option<&CoherentSetInfo> {
        let pinned = self.pinned.filter(|pinned| pinned.sequence == sequence);
        let slot = match pinned {
            Some(pinned) => pinned.slot,
            None => self.slot_of(sequence)?,
        };
        self.marks.get(usize::from(slot))
    }

    pub(crate) fn keeps_all(&self) -> bool {
        self.keep == Keep::All
    }

    /// Returns how many changes fit before one replaces another; under KEEP_LAST, how many of one instance.
    pub(crate) fn depth(&self) -> usize {
        match self.keep {
            Keep::All => self.capacity(),
            Keep::Last { depth } => self.capacity().min(usize::from(depth)),
        }
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.memory.max_bytes()
    }

    /// Returns whether there is memory for a payload of this size.
    #[inline]
    pub(crate) fn fits(&mut self, bytes: usize) -> bool {
        if let (true, Some(slot)) = (bytes > 0, self.reserved) {
            // The memory lent before was too small, and is unused.
            self.memory.settle(slot, 0);
        }
        self.memory.fits(bytes)
    }

    /// Returns the number of changes that a sample of this size counts as, in proportion to its memory.
    #[inline]
    pub(crate) fn share(&self, bytes: usize) -> u32 {
        self.memory.share(bytes, self.room)
    }

    /// Returns the maximum number of changes, without additional ends.
    pub(crate) fn capacity(&self) -> usize {
        self.room
    }

    pub(crate) fn first(&self) -> Option<SequenceNumber> {
        let (sample, end) = (self.first_sample(), self.set_ends.first());
        // `None` is less than any number.
        sample.min(end).or(sample).or(end)
    }

    /// Checks whether a change of this instance could be committed now.
    pub(crate) fn room_for(&self, key_hash: Option<KeyHash>) -> Result<(), HistoryFull> {
        let has_spare = self.order.len() - self.ends < self.capacity();
        match self.keep {
            Keep::All if has_spare => Ok(()),
            Keep::All => Err(HistoryFull::Unacknowledged),
            Keep::Last { depth } => {
                let key = key_hash.unwrap_or_default();
                let replaces = self
                    .instances
                    .get(&key)
                    .is_some_and(|instance| instance.count() >= depth);
                if has_spare || replaces {
                    Ok(())
                } else {
                    Err(HistoryFull::Instances)
                }
            }
        }
    }

    /// Lends a free slot for a payload of `bytes` bytes. A long payload gets the largest free run of pages
    /// ([`fits`](Self::fits)). A slot lent and not committed is lent again.
    pub(crate) fn reserve(
        &mut self,
        key_hash: Option<KeyHash>,
        bytes: usize,
    ) -> Result<&mut [u8], HistoryFull> {
        self.room_for(key_hash)?;
        let slot = match self.reserved {
            Some(slot) => slot,
            None => self
                .memory
                .claim()
                .expect("there is one slot more than there can be changes"),
        };
        self.reserved = Some(slot);
        Ok(self.memory.lend(slot, bytes))
    }

    /// Commits the reserved slot as a change; under KEEP_LAST it replaces others.
    pub(crate) fn commit(&mut self, change: Change) {
        let slot = self.reserved.take().expect("commit follows reserve");
        self.memory.settle(slot, change.length as usize);
        debug_assert!(
            self.order
                .back()
                .is_none_or(|&(last, _)| last < change.sequence)
        );
        let key = change.key_hash.unwrap_or_default();
        if let Keep::Last { depth } = self.keep
            && let Some(&instance) = self.instances.get(&key)
            && instance.count() >= depth
        {
            self.replace(&instance, depth, change.kind);
        }
        self.changes[usize::from(slot)] = change;
        self.order.push_back((change.sequence, slot));
        let instance = self.instances.entry(key).or_insert(Chain::EMPTY);
        self.links.push(instance, slot);
    }

    /// Makes room for one more change of an instance that has its HISTORY depth or more.
    fn replace(&mut self, instance: &Chain, depth: u16, kind: ChangeKind) {
        if kind != ChangeKind::Alive {
            return self.replace_by_end(instance, depth, kind);
        }
        let mut oldest = instance.oldest();
        for _ in depth..=instance.count() {
            let Some(slot) = oldest else { return };
            oldest = self.links.younger(slot);
            self.remove(self.changes[usize::from(slot)].sequence);
        }
    }

    #[cold]
    fn replace_by_end(&mut self, instance: &Chain, depth: u16, kind: ChangeKind) {
        let has_room = self.ends < self.ends_room;
        if has_room && instance.count() - depth < EXTRA_INSTANCE_ENDS {
            self.ends += 1;
            return;
        }
        let said = |slot: u16| self.changes[usize::from(slot)].kind;
        let repeated = instance.youngest().filter(|&slot| kind.repeats(said(slot)));
        let replaced = repeated.or(instance.oldest());
        if let Some(slot) = replaced {
            // The new end takes the position of the removed change.
            let extra = usize::from(instance.count() > depth);
            self.remove(self.changes[usize::from(slot)].sequence);
            self.ends += extra;
        }
    }

    pub(crate) fn get(&self, sequence: SequenceNumber) -> Option<(&Change, &[u8])> {
        let slot = self.slot_of(sequence)?;
        let change = &self.changes[usize::from(slot)];
        Some((change, self.memory.get(slot, change.length as usize)))
    }

    pub(crate) fn oldest_of(&self, key: KeyHash) -> Option<(&Change, &[u8])> {
        let slot = self.instances.get(&key)?.oldest()?;
        let change = &self.changes[usize::from(slot)];
        Some((change, self.memory.get(slot, change.length as usize)))
    }

    /// Returns the first change with this number or a higher one.
    pub(crate) fn next_from(&self, sequence: SequenceNumber) -> Option<&Change> {
        let (_, slot) = self.from(sequence)?;
        Some(&self.changes[usize::from(slot)])
    }

    /// Returns the number and slot of the first change with this number or a higher one.
    fn from(&self, sequence: SequenceNumber) -> Option<(SequenceNumber, u16)> {
        let position = self.order.partition_point(|&(there, _)| there < sequence);
        let sample = self.order.get(position).copied();
        let end = self.set_ends.from(sequence);
        sample.min(end).or(sample).or(end)
    }

    /// Sets the write time of the last change.
    pub(crate) fn note_written(&mut self, at: Instant) {
        if let Some(&(_, slot)) = self.order.back() {
            self.changes[usize::from(slot)].written = at;
        }
    }

    /// Returns a change, also a removed one that is pinned.
    pub(crate) fn get_pinned(&self, sequence: SequenceNumber) -> Option<(&Change, &[u8])> {
        let Some(pinned) = self.pinned.filter(|pinned| pinned.sequence == sequence) else {
            return self.get(sequence);
        };
        let change = &self.changes[usize::from(pinned.slot)];
        Some((change, self.memory.get(pinned.slot, change.length as usize)))
    }

    /// Pins the slot of a change until [`Self::unpin`].
    pub(crate) fn pin(&mut self, sequence: SequenceNumber) {
        self.unpin();
        if let Some(slot) = self.slot_of(sequence) {
            self.pinned = Some(Pinned {
                sequence,
                slot,
                is_removed: false,
            });
        }
    }

    /// Unpins the pinned change; frees its slot if it was removed.
    pub(crate) fn unpin(&mut self) {
        if let Some(pinned) = self.pinned.take()
            && pinned.is_removed
        {
            self.memory.give_back(pinned.slot);
        }
    }

    /// Returns the first number in the history from `sequence` on.
    pub(crate) fn at_or_after(&self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        self.from(sequence).map(|(there, _)| there)
    }

    /// Removes a change at any position.
    pub(crate) fn remove(&mut self, sequence: SequenceNumber) {
        let Some(position) = self.position(sequence) else {
            self.set_ends.remove(sequence);
            return;
        };
        let (_, slot) = self.order.remove(position).expect("the position was found");
        let key = self.changes[usize::from(slot)].key_hash.unwrap_or_default();
        if let Some(instance) = self.instances.get_mut(&key) {
            // The slot is mostly the oldest: KEEP_LAST replaces the oldest, and acknowledged changes are removed in
            // order.
            self.links.remove(instance, slot);
            if let Keep::Last { depth } = self.keep
                && instance.count() >= depth
            {
                self.ends -= 1;
            }
            if instance.count() == 0 {
                self.instances.remove(&key);
            }
        }
        match &mut self.pinned {
            Some(pinned) if pinned.slot == slot => pinned.is_removed = true,
            _ => self.memory.give_back(slot),
        }
    }

    /// Removes the oldest sample; returns false if there is none.
    #[cold]
    pub(crate) fn remove_oldest(&mut self) -> bool {
        let oldest = self.first_sample();
        oldest.map(|oldest| self.remove(oldest)).is_some()
    }

    /// Removes the oldest end of an instance if its number is below `sequence`.
    pub(crate) fn remove_oldest_end_below(&mut self, sequence: SequenceNumber) {
        let is_end = |slot: u16| self.changes[usize::from(slot)].kind != ChangeKind::Alive;
        let oldest = self.order.iter().find(|&&(_, slot)| is_end(slot));
        if let Some(&(there, _)) = oldest
            && there < sequence
        {
            self.remove(there);
        }
    }

    /// Removes every change below `sequence`; returns their number.
    pub(crate) fn remove_below(&mut self, sequence: SequenceNumber) -> usize {
        let mut removed = 0;
        while let Some(first) = self.first() {
            if first >= sequence {
                break;
            }
            self.remove(first);
            removed += 1;
        }
        removed
    }

    fn slot_of(&self, sequence: SequenceNumber) -> Option<u16> {
        match self.position(sequence) {
            Some(position) => Some(self.order[position].1),
            None => self.set_ends.slot_of(sequence),
        }
    }

    /// Returns the position in `order`; `None` for ends of coherent sets.
    fn position(&self, sequence: SequenceNumber) -> Option<usize> {
        let first = self.first_sample()?;
        // Without holes, the distance to the first number is the position.
        let guess = usize::try_from(sequence.get().checked_sub(first.get())?).ok()?;
        if self
            .order
            .get(guess)
            .is_some_and(|&(there, _)| there == sequence)
        {
            return Some(guess);
        }
        self.order
            .binary_search_by_key(&sequence, |&(there, _)| there)
            .ok()
    }
}

#[cfg(test)]
mod tests;

/// Returns the HISTORY of a writer and its number of samples: its `own`, extended by DURABILITY_SERVICE.
pub(crate) fn with_service(qos: &QosPolicies, own: (Keep, u16)) -> (Keep, u16) {
    let (Keep::Last { depth }, samples) = own else {
        return own;
    };
    if qos.durability < DurabilityKind::Transient {
        return own;
    }
    let instances = (samples / depth).max(1);
    let wanted = depth_of(&qos.durability_service, instances).min(u16::MAX / instances);
    if wanted <= depth {
        return own;
    }
    let samples = samples.max(instances * wanted);
    (Keep::Last { depth: wanted }, samples)
}

/// Returns the number of samples per instance that the service is to keep.
fn depth_of(service: &DurabilityService, instances: u16) -> u16 {
    let bound = |value: i32| (value > 0).then(|| u16::try_from(value).unwrap_or(u16::MAX));
    let limits = service.resource_limits;
    let in_all = bound(limits.max_samples).map(|samples| samples / instances);
    let bounds = [in_all, bound(limits.max_samples_per_instance)];
    let bound_of_both = bounds.into_iter().flatten().min();
    match service.history.kind {
        HistoryKind::KeepLast => {
            let depth = bound(service.history.depth).unwrap_or(1);
            bound_of_both.map_or(depth, |bound| bound.min(depth))
        }
        HistoryKind::KeepAll => bound_of_both.unwrap_or(DEFAULT_SAMPLES),
    }
}
