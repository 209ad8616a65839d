//! What was discovered, changed or went, in the order it happened, for who wants to be told of each
//! (the built-in topics of DDS 1.4 §2.2.5).
//!
//! Events are kept only from [`Engine::watch_discovery`] on, which takes the room for them. Where nobody
//! fetches them fast enough they are told to be [`Missed`](DiscoveryEvent::Missed): then the lists
//! of participants and endpoints say what there is.

use alloc::collections::VecDeque;

use isolane_wire::guid::Guid;

use super::EndpointKind;
use crate::{engine::Engine, limits::MAX_DISCOVERY_EVENTS};

/// What has become of a participant or an endpoint of somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiscoveryChange {
    /// It was not known before.
    Found,
    /// It announces something else of itself.
    Changed,
    /// It is known no more: by its own word, because its lease ran out, or because it is ignored.
    Gone,
}

/// Something that discovery has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiscoveryEvent {
    /// A participant (*DCPSParticipant*).
    Participant(Guid, DiscoveryChange),
    /// A writer (*DCPSPublication*).
    Writer(Guid, DiscoveryChange),
    /// A reader (*DCPSSubscription*).
    Reader(Guid, DiscoveryChange),
    /// More than was kept: what there is now is to be looked up.
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

/// Events that nobody has fetched yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Without room: nobody watches.
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
    /// Keeps what discovery brings from now on, for [`Self::next_discovery_event`]; takes the room for it.
    pub fn watch_discovery(&mut self) {
        self.events.kept.reserve_exact(MAX_DISCOVERY_EVENTS);
    }

    /// The oldest event that was not fetched yet.
    pub fn next_discovery_event(&mut self) -> Option<DiscoveryEvent> {
        self.events.kept.pop_front()
    }

    /// Whether there is one.
    #[must_use]
    pub fn has_discovery_event(&self) -> bool {
        !self.events.kept.is_empty()
    }

    /// Tells the user that what is known of others has changed.
    pub(super) fn note_event(&mut self, event: DiscoveryEvent) {
        self.events.put(event);
        self.note_discovery();
    }
}
