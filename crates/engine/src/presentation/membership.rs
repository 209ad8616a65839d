//! Writers of a remote group: those named by the end of a set, compared with those known to discovery.
//!
//! The comparison is needed only from the removal of a writer of the group until a set has ended without it.

use isolane_wire::{
    guid::{EntityId, Guid},
    rtps::{GroupDigest, group_digest},
};

use super::{circle::Circle, progress::EndedSet};
use crate::{discovery::EndpointKind, engine::Engine, limits::MAX_KNOWN_WRITERS};

impl Engine {
    /// Marks the proxies of a writer that is deleted or dead, before they are removed.
    pub(crate) fn note_deleted(&mut self, writer: Guid) {
        let mut at = self.proxies_of_writer.get(&writer);
        while let Some(proxy) = at.and_then(|index| self.writer_proxies.get_mut(index)) {
            proxy.progress.is_deleted = true;
            at = proxy.next_of_writer;
        }
    }

    /// Returns whether a writer removed since was in the group when a set ended.
    pub(super) fn has_lost_a_writer(&mut self, circle: &Circle, ended: &EndedSet) -> bool {
        let is_doubtful = |peer| {
            let proxy = self.writer_proxies.get(peer);
            proxy.is_some_and(|proxy| proxy.progress.is_doubtful)
        };
        if !self.peers(circle).any(is_doubtful) {
            return false;
        }
        let then_and_now = ended.writers.zip(self.writers_now(circle.publisher));
        let has_lost = then_and_now.is_some_and(|(then, now)| then != now);
        if !has_lost {
            self.for_each_peer(circle, |progress| progress.is_doubtful = false);
        }
        has_lost
    }

    /// Returns the present writers of a group; `None` if some may be unknown.
    fn writers_now(&self, publisher: Guid) -> Option<GroupDigest> {
        if publisher.prefix == self.header.prefix {
            let mut own = self.publishers.iter().map(|(_, own)| own);
            return own
                .find(|own| own.entity == publisher.entity)
                .map(|own| own.digest);
        }
        if self.hides_writers_of(publisher) {
            return None;
        }
        let mut writers = heapless::Vec::<EntityId, MAX_KNOWN_WRITERS>::new();
        for (index, endpoint) in self.endpoints.iter() {
            let guid = endpoint.guid;
            let is_its = endpoint.kind == EndpointKind::Writer
                && guid.prefix == publisher.prefix
                && endpoint.group == Some(publisher.entity);
            if is_its && self.leaving_endpoint != Some(index) {
                writers.push(guid.entity).ok()?;
            }
        }
        writers.sort_unstable();
        Some(group_digest(writers.iter().copied()))
    }

    /// Returns whether some writers of a group may be ignored, or were refused for lack of room.
    fn hides_writers_of(&self, publisher: Guid) -> bool {
        let participant = self.participant_by_prefix.get(&publisher.prefix);
        let participant = participant.and_then(|&index| self.participants.get(index));
        let is_refused = participant.is_some_and(|it| !it.refused_endpoints[0].is_empty());
        is_refused || !self.ignored.is_empty()
    }
}
