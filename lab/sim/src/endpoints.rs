//! Writers and readers of a world: creation, deletion, and inspection.

use isolane_engine::{
    ChangeKind, ContentFilter, DeliveryMode, Engine, ReaderId, ReaderLedger, ReaderStatus,
    SetQosError, WriterId, WriterLedger, WriterStatus, limits::MAX_DATAGRAM_BYTES,
};
use isolane_wire::{
    guid::Guid,
    qos::QosPolicies,
    rtps::{HEADER_BYTES, Submessage, Submessages},
    time::Instant,
};

use crate::{
    limits::MATCH_PATIENCE,
    node::NodeId,
    sample::{KEY_BYTES, Sample, key_payload},
    topic::Topic,
    user::{MatchChange, ReaderRecord, Take, WriterRecord, Written},
    world::World,
};

/// Handle to a writer of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriterHandle(pub(crate) usize);

/// Handle to a reader of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderHandle(pub(crate) usize);

/// Returns the unregistration contained in a submessage, if any.
fn end_of_instance(submessage: Submessage<'_>) -> Option<Written> {
    let Submessage::Data(data) = submessage else {
        return None;
    };
    Some(Written {
        at: Instant::new(0),
        sequence: data.sequence,
        sample: Sample::parse(ChangeKind::Unregister, data.bytes)?,
    })
}

impl World {
    /// Creates a writer on a node.
    pub fn create_writer(&mut self, node: NodeId, topic: &Topic) -> WriterHandle {
        let now = self.now;
        let engine = self.engine_mut(node);
        let id = engine
            .create_writer(now, &topic.endpoint(node, false))
            .expect("the writer can be created");
        if topic.is_keyed() {
            engine.keep_keys(id, key_payload, KEY_BYTES);
        }
        self.enter_writer(node, topic, id)
    }

    pub(crate) fn enter_writer(
        &mut self,
        node: NodeId,
        topic: &Topic,
        id: WriterId,
    ) -> WriterHandle {
        let engine = self.engine(node);
        let guid = engine.writer_data(id).expect("it exists").guid;
        self.writers.push(WriterRecord {
            node,
            incarnation: self.nodes[node.0].incarnation,
            id,
            guid,
            is_keyed: topic.is_keyed(),
            is_deleted: false,
            backlog: Default::default(),
            planned: Default::default(),
            written: Vec::new(),
            refused: 0,
            statuses: WriterStatus::empty(),
            matches: Default::default(),
        });
        self.settle(node);
        WriterHandle(self.writers.len() - 1)
    }

    /// Creates a reader on a node, whose user takes samples at once.
    pub fn create_reader(&mut self, node: NodeId, topic: &Topic) -> ReaderHandle {
        self.create_reader_of(node, topic, DeliveryMode::Cache, None)
    }

    /// Creates a reader with a content filter on the payload.
    pub fn create_filtered_reader(
        &mut self,
        node: NodeId,
        topic: &Topic,
        wants: impl Fn(&[u8]) -> bool + 'static,
    ) -> ReaderHandle {
        let filter = Some(ContentFilter::new(wants));
        self.create_reader_of(node, topic, DeliveryMode::Cache, filter)
    }

    /// Creates a reader with a filter that is announced to writers.
    pub fn create_reader_with(
        &mut self,
        node: NodeId,
        topic: &Topic,
        filter: ContentFilter,
    ) -> ReaderHandle {
        self.create_reader_of(node, topic, DeliveryMode::Cache, Some(filter))
    }

    /// Creates a best-effort reader on a node that receives views of frames and stores nothing.
    pub fn create_view_reader(&mut self, node: NodeId, topic: &Topic) -> ReaderHandle {
        self.create_reader_of(node, topic, DeliveryMode::View, None)
    }

    fn create_reader_of(
        &mut self,
        node: NodeId,
        topic: &Topic,
        delivery: DeliveryMode,
        filter: Option<ContentFilter>,
    ) -> ReaderHandle {
        let now = self.now;
        let engine = self.engine_mut(node);
        let config = topic.endpoint(node, true);
        let created = match filter {
            None => engine.create_reader(now, &config, delivery),
            Some(filter) => engine.create_filtered_reader(now, &config, delivery, filter),
        };
        let id = created.expect("the reader can be created");
        self.enter_reader(node, topic, id)
    }

    pub(crate) fn enter_reader(
        &mut self,
        node: NodeId,
        topic: &Topic,
        id: ReaderId,
    ) -> ReaderHandle {
        let engine = self.engine(node);
        let guid = engine.reader_data(id).expect("it exists").guid;
        let of_node = &mut self.nodes[node.0];
        if topic.is_multicast() {
            of_node.groups.insert(NodeId::level_group(topic.at_level()));
        }
        self.readers.push(ReaderRecord {
            node,
            incarnation: of_node.incarnation,
            id,
            guid,
            is_deleted: false,
            take: Take::AtOnce,
            visit_filed: false,
            received: Vec::new(),
            statuses: ReaderStatus::empty(),
            matches: Default::default(),
        });
        self.settle(node);
        ReaderHandle(self.readers.len() - 1)
    }

    /// Changes the policies of a writer.
    ///
    /// # Errors
    /// That of the engine; nothing was changed then.
    pub fn set_writer_qos(
        &mut self,
        writer: WriterHandle,
        change: impl FnOnce(&mut QosPolicies),
    ) -> Result<(), SetQosError> {
        let now = self.now;
        let (node, id) = (self.writers[writer.0].node, self.writers[writer.0].id);
        let engine = self.engine_mut(node);
        let mut qos = engine.writer_data(id).expect("it exists").qos.clone();
        change(&mut qos);
        let changed = engine.set_writer_qos(now, id, &qos);
        self.settle(node);
        changed
    }

    /// Changes the policies of a reader.
    ///
    /// # Errors
    /// That of the engine; nothing was changed then.
    pub fn set_reader_qos(
        &mut self,
        reader: ReaderHandle,
        change: impl FnOnce(&mut QosPolicies),
    ) -> Result<(), SetQosError> {
        let now = self.now;
        let (node, id) = (self.readers[reader.0].node, self.readers[reader.0].id);
        let engine = self.engine_mut(node);
        let mut qos = engine.reader_data(id).expect("it exists").qos.clone();
        change(&mut qos);
        let changed = engine.set_reader_qos(now, id, &qos);
        self.settle(node);
        changed
    }

    /// Calls a function with the engine of a running node, and processes the consequences.
    pub fn with_engine<T>(
        &mut self,
        node: NodeId,
        act: impl FnOnce(&mut Engine, Instant) -> T,
    ) -> T {
        let now = self.now;
        let done = act(self.engine_mut(node), now);
        self.settle(node);
        done
    }

    /// Deletes a writer.
    pub fn delete_writer(&mut self, writer: WriterHandle) {
        self.assert_writer_balanced(writer.0);
        let now = self.now;
        let record = &mut self.writers[writer.0];
        record.is_deleted = true;
        let (node, id) = (record.node, record.id);
        let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
        while let Some(bytes) = self.engine_mut(node).next_unregister(now, id, &mut buffer) {
            let to = self.engine(node).destinations(id).to_vec();
            self.send(node, &buffer[..bytes], &to);
            let submessages = Submessages::new(&buffer[..bytes], HEADER_BYTES).flatten();
            let ends = submessages.filter_map(end_of_instance);
            self.writers[writer.0]
                .written
                .extend(ends.map(|end| Written { at: now, ..end }));
        }
        self.engine_mut(node).delete_writer(now, id);
        self.settle(node);
    }

    /// Deletes a reader.
    pub fn delete_reader(&mut self, reader: ReaderHandle) {
        self.assert_reader_balanced(reader.0);
        let now = self.now;
        let record = &mut self.readers[reader.0];
        record.is_deleted = true;
        let (node, id) = (record.node, record.id);
        self.engine_mut(node).delete_reader(now, id);
        self.settle(node);
    }

    /// Runs the world until each of these writers is matched with as many readers as given here, and each reader with
    /// as many writers.
    pub fn until_matched(&mut self, writers: &[WriterHandle], readers: &[ReaderHandle]) {
        self.run_until("all are matched", MATCH_PATIENCE, |world| {
            let knows_readers = |&writer: &WriterHandle| world.matched_readers(writer);
            let knows_writers = |&reader: &ReaderHandle| world.matched_writers(reader);
            writers
                .iter()
                .map(knows_readers)
                .all(|n| n == readers.len())
                && readers
                    .iter()
                    .map(knows_writers)
                    .all(|n| n == writers.len())
        });
    }

    /// Returns the number of readers that a writer is matched with.
    #[must_use]
    pub fn matched_readers(&self, writer: WriterHandle) -> usize {
        let record = &self.writers[writer.0];
        self.engine(record.node).matched_readers(record.id)
    }

    /// Returns the number of writers that a reader is matched with.
    #[must_use]
    pub fn matched_writers(&self, reader: ReaderHandle) -> usize {
        let record = &self.readers[reader.0];
        self.engine(record.node).matched_writers(record.id)
    }

    /// Iterates over the GUIDs of a writer's matched readers.
    pub fn matched_reader_guids(&self, writer: WriterHandle) -> impl Iterator<Item = Guid> + '_ {
        let record = &self.writers[writer.0];
        let progress = self.engine(record.node).matched_reader_progress(record.id);
        progress.map(|(guid, _)| guid)
    }

    /// Iterates over the GUIDs of a reader's matched writers.
    pub fn matched_writer_guids(&self, reader: ReaderHandle) -> impl Iterator<Item = Guid> + '_ {
        let record = &self.readers[reader.0];
        let progress = self.engine(record.node).matched_writer_progress(record.id);
        progress.map(|(guid, _)| guid)
    }

    /// Returns the matches and unmatches reported to a writer, in order.
    #[must_use]
    pub fn matches_of_writer(&self, writer: WriterHandle) -> &[MatchChange] {
        &self.writers[writer.0].matches.changes
    }

    /// Returns the matches and unmatches reported to a reader, in order.
    #[must_use]
    pub fn matches_of_reader(&self, reader: ReaderHandle) -> &[MatchChange] {
        &self.readers[reader.0].matches.changes
    }

    /// Returns the GUID of a writer.
    #[must_use]
    pub fn writer_guid(&self, writer: WriterHandle) -> Guid {
        self.writers[writer.0].guid
    }

    /// Returns the GUID of a reader.
    #[must_use]
    pub fn reader_guid(&self, reader: ReaderHandle) -> Guid {
        self.readers[reader.0].guid
    }

    /// Returns the id of a writer in its engine.
    #[must_use]
    pub fn writer_id(&self, writer: WriterHandle) -> WriterId {
        self.writers[writer.0].id
    }

    /// Returns the id of a reader in its engine.
    #[must_use]
    pub fn reader_id(&self, reader: ReaderHandle) -> ReaderId {
        self.readers[reader.0].id
    }

    /// Returns the engine's ledger of an existing writer.
    #[must_use]
    pub fn writer_ledger(&self, writer: WriterHandle) -> WriterLedger {
        let record = &self.writers[writer.0];
        let ledger = self.engine(record.node).writer_ledger(record.id);
        ledger.expect("the writer exists")
    }

    /// Returns the engine's ledger of an existing reader.
    #[must_use]
    pub fn reader_ledger(&self, reader: ReaderHandle) -> ReaderLedger {
        let record = &self.readers[reader.0];
        let ledger = self.engine(record.node).reader_ledger(record.id);
        ledger.expect("the reader exists")
    }

    /// Returns all statuses ever reported of a writer.
    #[must_use]
    pub fn writer_statuses(&self, writer: WriterHandle) -> WriterStatus {
        self.writers[writer.0].statuses
    }

    /// Returns all statuses ever reported of a reader.
    #[must_use]
    pub fn reader_statuses(&self, reader: ReaderHandle) -> ReaderStatus {
        self.readers[reader.0].statuses
    }
}
