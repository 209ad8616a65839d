//! INFO_SRC submessage, used in forwarded messages (RTPS 2.5 §8.3.8.10).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::GuidPrefix,
};

/// Size of an INFO_SRC in bytes, including its submessage header.
pub const INFO_SOURCE_BYTES: usize = SUBMESSAGE_HEADER_BYTES + 20;

/// INFO_SRC: source participant of the following submessages, replacing the message header's. Also resets the
/// reply locators and the timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoSource {
    /// RTPS version of the source.
    pub version: [u8; 2],
    /// Vendor id of the source.
    pub vendor: [u8; 2],
    /// GUID prefix of the source.
    pub prefix: GuidPrefix,
}

impl InfoSource {
    /// Parses the submessage body.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        let _unused: &[u8; 4] = reader.array()?;
        Ok(Self {
            version: *reader.array()?,
            vendor: *reader.array()?,
            prefix: GuidPrefix(*reader.array()?),
        })
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[inline]
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        INFO_SOURCE_BYTES
    }

    /// Writes the submessage with its header; returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len).
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut writer = Writer::new(buffer);
        write_header(&mut writer, SubmessageId::INFO_SRC, 0, 20);
        writer.put(&[0; 4]);
        writer.put(&self.version);
        writer.put(&self.vendor);
        writer.put(&self.prefix.0);
        writer.len()
    }
}
