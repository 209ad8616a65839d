//! Operations and statuses of DEADLINE and LIVELINESS.

use isolane_engine::{DeadlineMissed, LivelinessChanged, LivelinessLost};

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
        self.engine_mut(node).assert_liveliness(now, id);
        self.settle(node);
    }

    /// Asserts the liveliness of a participant, and so of its manual writers.
    pub fn assert_participant(&mut self, node: NodeId) {
        let now = self.now;
        self.engine_mut(node).assert_participant(now);
        self.settle(node);
    }

    /// Returns OFFERED_DEADLINE_MISSED of a writer, if it has changed since the last call.
    pub fn take_offered_deadline_missed(&mut self, writer: WriterHandle) -> Option<DeadlineMissed> {
        let (node, id) = (self.writers[writer.0].node, self.writers[writer.0].id);
        self.engine_mut(node).take_offered_deadline_missed(id)
    }

    /// Returns REQUESTED_DEADLINE_MISSED of a reader, if it has changed since the last call.
    pub fn take_requested_deadline_missed(
        &mut self,
        reader: ReaderHandle,
    ) -> Option<DeadlineMissed> {
        let (node, id) = (self.readers[reader.0].node, self.readers[reader.0].id);
        self.engine_mut(node).take_requested_deadline_missed(id)
    }

    /// Returns LIVELINESS_LOST of a writer, if it has changed since the last call.
    pub fn take_liveliness_lost(&mut self, writer: WriterHandle) -> Option<LivelinessLost> {
        let (node, id) = (self.writers[writer.0].node, self.writers[writer.0].id);
        self.engine_mut(node).take_liveliness_lost(id)
    }

    /// Returns LIVELINESS_CHANGED of a reader, if it has changed since the last call.
    pub fn take_liveliness_changed(&mut self, reader: ReaderHandle) -> Option<LivelinessChanged> {
        let (node, id) = (self.readers[reader.0].node, self.readers[reader.0].id);
        self.engine_mut(node).take_liveliness_changed(id)
    }
}
