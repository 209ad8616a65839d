//! Inline QoS of DATA and DATA_FRAG (RTPS 2.5 §8.3.5.13, §9.6.4): key hash, status of the instance, coherent set.

use md5::{Digest as _, Md5};

use crate::{
    ByteOrder, Error,
    bytes::{Reader, Writer},
    guid::EntityId,
    parameter::{ParameterList, SENTINEL_BYTES, pid},
    sequence::SequenceNumber,
};

/// Flag Q of DATA and DATA_FRAG: inline QoS is present.
pub(super) const INLINE_QOS: u8 = 0x02;

// Sizes of the parameters in bytes, each with its identifier and length.
const KEY_HASH_BYTES: usize = 4 + 16;
const STATUS_BYTES: usize = 4 + 4;
const NUMBER_BYTES: usize = 4 + 8;
const WRITERS_BYTES: usize = 4 + 4;

/// Splits inline QoS, if flag Q is set, from the bytes after it.
#[inline]
pub(super) fn read_inline_qos(
    flags: u8,
    bytes: &[u8],
    order: ByteOrder,
) -> Result<(Option<ParameterList<'_>>, &[u8]), Error> {
    match flags & INLINE_QOS {
        0 => Ok((None, bytes)),
        _ => parse_inline_qos(bytes, order),
    }
}

#[inline(never)]
fn parse_inline_qos(
    bytes: &[u8],
    order: ByteOrder,
) -> Result<(Option<ParameterList<'_>>, &[u8]), Error> {
    let (list, length) = ParameterList::parse(bytes, order)?;
    // A sample with an unknown must-understand parameter must not be used.
    let insisted = list
        .iter()
        .find(|parameter| parameter.must_understand && !is_understood(parameter.id));
    match insisted {
        Some(parameter) => Err(Error::MustUnderstand(parameter.id)),
        None => Ok((Some(list), &bytes[length..])),
    }
}

fn is_understood(id: u16) -> bool {
    matches!(
        id,
        pid::KEY_HASH
            | pid::STATUS_INFO
            | pid::COHERENT_SET
            | pid::GROUP_COHERENT_SET
            | pid::GROUP_SEQ_NUM
            | pid::WRITER_GROUP_INFO
    )
}

#[inline]
pub(super) fn key_hash_of(inline_qos: Option<&ParameterList<'_>>) -> Option<[u8; 16]> {
    inline_qos?
        .find(pid::KEY_HASH)?
        .first_chunk::<16>()
        .copied()
}

/// Parameters to write as inline QoS.
#[derive(Clone, Copy)]
pub(super) struct InlineQos<'a> {
    pub(super) key_hash: Option<&'a [u8; 16]>,
    pub(super) status: Option<StatusInfo>,
    pub(super) set: Option<&'a CoherentSetInfo>,
}

impl InlineQos<'_> {
    /// Maximum length in bytes of a list without coherent set and group parameters.
    pub(super) const MAX_BYTES: usize = KEY_HASH_BYTES + STATUS_BYTES + SENTINEL_BYTES;

    /// Length of the list in bytes; 0 if there are no parameters.
    #[inline]
    pub(super) fn buffer_len(&self) -> usize {
        let key_hash_len = self.key_hash.map_or(0, |_| KEY_HASH_BYTES);
        let status_len = self.status.map_or(0, |_| STATUS_BYTES);
        let set_len = self.set.map_or(0, CoherentSetInfo::buffer_len);
        match key_hash_len + status_len + set_len {
            0 => 0,
            parameters_len => parameters_len + SENTINEL_BYTES,
        }
    }

    /// Writes the list; writes nothing if there are no parameters.
    #[inline]
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        if let Some(hash) = self.key_hash {
            writer.u16(pid::KEY_HASH);
            writer.u16(16);
            writer.put(hash);
        }
        if let Some(status) = self.status {
            writer.u16(pid::STATUS_INFO);
            writer.u16(4);
            writer.put(&status.to_bytes());
        }
        if let Some(set) = self.set {
            set.write(writer);
        }
        if self.buffer_len() != 0 {
            writer.u16(pid::SENTINEL);
            writer.u16(0);
        }
    }
}

/// Status of an instance in a change, PID_STATUS_INFO (RTPS 2.5 §9.6.4.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusInfo {
    /// The instance is disposed.
    pub disposed: bool,
    /// The writer has unregistered the instance.
    pub unregistered: bool,
}

impl StatusInfo {
    const DISPOSED: u8 = 0x01;
    const UNREGISTERED: u8 = 0x02;

    /// Reads the status from inline QoS. Without the parameter, no flag is set.
    #[inline]
    pub(super) fn of(inline_qos: Option<&ParameterList<'_>>) -> Self {
        // The value is always big-endian, so the flags are in its last byte.
        match inline_qos.and_then(|list| list.find(pid::STATUS_INFO)) {
            Some([_, _, _, flags, ..]) => Self {
                disposed: flags & Self::DISPOSED != 0,
                unregistered: flags & Self::UNREGISTERED != 0,
            },
            _ => Self::default(),
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; 4] {
        let mut flags = 0;
        if self.disposed {
            flags |= Self::DISPOSED;
        }
        if self.unregistered {
            flags |= Self::UNREGISTERED;
        }
        [0, 0, 0, flags]
    }
}

/// Digest of a group's writers (RTPS 2.5 §8.3.5.12).
pub type GroupDigest = [u8; 4];

/// Coherent set and group sequence number of a sample (RTPS 2.5 §8.7.5, §8.7.6, §9.6.4).
///
/// Each sample of a coherent set carries the sequence number of the set's first sample. The writer's next sample with
/// another such number, or with none, ends the set. A DATA without payload, with SEQUENCENUMBER_UNKNOWN, ends the set
/// before the next sample. With GROUP access scope, each sample also carries its group sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoherentSetInfo {
    /// Sequence number of the set's first sample; [`SequenceNumber::UNKNOWN`] at the end of a set; `None` outside
    /// of sets.
    pub coherent_set: Option<SequenceNumber>,
    /// Group sequence number of the sample.
    pub group_sequence: Option<SequenceNumber>,
    /// Group sequence number of the set's first sample. The end of a set carries it as well.
    pub group_coherent_set: Option<SequenceNumber>,
    /// Digest of the publisher's writers; present only at the end of a set.
    pub writers: Option<GroupDigest>,
}

impl CoherentSetInfo {
    /// Reads the parameters from inline QoS. A value too short for a sequence number is ignored.
    #[must_use]
    pub fn of(inline_qos: Option<&ParameterList<'_>>) -> Self {
        let mut set = Self::default();
        let Some(list) = inline_qos else {
            return set;
        };
        let order = list.order();
        for parameter in list {
            let number = || number(parameter.value, order);
            match parameter.id {
                pid::COHERENT_SET => set.coherent_set = number(),
                pid::GROUP_SEQ_NUM => set.group_sequence = number(),
                pid::GROUP_COHERENT_SET => set.group_coherent_set = number(),
                pid::WRITER_GROUP_INFO => set.writers = parameter.value.first_chunk().copied(),
                _ => {}
            }
        }
        set
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

    fn write(&self, writer: &mut Writer<'_>) {
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
}

fn number(value: &[u8], order: ByteOrder) -> Option<SequenceNumber> {
    SequenceNumber::read(&mut Reader::new(value, order)).ok()
}

/// Computes the digest of a group's writers, given in ascending order: the first four bytes of the MD5 of their
/// number (big-endian) and their entity ids.
#[must_use]
pub fn group_digest(writers: impl ExactSizeIterator<Item = EntityId>) -> GroupDigest {
    let mut digest = Md5::new();
    digest.update((writers.len() as u32).to_be_bytes());
    writers.for_each(|writer| digest.update(writer.0));
    let [a, b, c, d, ..]: [u8; 16] = digest.finalize().into();
    [a, b, c, d]
}
