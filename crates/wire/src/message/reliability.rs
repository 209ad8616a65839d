//! Submessages of reliable delivery (RTPS 2.5 §8.3.8). A HEARTBEAT names the changes that a writer has available. An
//! ACKNACK names those that a reader acknowledges and requests. A GAP names those that are irrelevant to a reader.
//! HEARTBEAT_FRAG names the available fragments of one change, and NACK_FRAG the requested ones.

use super::{SUBMESSAGE_HEADER_BYTES, SubmessageBody, SubmessageId};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet},
};

/// Size of a HEARTBEAT without group information in bytes, including its submessage header.
pub const HEARTBEAT_BYTES: usize = SUBMESSAGE_HEADER_BYTES + HEARTBEAT_BODY_BYTES;

const HEARTBEAT_BODY_BYTES: usize = 28;

/// Size of the group information of a HEARTBEAT in bytes.
const HEARTBEAT_GROUP_BYTES: usize = 3 * 8 + 2 * 4;

/// Size of a HEARTBEAT_FRAG in bytes, including its submessage header.
pub const HEARTBEAT_FRAG_BYTES: usize = SUBMESSAGE_HEADER_BYTES + HEARTBEAT_FRAG_BODY_BYTES;

const HEARTBEAT_FRAG_BODY_BYTES: usize = 24;

/// Flag F of HEARTBEAT and ACKNACK: no response is required.
const FINAL: u8 = 0x02;
/// Flag L of HEARTBEAT: asserts the writer's liveliness.
const LIVELINESS: u8 = 0x04;
/// Flag G of HEARTBEAT: group information follows.
const HEARTBEAT_GROUP_INFO: u8 = 0x08;
/// Flag G of GAP: group sequence numbers follow.
const GAP_GROUP_INFO: u8 = 0x02;
/// Flag F of GAP: filteredCount follows.
const GAP_FILTERED_COUNT: u8 = 0x04;

/// HEARTBEAT: the range of changes that a writer has available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer that sends this HEARTBEAT.
    pub writer: EntityId,
    /// firstSN: the oldest available change; `last + 1` if no change is available.
    pub first: SequenceNumber,
    /// lastSN: the newest change that was ever available.
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
        let group = if flags & HEARTBEAT_GROUP_INFO != 0 {
            Some(HeartbeatGroup::parse(flags, body)?)
        } else {
            None
        };
        let mut reader = Reader::fixed::<HEARTBEAT_BODY_BYTES>(body, order_of(flags))?;
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
            flags |= HEARTBEAT_GROUP_INFO;
        }
        flags
    }

    #[inline]
    fn body_len(&self) -> usize {
        match self.group {
            Some(_) => HEARTBEAT_BODY_BYTES + HEARTBEAT_GROUP_BYTES,
            None => HEARTBEAT_BODY_BYTES,
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
    /// `current <= last`, which is false for most HEARTBEATs of a group with several writers. Here `current`
    /// must not be less than `first` and `last`.
    #[cold]
    fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let rest = body.get(HEARTBEAT_BODY_BYTES..).ok_or(Error::Truncated)?;
        let mut reader = Reader::fixed::<HEARTBEAT_GROUP_BYTES>(rest, order_of(flags))?;
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

/// ACKNACK: a reader's acknowledgment and repair request to a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckNack {
    /// Entity id of the reader that sends this ACKNACK.
    pub reader: EntityId,
    /// Entity id of the destination writer.
    pub writer: EntityId,
    /// readerSNState: all changes below the set's base are acknowledged; the set's members are requested.
    pub state: SequenceNumberSet,
    /// Incremented with each new ACKNACK, so that duplicates are detected.
    pub count: i32,
    /// Final flag: the writer need not respond with a HEARTBEAT.
    pub is_final: bool,
}

impl AckNack {
    /// Parses the submessage body. An empty set with base 0 is accepted although the standard forbids it. Some
    /// implementations send such a set before they have received a HEARTBEAT.
    ///
    /// # Errors
    /// [`Error::InvalidSet`] or [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        let parsed = Self {
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            state: SequenceNumberSet::read(&mut reader, 0)?,
            count: reader.i32()?,
            is_final: flags & FINAL != 0,
        };
        if parsed.state.base().get() == 0 && !parsed.state.is_empty() {
            return Err(Error::InvalidSet);
        }
        Ok(parsed)
    }
}

impl SubmessageBody for AckNack {
    const ID: u8 = SubmessageId::ACKNACK;

    #[inline]
    fn flags(&self) -> u8 {
        if self.is_final { FINAL } else { 0 }
    }

    #[inline]
    fn body_len(&self) -> usize {
        8 + self.state.buffer_len() + 4
    }

    #[inline]
    fn write_body(&self, writer: &mut Writer<'_>) {
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.state.write(writer);
        writer.i32(self.count);
    }
}

/// GAP: changes that are irrelevant to a reader. They are the range from `start` to before the base of `list`, and the
/// members of `list`. The range may be empty, or too large for a loop over its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer that sends this GAP.
    pub writer: EntityId,
    /// First sequence number of the range (gapStart).
    pub start: SequenceNumber,
    /// gapList: its base ends the range; its members are further irrelevant changes.
    pub list: SequenceNumberSet,
    /// Group sequence numbers of the irrelevant changes.
    pub group: Option<GapGroup>,
    /// filteredCount: number of irrelevant changes that the writer has, but a filter excludes. They are not lost.
    pub filtered: Option<i64>,
}

/// Inclusive range of irrelevant group sequence numbers (RTPS 2.5 §8.3.8.4, §8.7.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapGroup {
    /// First number.
    pub start: SequenceNumber,
    /// Last number; one less than the first if the range is empty.
    pub end: SequenceNumber,
}

impl Gap {
    /// Parses the submessage body.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if `start < 1`, or the group sequence numbers contradict each other;
    /// [`Error::InvalidSet`]; [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        let mut parsed = Self {
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            start: SequenceNumber::read_positive(&mut reader)?,
            list: SequenceNumberSet::read(&mut reader, 1)?,
            group: None,
            filtered: None,
        };
        if flags & (GAP_GROUP_INFO | GAP_FILTERED_COUNT) != 0 {
            parsed.read_rest(flags, &mut reader)?;
        }
        Ok(parsed)
    }

    /// Parses the optional fields, which are rare.
    #[cold]
    fn read_rest(&mut self, flags: u8, reader: &mut Reader<'_>) -> Result<(), Error> {
        if flags & GAP_GROUP_INFO != 0 {
            self.group = Some(GapGroup::read(reader)?);
        }
        if flags & GAP_FILTERED_COUNT != 0 {
            // Encoded like a sequence number (RTPS 2.5 §9.4.2.14).
            self.filtered = Some(SequenceNumber::read(reader)?.get());
        }
        Ok(())
    }
}

impl SubmessageBody for Gap {
    const ID: u8 = SubmessageId::GAP;

    #[inline]
    fn flags(&self) -> u8 {
        let group = self.group.map_or(0, |_| GAP_GROUP_INFO);
        let filtered = self.filtered.map_or(0, |_| GAP_FILTERED_COUNT);
        group | filtered
    }

    #[inline]
    fn body_len(&self) -> usize {
        let group_len = self.group.map_or(0, |_| 16);
        let filtered_len = self.filtered.map_or(0, |_| 8);
        16 + self.list.buffer_len() + group_len + filtered_len
    }

    #[inline]
    fn write_body(&self, writer: &mut Writer<'_>) {
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.start.write(writer);
        self.list.write(writer);
        if let Some(group) = self.group {
            group.start.write(writer);
            group.end.write(writer);
        }
        if let Some(filtered) = self.filtered {
            SequenceNumber(filtered).write(writer);
        }
    }
}

impl GapGroup {
    /// Parses and validates the two numbers (RTPS 2.5 §8.3.8.4.3).
    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let start = SequenceNumber::read_positive(reader)?;
        let end = SequenceNumber::read_positive(reader)?;
        if end.get() < start.get() - 1 {
            return Err(Error::InvalidSequenceNumber);
        }
        Ok(Self { start, end })
    }
}

/// HEARTBEAT_FRAG: the fragments of a change that a writer has available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatFrag {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer that sends this HEARTBEAT_FRAG.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sequence: SequenceNumber,
    /// Number of the last available fragment; all fragments from 1 to this one are available.
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
        HEARTBEAT_FRAG_BODY_BYTES
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

/// NACK_FRAG: a reader's request for missing fragments of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NackFrag {
    /// Entity id of the reader that sends this NACK_FRAG.
    pub reader: EntityId,
    /// Entity id of the destination writer.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sequence: SequenceNumber,
    /// Requested fragments. Unlike an ACKNACK, a NACK_FRAG does not acknowledge what is below the base.
    pub state: FragmentNumberSet,
    /// Incremented with each new NACK_FRAG, so that duplicates are detected.
    pub count: i32,
}

impl NackFrag {
    /// Parses the submessage body.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if `sequence < 1`; [`Error::InvalidSet`];
    /// [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        Ok(Self {
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            sequence: SequenceNumber::read_positive(&mut reader)?,
            state: FragmentNumberSet::read(&mut reader)?,
            count: reader.i32()?,
        })
    }
}

impl SubmessageBody for NackFrag {
    const ID: u8 = SubmessageId::NACK_FRAG;

    #[inline]
    fn body_len(&self) -> usize {
        16 + self.state.buffer_len() + 4
    }

    #[inline]
    fn write_body(&self, writer: &mut Writer<'_>) {
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.sequence.write(writer);
        self.state.write(writer);
        writer.i32(self.count);
    }
}
