//! INFO_REPLY_IP4 submessage (RTPS 2.5 §9.4.5.15).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    locator::Locator,
};

/// Flag M: a multicast locator follows.
const MULTICAST: u8 = 0x02;

/// Size of an address and a port in bytes.
const PLACE_BYTES: usize = 8;

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
        let unicast = read(&mut reader)?;
        let multicast = if flags & MULTICAST == 0 {
            None
        } else {
            Some(read(&mut reader)?)
        };
        Ok(Self { unicast, multicast })
    }

    fn body_len(&self) -> usize {
        PLACE_BYTES + self.multicast.map_or(0, |_| PLACE_BYTES)
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        SUBMESSAGE_HEADER_BYTES + self.body_len()
    }

    /// Writes the submessage with its header; returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len).
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut writer = Writer::new(buffer);
        let flags = self.multicast.map_or(0, |_| MULTICAST);
        let body = self.body_len();
        write_header(&mut writer, SubmessageId::INFO_REPLY_IP4, flags, body);
        for locator in [Some(self.unicast), self.multicast].into_iter().flatten() {
            let [.., a, b, c, d] = locator.address;
            writer.u32(u32::from_be_bytes([a, b, c, d]));
            writer.u32(locator.port);
        }
        writer.len()
    }
}

/// Reads a `LocatorUDPv4_t`. Unlike in other locators, the address is an integer in the submessage's byte order.
fn read(reader: &mut Reader<'_>) -> Result<Locator, Error> {
    let address = reader.u32()?.to_be_bytes();
    let port = reader.u32()?;
    Ok(Locator {
        port,
        ..Locator::udpv4(address, 0)
    })
}
