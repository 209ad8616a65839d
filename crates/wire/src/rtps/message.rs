//! The header of a message (RTPS 2.5 §8.3.6, §9.4.4).

use crate::{
    Error,
    bytes::{Reader, Writer},
    cdr::ByteOrder,
    guid::GuidPrefix,
};

/// Bytes of a message's header.
pub const HEADER_BYTES: usize = 20;

/// The version of the protocol that isolane speaks, major and minor.
pub const VERSION: [u8; 2] = [2, 5];

/// How isolane names itself. The OMG has assigned this number to nobody, isolane included: peers
/// treat it as a vendor without extensions, which is what isolane wants to be.
pub const VENDOR_ID: [u8; 2] = [0x01, 0xee];

const MAGIC: [u8; 4] = *b"RTPS";

/// Who sent a message. It applies to all submessages up to an INFO_SRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The sender's version of the protocol, major and minor.
    pub version: [u8; 2],
    /// The sender's vendor.
    pub vendor: [u8; 2],
    /// The sender.
    pub prefix: GuidPrefix,
}

impl Header {
    /// A header of isolane's own.
    #[must_use]
    pub const fn new(prefix: GuidPrefix) -> Self {
        Self {
            version: VERSION,
            vendor: VENDOR_ID,
            prefix,
        }
    }

    /// Reads the header at the start of a datagram. Minor versions are compatible with each other
    /// (RTPS 2.5 §8.6.1).
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

    /// Writes the header; returns [`HEADER_BYTES`].
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
