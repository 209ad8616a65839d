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
}

impl Gap {
    /// Reads a body. Group information, if any, is checked and not kept; the count of filtered
    /// changes is not read.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if `start < 1`, or the numbers of the group contradict each
    /// other; [`Error::InvalidSet`]; [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        let parsed = Self {
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            start: SequenceNumber::read_positive(&mut reader)?,
            list: SequenceNumberSet::read(&mut reader, 1)?,
        };
        if flags & GROUP_INFO != 0 {
            check_group(&mut reader)?;
        }
        Ok(parsed)
    }

    fn body_len(&self) -> usize {
        16 + self.list.buffer_len()
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
        write_header(&mut writer, SubmessageId::GAP, 0, self.body_len());
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.start.write(&mut writer);
        self.list.write(&mut writer);
        writer.len()
    }
}

/// Whether the numbers of the group can be so (RTPS 2.5 §8.3.8.4.3): the first and the last of the
/// group's numbers that this GAP is about.
#[cold]
fn check_group(reader: &mut Reader<'_>) -> Result<(), Error> {
    let start = SequenceNumber::read_positive(reader)?;
    let end = SequenceNumber::read_positive(reader)?;
    if end.get() < start.get() - 1 {
        return Err(Error::InvalidSequenceNumber);
    }
    Ok(())
}
