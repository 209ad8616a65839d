//! What a sample says of the coherent set and of the group it was written in (RTPS 2.5 §8.7.5, §8.7.6, §9.6.4).
//!
//! A sample of a coherent set carries the number of the set's first one. A set has ended when a sample carries
//! another number or none; so that readers need not wait for one, a DATA without a payload may say so, its
//! number being the unknown one. Of a publisher with GROUP access each sample carries its number among all samples
//! of the publisher, too.

use super::data::key_hash_len;
use crate::{
    ByteOrder,
    bytes::{Reader, Writer},
    guid::EntityId,
    parameter::{ParameterList, pid},
    sequence::SequenceNumber,
};
use md5::{Digest as _, Md5};

/// Bytes of a parameter that is a sequence number.
const NUMBER_BYTES: usize = 4 + 8;
/// Bytes of the parameter that names the writers of a group.
const WRITERS_BYTES: usize = 4 + 4;

/// A digest of which writers a group has (RTPS 2.5 §8.3.5.12).
pub type GroupDigest = [u8; 4];

/// To which set a sample belongs, and which number it has in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetMark {
    /// The number of the first sample of the set, among those of the writer; [`SequenceNumber::UNKNOWN`]: the
    /// set has ended; `None`: it belongs to none.
    pub coherent_set: Option<SequenceNumber>,
    /// The sample's number among all of its publisher.
    pub group_sequence: Option<SequenceNumber>,
    /// The number of the first sample of the set, among all of the publisher; at the end of a set, too.
    pub group_coherent_set: Option<SequenceNumber>,
    /// At the end of a set: which writers the publisher has.
    pub writers: Option<GroupDigest>,
}

impl SetMark {
    /// Reads it from the parameters of a sample. What is too short to be a number counts as not there.
    #[must_use]
    pub fn of(inline_qos: Option<&ParameterList<'_>>) -> Self {
        let mut mark = Self::default();
        let Some(list) = inline_qos else {
            return mark;
        };
        let order = list.order();
        for parameter in list {
            let number = || number(parameter.value, order);
            match parameter.id {
                pid::COHERENT_SET => mark.coherent_set = number(),
                pid::GROUP_SEQ_NUM => mark.group_sequence = number(),
                pid::GROUP_COHERENT_SET => mark.group_coherent_set = number(),
                pid::WRITER_GROUP_INFO => mark.writers = parameter.value.first_chunk().copied(),
                _ => {}
            }
        }
        mark
    }

    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The set a sample belongs to, if it belongs to one.
    #[must_use]
    pub fn set(&self) -> Option<SequenceNumber> {
        self.coherent_set.filter(|set| set.get() > 0)
    }

    fn numbers(&self) -> [(u16, Option<SequenceNumber>); 3] {
        [
            (pid::COHERENT_SET, self.coherent_set),
            (pid::GROUP_SEQ_NUM, self.group_sequence),
            (pid::GROUP_COHERENT_SET, self.group_coherent_set),
        ]
    }

    /// Bytes of its parameters.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        let numbers = self.numbers().iter().filter(|(_, it)| it.is_some()).count();
        numbers * NUMBER_BYTES + self.writers.map_or(0, |_| WRITERS_BYTES)
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        for (id, number) in self.numbers() {
            if let Some(number) = number {
                writer.u16(id);
                writer.u16(8);
                number.write(writer);
            }
        }
        if let Some(digest) = &self.writers {
            writer.u16(pid::WRITER_GROUP_INFO);
            writer.u16(4);
            writer.put(digest);
        }
    }

    /// Bytes of inline QoS with it.
    pub(super) fn inline_qos_len(&self, key_hash: bool, status: bool) -> usize {
        let others = key_hash_len(key_hash) + if status { 8 } else { 0 };
        match others + self.buffer_len() {
            0 => 0,
            some => some + 4,
        }
    }
}

fn number(value: &[u8], order: ByteOrder) -> Option<SequenceNumber> {
    SequenceNumber::read(&mut Reader::new(value, order)).ok()
}

/// The digest of a group's writers, whose identifiers come in ascending order: the first bytes of the MD5 of
/// their sequence, big-endian.
#[must_use]
pub fn group_digest(writers: impl ExactSizeIterator<Item = EntityId>) -> GroupDigest {
    let mut digest = Md5::new();
    digest.update((writers.len() as u32).to_be_bytes());
    writers.for_each(|writer| digest.update(writer.0));
    let [a, b, c, d, ..]: [u8; 16] = digest.finalize().into();
    [a, b, c, d]
}
