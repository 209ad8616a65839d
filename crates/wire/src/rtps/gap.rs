//! GAP: a writer says what is not to be expected (RTPS 2.5 §8.3.8.4).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::{SequenceNumber, SequenceNumberSet},
};

/// Flag G: numbers of the writer's group follow.
const GROUP_INFO: u8 = 0x02;
/// Flag F: a count of filtered changes follows.
const FILTERED_COUNT: u8 = 0x04;

/// A writer tells a reader which changes will never come: `start` up to but without the base of
/// `list`, and the members of `list`. The range may be empty; it may also be vast, so do not walk
/// it number by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Who is told; [`EntityId::UNKNOWN`]: all readers matched.
    pub reader: EntityId,
    /// Who tells.
    pub writer: EntityId,
    /// The first number of the range.
    pub start: SequenceNumber,
    /// The end of the range, and single numbers from there on.
    pub list: SequenceNumberSet,
    /// Which numbers of the writer's group will never come with them.
    pub group: Option<GapGroup>,
    /// How many of them the writer still has, and holds back because of a filter: they are not lost.
    pub filtered: Option<i64>,
}

/// A range of numbers of a group, both ends included, that will never come (RTPS 2.5 §8.3.8.4, §8.7.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapGroup {
    /// The first.
    pub start: SequenceNumber,
    /// The last; one less than the first if there is none.
    pub end: SequenceNumber,
}

impl Gap {
    /// Reads a body.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if `start < 1`, or the numbers of the group contradict each
    /// other; [`Error::InvalidSet`]; [`Error::Truncated`].
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
        if flags & (GROUP_INFO | FILTERED_COUNT) != 0 {
            parsed.read_rest(flags, &mut reader)?;
        }
        Ok(parsed)
    }

    /// What only few have.
    #[cold]
    fn read_rest(&mut self, flags: u8, reader: &mut Reader<'_>) -> Result<(), Error> {
        if flags & GROUP_INFO != 0 {
            self.group = Some(GapGroup::read(reader)?);
        }
        if flags & FILTERED_COUNT != 0 {
            // It lies as a sequence number does (RTPS 2.5 §9.4.2.14).
            self.filtered = Some(SequenceNumber::read(reader)?.get());
        }
        Ok(())
    }

    fn body_len(&self) -> usize {
        let group_len = self.group.map_or(0, |_| 16);
        let filtered_len = self.filtered.map_or(0, |_| 8);
        16 + self.list.buffer_len() + group_len + filtered_len
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[inline]
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        SUBMESSAGE_HEADER_BYTES + self.body_len()
    }

    /// Writes the submessage with its header; returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len).
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut writer = Writer::new(buffer);
        let group = self.group.map_or(0, |_| GROUP_INFO);
        let filtered = self.filtered.map_or(0, |_| FILTERED_COUNT);
        let flags = group | filtered;
        write_header(&mut writer, SubmessageId::GAP, flags, self.body_len());
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.start.write(&mut writer);
        self.list.write(&mut writer);
        if let Some(group) = self.group {
            group.start.write(&mut writer);
            group.end.write(&mut writer);
        }
        if let Some(filtered) = self.filtered {
            SequenceNumber(filtered).write(&mut writer);
        }
        writer.len()
    }
}

impl GapGroup {
    /// Reads the two numbers, and whether they can be so (RTPS 2.5 §8.3.8.4.3).
    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let start = SequenceNumber::read_positive(reader)?;
        let end = SequenceNumber::read_positive(reader)?;
        if end.get() < start.get() - 1 {
            return Err(Error::InvalidSequenceNumber);
        }
        Ok(Self { start, end })
    }
}
