//! INFO_REPLY_IP4: where replies to what follows go, if that is one address of IPv4, and one group
//! (RTPS 2.5 §9.4.5.15).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    locator::Locator,
};

/// Flag M: there is a group too.
const MULTICAST: u8 = 0x02;

/// Bytes of an address and a port.
const PLACE_BYTES: usize = 8;

/// Where replies to what follows go. All locators are of the kind [`Locator::KIND_UDPV4`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoReplyIp4 {
    /// An address of the sender.
    pub unicast: Locator,
    /// A group that the sender has joined.
    pub multicast: Option<Locator>,
}

impl InfoReplyIp4 {
    /// Reads a body.
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

/// `LocatorUDPv4_t`: unlike in other locators the address is a number, in the submessage's byte order.
fn read(reader: &mut Reader<'_>) -> Result<Locator, Error> {
    let address = reader.u32()?.to_be_bytes();
    let port = reader.u32()?;
    Ok(Locator {
        port,
        ..Locator::udpv4(address, 0)
    })
}
