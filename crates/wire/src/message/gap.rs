//! GAP submessage (RTPS 2.5 §8.3.8.4).

use super::submessage::{SubmessageBody, SubmessageId};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::{SequenceNumber, SequenceNumberSet},
};

/// Flag G: group sequence numbers follow.
const GROUP_INFO: u8 = 0x02;
/// Flag F: filteredCount follows.
const FILTERED_COUNT: u8 = 0x04;

/// GAP: changes that are irrelevant to a reader, from `start` to before the base of `list`, and the members of
/// `list`. The range may be empty, or so large that it must not be walked number by number.
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
    /// filteredCount: number of these changes that the writer holds but a filter excludes; they are not lost.
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
        if flags & (GROUP_INFO | FILTERED_COUNT) != 0 {
            parsed.read_rest(flags, &mut reader)?;
        }
        Ok(parsed)
    }

    /// Parses the optional fields, which are rare.
    #[cold]
    fn read_rest(&mut self, flags: u8, reader: &mut Reader<'_>) -> Result<(), Error> {
        if flags & GROUP_INFO != 0 {
            self.group = Some(GapGroup::read(reader)?);
        }
        if flags & FILTERED_COUNT != 0 {
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
        let group = self.group.map_or(0, |_| GROUP_INFO);
        let filtered = self.filtered.map_or(0, |_| FILTERED_COUNT);
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
