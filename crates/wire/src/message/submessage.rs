//! Submessage header, kinds and iteration (RTPS 2.5 §8.3.3, §9.4.5.1).

use super::{
    AckNack, Data, DataFrag, Gap, HeaderExtension, Heartbeat, HeartbeatFrag, InfoDestination,
    InfoReply, InfoReplyIp4, InfoSource, InfoTimestamp, NackFrag,
};
use crate::{
    Error,
    bytes::{Writer, order_of, u16_of},
    guid::GuidPrefix,
    time::Timestamp,
};

/// Size of a submessage header in bytes: id, flags, length.
pub const SUBMESSAGE_HEADER_BYTES: usize = 4;

/// Flag E of every submessage: little-endian.
pub(super) const LITTLE_ENDIAN: u8 = 0x01;

/// Submessage ids (RTPS 2.5 §9.4.5.1.1).
pub struct SubmessageId;

impl SubmessageId {
    /// Length, send time and checksum of the message.
    pub const HEADER_EXTENSION: u8 = 0x00;
    /// Padding.
    pub const PAD: u8 = 0x01;
    /// Acknowledgment and repair request of a reader.
    pub const ACKNACK: u8 = 0x06;
    /// Available changes of a writer.
    pub const HEARTBEAT: u8 = 0x07;
    /// Irrelevant changes of a writer.
    pub const GAP: u8 = 0x08;
    /// Source timestamp of the following submessages.
    pub const INFO_TS: u8 = 0x09;
    /// Source participant of the following submessages.
    pub const INFO_SRC: u8 = 0x0c;
    /// Reply locators, UDPv4 only.
    pub const INFO_REPLY_IP4: u8 = 0x0d;
    /// Destination participant of the following submessages.
    pub const INFO_DST: u8 = 0x0e;
    /// Reply locators.
    pub const INFO_REPLY: u8 = 0x0f;
    /// Request for missing fragments of a change.
    pub const NACK_FRAG: u8 = 0x12;
    /// Available fragments of a change.
    pub const HEARTBEAT_FRAG: u8 = 0x13;
    /// Change.
    pub const DATA: u8 = 0x15;
    /// Fragments of a change.
    pub const DATA_FRAG: u8 = 0x16;
    /// First id reserved for other specifications (RTPS 2.5 Table 9.14): DDS Security, which isolane skips.
    pub const FIRST_OF_SECURITY: u8 = 0x30;
    /// Last id reserved for other specifications.
    pub const LAST_OF_SECURITY: u8 = 0x3f;
    /// First vendor-specific id.
    pub const FIRST_OF_VENDORS: u8 = 0x80;
}

/// Writes a submessage header; `body` is the length of the body.
#[inline]
pub(super) fn write_header(writer: &mut Writer<'_>, id: u8, flags: u8, body: usize) {
    writer.put(&[id, flags | LITTLE_ENDIAN]);
    writer.u16(length_field(body));
}

/// Length field for a body of `body` bytes. Only DATA and DATA_FRAG can exceed the field; it is then zero, "to the
/// end of the message" (RTPS 2.5 §9.4.5.1.3).
#[inline]
pub(super) fn length_field(body: usize) -> u16 {
    u16::try_from(body).unwrap_or(0)
}

/// Body of a submessage that is written as a whole, without a payload behind it.
pub(super) trait SubmessageBody {
    const ID: u8;

    /// Flags other than the byte order.
    #[inline]
    fn flags(&self) -> u8 {
        0
    }

    /// Number of bytes that [`write_body`](Self::write_body) writes.
    fn body_len(&self) -> usize;

    fn write_body(&self, writer: &mut Writer<'_>);

    /// Length of header and body.
    #[inline]
    fn whole_len(&self) -> usize {
        SUBMESSAGE_HEADER_BYTES + self.body_len()
    }

    /// Writes header and body; returns their length.
    #[inline]
    fn write_whole(&self, buffer: &mut [u8]) -> usize {
        let mut writer = Writer::new(buffer);
        write_header(&mut writer, Self::ID, self.flags(), self.body_len());
        self.write_body(&mut writer);
        writer.len()
    }
}

/// Implements `buffer_len` and `emit` of submessages.
macro_rules! emit_with_header {
    ($($submessage:ty),+) => {
        $(impl $submessage {
            /// Bytes that [`emit`](Self::emit) writes.
            #[inline]
            #[must_use]
            pub fn buffer_len(&self) -> usize {
                self.whole_len()
            }

            /// Writes the submessage with its header; returns its length.
            ///
            /// # Panics
            /// If the buffer is shorter than [`buffer_len`](Self::buffer_len).
            #[inline]
            pub fn emit(&self, buffer: &mut [u8]) -> usize {
                self.write_whole(buffer)
            }
        })+
    };
}

emit_with_header!(AckNack, NackFrag, Gap, Heartbeat, HeartbeatFrag);
emit_with_header!(
    InfoTimestamp,
    InfoSource,
    InfoDestination,
    InfoReply<'_>,
    InfoReplyIp4
);

/// Decoded submessage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submessage<'a> {
    /// Length, send time and checksum of the message; [`HeaderExtension::verify`] verifies them.
    HeaderExtension(HeaderExtension<'a>),
    /// Padding.
    Pad,
    /// Acknowledgment and repair request of a reader.
    AckNack(AckNack),
    /// Available changes of a writer.
    Heartbeat(Heartbeat),
    /// Irrelevant changes of a writer.
    Gap(Gap),
    /// Source timestamp of the following submessages; `None` invalidates an earlier one.
    InfoTimestamp(Option<Timestamp>),
    /// Source participant of the following submessages, replacing the message header's.
    InfoSource(InfoSource),
    /// Destination participant of the following submessages; [`GuidPrefix::UNKNOWN`] for all.
    InfoDestination(GuidPrefix),
    /// Reply locators for the following submessages.
    InfoReply(InfoReply<'a>),
    /// Reply locators, UDPv4 only.
    InfoReplyIp4(InfoReplyIp4),
    /// Request for missing fragments of a change.
    NackFrag(NackFrag),
    /// Available fragments of a change.
    HeartbeatFrag(HeartbeatFrag),
    /// Change.
    Data(Data<'a>),
    /// Fragments of a change.
    DataFrag(DataFrag<'a>),
    /// Submessage that isolane does not decode: a vendor's, DDS Security's, or a later minor version's.
    Other {
        /// Submessage id; vendor-specific from 0x80.
        id: u8,
        /// Flags.
        flags: u8,
        /// Body.
        body: &'a [u8],
    },
}

/// Submessage that is not decoded yet.
///
/// A receiver of mostly one kind checks [`id`](Self::id) and decodes that kind directly ([`Data::parse`]), because
/// a [`Submessage`] is as large as its largest variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawSubmessage<'a> {
    /// Submessage id.
    pub id: u8,
    /// Flags.
    pub flags: u8,
    /// Body.
    pub body: &'a [u8],
    /// Offset of the body in the message.
    pub body_offset: usize,
}

impl<'a> RawSubmessage<'a> {
    /// Decodes the body.
    ///
    /// # Errors
    /// The parse error of a malformed body.
    #[inline]
    pub fn decode(&self) -> Result<Submessage<'a>, Error> {
        let Self {
            id,
            flags,
            body,
            body_offset,
        } = *self;
        Ok(match id {
            SubmessageId::DATA => Submessage::Data(Data::parse(flags, body, body_offset)?),
            SubmessageId::INFO_TS => {
                Submessage::InfoTimestamp(InfoTimestamp::parse(flags, body)?.0)
            }
            SubmessageId::INFO_DST => {
                Submessage::InfoDestination(InfoDestination::parse(flags, body)?.0)
            }
            SubmessageId::HEARTBEAT => Submessage::Heartbeat(Heartbeat::parse(flags, body)?),
            SubmessageId::ACKNACK => Submessage::AckNack(AckNack::parse(flags, body)?),
            SubmessageId::GAP => Submessage::Gap(Gap::parse(flags, body)?),
            SubmessageId::DATA_FRAG => {
                Submessage::DataFrag(DataFrag::parse(flags, body, body_offset)?)
            }
            SubmessageId::HEARTBEAT_FRAG => {
                Submessage::HeartbeatFrag(HeartbeatFrag::parse(flags, body)?)
            }
            SubmessageId::NACK_FRAG => Submessage::NackFrag(NackFrag::parse(flags, body)?),
            SubmessageId::INFO_SRC => Submessage::InfoSource(InfoSource::parse(flags, body)?),
            SubmessageId::INFO_REPLY => Submessage::InfoReply(InfoReply::parse(flags, body)?),
            SubmessageId::INFO_REPLY_IP4 => {
                Submessage::InfoReplyIp4(InfoReplyIp4::parse(flags, body)?)
            }
            SubmessageId::HEADER_EXTENSION => {
                Submessage::HeaderExtension(HeaderExtension::parse(flags, body, body_offset)?)
            }
            SubmessageId::PAD => Submessage::Pad,
            _ => Submessage::Other { id, flags, body },
        })
    }
}

/// Iterator over the submessages of a message.
///
/// A malformed body yields an error, and iteration continues after it, because its length is known. A truncated
/// header, or a length beyond the message, yields an error and ends the iteration.
#[derive(Debug, Clone)]
pub struct Submessages<'a> {
    message: &'a [u8],
    offset: usize,
}

impl<'a> Submessages<'a> {
    /// Starts at `offset` of a whole message: [`HEADER_BYTES`](super::HEADER_BYTES) for the first submessage, or an
    /// earlier value of [`offset`](Self::offset). Yields nothing beyond the end of the message.
    #[inline]
    #[must_use]
    pub fn new(message: &'a [u8], offset: usize) -> Self {
        Self { message, offset }
    }

    /// Offset of the next submessage; the message's length after the last one.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the next submessage without decoding it.
    #[inline]
    pub fn next_raw(&mut self) -> Option<Result<RawSubmessage<'a>, Error>> {
        let rest = self.message.get(self.offset..)?;
        let Some((&[id, flags, a, b], rest)) = rest.split_first_chunk() else {
            return (!rest.is_empty()).then(|| self.end());
        };
        let length = match u16_of(order_of(flags), [a, b]) {
            // Length 0 extends the last submessage to the end of the message, except those that may be empty (RTPS 2.5
            // §9.4.5.1.3).
            0 if !matches!(id, SubmessageId::PAD | SubmessageId::INFO_TS) => rest.len(),
            length => usize::from(length),
        };
        let Some(body) = rest.get(..length) else {
            return Some(self.end());
        };
        let body_offset = self.offset + SUBMESSAGE_HEADER_BYTES;
        self.offset = body_offset + length;
        Some(Ok(RawSubmessage {
            id,
            flags,
            body,
            body_offset,
        }))
    }

    #[cold]
    fn end(&mut self) -> Result<RawSubmessage<'a>, Error> {
        self.offset = self.message.len();
        Err(Error::Truncated)
    }
}

impl<'a> Iterator for Submessages<'a> {
    type Item = Result<Submessage<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_raw()?.and_then(|found| found.decode()))
    }
}
