//! RTPS message header (RTPS 2.5 §8.3.6, §9.4.4).

use crate::{
    Error,
    bytes::{Reader, Writer},
    cdr::ByteOrder,
    guid::GuidPrefix,
};

/// Size of the message header in bytes.
pub const HEADER_BYTES: usize = 20;

/// RTPS version that isolane implements, major and minor.
pub const VERSION: [u8; 2] = [2, 5];

/// Vendor id of isolane. The OMG has not assigned this id; peers treat it as a vendor without extensions, as
/// intended.
pub const VENDOR_ID: [u8; 2] = [0x01, 0xee];

const MAGIC: [u8; 4] = *b"RTPS";

/// Message header: the source of all submessages up to an INFO_SRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// RTPS version of the sender, major and minor.
    pub version: [u8; 2],
    /// Vendor id of the sender.
    pub vendor: [u8; 2],
    /// GUID prefix of the sender.
    pub prefix: GuidPrefix,
}

impl Header {
    /// Creates a header with isolane's version and vendor id.
    #[must_use]
    pub const fn new(prefix: GuidPrefix) -> Self {
        Self {
            version: VERSION,
            vendor: VENDOR_ID,
            prefix,
        }
    }

    /// Parses the header at the start of a datagram. Minor versions are compatible (RTPS 2.5 §8.6.1).
    ///
    /// # Errors
    /// [`Error::NotRtps`], [`Error::UnsupportedVersion`], or [`Error::Truncated`].
    #[inline]
    pub fn parse(message: &[u8]) -> Result<Self, Error> {
        if message.first_chunk().is_some_and(|magic| *magic != MAGIC) {
            return Err(Error::NotRtps);
        }
        let mut reader = Reader::fixed::<HEADER_BYTES>(message, ByteOrder::Big)?;
        let _magic: &[u8; MAGIC.len()] = reader.array()?;
        let version = *reader.array()?;
        let header = Self {
            version,
            vendor: *reader.array()?,
            prefix: GuidPrefix(*reader.array()?),
        };
        if version[0] != VERSION[0] {
            return Err(Error::UnsupportedVersion(version[0]));
        }
        Ok(header)
    }

    /// Writes the header and returns [`HEADER_BYTES`].
    ///
    /// # Panics
    /// If the buffer is shorter.
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut writer = Writer::new(buffer);
        writer.put(&MAGIC);
        writer.put(&self.version);
        writer.put(&self.vendor);
        writer.put(&self.prefix.0);
        writer.len()
    }
}
