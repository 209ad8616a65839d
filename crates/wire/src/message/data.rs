//! DATA submessage (RTPS 2.5 §8.3.8.2).

use super::{
    SetMark, StatusInfo,
    submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header},
};
use crate::{
    ByteOrder, Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    parameter::{ParameterList, pid},
    sequence::SequenceNumber,
    time::Duration,
};

/// Flag Q: inline QoS is present.
pub(super) const INLINE_QOS: u8 = 0x02;
/// Flag D: the payload is a whole sample.
const DATA: u8 = 0x04;
/// Flag K of DATA: the payload is a serialized key.
const KEY: u8 = 0x08;
/// Flag N of DATA: the payload is in a non-standard format.
const NON_STANDARD: u8 = 0x10;

/// Size of extraFlags and octetsToInlineQos in bytes; the latter counts from its own end.
pub(super) const BEFORE_COUNTED: usize = 4;
/// Value of octetsToInlineQos that isolane writes: two entity ids and a sequence number.
pub(super) const OCTETS_TO_INLINE_QOS: u16 = 16;
/// Size of the body's fixed part in bytes.
pub(super) const FIXED_BYTES: usize = BEFORE_COUNTED + OCTETS_TO_INLINE_QOS as usize;

/// Kind of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// No payload.
    None,
    /// Whole sample.
    Data,
    /// Serialized key.
    Key,
}

/// DATA: a change of one instance, borrowed from its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sequence: SequenceNumber,
    /// Inline QoS.
    pub inline_qos: Option<ParameterList<'a>>,
    /// Kind of [`bytes`](Self::bytes).
    pub payload: PayloadKind,
    /// Payload with encapsulation header and padding; may be empty.
    pub bytes: &'a [u8],
    /// Offset of [`bytes`](Self::bytes) in the message.
    pub payload_offset: usize,
    /// Byte order of the submessage; the payload's is in its encapsulation header.
    pub little_endian: bool,
    /// True if the payload is in a vendor's format and must not be decoded.
    pub non_standard: bool,
}

impl<'a> Data<'a> {
    /// Parses a submessage body at `body_offset` of its message.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if the number is not positive; [`Error::InvalidFlags`] if both D and K are
    /// set; [`Error::InvalidParameter`] or [`Error::MustUnderstand`] for inline QoS; [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &'a [u8], body_offset: usize) -> Result<Self, Error> {
        let payload = match flags & (DATA | KEY) {
            0 => PayloadKind::None,
            DATA => PayloadKind::Data,
            KEY => PayloadKind::Key,
            _ => return Err(Error::InvalidFlags(flags)),
        };
        let order = order_of(flags);
        let mut reader = Reader::fixed::<FIXED_BYTES>(body, order)?;
        let _extra_flags = reader.u16()?;
        let to_inline_qos = usize::from(reader.u16()?);
        let head = Head::read(&mut reader)?;
        // Later minor versions may insert fields before the inline QoS, never remove any.
        let after_head = BEFORE_COUNTED + to_inline_qos;
        if after_head < FIXED_BYTES {
            return Err(Error::Truncated);
        }
        let rest = body.get(after_head..).ok_or(Error::Truncated)?;
        let (inline_qos, rest) = read_inline_qos(flags, rest, order)?;
        let bytes = match payload {
            PayloadKind::None => &[],
            PayloadKind::Data | PayloadKind::Key => rest,
        };
        Ok(Self {
            reader: head.reader,
            writer: head.writer,
            sequence: head.sequence,
            inline_qos,
            payload,
            bytes,
            payload_offset: body_offset + (body.len() - rest.len()),
            little_endian: order == ByteOrder::Little,
            non_standard: flags & NON_STANDARD != 0,
        })
    }

    /// Status of the instance: disposed, unregistered.
    #[inline]
    #[must_use]
    pub fn status_info(&self) -> StatusInfo {
        StatusInfo::of(self.inline_qos.as_ref())
    }

    /// LIFESPAN of this sample from inline QoS (RTPS 2.5 §8.7.2.2); if absent, the writer's applies.
    #[must_use]
    pub fn lifespan(&self) -> Option<Duration> {
        let value = self.inline_qos.as_ref()?.find(pid::LIFESPAN)?;
        let order = match self.little_endian {
            true => ByteOrder::Little,
            false => ByteOrder::Big,
        };
        let lifespan = Duration::read(&mut Reader::new(value, order)).ok()?;
        (lifespan.seconds >= 0).then_some(lifespan)
    }

    /// Key hash from inline QoS (RTPS 2.5 §9.6.4.8).
    #[inline]
    #[must_use]
    pub fn key_hash(&self) -> Option<[u8; 16]> {
        key_hash_of(self.inline_qos.as_ref())
    }

    /// Coherent set and group information from inline QoS.
    #[must_use]
    pub fn set_mark(&self) -> SetMark {
        SetMark::of(self.inline_qos.as_ref())
    }

    /// Coherent set information of an end-of-set marker: a DATA without payload or status (RTPS 2.5 §8.7.6).
    /// `None` for other changes.
    #[must_use]
    pub fn set_end(&self) -> Option<SetMark> {
        let mark = self.set_mark();
        let is_bare =
            self.payload == PayloadKind::None && self.status_info() == StatusInfo::default();
        (is_bare && mark.coherent_set == Some(SequenceNumber::UNKNOWN)).then_some(mark)
    }
}

/// Common fields of DATA and DATA_FRAG, after octetsToInlineQos.
pub(super) struct Head {
    pub(super) reader: EntityId,
    pub(super) writer: EntityId,
    pub(super) sequence: SequenceNumber,
}

impl Head {
    #[inline]
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            sequence: SequenceNumber::read_positive(reader)?,
        })
    }
}

/// Splits inline QoS, if flagged, from the bytes after it.
#[inline]
pub(super) fn read_inline_qos(
    flags: u8,
    bytes: &[u8],
    order: ByteOrder,
) -> Result<(Option<ParameterList<'_>>, &[u8]), Error> {
    match flags & INLINE_QOS {
        0 => Ok((None, bytes)),
        _ => parse_inline_qos(bytes, order),
    }
}

#[inline(never)]
fn parse_inline_qos(
    bytes: &[u8],
    order: ByteOrder,
) -> Result<(Option<ParameterList<'_>>, &[u8]), Error> {
    let (list, length) = ParameterList::parse(bytes, order)?;
    // A sample with an unknown must-understand parameter must not be used.
    let insisted = list
        .iter()
        .find(|parameter| parameter.must_understand && !is_understood(parameter.id));
    match insisted {
        Some(parameter) => Err(Error::MustUnderstand(parameter.id)),
        None => Ok((Some(list), &bytes[length..])),
    }
}

fn is_understood(id: u16) -> bool {
    matches!(
        id,
        pid::KEY_HASH
            | pid::STATUS_INFO
            | pid::COHERENT_SET
            | pid::GROUP_COHERENT_SET
            | pid::GROUP_SEQ_NUM
            | pid::WRITER_GROUP_INFO
    )
}

#[inline]
pub(super) fn key_hash_of(inline_qos: Option<&ParameterList<'_>>) -> Option<[u8; 16]> {
    inline_qos?
        .find(pid::KEY_HASH)?
        .first_chunk::<16>()
        .copied()
}

/// DATA submessage up to its payload, written before a payload that is already in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHead {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer.
    pub writer: EntityId,
    /// Sequence number, at least 1.
    pub sequence: SequenceNumber,
    /// Key hash to send as inline QoS.
    pub key_hash: Option<[u8; 16]>,
    /// Status to send as inline QoS.
    pub status: Option<StatusInfo>,
    /// Kind of the payload.
    pub payload: PayloadKind,
}

impl DataHead {
    /// Size of the longest head in bytes: with key hash and status.
    pub const MAX_BYTES: usize = SUBMESSAGE_HEADER_BYTES + FIXED_BYTES + 20 + 8 + 4;

    /// Bytes that [`emit`](Self::emit) writes: submessage header, fixed part and inline QoS.
    #[inline]
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        SUBMESSAGE_HEADER_BYTES + FIXED_BYTES + self.inline_qos_len()
    }

    #[inline]
    fn inline_qos_len(&self) -> usize {
        inline_qos_len(self.key_hash.as_ref(), self.status)
    }

    /// Writes the head to the first [`buffer_len`](Self::buffer_len) bytes of `head`. `payload_len` is in bytes,
    /// includes the encapsulation header and padding to a multiple of four, and is 0 without a payload. A
    /// submessage longer than its length field allows must be the last of its message.
    ///
    /// # Panics
    /// If the buffer is too short.
    #[inline]
    pub fn emit(&self, head: &mut [u8], payload_len: usize) {
        let inline_qos_len = self.inline_qos_len();
        let mut flags = match self.payload {
            PayloadKind::None => 0,
            PayloadKind::Data => DATA,
            PayloadKind::Key => KEY,
        };
        if inline_qos_len != 0 {
            flags |= INLINE_QOS;
        }
        let body = FIXED_BYTES + inline_qos_len + payload_len;
        let mut writer = Writer::new(head);
        write_header(&mut writer, SubmessageId::DATA, flags, body);
        writer.u16(0);
        writer.u16(OCTETS_TO_INLINE_QOS);
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.sequence.write(&mut writer);
        write_inline_qos(&mut writer, self.key_hash.as_ref(), self.status);
    }

    /// Bytes that [`emit_marked`](Self::emit_marked) writes.
    #[must_use]
    pub fn marked_len(&self, mark: &SetMark) -> usize {
        let inline_qos_len = mark.inline_qos_len(self.key_hash.is_some(), self.status.is_some());
        SUBMESSAGE_HEADER_BYTES + FIXED_BYTES + inline_qos_len
    }

    /// Writes the head as [`emit`](Self::emit), with coherent set and group parameters.
    ///
    /// # Panics
    /// If the buffer is shorter than [`marked_len`](Self::marked_len).
    pub fn emit_marked(&self, mark: &SetMark, head: &mut [u8], payload_len: usize) {
        let head_len = self.marked_len(mark);
        let (key_hash, status) = (self.key_hash.as_ref(), self.status);
        // The fixed part is the same as without parameters.
        self.emit(head, payload_len);
        let mut writer = Writer::new(head);
        let mut flags = match self.payload {
            PayloadKind::None => 0,
            PayloadKind::Data => DATA,
            PayloadKind::Key => KEY,
        };
        if head_len > SUBMESSAGE_HEADER_BYTES + FIXED_BYTES {
            flags |= INLINE_QOS;
        }
        let body = head_len - SUBMESSAGE_HEADER_BYTES + payload_len;
        write_header(&mut writer, SubmessageId::DATA, flags, body);
        let inline_qos = &mut head[SUBMESSAGE_HEADER_BYTES + FIXED_BYTES..head_len];
        write_marked_inline_qos(&mut Writer::new(inline_qos), key_hash, status, mark);
    }
}

#[inline]
pub(super) fn key_hash_len(is_there: bool) -> usize {
    if is_there { 20 } else { 0 }
}

#[inline]
pub(super) fn inline_qos_len(key_hash: Option<&[u8; 16]>, status: Option<StatusInfo>) -> usize {
    let key_hash_len = key_hash_len(key_hash.is_some());
    let status_len = if status.is_some() { 8 } else { 0 };
    let sentinel_len = if key_hash_len + status_len == 0 { 0 } else { 4 };
    key_hash_len + status_len + sentinel_len
}

#[inline]
pub(super) fn write_inline_qos(
    writer: &mut Writer<'_>,
    key_hash: Option<&[u8; 16]>,
    status: Option<StatusInfo>,
) {
    write_key_and_status(writer, key_hash, status);
    if key_hash.is_some() || status.is_some() {
        writer.u16(pid::SENTINEL);
        writer.u16(0);
    }
}

#[inline]
fn write_key_and_status(
    writer: &mut Writer<'_>,
    key_hash: Option<&[u8; 16]>,
    status: Option<StatusInfo>,
) {
    if let Some(hash) = key_hash {
        writer.u16(pid::KEY_HASH);
        writer.u16(16);
        writer.put(hash);
    }
    if let Some(status) = status {
        writer.u16(pid::STATUS_INFO);
        writer.u16(4);
        writer.put(&status.to_bytes());
    }
}

/// Writes inline QoS with coherent set and group parameters; writes nothing if there are none at all.
pub(super) fn write_marked_inline_qos(
    writer: &mut Writer<'_>,
    key_hash: Option<&[u8; 16]>,
    status: Option<StatusInfo>,
    mark: &SetMark,
) {
    if mark.inline_qos_len(key_hash.is_some(), status.is_some()) == 0 {
        return;
    }
    write_key_and_status(writer, key_hash, status);
    mark.write(writer);
    writer.u16(pid::SENTINEL);
    writer.u16(0);
}
