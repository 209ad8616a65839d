//! Coherent set and group parameters in inline QoS (RTPS 2.5 §8.7.5, §8.7.6, §9.6.4).
//!
//! A sample of a coherent set carries the sequence number of the set's first sample. A sample with another
//! number or none ends the set. So that readers need not wait for one, a DATA without payload, with
//! SEQUENCENUMBER_UNKNOWN, can end it. With GROUP access scope, each sample also carries its group sequence number.

use super::data::key_hash_len;
use crate::{
    ByteOrder,
    bytes::{Reader, Writer},
    guid::EntityId,
    parameter::{ParameterList, pid},
    sequence::SequenceNumber,
};
use md5::{Digest as _, Md5};

/// Size of a sequence number parameter in bytes.
const NUMBER_BYTES: usize = 4 + 8;
/// Size of the writers digest parameter in bytes.
const WRITERS_BYTES: usize = 4 + 4;

/// Digest of a group's writers (RTPS 2.5 §8.3.5.12).
pub type GroupDigest = [u8; 4];

/// Coherent set and group sequence number of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetMark {
    /// Sequence number of the set's first sample; [`SequenceNumber::UNKNOWN`] at the end of a set; `None` outside
    /// of sets.
    pub coherent_set: Option<SequenceNumber>,
    /// Group sequence number of the sample.
    pub group_sequence: Option<SequenceNumber>,
    /// Group sequence number of the set's first sample; also present at the end of a set.
    pub group_coherent_set: Option<SequenceNumber>,
    /// Digest of the publisher's writers, at the end of a set.
    pub writers: Option<GroupDigest>,
}

impl SetMark {
    /// Reads the parameters from inline QoS. A value too short for a sequence number is ignored.
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

    /// Returns true if there are no parameters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Coherent set of the sample, if any.
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

    /// Size of the parameters in bytes.
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

    /// Size of inline QoS with these parameters in bytes.
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

/// Computes the digest of a group's writers, given in ascending order: the first bytes of the MD5 of their
/// sequence, big-endian.
#[must_use]
pub fn group_digest(writers: impl ExactSizeIterator<Item = EntityId>) -> GroupDigest {
    let mut digest = Md5::new();
    digest.update((writers.len() as u32).to_be_bytes());
    writers.for_each(|writer| digest.update(writer.0));
    let [a, b, c, d, ..]: [u8; 16] = digest.finalize().into();
    [a, b, c, d]
}
