//! INFO_TS submessage (RTPS 2.5 §8.3.8.11).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    time::Timestamp,
};

/// Size of an INFO_TS with a timestamp in bytes, including its submessage header.
pub const INFO_TIMESTAMP_BYTES: usize = SUBMESSAGE_HEADER_BYTES + BODY_BYTES;

const BODY_BYTES: usize = 8;

/// Flag I: no timestamp; invalidates an earlier one.
const INVALIDATE: u8 = 0x02;

/// Source timestamp of the following submessages; `None` invalidates an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoTimestamp(pub Option<Timestamp>);

impl InfoTimestamp {
    /// Parses the submessage body.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the body is shorter than its timestamp.
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        if flags & INVALIDATE != 0 {
            return Ok(Self(None));
        }
        let mut reader = Reader::fixed::<BODY_BYTES>(body, order_of(flags))?;
        let timestamp = Timestamp::read(&mut reader)?;
        Ok(Self((timestamp != Timestamp::INVALID).then_some(timestamp)))
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[inline]
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        match self.0 {
            Some(_) => INFO_TIMESTAMP_BYTES,
            None => SUBMESSAGE_HEADER_BYTES,
        }
    }

    /// Writes the submessage with its header; returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len).
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut writer = Writer::new(buffer);
        match self.0 {
            Some(timestamp) => {
                write_header(&mut writer, SubmessageId::INFO_TS, 0, BODY_BYTES);
                timestamp.write(&mut writer);
            }
            None => write_header(&mut writer, SubmessageId::INFO_TS, INVALIDATE, 0),
        }
        writer.len()
    }
}
