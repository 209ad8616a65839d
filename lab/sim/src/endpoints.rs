//! Creation, deletion and observation of a world's writers and readers.

use isolane_rtps::{
    ChangeKind, ContentFilter, DeliveryMode, LocalParticipant, ReaderId, ReaderLedger,
    ReaderStatus, SetQosError, WriterId, WriterLedger, WriterStatus, limits::MAX_DATAGRAM_BYTES,
};
use isolane_wire::{
    guid::Guid,
    message::{HEADER_BYTES, Submessage, Submessages},
    qos::QosPolicies,
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

/// Writer of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriterHandle(pub(crate) usize);

/// Reader of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderHandle(pub(crate) usize);

/// Returns the unregister of an instance in a submessage, if any.
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
        let protocol = self.protocol_mut(node);
        let id = protocol
            .create_writer(now, &topic.endpoint(node, false))
            .expect("the writer can be created");
        if topic.is_keyed() {
            protocol.keep_keys(id, key_payload, KEY_BYTES);
        }
        self.enter_writer(node, topic, id)
    }

    pub(crate) fn enter_writer(
        &mut self,
        node: NodeId,
        topic: &Topic,
        id: WriterId,
    ) -> WriterHandle {
        let protocol = self.protocol(node);
        let guid = protocol.writer_data(id).expect("it exists").guid;
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

    /// Creates a reader with a filter that may be announced to writers.
    pub fn create_reader_with(
        &mut self,
        node: NodeId,
        topic: &Topic,
        filter: ContentFilter,
    ) -> ReaderHandle {
        self.create_reader_of(node, topic, DeliveryMode::Cache, Some(filter))
    }

    /// Creates a best-effort reader on a node that is shown frames in place and keeps no samples.
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
        let protocol = self.protocol_mut(node);
        let config = topic.endpoint(node, true);
        let created = match filter {
            None => protocol.create_reader(now, &config, delivery),
            Some(filter) => protocol.create_filtered_reader(now, &config, delivery, filter),
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
        let protocol = self.protocol(node);
        let guid = protocol.reader_data(id).expect("it exists").guid;
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

    /// Changes the QoS policies of a writer.
    ///
    /// # Errors
    /// Those of the local participant; nothing was changed.
    pub fn set_writer_qos(
        &mut self,
        writer: WriterHandle,
        change: impl FnOnce(&mut QosPolicies),
    ) -> Result<(), SetQosError> {
        let now = self.now;
        let (node, id) = (self.writers[writer.0].node, self.writers[writer.0].id);
        let protocol = self.protocol_mut(node);
        let mut qos = protocol.writer_data(id).expect("it exists").qos.clone();
        change(&mut qos);
        let changed = protocol.set_writer_qos(now, id, &qos);
        self.settle(node);
        changed
    }

    /// Changes the QoS policies of a reader.
    ///
    /// # Errors
    /// Those of the local participant; nothing was changed.
    pub fn set_reader_qos(
        &mut self,
        reader: ReaderHandle,
        change: impl FnOnce(&mut QosPolicies),
    ) -> Result<(), SetQosError> {
        let now = self.now;
        let (node, id) = (self.readers[reader.0].node, self.readers[reader.0].id);
        let protocol = self.protocol_mut(node);
        let mut qos = protocol.reader_data(id).expect("it exists").qos.clone();
        change(&mut qos);
        let changed = protocol.set_reader_qos(now, id, &qos);
        self.settle(node);
        changed
    }

    /// Calls `act` with the local participant of a running node, then processes the consequences.
    pub fn with_protocol<T>(
        &mut self,
        node: NodeId,
        act: impl FnOnce(&mut LocalParticipant, Instant) -> T,
    ) -> T {
        let now = self.now;
        let done = act(self.protocol_mut(node), now);
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
        while let Some(bytes) = self
            .protocol_mut(node)
            .next_unregister(now, id, &mut buffer)
        {
            let to = self.protocol(node).destinations(id).to_vec();
            self.send(node, &buffer[..bytes], &to);
            let submessages = Submessages::new(&buffer[..bytes], HEADER_BYTES).flatten();
            let ends = submessages.filter_map(end_of_instance);
            self.writers[writer.0]
                .written
                .extend(ends.map(|end| Written { at: now, ..end }));
        }
        self.protocol_mut(node).delete_writer(now, id);
        self.settle(node);
    }

    /// Deletes a reader.
    pub fn delete_reader(&mut self, reader: ReaderHandle) {
        self.assert_reader_balanced(reader.0);
        let now = self.now;
        let record = &mut self.readers[reader.0];
        record.is_deleted = true;
        let (node, id) = (record.node, record.id);
        self.protocol_mut(node).delete_reader(now, id);
        self.settle(node);
    }

    /// Runs until both sides of every pair of these writers and readers are matched.
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

    /// Number of matched readers of a writer.
    #[must_use]
    pub fn matched_readers(&self, writer: WriterHandle) -> usize {
        let record = &self.writers[writer.0];
        self.protocol(record.node).matched_readers(record.id)
    }

    /// Number of matched writers of a reader.
    #[must_use]
    pub fn matched_writers(&self, reader: ReaderHandle) -> usize {
        let record = &self.readers[reader.0];
        self.protocol(record.node).matched_writers(record.id)
    }

    /// GUIDs of the matched readers of a writer.
    pub fn matched_reader_guids(&self, writer: WriterHandle) -> impl Iterator<Item = Guid> + '_ {
        let record = &self.writers[writer.0];
        let progress = self
            .protocol(record.node)
            .matched_reader_progress(record.id);
        progress.map(|(guid, _)| guid)
    }

    /// GUIDs of the matched writers of a reader.
    pub fn matched_writer_guids(&self, reader: ReaderHandle) -> impl Iterator<Item = Guid> + '_ {
        let record = &self.readers[reader.0];
        let progress = self
            .protocol(record.node)
            .matched_writer_progress(record.id);
        progress.map(|(guid, _)| guid)
    }

    /// Matches reported to a writer, and their ends, in order.
    #[must_use]
    pub fn matches_of_writer(&self, writer: WriterHandle) -> &[MatchChange] {
        &self.writers[writer.0].matches.changes
    }

    /// Matches reported to a reader, and their ends, in order.
    #[must_use]
    pub fn matches_of_reader(&self, reader: ReaderHandle) -> &[MatchChange] {
        &self.readers[reader.0].matches.changes
    }

    /// GUID of a writer.
    #[must_use]
    pub fn writer_guid(&self, writer: WriterHandle) -> Guid {
        self.writers[writer.0].guid
    }

    /// GUID of a reader.
    #[must_use]
    pub fn reader_guid(&self, reader: ReaderHandle) -> Guid {
        self.readers[reader.0].guid
    }

    /// Id of a writer in its participant.
    #[must_use]
    pub fn writer_id(&self, writer: WriterHandle) -> WriterId {
        self.writers[writer.0].id
    }

    /// Id of a reader in its participant.
    #[must_use]
    pub fn reader_id(&self, reader: ReaderHandle) -> ReaderId {
        self.readers[reader.0].id
    }

    /// Participant's ledger of an existing writer.
    #[must_use]
    pub fn writer_ledger(&self, writer: WriterHandle) -> WriterLedger {
        let record = &self.writers[writer.0];
        let ledger = self.protocol(record.node).writer_ledger(record.id);
        ledger.expect("the writer exists")
    }

    /// Participant's ledger of an existing reader.
    #[must_use]
    pub fn reader_ledger(&self, reader: ReaderHandle) -> ReaderLedger {
        let record = &self.readers[reader.0];
        let ledger = self.protocol(record.node).reader_ledger(record.id);
        ledger.expect("the reader exists")
    }

    /// All statuses ever reported of a writer.
    #[must_use]
    pub fn writer_statuses(&self, writer: WriterHandle) -> WriterStatus {
        self.writers[writer.0].statuses
    }

    /// All statuses ever reported of a reader.
    #[must_use]
    pub fn reader_statuses(&self, reader: ReaderHandle) -> ReaderStatus {
        self.readers[reader.0].statuses
    }
}
