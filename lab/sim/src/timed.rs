//! Liveliness assertions and deadline statuses of users.

use isolane_rtps::{DeadlineMissed, LivelinessChanged, LivelinessLost};

use crate::{
    endpoints::{ReaderHandle, WriterHandle},
    node::NodeId,
    world::World,
};

impl World {
    /// Asserts the liveliness of a writer.
    pub fn assert_liveliness(&mut self, writer: WriterHandle) {
        let now = self.now;
        let (node, id) = (self.writers[writer.0].node, self.writers[writer.0].id);
        self.protocol_mut(node).assert_liveliness(now, id);
        self.settle(node);
    }

    /// Asserts the liveliness of a node's participant.
    pub fn assert_participant(&mut self, node: NodeId) {
        let now = self.now;
        self.protocol_mut(node).assert_participant(now);
        self.settle(node);
    }

    /// Takes a writer's OFFERED_DEADLINE_MISSED status, if it changed since the last call.
    pub fn take_offered_deadline_missed(&mut self, writer: WriterHandle) -> Option<DeadlineMissed> {
        let (node, id) = (self.writers[writer.0].node, self.writers[writer.0].id);
        self.protocol_mut(node).take_offered_deadline_missed(id)
    }

    /// Takes a reader's REQUESTED_DEADLINE_MISSED status, if it changed since the last call.
    pub fn take_requested_deadline_missed(
        &mut self,
        reader: ReaderHandle,
    ) -> Option<DeadlineMissed> {
        let (node, id) = (self.readers[reader.0].node, self.readers[reader.0].id);
        self.protocol_mut(node).take_requested_deadline_missed(id)
    }

    /// Takes a writer's LIVELINESS_LOST status, if it changed since the last call.
    pub fn take_liveliness_lost(&mut self, writer: WriterHandle) -> Option<LivelinessLost> {
        let (node, id) = (self.writers[writer.0].node, self.writers[writer.0].id);
        self.protocol_mut(node).take_liveliness_lost(id)
    }

    /// Takes a reader's LIVELINESS_CHANGED status, if it changed since the last call.
    pub fn take_liveliness_changed(&mut self, reader: ReaderHandle) -> Option<LivelinessChanged> {
        let (node, id) = (self.readers[reader.0].node, self.readers[reader.0].id);
        self.protocol_mut(node).take_liveliness_changed(id)
    }
}
