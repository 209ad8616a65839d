//! State of a captured participant, from its messages so far, and its answers.

use isolane_rtps::ChangeKind;
use isolane_wire::{
    guid::{EntityId, GuidPrefix},
    message::{
        AckNack, Data, DataFrag, Gap, HEADER_BYTES, Header, MessageWriter, Submessage, Submessages,
    },
    sequence::{SequenceNumber, SequenceNumberSet},
};

use super::cast::data_in;
use crate::conversation::Said;

/// Change written by the user: sequence number, kind, payload.
pub(super) type Change = (i64, ChangeKind, Vec<u8>);

pub(super) struct Heard {
    prefix: GuidPrefix,
    /// Entity id of the user's endpoint.
    entity: EntityId,
    /// Changes that the user wrote.
    pub(super) said: Vec<Change>,
    /// Sample that lacks fragments: sequence number, payload, number of missing bytes.
    partly_said: Option<(i64, Vec<u8>, usize)>,
    /// Highest number that the user's reader has acknowledged.
    pub(super) acknowledged: i64,
    /// Messages with a change: writer, sequence number, message.
    messages: Vec<(EntityId, i64, Vec<u8>)>,
    /// Writers and sequence numbers that occur in the capture.
    to_come: Vec<(EntityId, i64)>,
    /// Number of messages sent again as repairs.
    pub(super) repeated: usize,
}

impl Heard {
    pub(super) fn new(prefix: GuidPrefix, entity: EntityId) -> Self {
        Self {
            prefix,
            entity,
            said: Vec::new(),
            partly_said: None,
            acknowledged: 0,
            messages: Vec::new(),
            to_come: Vec::new(),
            repeated: 0,
        }
    }

    /// Records which changes the capture contains.
    pub(super) fn expect(&mut self, said: &[Said]) {
        for said in said {
            let header = Header::parse(&said.message).expect("a header");
            if header.prefix != self.prefix {
                continue;
            }
            for submessage in Submessages::new(&said.message, HEADER_BYTES).flatten() {
                let number = match submessage {
                    Submessage::Data(data) => (data.writer, data.sequence.get()),
                    Submessage::DataFrag(data) => (data.writer, data.sequence.get()),
                    _ => continue,
                };
                self.to_come.push(number);
            }
        }
    }

    /// Records a received message.
    pub(super) fn add(&mut self, message: Vec<u8>) {
        self.note(&message);
        for data in data_in(&message) {
            let what = (data.writer, data.sequence.get(), message.clone());
            self.messages.push(what);
        }
    }

    /// Records a change or an acknowledgement of the other participant's endpoint, if the message has one.
    fn note(&mut self, message: &[u8]) {
        let theirs = self.entity;
        for submessage in Submessages::new(message, HEADER_BYTES).flatten() {
            match submessage {
                Submessage::Data(data) if data.writer == theirs => {
                    let number = data.sequence.get();
                    if self.said.iter().all(|(known, ..)| *known != number) {
                        let what = (number, kind_of(&data), data.bytes.to_vec());
                        self.said.push(what);
                    }
                }
                Submessage::DataFrag(data) if data.writer == theirs => self.note_part(&data),
                Submessage::AckNack(it) if it.reader == theirs => {
                    self.acknowledged = self.acknowledged.max(it.state.base().get() - 1);
                }
                _ => {}
            }
        }
    }

    fn note_part(&mut self, data: &DataFrag<'_>) {
        let number = data.sequence.get();
        let size = data.sample_size as usize;
        let begun = self.partly_said.take().filter(|begun| begun.0 == number);
        let (_, mut payload, missing) = begun.unwrap_or_else(|| (number, vec![0; size], size));
        payload[data.sample_offset()..][..data.bytes.len()].copy_from_slice(data.bytes);
        match missing - data.bytes.len() {
            0 => self.said.push((number, ChangeKind::Alive, payload)),
            missing => self.partly_said = Some((number, payload, missing)),
        }
    }

    /// Answers repair requests of the local participant as the other one would: with the same sample again, or with a
    /// GAP if the capture does not hold it.
    pub(super) fn answers(&mut self, sent: &[u8]) -> Vec<Vec<u8>> {
        let mut answers = Vec::new();
        for submessage in Submessages::new(sent, HEADER_BYTES).flatten() {
            let Submessage::AckNack(asked) = submessage else {
                continue;
            };
            for number in asked.state.iter() {
                let is_it = |(writer, heard, _): &&(EntityId, i64, Vec<u8>)| {
                    *writer == asked.writer && *heard == number.get()
                };
                match self.messages.iter().find(is_it) {
                    Some((.., message)) => answers.push(message.clone()),
                    None if self.to_come.contains(&(asked.writer, number.get())) => {}
                    None => answers.push(self.gap(&asked, number)),
                }
            }
        }
        self.repeated += answers.len();
        answers
    }

    fn gap(&self, asked: &AckNack, number: SequenceNumber) -> Vec<u8> {
        let gap = Gap {
            reader: asked.reader,
            writer: asked.writer,
            start: number,
            list: SequenceNumberSet::new(number.next()),
            group: None,
            filtered: None,
        };
        let mut buffer = [0; 64];
        let header = Header::new(self.prefix);
        let mut message = MessageWriter::new(&mut buffer, &header).expect("room");
        message.gap(&gap).expect("room");
        let length = message.len();
        buffer[..length].to_vec()
    }
}

/// Kind of a change.
pub(super) fn kind_of(data: &Data<'_>) -> ChangeKind {
    let status = data.status_info();
    match (status.disposed, status.unregistered) {
        (true, true) => ChangeKind::DisposeAndUnregister,
        (true, false) => ChangeKind::Dispose,
        (false, true) => ChangeKind::Unregister,
        (false, false) => ChangeKind::Alive,
    }
}
