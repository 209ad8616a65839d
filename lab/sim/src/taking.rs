//! Users of readers, who take samples, and the reactions of all users to statuses of their participant.

use isolane_rtps::{
    Delivery, ReaderId, ReaderStatus, Selection, StatusChange, WriterId, WriterStatus,
};

use crate::{
    endpoints::{ReaderHandle, WriterHandle},
    node::NodeId,
    queue::Event,
    sample::key_hash,
    user::{Received, Take, Then},
    world::World,
};

impl World {
    /// Sets when a reader's user takes samples.
    pub fn set_take(&mut self, reader: ReaderHandle, take: Take) {
        self.readers[reader.0].take = take;
    }

    /// Takes up to `count` samples now and returns their number.
    pub fn take(&mut self, reader: ReaderHandle, count: usize) -> usize {
        let taken = (0..count).take_while(|_| self.take_one(reader.0)).count();
        self.settle(self.readers[reader.0].node);
        taken
    }

    /// Selects samples at the current time, and leaves, reads or takes them.
    pub fn select(
        &mut self,
        reader: ReaderHandle,
        selection: &Selection<'_>,
        then: Then,
    ) -> Vec<Received> {
        let at = self.now;
        let (node, id) = (self.readers[reader.0].node, self.readers[reader.0].id);
        let protocol = self.protocol_mut(node);
        protocol.drop_expired(at, id);
        let is_any = protocol.has_any(id, selection);
        let count = protocol.select(id, selection);
        assert_eq!(is_any, count > 0, "what is requested is there, or is not");
        let selected = (0..count).filter_map(|nth| protocol.selected(id, nth));
        let selected: Vec<_> = selected
            .map(|sample| Received {
                at,
                info: sample.info,
                payload: sample.payload.to_vec(),
            })
            .collect();
        match then {
            Then::Leave => {}
            Then::Read => protocol.read_selected(id),
            Then::Take => {
                protocol.take_selected(id);
                self.readers[reader.0].received.extend(selected.clone());
            }
        }
        self.settle(node);
        selected
    }

    /// Changes that a reader's user has taken, in order.
    #[must_use]
    pub fn received(&self, reader: ReaderHandle) -> &[Received] {
        &self.readers[reader.0].received
    }

    /// Changes of one writer that a reader's user has taken, in order.
    pub fn received_from(
        &self,
        reader: ReaderHandle,
        writer: WriterHandle,
    ) -> impl Iterator<Item = &Received> {
        let guid = self.writers[writer.0].guid;
        let received = self.readers[reader.0].received.iter();
        received.filter(move |received| received.info.writer == guid)
    }

    /// Values that a reader's user has taken, in order.
    #[must_use]
    pub fn values(&self, reader: ReaderHandle) -> Vec<u64> {
        let received = self.readers[reader.0].received.iter();
        let values = received.filter(|received| received.info.valid_data());
        let value = |received: &Received| received.sample().map(|sample| sample.value);
        values.filter_map(value).collect()
    }

    /// Last change of an instance that a reader's user has taken.
    #[must_use]
    pub fn last_of_instance(&self, reader: ReaderHandle, key: u32) -> Option<&Received> {
        let hash = Some(key_hash(key));
        let received = self.readers[reader.0].received.iter();
        received
            .rev()
            .find(|received| received.info.key_hash == hash)
    }

    fn take_one(&mut self, reader: usize) -> bool {
        let at = self.now;
        let (node, id) = (self.readers[reader].node, self.readers[reader].id);
        let protocol = self.protocol_mut(node);
        protocol.drop_expired(at, id);
        let Some(sample) = protocol.sample(id, 0) else {
            return false;
        };
        let received = Received {
            at,
            info: sample.info,
            payload: sample.payload.to_vec(),
        };
        protocol.remove_oldest(id);
        self.readers[reader].received.push(received);
        true
    }

    /// Records a sample shown to a view reader.
    pub(crate) fn view(&mut self, node: NodeId, delivery: &Delivery, bytes: &[u8]) {
        let at = self.now;
        let reader = self.reader_of(node, delivery.reader);
        let payload = self.protocol(node).payload(delivery, bytes).to_vec();
        self.readers[reader].received.push(Received {
            at,
            info: delivery.info,
            payload,
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

    fn file_visit(&mut self, reader: usize) {
        let record = &self.readers[reader];
        let Take::OneEvery(period) = record.take else {
            return;
        };
        let has_some = self.protocol(record.node).available(record.id) > 0;
        if has_some && !record.visit_filed {
            self.readers[reader].visit_filed = true;
            self.schedule(self.now + period, Event::Visit(reader));
        }
    }

    pub(crate) fn reader_exists(&self, reader: usize) -> bool {
        let record = &self.readers[reader];
        let node = &self.nodes[record.node.0];
        !record.is_deleted && node.protocol.is_some() && node.incarnation == record.incarnation
    }
}

/// Reactions to statuses.
impl World {
    /// Passes the pending statuses of a node's participant to its users.
    pub(crate) fn users_react(&mut self, node: NodeId) {
        loop {
            let Some(protocol) = &mut self.nodes[node.0].protocol else {
                return;
            };
            match protocol.next_status() {
                None => return,
                Some(StatusChange::Discovery) => {}
                Some(StatusChange::Writer(id, status)) => {
                    let writer = self.writer_of(node, id);
                    self.writers[writer].statuses |= status;
                    if status
                        .intersects(WriterStatus::READER_HEARD | WriterStatus::PUBLICATION_MATCHED)
                    {
                        self.note_readers(writer);
                    }
                    if status.contains(WriterStatus::ROOM) {
                        self.write_backlog(writer);
                    }
                }
                Some(StatusChange::Reader(id, status)) => {
                    let reader = self.reader_of(node, id);
                    self.readers[reader].statuses |= status;
                    if status.contains(ReaderStatus::SUBSCRIPTION_MATCHED) {
                        self.note_writers(reader);
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

    fn note_writers(&mut self, reader: usize) {
        let record = &self.readers[reader];
        let progress = self
            .protocol(record.node)
            .matched_writer_progress(record.id);
        let matched = progress.map(|(guid, _)| guid).collect();
        self.readers[reader].matches.note(self.now, matched);
    }

    fn note_readers(&mut self, writer: usize) {
        let record = &self.writers[writer];
        let progress = self
            .protocol(record.node)
            .matched_reader_progress(record.id);
        let matched = progress.map(|(guid, _)| guid).collect();
        self.writers[writer].matches.note(self.now, matched);
    }

    fn writer_of(&self, node: NodeId, id: WriterId) -> usize {
        (0..self.writers.len())
            .rev()
            .find(|&at| self.writers[at].node == node && self.writers[at].id == id)
            .expect("a participant tells only of endpoints created here")
    }

    pub(crate) fn reader_of(&self, node: NodeId, id: ReaderId) -> usize {
        (0..self.readers.len())
            .rev()
            .find(|&at| self.readers[at].node == node && self.readers[at].id == id)
            .expect("a participant tells only of endpoints created here")
    }
}
