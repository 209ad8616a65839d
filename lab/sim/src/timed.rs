//! What users do and are told where policies of time are concerned: deadlines, and who is alive.

use isolane_engine::{DeadlineMissed, LivelinessChanged, LivelinessLost};

use crate::{
    endpoints::{ReaderHandle, WriterHandle},
    node::NodeId,
    world::World,
};

impl World {
    /// The user of a writer says that it is alive.
    pub fn assert_liveliness(&mut self, writer: WriterHandle) {
        let now = self.now;
        let (node, id) = (self.writers[writer.0].node, self.writers[writer.0].id);
        self.engine_mut(node).assert_liveliness(now, id);
        self.settle(node);
    }

    /// The user of a node says so for all its writers.
    pub fn assert_participant(&mut self, node: NodeId) {
        let now = self.now;
        self.engine_mut(node).assert_participant(now);
        self.settle(node);
    }

    /// Periods in which a writer's instances were not written, since this was last asked.
    pub fn take_offered_deadline_missed(&mut self, writer: WriterHandle) -> Option<DeadlineMissed> {
        let (node, id) = (self.writers[writer.0].node, self.writers[writer.0].id);
        self.engine_mut(node).take_offered_deadline_missed(id)
    }

    /// Periods in which nothing came of a reader's instances, since this was last asked.
    pub fn take_requested_deadline_missed(
        &mut self,
        reader: ReaderHandle,
    ) -> Option<DeadlineMissed> {
        let (node, id) = (self.readers[reader.0].node, self.readers[reader.0].id);
        self.engine_mut(node).take_requested_deadline_missed(id)
    }

    /// Times a writer has lost its liveliness, since this was last asked.
    pub fn take_liveliness_lost(&mut self, writer: WriterHandle) -> Option<LivelinessLost> {
        let (node, id) = (self.writers[writer.0].node, self.writers[writer.0].id);
        self.engine_mut(node).take_liveliness_lost(id)
    }

    /// How many of a reader's writers are alive, if that has changed since this was last asked.
    pub fn take_liveliness_changed(&mut self, reader: ReaderHandle) -> Option<LivelinessChanged> {
        let (node, id) = (self.readers[reader.0].node, self.readers[reader.0].id);
        self.engine_mut(node).take_liveliness_changed(id)
    }
}
