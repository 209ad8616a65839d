//! RTPS message: a header, then submessages (RTPS 2.5 §8.3, §9.4).
//!
//! To read a message, call [`Header::parse`], then iterate over [`Submessages`]. Each submessage is a plain value,
//! checked against the standard's validity clauses (§8.3.8). Payloads, inline QoS and locator lists are borrowed
//! from the message.
//!
//! To write a message, append submessages with a [`MessageWriter`]. On the hot path the payload is already in the
//! frame. There the bytes before the payload are written: a [`SamplePrefix`], or header, INFO_TS and [`DataPrefix`].
//! All output is little-endian.
//!
//! This file has the message header, the submessage header, and the sequence of submessages. The submodules have the
//! bodies of the submessages.

mod data;
mod header_extension;
mod info;
mod inline_qos;
mod reliability;

pub use data::{
    Data, DataFrag, DataFragPrefix, DataPrefix, PayloadKind, SAMPLE_PREFIX_BYTES, SamplePrefix,
};
pub use header_extension::{ChecksumKind, HeaderExtension, MessageChecksum};
pub use info::{
    INFO_DESTINATION_BYTES, INFO_SOURCE_BYTES, INFO_TIMESTAMP_BYTES, InfoDestination, InfoReply,
    InfoReplyIp4, InfoSource, InfoTimestamp,
};
pub use inline_qos::{CoherentSetInfo, GroupDigest, StatusInfo, group_digest};
pub use reliability::{
    AckNack, Gap, GapGroup, HEARTBEAT_BYTES, HEARTBEAT_FRAG_BYTES, Heartbeat, HeartbeatFrag,
    HeartbeatGroup, NackFrag,
};

use crate::{
    BufferTooSmall, ByteOrder, Error,
    bytes::{Reader, Writer, order_of, u16_of},
    guid::GuidPrefix,
    time::Timestamp,
};

/// Size of the message header in bytes.
pub const HEADER_BYTES: usize = 20;

/// RTPS version that isolane implements, major and minor.
pub const VERSION: [u8; 2] = [2, 5];

/// Vendor id of isolane. The OMG has not assigned this id, so other implementations use no vendor extensions with
/// isolane.
pub const VENDOR_ID: [u8; 2] = [0x01, 0xee];

const MAGIC: [u8; 4] = *b"RTPS";

/// Message header: names the source of all submessages before the first INFO_SRC.
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

/// Size of a submessage header in bytes: id, flags, length.
pub const SUBMESSAGE_HEADER_BYTES: usize = 4;

/// Flag E of every submessage: the submessage is little-endian.
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
    /// First id reserved for other specifications (RTPS 2.5 Table 9.14): for DDS Security, which isolane skips.
    pub const FIRST_OF_SECURITY: u8 = 0x30;
    /// Last id reserved for other specifications.
    pub const LAST_OF_SECURITY: u8 = 0x3f;
    /// First vendor-specific id.
    pub const FIRST_OF_VENDORS: u8 = 0x80;
}

/// Iterator over the submessages of a message.
///
/// A malformed body yields an error, and iteration continues with the next submessage, because the body's length is
/// known. A truncated header, or a length beyond the message, yields an error and ends the iteration.
#[derive(Debug, Clone)]
pub struct Submessages<'a> {
    message: &'a [u8],
    offset: usize,
}

impl<'a> Submessages<'a> {
    /// Starts at `offset` of a whole message: [`HEADER_BYTES`] for the first submessage, or an
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
            // Length 0 means "to the end of the message" (RTPS 2.5 §9.4.5.1.3). In PAD and INFO_TS, which may be
            // empty, 0 means an empty body.
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

/// Submessage that is not decoded yet.
///
/// A [`Submessage`] is as large as its largest variant. A receiver that gets mostly one kind avoids copying it: the
/// receiver checks [`id`](Self::id) and parses that kind directly, for example with [`Data::parse`].
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
    /// Source participant of the following submessages, instead of the one in the message header.
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
    /// Submessage that isolane does not decode: of a vendor, of DDS Security, or of a later minor version.
    Other {
        /// Submessage id; vendor-specific from 0x80.
        id: u8,
        /// Flags.
        flags: u8,
        /// Body.
        body: &'a [u8],
    },
}

/// Writes a submessage header; `body` is the length of the body.
#[inline]
pub(super) fn write_header(writer: &mut Writer<'_>, id: u8, flags: u8, body: usize) {
    writer.put(&[id, flags | LITTLE_ENDIAN]);
    writer.u16(length_field(body));
}

/// Length field for a body of `body` bytes. Only DATA and DATA_FRAG can be too long for the field. The field is then
/// zero, "to the end of the message" (RTPS 2.5 §9.4.5.1.3).
#[inline]
pub(super) fn length_field(body: usize) -> u16 {
    u16::try_from(body).unwrap_or(0)
}

/// Body of a submessage without a payload.
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

/// Appends submessages to a message in a buffer. A submessage that does not fit is omitted as a whole, and the
/// message remains valid.
#[derive(Debug)]
pub struct MessageWriter<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

/// Maximum length in bytes of the body of a submessage that is not the last one. The length field has two bytes, and
/// the next submessage is aligned to four.
const MAX_BODY_BYTES: usize = 0xfffc;

/// Defines methods that append a submessage without payload.
macro_rules! appends {
    ($($(#[$documentation:meta])+ $method:ident: $submessage:ty;)+) => {
        $($(#[$documentation])+
        ///
        /// # Errors
        /// [`BufferTooSmall`]; nothing was written.
        #[inline]
        pub fn $method(&mut self, submessage: &$submessage) -> Result<&mut Self, BufferTooSmall> {
            self.append(submessage)
        })+
    };
}

/// Fills `room` behind a message with a PAD submessage (RTPS 2.5 §8.3.8.13), which receivers ignore. Returns false,
/// without a change, if no submessage has this length: at least 4, and a multiple of 4.
pub fn pad(room: &mut [u8]) -> bool {
    let body = room.len().checked_sub(SUBMESSAGE_HEADER_BYTES);
    let length = body.filter(|length| length.is_multiple_of(4));
    let Some(length) = length.and_then(|length| u16::try_from(length).ok()) else {
        return false;
    };
    room.fill(0);
    room[..2].copy_from_slice(&[SubmessageId::PAD, LITTLE_ENDIAN]);
    room[2..SUBMESSAGE_HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
    true
}

impl<'a> MessageWriter<'a> {
    /// Starts a message with its header.
    ///
    /// # Errors
    /// [`BufferTooSmall`] if the header does not fit.
    #[inline]
    pub fn new(buffer: &'a mut [u8], header: &Header) -> Result<Self, BufferTooSmall> {
        let mut message = Self { buffer, length: 0 };
        header.emit(message.reserve(HEADER_BYTES)?);
        Ok(message)
    }

    /// Bytes written so far.
    #[inline]
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always a header")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Bytes left in the buffer.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.buffer.len() - self.length
    }

    #[inline]
    fn reserve(&mut self, length: usize) -> Result<&mut [u8], BufferTooSmall> {
        let room = self
            .buffer
            .get_mut(self.length..)
            .and_then(|rest| rest.get_mut(..length))
            .ok_or(BufferTooSmall)?;
        self.length += length;
        Ok(room)
    }

    #[inline]
    fn append<S: SubmessageBody>(&mut self, submessage: &S) -> Result<&mut Self, BufferTooSmall> {
        submessage.write_whole(self.reserve(submessage.whole_len())?);
        Ok(self)
    }

    /// Appends a HEADER_EXTENSION, which must be the first submessage. [`HeaderExtension::seal`] completes it when the
    /// message is complete.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    pub fn header_extension(
        &mut self,
        extension: &HeaderExtension<'_>,
    ) -> Result<&mut Self, BufferTooSmall> {
        extension.emit(self.reserve(extension.buffer_len())?);
        Ok(self)
    }

    /// Appends an INFO_TS: source timestamp of the following submessages.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn info_timestamp(&mut self, timestamp: Timestamp) -> Result<&mut Self, BufferTooSmall> {
        self.append(&InfoTimestamp(Some(timestamp)))
    }

    /// Appends an INFO_DST: destination of the following submessages.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn info_destination(&mut self, prefix: GuidPrefix) -> Result<&mut Self, BufferTooSmall> {
        self.append(&InfoDestination(prefix))
    }

    appends! {
        /// Appends an INFO_SRC: source of the following submessages.
        info_source: InfoSource;
        /// Appends an INFO_REPLY: reply locators for the following submessages.
        info_reply: InfoReply<'_>;
        /// Appends an INFO_REPLY_IP4: UDPv4 reply locators for the following submessages.
        info_reply_ip4: InfoReplyIp4;
        /// Appends a HEARTBEAT: available changes of a writer.
        heartbeat: Heartbeat;
        /// Appends a HEARTBEAT_FRAG: available fragments of a change.
        heartbeat_frag: HeartbeatFrag;
        /// Appends an ACKNACK: acknowledgment and repair request of a reader.
        acknack: AckNack;
        /// Appends a NACK_FRAG: request for missing fragments.
        nack_frag: NackFrag;
        /// Appends a GAP: irrelevant changes.
        gap: Gap;
    }

    /// Appends a DATA. The payload, including its encapsulation header, is copied and padded with zeros to a multiple
    /// of four. If `prefix` has no payload, `payload` must be empty.
    ///
    /// # Errors
    /// [`BufferTooSmall`], also if the submessage is too long for its length field; nothing was written.
    #[inline]
    pub fn data(
        &mut self,
        prefix: &DataPrefix,
        payload: &[u8],
    ) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(prefix.buffer_len(), payload, |room, length| {
            prefix.emit(room, length);
        })
    }

    /// Appends a DATA_FRAG; the fragments are copied as in [`data`](Self::data).
    ///
    /// # Errors
    /// [`BufferTooSmall`], also if the submessage is too long for its length field; nothing was written.
    #[inline]
    pub fn data_frag(
        &mut self,
        prefix: &DataFragPrefix,
        fragments: &[u8],
    ) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(prefix.buffer_len(), fragments, |room, length| {
            prefix.emit(room, length);
        })
    }

    /// Appends a DATA like [`data`](Self::data), with coherent set or group parameters.
    ///
    /// # Errors
    /// Those of [`data`](Self::data).
    pub fn data_with_set(
        &mut self,
        prefix: &DataPrefix,
        set: &CoherentSetInfo,
        payload: &[u8],
    ) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(prefix.len_with_set(set), payload, |room, length| {
            prefix.emit_with_set(set, room, length);
        })
    }

    /// Appends a DATA_FRAG like [`data_frag`](Self::data_frag), with coherent set or group parameters.
    ///
    /// # Errors
    /// Those of [`data_frag`](Self::data_frag).
    pub fn data_frag_with_set(
        &mut self,
        prefix: &DataFragPrefix,
        set: &CoherentSetInfo,
        fragments: &[u8],
    ) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(prefix.len_with_set(set), fragments, |room, length| {
            prefix.emit_with_set(set, room, length);
        })
    }

    #[inline]
    fn with_payload(
        &mut self,
        prefix_len: usize,
        payload: &[u8],
        emit: impl FnOnce(&mut [u8], usize),
    ) -> Result<&mut Self, BufferTooSmall> {
        if prefix_len + payload.len() > MAX_BODY_BYTES {
            return Err(BufferTooSmall);
        }
        let padded = payload.len().next_multiple_of(4);
        let room = self.reserve(prefix_len + padded)?;
        let (prefix, rest) = room.split_at_mut(prefix_len);
        let (body, padding) = rest.split_at_mut(payload.len());
        emit(prefix, padded);
        body.copy_from_slice(payload);
        padding.fill(0);
        Ok(self)
    }
}
