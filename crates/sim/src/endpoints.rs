//! Writers and readers of a world, and what their users do with them.

use std::time::Duration;

use isolane_engine::{
    Delivery, DeliveryMode, ReaderId, ReaderLedger, ReaderStatus, StatusChange, WriteError,
    WriterId, WriterLedger, WriterStatus, limits::MAX_HEAD_BYTES,
};
use isolane_wire::{guid::Guid, sequence::SequenceNumber};

use crate::{
    limits::MATCH_PATIENCE,
    node::NodeId,
    sample::{Sample, key_hash},
    topic::Topic,
    user::{ReaderRecord, Received, Take, WriterRecord, Written},
    world::{Event, World},
};

/// A writer of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriterHandle(pub(crate) usize);

/// A reader of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderHandle(pub(crate) usize);

/// Creating, deleting, looking.
impl World {
    /// Creates a writer on a node.
    pub fn create_writer(&mut self, node: NodeId, topic: &Topic) -> WriterHandle {
        let now = self.now;
        let engine = self.engine_mut(node);
        let id = engine
            .create_writer(now, &topic.endpoint(node, false))
            .expect("the writer can be created");
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
        });
        self.settle(node);
        WriterHandle(self.writers.len() - 1)
    }

    /// Creates a reader on a node, whose user takes samples at once.
    pub fn create_reader(&mut self, node: NodeId, topic: &Topic) -> ReaderHandle {
        self.create_reader_of(node, topic, DeliveryMode::Cache)
    }

    /// Creates a best-effort reader on a node that is shown views of frames and keeps nothing.
    pub fn create_view_reader(&mut self, node: NodeId, topic: &Topic) -> ReaderHandle {
        self.create_reader_of(node, topic, DeliveryMode::View)
    }

    fn create_reader_of(
        &mut self,
        node: NodeId,
        topic: &Topic,
        delivery: DeliveryMode,
    ) -> ReaderHandle {
        let now = self.now;
        let engine = self.engine_mut(node);
        let id = engine
            .create_reader(now, &topic.endpoint(node, true), delivery)
            .expect("the reader can be created");
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
            matched: Vec::new(),
            has_lost_a_match: false,
        });
        self.settle(node);
        ReaderHandle(self.readers.len() - 1)
    }

    /// Deletes a writer.
    pub fn delete_writer(&mut self, writer: WriterHandle) {
        self.assert_writer_balanced(writer.0);
        let now = self.now;
        let record = &mut self.writers[writer.0];
        record.is_deleted = true;
        let (node, id) = (record.node, record.id);
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

    /// Lets time pass until each of these writers is matched with as many readers as there are
    /// here, and each reader with as many writers: both sides know.
    pub fn until_matched(&mut self, writers: &[WriterHandle], readers: &[ReaderHandle]) {
        self.run_until("all are matched", MATCH_PATIENCE, |world| {
            let knows_readers = |&writer: &WriterHandle| world.matched_readers(writer);
            let knows_writers = |&reader: &ReaderHandle| world.matched_writers(reader);
            writers.iter().map(knows_readers).all(|n| n == readers.len())
                && readers.iter().map(knows_writers).all(|n| n == writers.len())
        });
    }

    /// Readers that a writer is matched with now.
    #[must_use]
    pub fn matched_readers(&self, writer: WriterHandle) -> usize {
        let record = &self.writers[writer.0];
        self.engine(record.node).matched_readers(record.id)
    }

    /// Writers that a reader is matched with now.
    #[must_use]
    pub fn matched_writers(&self, reader: ReaderHandle) -> usize {
        let record = &self.readers[reader.0];
        self.engine(record.node).matched_writers(record.id)
    }

    /// Who a writer is to its peers.
    #[must_use]
    pub fn writer_guid(&self, writer: WriterHandle) -> Guid {
        self.writers[writer.0].guid
    }

    /// Who a reader is to its peers.
    #[must_use]
    pub fn reader_guid(&self, reader: ReaderHandle) -> Guid {
        self.readers[reader.0].guid
    }

    /// A writer's name at its engine.
    #[must_use]
    pub fn writer_id(&self, writer: WriterHandle) -> WriterId {
        self.writers[writer.0].id
    }

    /// A reader's name at its engine.
    #[must_use]
    pub fn reader_id(&self, reader: ReaderHandle) -> ReaderId {
        self.readers[reader.0].id
    }

    /// The engine's ledger of a writer that exists.
    #[must_use]
    pub fn writer_ledger(&self, writer: WriterHandle) -> WriterLedger {
        let record = &self.writers[writer.0];
        let ledger = self.engine(record.node).writer_ledger(record.id);
        ledger.expect("the writer exists")
    }

    /// The engine's ledger of a reader that exists.
    #[must_use]
    pub fn reader_ledger(&self, reader: ReaderHandle) -> ReaderLedger {
        let record = &self.readers[reader.0];
        let ledger = self.engine(record.node).reader_ledger(record.id);
        ledger.expect("the reader exists")
    }

    /// All that was ever reported of a writer.
    #[must_use]
    pub fn writer_statuses(&self, writer: WriterHandle) -> WriterStatus {
        self.writers[writer.0].statuses
    }

    /// All that was ever reported of a reader.
    #[must_use]
    pub fn reader_statuses(&self, reader: ReaderHandle) -> ReaderStatus {
        self.readers[reader.0].statuses
    }
}

/// Writing.
impl World {
    /// Writes a sample once, now.
    ///
    /// # Errors
    /// The engine's.
    pub fn write(
        &mut self,
        writer: WriterHandle,
        sample: Sample,
    ) -> Result<SequenceNumber, WriteError> {
        let (node, written) = self.try_write(writer.0, sample);
        self.settle(node);
        written
    }

    /// Writes samples one after the other as soon as each finds room: a refused write is tried
    /// again when the engine says that there is room ([`WriterStatus::ROOM`]).
    pub fn enqueue(&mut self, writer: WriterHandle, samples: impl IntoIterator<Item = Sample>) {
        self.writers[writer.0].backlog.extend(samples);
        self.write_backlog(writer.0);
        self.settle(self.writers[writer.0].node);
    }

    /// As [`Self::enqueue`], one sample each `period` from now on.
    pub fn publish(
        &mut self,
        writer: WriterHandle,
        period: Duration,
        samples: impl IntoIterator<Item = Sample>,
    ) {
        self.writers[writer.0].planned.extend(samples);
        let writer = writer.0;
        self.schedule(self.now, Event::Publish { writer, period });
    }

    /// What a writer has accepted, in order.
    #[must_use]
    pub fn written(&self, writer: WriterHandle) -> &[Written] {
        &self.writers[writer.0].written
    }

    /// How many samples still wait for room, or for their time.
    #[must_use]
    pub fn unwritten(&self, writer: WriterHandle) -> usize {
        let record = &self.writers[writer.0];
        record.backlog.len() + record.planned.len()
    }

    /// How often a write found no room.
    #[must_use]
    pub fn refused(&self, writer: WriterHandle) -> u64 {
        self.writers[writer.0].refused
    }

    fn try_write(
        &mut self,
        writer: usize,
        sample: Sample,
    ) -> (NodeId, Result<SequenceNumber, WriteError>) {
        let now = self.now;
        let record = &self.writers[writer];
        let (node, id, is_keyed) = (record.node, record.id, record.is_keyed);
        let engine = self.engine_mut(node);
        let change = sample.to_write(is_keyed, engine.timestamp(now));
        let payload = sample.payload();
        let written = if engine.keeps_history(id) {
            match engine.reserve(id, change.key_hash) {
                Ok(slot) => {
                    let fits = payload.len().min(slot.len());
                    slot[..fits].copy_from_slice(&payload[..fits]);
                    engine.commit(now, id, &change, payload.len())
                }
                Err(error) => Err(error),
            }
        } else {
            let mut frame = vec![0; MAX_HEAD_BYTES];
            frame.extend(payload);
            let place = MAX_HEAD_BYTES..frame.len();
            match engine.write_best_effort(id, &change, &mut frame, place) {
                Ok(datagram) => {
                    let to = engine.destinations(id).to_vec();
                    let ledger = engine.writer_ledger(id).expect("it exists");
                    self.send(node, &frame[datagram], &to);
                    Ok(SequenceNumber(ledger.written as i64))
                }
                Err(error) => Err(error),
            }
        };
        if let Ok(sequence) = written {
            self.writers[writer].written.push(Written {
                at: now,
                sequence,
                sample,
            });
        }
        (node, written)
    }

    fn write_backlog(&mut self, writer: usize) {
        while let Some(&sample) = self.writers[writer].backlog.front() {
            match self.try_write(writer, sample).1 {
                Ok(_) => {
                    self.writers[writer].backlog.pop_front();
                }
                Err(WriteError::HistoryFull | WriteError::InstancesFull) => {
                    self.writers[writer].refused += 1;
                    return;
                }
                Err(error) => panic!("seed {}: {sample:?} was not written: {error}", self.seed),
            }
        }
    }

    pub(crate) fn publish_next(&mut self, writer: usize, period: Duration) {
        if !self.writer_exists(writer) {
            return;
        }
        let record = &mut self.writers[writer];
        let Some(sample) = record.planned.pop_front() else {
            return;
        };
        record.backlog.push_back(sample);
        let node = record.node;
        self.write_backlog(writer);
        self.schedule(self.now + period, Event::Publish { writer, period });
        self.settle(node);
    }

    pub(crate) fn writer_exists(&self, writer: usize) -> bool {
        let record = &self.writers[writer];
        let node = &self.nodes[record.node.0];
        !record.is_deleted && node.engine.is_some() && node.incarnation == record.incarnation
    }
}

/// Taking.
impl World {
    /// Says when a reader's user takes samples.
    pub fn set_take(&mut self, reader: ReaderHandle, take: Take) {
        self.readers[reader.0].take = take;
    }

    /// Takes up to `count` samples now; returns how many there were.
    pub fn take(&mut self, reader: ReaderHandle, count: usize) -> usize {
        let taken = (0..count).take_while(|_| self.take_one(reader.0)).count();
        self.settle(self.readers[reader.0].node);
        taken
    }

    /// What a reader's user has taken, in order.
    #[must_use]
    pub fn received(&self, reader: ReaderHandle) -> &[Received] {
        &self.readers[reader.0].received
    }

    /// What a reader's user has taken of one writer, in order.
    pub fn received_from(
        &self,
        reader: ReaderHandle,
        writer: WriterHandle,
    ) -> impl Iterator<Item = &Received> {
        let guid = self.writers[writer.0].guid;
        let received = self.readers[reader.0].received.iter();
        received.filter(move |received| received.info.writer == guid)
    }

    /// The values a reader's user has taken, in order.
    #[must_use]
    pub fn values(&self, reader: ReaderHandle) -> Vec<u64> {
        let received = self.readers[reader.0].received.iter();
        let values = received.filter(|received| received.info.valid_data());
        let value = |received: &Received| received.sample().map(|sample| sample.value);
        values.filter_map(value).collect()
    }

    /// The last thing a reader's user has taken of an instance.
    #[must_use]
    pub fn last_of_instance(&self, reader: ReaderHandle, key: u32) -> Option<&Received> {
        let hash = Some(key_hash(key));
        let received = self.readers[reader.0].received.iter();
        received.rev().find(|received| received.info.key_hash == hash)
    }

    fn take_one(&mut self, reader: usize) -> bool {
        let at = self.now;
        let (node, id) = (self.readers[reader].node, self.readers[reader].id);
        let engine = self.engine_mut(node);
        let Some(sample) = engine.sample(id, 0) else {
            return false;
        };
        let received = Received {
            at,
            info: *sample.info,
            payload: sample.payload.to_vec(),
        };
        engine.remove_oldest(id);
        self.readers[reader].received.push(received);
        true
    }

    /// A view reader is shown a sample.
    pub(crate) fn view(&mut self, node: NodeId, delivery: &Delivery, bytes: &[u8]) {
        let at = self.now;
        let reader = self.reader_of(node, delivery.reader);
        self.readers[reader].received.push(Received {
            at,
            info: delivery.info,
            payload: bytes[delivery.payload.clone()].to_vec(),
        });
    }

    pub(crate) fn visit(&mut self, reader: usize) {
        self.readers[reader].visit_filed = false;
        if self.reader_exists(reader) {
            self.take_one(reader);
            self.file_visit(reader);
            self.settle(self.readers[reader].node);
        }
    }

    /// Files the next visit of a slow user, if there is anything to take.
    fn file_visit(&mut self, reader: usize) {
        let record = &self.readers[reader];
        let Take::OneEvery(period) = record.take else {
            return;
        };
        let has_some = self.engine(record.node).available(record.id) > 0;
        if has_some && !record.visit_filed {
            self.readers[reader].visit_filed = true;
            self.schedule(self.now + period, Event::Visit(reader));
        }
    }

    pub(crate) fn reader_exists(&self, reader: usize) -> bool {
        let record = &self.readers[reader];
        let node = &self.nodes[record.node.0];
        !record.is_deleted && node.engine.is_some() && node.incarnation == record.incarnation
    }
}

/// Reacting.
impl World {
    /// Tells the users of a node's endpoints what their engine has to tell.
    pub(crate) fn users_react(&mut self, node: NodeId) {
        loop {
            let Some(engine) = &mut self.nodes[node.0].engine else {
                return;
            };
            match engine.next_status() {
                None => return,
                Some(StatusChange::Discovery) => {}
                Some(StatusChange::Writer(id, status)) => {
                    let writer = self.writer_of(node, id);
                    self.writers[writer].statuses |= status;
                    if status.contains(WriterStatus::ROOM) {
                        self.write_backlog(writer);
                    }
                }
                Some(StatusChange::Reader(id, status)) => {
                    let reader = self.reader_of(node, id);
                    self.readers[reader].statuses |= status;
                    if status.contains(ReaderStatus::SUBSCRIPTION_MATCHED) {
                        self.note_matches(reader);
                    }
                    if status.contains(ReaderStatus::DATA_AVAILABLE) {
                        match self.readers[reader].take {
                            Take::AtOnce => while self.take_one(reader) {},
                            Take::OneEvery(_) => self.file_visit(reader),
                            Take::OnRequest => {}
                        }
                    }
                }
            }
        }
    }

    fn note_matches(&mut self, reader: usize) {
        let record = &self.readers[reader];
        let progress = self
            .engine(record.node)
            .matched_writer_progress(record.id);
        let matched: Vec<Guid> = progress.map(|(guid, _)| guid).collect();
        let record = &mut self.readers[reader];
        record.has_lost_a_match |= record.matched.iter().any(|old| !matched.contains(old));
        record.matched = matched;
    }

    fn writer_of(&self, node: NodeId, id: WriterId) -> usize {
        (0..self.writers.len())
            .rev()
            .find(|&at| self.writers[at].node == node && self.writers[at].id == id)
            .expect("an engine tells only of endpoints created here")
    }

    fn reader_of(&self, node: NodeId, id: ReaderId) -> usize {
        (0..self.readers.len())
            .rev()
            .find(|&at| self.readers[at].node == node && self.readers[at].id == id)
            .expect("an engine tells only of endpoints created here")
    }
}
