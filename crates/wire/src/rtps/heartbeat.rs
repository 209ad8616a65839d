//! HEARTBEAT: a writer says what it has (RTPS 2.5 §8.3.8.6).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::SequenceNumber,
};

/// Bytes of a HEARTBEAT with its submessage header.
pub const HEARTBEAT_BYTES: usize = SUBMESSAGE_HEADER_BYTES + BODY_BYTES;

const BODY_BYTES: usize = 28;

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
}

impl Heartbeat {
    /// Reads a body. Group information, if any, is checked and not kept.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if `first < 1` or `last < first - 1`, or the numbers of the
    /// group contradict each other; [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        if flags & GROUP_INFO != 0 {
            check_group(flags, body)?;
        }
        let mut reader = Reader::fixed::<BODY_BYTES>(body, order_of(flags))?;
        let parsed = Self {
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            first: SequenceNumber::read_positive(&mut reader)?,
            last: SequenceNumber::read(&mut reader)?,
            count: reader.i32()?,
            is_final: flags & FINAL != 0,
            liveliness: flags & LIVELINESS != 0,
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
        HEARTBEAT_BYTES
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
        write_header(&mut writer, SubmessageId::HEARTBEAT, flags, BODY_BYTES);
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.first.write(&mut writer);
        self.last.write(&mut writer);
        writer.i32(self.count);
        writer.len()
    }
}

/// Whether the numbers of the group can be so (RTPS 2.5 §8.3.8.6.3): current, first and last of all
/// its writers, then the digests of two sets of writers.
#[cold]
fn check_group(flags: u8, body: &[u8]) -> Result<(), Error> {
    let rest = body.get(BODY_BYTES..).ok_or(Error::Truncated)?;
    let mut reader = Reader::new(rest, order_of(flags));
    let current = SequenceNumber::read_positive(&mut reader)?;
    let first = SequenceNumber::read_positive(&mut reader)?;
    let last = SequenceNumber::read(&mut reader)?;
    let _digests: &[u8; 8] = reader.array()?;
    if last.get() < first.get() - 1 || current < first || current < last {
        return Err(Error::InvalidSequenceNumber);
    }
    Ok(())
}
