//! HEARTBEAT and HEARTBEAT_FRAG: what a writer has available (RTPS 2.5 §8.3.8.6, §8.3.8.7).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageBody, SubmessageId};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::SequenceNumber,
};

/// Size of a HEARTBEAT without group information in bytes, including its submessage header.
pub const HEARTBEAT_BYTES: usize = SUBMESSAGE_HEADER_BYTES + BODY_BYTES;

const BODY_BYTES: usize = 28;
/// Size of the group information in bytes.
const GROUP_BYTES: usize = 3 * 8 + 2 * 4;

/// Flag F: no response is required.
const FINAL: u8 = 0x02;
/// Flag L: asserts the writer's liveliness.
const LIVELINESS: u8 = 0x04;
/// Flag G: group information follows.
const GROUP_INFO: u8 = 0x08;

/// HEARTBEAT: the range of changes that a writer has available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer that sends this HEARTBEAT.
    pub writer: EntityId,
    /// firstSN: the oldest available change; `last + 1` if there is none.
    pub first: SequenceNumber,
    /// lastSN: the newest change ever available.
    pub last: SequenceNumber,
    /// Incremented with each new HEARTBEAT, so that duplicates are detected.
    pub count: i32,
    /// Final flag: readers need not respond.
    pub is_final: bool,
    /// Liveliness flag: asserts the writer's liveliness (RTPS 2.5 §8.7.2.2.3).
    pub liveliness: bool,
    /// Group information.
    pub group: Option<HeartbeatGroup>,
}

/// Group sequence numbers of a publisher (RTPS 2.5 §8.3.8.6, §8.7.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatGroup {
    /// currentGSN: the last group sequence number that any writer of the publisher wrote.
    pub current: SequenceNumber,
    /// firstGSN: group sequence number of this writer's oldest available change.
    pub first: SequenceNumber,
    /// lastGSN: group sequence number of this writer's newest change.
    pub last: SequenceNumber,
    /// Digest of the publisher's writers.
    pub writers: [u8; 4],
    /// Digest of the publisher's writers protected by DDS Security.
    pub secure_writers: [u8; 4],
}

impl Heartbeat {
    /// Parses the submessage body.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if `first < 1` or `last < first - 1`, or the group sequence numbers
    /// contradict each other; [`Error::Truncated`].
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
}

impl SubmessageBody for Heartbeat {
    const ID: u8 = SubmessageId::HEARTBEAT;

    #[inline]
    fn flags(&self) -> u8 {
        let mut flags = if self.is_final { FINAL } else { 0 };
        if self.liveliness {
            flags |= LIVELINESS;
        }
        if self.group.is_some() {
            flags |= GROUP_INFO;
        }
        flags
    }

    #[inline]
    fn body_len(&self) -> usize {
        match self.group {
            Some(_) => BODY_BYTES + GROUP_BYTES,
            None => BODY_BYTES,
        }
    }

    #[inline]
    fn write_body(&self, writer: &mut Writer<'_>) {
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.first.write(writer);
        self.last.write(writer);
        writer.i32(self.count);
        if let Some(group) = &self.group {
            group.write(writer);
        }
    }
}

impl HeartbeatGroup {
    /// Parses and validates the group information (RTPS 2.5 §8.3.8.6.3). That clause requires
    /// `current <= last`, which fails for every group with more than one writer. Here `current` must not
    /// precede the others.
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

/// Size of a HEARTBEAT_FRAG in bytes, including its submessage header.
pub const HEARTBEAT_FRAG_BYTES: usize = SUBMESSAGE_HEADER_BYTES + FRAG_BODY_BYTES;

const FRAG_BODY_BYTES: usize = 24;

/// HEARTBEAT_FRAG: the fragments of a change that a writer has available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatFrag {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer that sends this HEARTBEAT_FRAG.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sequence: SequenceNumber,
    /// Number of the last available fragment; all from 1 are available.
    pub last_fragment: u32,
    /// Incremented with each new HEARTBEAT_FRAG, so that duplicates are detected.
    pub count: i32,
}

impl HeartbeatFrag {
    /// Parses the submessage body.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if `sequence < 1`; [`Error::InvalidFragment`] if
    /// `last_fragment` is 0; [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        let parsed = Self {
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            sequence: SequenceNumber::read_positive(&mut reader)?,
            last_fragment: reader.u32()?,
            count: reader.i32()?,
        };
        if parsed.last_fragment == 0 {
            return Err(Error::InvalidFragment);
        }
        Ok(parsed)
    }
}

impl SubmessageBody for HeartbeatFrag {
    const ID: u8 = SubmessageId::HEARTBEAT_FRAG;

    #[inline]
    fn body_len(&self) -> usize {
        FRAG_BODY_BYTES
    }

    #[inline]
    fn write_body(&self, writer: &mut Writer<'_>) {
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.sequence.write(writer);
        writer.u32(self.last_fragment);
        writer.i32(self.count);
    }
}
