//! The submessages of a message, one after the other (RTPS 2.5 §8.3.3, §9.4.5.1).

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

/// Bytes in front of each submessage's body: identifier, flags, length.
pub const SUBMESSAGE_HEADER_BYTES: usize = 4;

/// Flag E of every submessage: its numbers are little-endian.
pub(super) const LITTLE_ENDIAN: u8 = 0x01;

/// The identifiers of submessages (RTPS 2.5 §9.4.5.1.1).
pub struct SubmessageId;

impl SubmessageId {
    /// What the header has no place for.
    pub const HEADER_EXTENSION: u8 = 0x00;
    /// Fills space.
    pub const PAD: u8 = 0x01;
    /// A reader acknowledges and asks.
    pub const ACKNACK: u8 = 0x06;
    /// A writer says what it has.
    pub const HEARTBEAT: u8 = 0x07;
    /// A writer says what is not to be expected.
    pub const GAP: u8 = 0x08;
    /// When what follows was written.
    pub const INFO_TS: u8 = 0x09;
    /// Who wrote what follows.
    pub const INFO_SRC: u8 = 0x0c;
    /// Where replies go, IPv4 only.
    pub const INFO_REPLY_IP4: u8 = 0x0d;
    /// Whom what follows is for.
    pub const INFO_DST: u8 = 0x0e;
    /// Where replies go.
    pub const INFO_REPLY: u8 = 0x0f;
    /// A reader asks for fragments.
    pub const NACK_FRAG: u8 = 0x12;
    /// A writer says what fragments it has.
    pub const HEARTBEAT_FRAG: u8 = 0x13;
    /// A change.
    pub const DATA: u8 = 0x15;
    /// Fragments of a change.
    pub const DATA_FRAG: u8 = 0x16;
    /// What other specifications may define begins here (RTPS 2.5 Table 9.14): DDS Security's, which
    /// isolane passes over.
    pub const FIRST_OF_SECURITY: u8 = 0x30;
    /// The last one of those.
    pub const LAST_OF_SECURITY: u8 = 0x3f;
    /// From here on they are a vendor's own.
    pub const FIRST_OF_VENDORS: u8 = 0x80;
}

/// Writes a submessage's header; `body` is the length of what follows it.
#[inline]
pub(super) fn write_header(writer: &mut Writer<'_>, id: u8, flags: u8, body: usize) {
    writer.put(&[id, flags | LITTLE_ENDIAN]);
    writer.u16(length_field(body));
}

/// What the header says of a body of so many bytes. Only DATA and DATA_FRAG can be longer than the field can
/// say. Zero then means "to the end of the message" (RTPS 2.5 §9.4.5.1.3).
#[inline]
pub(super) fn length_field(body: usize) -> u16 {
    u16::try_from(body).unwrap_or(0)
}

/// One submessage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submessage<'a> {
    /// What the message says of itself as a whole; [`HeaderExtension::verify`] tells whether it is true.
    HeaderExtension(HeaderExtension<'a>),
    /// Nothing.
    Pad,
    /// A reader acknowledges and asks.
    AckNack(AckNack),
    /// A writer says what it has.
    Heartbeat(Heartbeat),
    /// A writer says what is not to be expected.
    Gap(Gap),
    /// When what follows was written; `None` takes an earlier one back.
    InfoTimestamp(Option<Timestamp>),
    /// Who wrote what follows, in place of the message's header.
    InfoSource(InfoSource),
    /// Whom what follows is for; [`GuidPrefix::UNKNOWN`] is everybody.
    InfoDestination(GuidPrefix),
    /// Where replies to what follows go.
    InfoReply(InfoReply<'a>),
    /// The same, of IPv4 alone.
    InfoReplyIp4(InfoReplyIp4),
    /// A reader asks for fragments.
    NackFrag(NackFrag),
    /// A writer says what fragments it has.
    HeartbeatFrag(HeartbeatFrag),
    /// A change.
    Data(Data<'a>),
    /// Fragments of a change.
    DataFrag(DataFrag<'a>),
    /// One that isolane does not decode: of a vendor, of DDS Security, or of a later minor version.
    Other {
        /// Its identifier; from 0x80 up it is a vendor's.
        id: u8,
        /// Its flags.
        flags: u8,
        /// Its bytes.
        body: &'a [u8],
    },
}

/// One submessage, found in its message and not decoded yet.
///
/// A receiver that has one kind much more often than others looks at [`id`](Self::id), and decodes
/// that kind itself ([`Data::parse`]): a [`Submessage`] is as large as its largest kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undecoded<'a> {
    /// Its identifier.
    pub id: u8,
    /// Its flags.
    pub flags: u8,
    /// Its bytes.
    pub body: &'a [u8],
    /// Where in the message they begin.
    pub body_offset: usize,
}

impl<'a> Undecoded<'a> {
    /// Reads the body.
    ///
    /// # Errors
    /// As of the kind it is; it is malformed.
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
/// A body that is malformed yields an error and iteration goes on behind it, since its length is
/// known; a header that is cut off, or whose length leaves the message, yields an error and ends it.
#[derive(Debug, Clone)]
pub struct Submessages<'a> {
    message: &'a [u8],
    offset: usize,
}

impl<'a> Submessages<'a> {
    /// From `offset` of a whole message on: [`HEADER_BYTES`](super::HEADER_BYTES) for the first one,
    /// or what [`offset`](Self::offset) returned earlier. Beyond the message there are none.
    #[inline]
    #[must_use]
    pub fn new(message: &'a [u8], offset: usize) -> Self {
        Self { message, offset }
    }

    /// Where in the message the next submessage begins; the message's length after the last one.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The next submessage, not decoded: `next` decodes it, too.
    #[inline]
    pub fn next_undecoded(&mut self) -> Option<Result<Undecoded<'a>, Error>> {
        let rest = self.message.get(self.offset..)?;
        let Some((&[id, flags, a, b], rest)) = rest.split_first_chunk() else {
            return (!rest.is_empty()).then(|| self.end());
        };
        let length = match u16_of(order_of(flags), [a, b]) {
            // The last one says 0 if it goes on to the end, except those that may be empty (RTPS
            // 2.5 §9.4.5.1.3).
            0 if !matches!(id, SubmessageId::PAD | SubmessageId::INFO_TS) => rest.len(),
            length => usize::from(length),
        };
        let Some(body) = rest.get(..length) else {
            return Some(self.end());
        };
        let body_offset = self.offset + SUBMESSAGE_HEADER_BYTES;
        self.offset = body_offset + length;
        Some(Ok(Undecoded {
            id,
            flags,
            body,
            body_offset,
        }))
    }

    #[cold]
    fn end(&mut self) -> Result<Undecoded<'a>, Error> {
        self.offset = self.message.len();
        Err(Error::Truncated)
    }
}

impl<'a> Iterator for Submessages<'a> {
    type Item = Result<Submessage<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_undecoded()?.and_then(|found| found.decode()))
    }
}
