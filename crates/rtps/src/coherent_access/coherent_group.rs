//! Rings of proxies with group access: the proxies of one publisher's writers at the readers of one subscriber.
//!
//! Each proxy links to the next in its ring, so a walk costs one step for each proxy of the ring. A proxy enters at its
//! match. It leaves when its writer is removed, or turns out not to number its samples in a group. Proxies of one
//! reader are adjacent. Without GROUP access each proxy is a ring by itself.
//!
//! The end of a set has a digest of the group's writers, which is compared with the writers known to discovery. The
//! comparison is needed only from the removal of a writer of the group until a set has ended without that writer.

use isolane_wire::{
    guid::{EntityId, Guid},
    message::{GroupDigest, group_digest},
};

use crate::{
    coherent_access::progress::{EndedSet, Progress},
    discovery::EndpointKind,
    limits::MAX_KNOWN_WRITERS,
    participant::{Facts, Shared},
    reader::{Reader, Readers, WriterProxy, cache::Cache},
    slab::{ReaderId, SubscriberId, WriterProxyId},
};

/// Ring of proxies, and their common properties.
#[derive(Debug, Clone, Copy)]
pub(super) struct CoherentGroup {
    /// Proxy from which the ring is walked.
    pub(super) first: WriterProxyId,
    pub(super) subscriber: Option<SubscriberId>,
    /// Group that numbers the samples: a publisher, or a single writer.
    pub(super) publisher: Guid,
    pub(super) is_ordered: bool,
}

impl WriterProxy {
    /// Returns the group that numbers the writer's samples.
    pub(super) fn numbered_by(&self) -> Guid {
        Guid {
            prefix: self.guid.prefix,
            entity: self.progress.publisher,
        }
    }
}

impl Reader {
    /// Returns the subscriber of a reader with GROUP access, whose readers share rings.
    fn circles(&self) -> Option<SubscriberId> {
        let access = self.cache.as_ref()?.access()?;
        self.subscriber.filter(|_| access.is_group)
    }
}

impl Readers {
    pub(super) fn circle_of(&self, index: WriterProxyId) -> Option<CoherentGroup> {
        let proxy = self.proxies.get(index)?;
        let reader = self.table.get(proxy.reader)?;
        let access = reader.cache.as_ref()?.access()?;
        Some(CoherentGroup {
            first: index,
            subscriber: reader.circles(),
            publisher: proxy.numbered_by(),
            is_ordered: access.is_ordered,
        })
    }

    /// Returns the proxy after this one; `None` at the end of the walk.
    pub(super) fn peer_after(
        &self,
        circle: &CoherentGroup,
        index: WriterProxyId,
    ) -> Option<WriterProxyId> {
        let next = self.proxies.get(index)?.progress.next_peer;
        (next != circle.first).then_some(next)
    }

    pub(super) fn peers<'a>(
        &'a self,
        circle: &'a CoherentGroup,
    ) -> impl Iterator<Item = WriterProxyId> + 'a {
        core::iter::successors(Some(circle.first), |&at| self.peer_after(circle, at))
    }

    /// Returns the ring of a proxy, unless the current pass has visited it.
    pub(super) fn circle_to_look_at(&mut self, index: WriterProxyId) -> Option<CoherentGroup> {
        let look = self.looks;
        let looked = self.proxies.get(index)?.progress.looked;
        let circle = self.circle_of(index).filter(|_| looked != look)?;
        self.for_each_peer(&circle, |progress| progress.looked = look);
        Some(circle)
    }

    /// Applies `change` to each proxy of a ring.
    pub(super) fn for_each_peer(
        &mut self,
        circle: &CoherentGroup,
        mut change: impl FnMut(&mut Progress),
    ) {
        let mut at = Some(circle.first);
        while let Some(peer) = at {
            at = self.peer_after(circle, peer);
            if let Some(proxy) = self.proxies.get_mut(peer) {
                change(&mut proxy.progress);
            }
        }
    }

    /// Applies `act` to each reader of a ring: once, or twice if the walk begins between proxies of the same reader.
    pub(super) fn for_each_reader(
        &mut self,
        circle: &CoherentGroup,
        mut act: impl FnMut(&mut Self, ReaderId),
    ) {
        let (mut at, mut last) = (Some(circle.first), None);
        while let Some(peer) = at {
            at = self.peer_after(circle, peer);
            let reader = self.proxies.get(peer).map(|proxy| proxy.reader);
            if let Some(reader) = reader.filter(|_| last != reader) {
                last = Some(reader);
                act(self, reader);
            }
        }
    }

    /// Adds the proxy of a newly matched writer to its ring.
    pub(crate) fn join_group(&mut self, index: WriterProxyId) {
        let before = self.peer_to_follow(index);
        let next = before.and_then(|before| {
            let proxy = self.proxies.get_mut(before)?;
            Some(core::mem::replace(&mut proxy.progress.next_peer, index))
        });
        if let Some(proxy) = self.proxies.get_mut(index) {
            proxy.progress.next_peer = next.unwrap_or(index);
        }
    }

    /// Returns the proxy after which a new proxy enters the ring: one of the same reader, if there is one.
    fn peer_to_follow(&self, index: WriterProxyId) -> Option<WriterProxyId> {
        let proxy = self.proxies.get(index)?;
        let reader = self.table.get(proxy.reader)?;
        reader.cache.as_ref().filter(|cache| cache.groups())?;
        let found = self.peer_at(reader, index);
        found.or_else(|| {
            let subscriber = self.subscribers.get(reader.circles()?)?;
            let others = subscriber.readers.iter();
            let mut others = others.filter_map(|&other| self.table.get(other));
            others.find_map(|other| self.peer_at(other, index))
        })
    }

    /// Returns a proxy of the same publisher at a reader.
    fn peer_at(&self, reader: &Reader, index: WriterProxyId) -> Option<WriterProxyId> {
        let publisher = self.proxies.get(index)?.numbered_by();
        let is_peer = |&other: &WriterProxyId| {
            let found = self.proxies.get(other);
            other != index && found.is_some_and(|other| other.numbered_by() == publisher)
        };
        reader.proxies.iter().copied().find(is_peer)
    }

    /// Removes a proxy from its ring, so that it forms its own; returns another proxy of the former ring.
    pub(super) fn leave_circle(&mut self, index: WriterProxyId) -> Option<WriterProxyId> {
        let circle = self.circle_of(index)?;
        let before = self.peers(&circle).last().filter(|&last| last != index)?;
        let proxy = self.proxies.get_mut(index)?;
        let next = core::mem::replace(&mut proxy.progress.next_peer, index);
        if let Some(proxy) = self.proxies.get_mut(before) {
            proxy.progress.next_peer = next;
        }
        Some(next)
    }

    pub(super) fn cache_of(&self, reader: ReaderId) -> Option<&Cache> {
        self.table.get(reader)?.cache.as_ref()
    }
}

impl Readers {
    /// Marks the proxies of a writer that is deleted or dead, before they are removed.
    pub(crate) fn note_deleted(&mut self, writer: Guid) {
        let mut at = self.by_writer.get(&writer);
        while let Some(proxy) = at.and_then(|index| self.proxies.get_mut(index)) {
            proxy.progress.is_deleted = true;
            at = proxy.next_of_writer;
        }
    }

    /// Returns whether, when a set ended, the group had a writer that has been removed since.
    pub(super) fn has_lost_a_writer(
        &mut self,
        shared: &Shared,
        facts: Facts<'_>,
        circle: &CoherentGroup,
        ended: &EndedSet,
    ) -> bool {
        let is_doubtful = |peer| {
            let proxy = self.proxies.get(peer);
            proxy.is_some_and(|proxy| proxy.progress.is_doubtful)
        };
        if !self.peers(circle).any(is_doubtful) {
            return false;
        }
        let then_and_now = ended
            .writers
            .zip(facts.writers_now(shared, circle.publisher));
        let has_lost = then_and_now.is_some_and(|(then, now)| then != now);
        if !has_lost {
            self.for_each_peer(circle, |progress| progress.is_doubtful = false);
        }
        has_lost
    }
}

impl Facts<'_> {
    /// Returns the present writers of a group; `None` if some may be unknown.
    pub(super) fn writers_now(&self, shared: &Shared, publisher: Guid) -> Option<GroupDigest> {
        if publisher.prefix == shared.header.prefix {
            let mut own = self.writers.publishers.iter().map(|(_, own)| own);
            return own
                .find(|own| own.entity == publisher.entity)
                .map(|own| own.digest);
        }
        if self.hides_writers_of(publisher) {
            return None;
        }
        let mut writers = heapless::Vec::<EntityId, MAX_KNOWN_WRITERS>::new();
        for (index, endpoint) in self.discovery.endpoints.iter() {
            let guid = endpoint.guid;
            let is_its = endpoint.kind == EndpointKind::Writer
                && guid.prefix == publisher.prefix
                && endpoint.group == Some(publisher.entity);
            if is_its && self.discovery.leaving_endpoint != Some(index) {
                writers.push(guid.entity).ok()?;
            }
        }
        writers.sort_unstable();
        Some(group_digest(writers.iter().copied()))
    }

    /// Returns whether some writers of a group may be unknown: ignored, or refused for lack of room.
    fn hides_writers_of(&self, publisher: Guid) -> bool {
        let participant = self.discovery.by_prefix.get(&publisher.prefix);
        let participant = participant.and_then(|&index| self.discovery.participants.get(index));
        let is_refused = participant.is_some_and(|it| !it.refused_endpoints[0].is_empty());
        is_refused || !self.discovery.ignored.is_empty()
    }
}
