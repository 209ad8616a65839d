//! INFO_* submessages, which state the timestamp, source, destination or reply locators of the following submessages
//! (RTPS 2.5 §8.3.8.8 to §8.3.8.11, §9.4.5.15).

use super::{SUBMESSAGE_HEADER_BYTES, SubmessageBody, SubmessageId};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::GuidPrefix,
    locator::{Locator, LocatorsView},
    time::Timestamp,
};

/// Size of an INFO_DST in bytes, including its submessage header.
pub const INFO_DESTINATION_BYTES: usize = SUBMESSAGE_HEADER_BYTES + 12;

/// Size of an INFO_SRC in bytes, including its submessage header.
pub const INFO_SOURCE_BYTES: usize = SUBMESSAGE_HEADER_BYTES + 20;

/// Size of an INFO_TS with a timestamp in bytes, including its submessage header.
pub const INFO_TIMESTAMP_BYTES: usize = SUBMESSAGE_HEADER_BYTES + TIMESTAMP_BYTES;

const TIMESTAMP_BYTES: usize = 8;

/// Size of an address and a port in bytes.
const ADDRESS_BYTES: usize = 8;

/// Flag I of INFO_TS: there is no timestamp, and an earlier one is invalidated.
const INVALIDATE: u8 = 0x02;

/// Flag M of INFO_REPLY and INFO_REPLY_IP4: multicast locators follow.
const MULTICAST: u8 = 0x02;

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
        let mut reader = Reader::fixed::<TIMESTAMP_BYTES>(body, order_of(flags))?;
        let timestamp = Timestamp::read(&mut reader)?;
        Ok(Self((timestamp != Timestamp::INVALID).then_some(timestamp)))
    }
}

impl SubmessageBody for InfoTimestamp {
    const ID: u8 = SubmessageId::INFO_TS;

    #[inline]
    fn flags(&self) -> u8 {
        self.0.map_or(INVALIDATE, |_| 0)
    }

    #[inline]
    fn body_len(&self) -> usize {
        self.0.map_or(0, |_| TIMESTAMP_BYTES)
    }

    #[inline]
    fn write_body(&self, writer: &mut Writer<'_>) {
        if let Some(timestamp) = self.0 {
            timestamp.write(writer);
        }
    }
}

/// INFO_SRC: source participant of the following submessages, instead of the one in the message header. It also resets
/// the reply locators and the timestamp.
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
}

impl SubmessageBody for InfoSource {
    const ID: u8 = SubmessageId::INFO_SRC;

    #[inline]
    fn body_len(&self) -> usize {
        INFO_SOURCE_BYTES - SUBMESSAGE_HEADER_BYTES
    }

    #[inline]
    fn write_body(&self, writer: &mut Writer<'_>) {
        writer.put(&[0; 4]);
        writer.put(&self.version);
        writer.put(&self.vendor);
        writer.put(&self.prefix.0);
    }
}

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
}

impl SubmessageBody for InfoDestination {
    const ID: u8 = SubmessageId::INFO_DST;

    #[inline]
    fn body_len(&self) -> usize {
        INFO_DESTINATION_BYTES - SUBMESSAGE_HEADER_BYTES
    }

    #[inline]
    fn write_body(&self, writer: &mut Writer<'_>) {
        writer.put(&self.0.0);
    }
}

/// INFO_REPLY: reply locators for the following submessages, instead of the datagram's source address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoReply<'a> {
    /// Unicast locators of the sender.
    pub unicast: LocatorsView<'a>,
    /// Multicast locators of the sender.
    pub multicast: Option<LocatorsView<'a>>,
}

impl<'a> InfoReply<'a> {
    /// Parses the submessage body.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the lists are longer than the body.
    pub fn parse(flags: u8, body: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        let unicast = LocatorsView::read(&mut reader)?;
        let multicast = if flags & MULTICAST == 0 {
            None
        } else {
            Some(LocatorsView::read(&mut reader)?)
        };
        Ok(Self { unicast, multicast })
    }
}

impl SubmessageBody for InfoReply<'_> {
    const ID: u8 = SubmessageId::INFO_REPLY;

    fn flags(&self) -> u8 {
        self.multicast.map_or(0, |_| MULTICAST)
    }

    fn body_len(&self) -> usize {
        let multicast_len = self.multicast.map_or(0, |list| list.buffer_len());
        self.unicast.buffer_len() + multicast_len
    }

    fn write_body(&self, writer: &mut Writer<'_>) {
        self.unicast.write(writer);
        if let Some(multicast) = self.multicast {
            multicast.write(writer);
        }
    }
}

/// INFO_REPLY_IP4: reply locators for the following submessages, all of kind [`Locator::KIND_UDPV4`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoReplyIp4 {
    /// Unicast locator of the sender.
    pub unicast: Locator,
    /// Multicast locator of the sender.
    pub multicast: Option<Locator>,
}

impl InfoReplyIp4 {
    /// Parses the submessage body.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        let unicast = read_udpv4(&mut reader)?;
        let multicast = if flags & MULTICAST == 0 {
            None
        } else {
            Some(read_udpv4(&mut reader)?)
        };
        Ok(Self { unicast, multicast })
    }
}

impl SubmessageBody for InfoReplyIp4 {
    const ID: u8 = SubmessageId::INFO_REPLY_IP4;

    fn flags(&self) -> u8 {
        self.multicast.map_or(0, |_| MULTICAST)
    }

    fn body_len(&self) -> usize {
        ADDRESS_BYTES + self.multicast.map_or(0, |_| ADDRESS_BYTES)
    }

    fn write_body(&self, writer: &mut Writer<'_>) {
        for locator in [Some(self.unicast), self.multicast].into_iter().flatten() {
            let [.., a, b, c, d] = locator.address;
            writer.u32(u32::from_be_bytes([a, b, c, d]));
            writer.u32(locator.port);
        }
    }
}

/// Reads a `LocatorUDPv4_t`. Unlike in other locators, the address is an integer in the submessage's byte order.
fn read_udpv4(reader: &mut Reader<'_>) -> Result<Locator, Error> {
    let address = reader.u32()?.to_be_bytes();
    let port = reader.u32()?;
    Ok(Locator {
        port,
        ..Locator::udpv4(address, 0)
    })
}
