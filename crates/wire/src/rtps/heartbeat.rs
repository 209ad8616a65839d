//! HEARTBEAT: a writer says what it has (RTPS 2.5 §8.3.8.6).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::SequenceNumber,
};

/// Bytes of a HEARTBEAT without group information, with its submessage header.
pub const HEARTBEAT_BYTES: usize = SUBMESSAGE_HEADER_BYTES + BODY_BYTES;

const BODY_BYTES: usize = 28;
/// Bytes of the group information behind it.
const GROUP_BYTES: usize = 3 * 8 + 2 * 4;

/// Flag F: no answer is needed.
const FINAL: u8 = 0x02;
/// Flag L: the writer's liveliness was asserted.
const LIVELINESS: u8 = 0x04;
/// Flag G: numbers of the writer's group follow.
const GROUP_INFO: u8 = 0x08;

/// A writer tells readers what they can have of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// Who is told; [`EntityId::UNKNOWN`]: all readers matched.
    pub reader: EntityId,
    /// Who tells.
    pub writer: EntityId,
    /// The oldest change there is; `last + 1` if there is none.
    pub first: SequenceNumber,
    /// The newest change there is, or was.
    pub last: SequenceNumber,
    /// Grows with each new one, so that a repeated one is known.
    pub count: i32,
    /// Whether readers need not answer.
    pub is_final: bool,
    /// Whether it asserts liveliness (RTPS 2.5 §8.7.2.2.3).
    pub liveliness: bool,
    /// What the writer's group has.
    pub group: Option<HeartbeatGroup>,
}

/// Where all writers of a publisher are in the order of their samples (RTPS 2.5 §8.3.8.6, §8.7.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatGroup {
    /// The last number any of them has written.
    pub current: SequenceNumber,
    /// The group's number of the oldest change there is of this writer.
    pub first: SequenceNumber,
    /// The group's number of its newest.
    pub last: SequenceNumber,
    /// A digest of which writers there are.
    pub writers: [u8; 4],
    /// The same of those that DDS Security protects.
    pub secure_writers: [u8; 4],
}

impl Heartbeat {
    /// Reads a body.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if `first < 1` or `last < first - 1`, or the numbers of the
    /// group contradict each other; [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let group = if flags & GROUP_INFO != 0 {
            Some(HeartbeatGroup::parse(flags, body)?)
        } else {
            None
        };
        let mut reader = Reader::fixed::<BODY_BYTES>(body, order_of(flags))?;
        let parsed = Self {
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            first: SequenceNumber::read_positive(&mut reader)?,
            last: SequenceNumber::read(&mut reader)?,
            count: reader.i32()?,
            is_final: flags & FINAL != 0,
            liveliness: flags & LIVELINESS != 0,
            group,
        };
        if parsed.last.get() < parsed.first.get() - 1 {
            return Err(Error::InvalidSequenceNumber);
        }
        Ok(parsed)
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[inline]
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        SUBMESSAGE_HEADER_BYTES + self.body_len()
    }

    #[inline]
    const fn body_len(&self) -> usize {
        match self.group {
            Some(_) => BODY_BYTES + GROUP_BYTES,
            None => BODY_BYTES,
        }
    }

    /// Writes the submessage with its header; returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len).
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut writer = Writer::new(buffer);
        let mut flags = if self.is_final { FINAL } else { 0 };
        if self.liveliness {
            flags |= LIVELINESS;
        }
        if self.group.is_some() {
            flags |= GROUP_INFO;
        }
        write_header(&mut writer, SubmessageId::HEARTBEAT, flags, self.body_len());
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.first.write(&mut writer);
        self.last.write(&mut writer);
        writer.i32(self.count);
        if let Some(group) = &self.group {
            group.write(&mut writer);
        }
        writer.len()
    }
}

impl HeartbeatGroup {
    /// Reads what follows the rest of a body, and whether it can be so (RTPS 2.5 §8.3.8.6.3). There the
    /// current number is not to exceed the last one, which would be true of nobody whose group has
    /// another writer; what cannot be is that it lies before.
    #[cold]
    fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let rest = body.get(BODY_BYTES..).ok_or(Error::Truncated)?;
        let mut reader = Reader::fixed::<GROUP_BYTES>(rest, order_of(flags))?;
        let group = Self {
            current: SequenceNumber::read_positive(&mut reader)?,
            first: SequenceNumber::read_positive(&mut reader)?,
            last: SequenceNumber::read(&mut reader)?,
            writers: *reader.array()?,
            secure_writers: *reader.array()?,
        };
        let is_backwards = group.last.get() < group.first.get() - 1;
        if is_backwards || group.current < group.first || group.current < group.last {
            return Err(Error::InvalidSequenceNumber);
        }
        Ok(group)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        self.current.write(writer);
        self.first.write(writer);
        self.last.write(writer);
        writer.put(&self.writers);
        writer.put(&self.secure_writers);
    }
}
