//! Queue of discovery events for the built-in topics (DDS 1.4 §2.2.5).
//!
//! Events are queued from [`Engine::watch_discovery`] on, which allocates the queue. When the queue is full, its last
//! event becomes [`Missed`](DiscoveryEvent::Missed). The lists of participants and endpoints then give the current
//! state.

use alloc::collections::VecDeque;

use isolane_wire::guid::Guid;

use super::EndpointKind;
use crate::{engine::Engine, limits::MAX_DISCOVERY_EVENTS};

/// Change of a remote participant or endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiscoveryChange {
    /// Newly discovered.
    Found,
    /// Announced with different data.
    Changed,
    /// Removed: disposed, lease expired, or ignored.
    Gone,
}

/// Discovery event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiscoveryEvent {
    /// Participant (*DCPSParticipant*).
    Participant(Guid, DiscoveryChange),
    /// Writer (*DCPSPublication*).
    Writer(Guid, DiscoveryChange),
    /// Reader (*DCPSSubscription*).
    Reader(Guid, DiscoveryChange),
    /// Overflow of the queue: the current state must be looked up in the lists.
    Missed,
}

impl DiscoveryEvent {
    pub(super) fn endpoint(kind: EndpointKind, guid: Guid, change: DiscoveryChange) -> Self {
        match kind {
            EndpointKind::Writer => Self::Writer(guid, change),
            EndpointKind::Reader => Self::Reader(guid, change),
        }
    }
}

/// Events not fetched yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Queue with a capacity of 0 until discovery is watched.
    kept: VecDeque<DiscoveryEvent>,
}

impl Events {
    fn put(&mut self, event: DiscoveryEvent) {
        let room = self.kept.capacity().min(MAX_DISCOVERY_EVENTS);
        if self.kept.len() < room {
            self.kept.push_back(event);
        } else if let Some(last) = self.kept.back_mut() {
            *last = DiscoveryEvent::Missed;
        }
    }
}

impl Engine {
    /// Starts queuing events for [`Self::next_discovery_event`], and allocates the queue.
    pub fn watch_discovery(&mut self) {
        self.events.kept.reserve_exact(MAX_DISCOVERY_EVENTS);
    }

    /// Removes and returns the oldest event.
    pub fn next_discovery_event(&mut self) -> Option<DiscoveryEvent> {
        self.events.kept.pop_front()
    }

    /// Returns whether an event is queued.
    #[must_use]
    pub fn has_discovery_event(&self) -> bool {
        !self.events.kept.is_empty()
    }

    /// Queues an event and notifies the user of the change.
    pub(super) fn note_event(&mut self, event: DiscoveryEvent) {
        self.events.put(event);
        self.note_discovery();
    }
}
