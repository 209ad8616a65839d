//! INFO_REPLY submessage (RTPS 2.5 §8.3.8.9).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    locator::{LOCATOR_BYTES, LocatorsView},
};

/// Flag M: a multicast locator list follows.
const MULTICAST: u8 = 0x02;

/// INFO_REPLY: reply locators for the following submessages, replacing the message's source address.
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

    fn lists(&self) -> impl Iterator<Item = LocatorsView<'a>> + use<'a> {
        core::iter::once(self.unicast).chain(self.multicast)
    }

    fn body_len(&self) -> usize {
        self.lists()
            .map(|list| 4 + list.len() * LOCATOR_BYTES)
            .sum()
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
        let flags = if self.multicast.is_some() {
            MULTICAST
        } else {
            0
        };
        write_header(
            &mut writer,
            SubmessageId::INFO_REPLY,
            flags,
            self.body_len(),
        );
        for list in self.lists() {
            writer.u32(list.len() as u32);
            for locator in list.iter() {
                locator.write(&mut writer);
            }
        }
        writer.len()
    }
}
