//! INFO_DST submessage (RTPS 2.5 §8.3.8.8).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::GuidPrefix,
};

/// Size of an INFO_DST in bytes, including its submessage header.
pub const INFO_DESTINATION_BYTES: usize = SUBMESSAGE_HEADER_BYTES + 12;

/// Destination participant of the following submessages; [`GuidPrefix::UNKNOWN`] for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoDestination(pub GuidPrefix);

impl InfoDestination {
    /// Parses the submessage body.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        Ok(Self(GuidPrefix(*reader.array()?)))
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[inline]
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        INFO_DESTINATION_BYTES
    }

    /// Writes the submessage with its header; returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len).
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut writer = Writer::new(buffer);
        write_header(&mut writer, SubmessageId::INFO_DST, 0, 12);
        writer.put(&self.0.0);
        writer.len()
    }
}
