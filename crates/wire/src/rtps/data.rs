//! DATA: a change (RTPS 2.5 §8.3.8.2).

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

/// Flag Q: there is inline QoS.
pub(super) const INLINE_QOS: u8 = 0x02;
/// Flag D: the payload is a whole sample.
const DATA: u8 = 0x04;
/// Flag K of DATA: the payload is a key.
const KEY: u8 = 0x08;
/// Flag N of DATA: the payload is not one of the standard's formats.
const NON_STANDARD: u8 = 0x10;

/// Bytes of extraFlags and octetsToInlineQos, from whose end the latter counts.
pub(super) const BEFORE_COUNTED: usize = 4;
/// What we say in octetsToInlineQos: two entity identifiers and a sequence number.
pub(super) const OCTETS_TO_INLINE_QOS: u16 = 16;
/// Bytes of the body's fixed part.
pub(super) const FIXED_BYTES: usize = BEFORE_COUNTED + OCTETS_TO_INLINE_QOS as usize;

/// What a payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// There is none.
    None,
    /// A whole sample.
    Data,
    /// The key members of a sample.
    Key,
}

/// A change of one instance, borrowed from its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// Who it is for; [`EntityId::UNKNOWN`]: all readers matched.
    pub reader: EntityId,
    /// Who wrote it.
    pub writer: EntityId,
    /// Its number in the writer's history.
    pub sequence: SequenceNumber,
    /// Parameters that came along.
    pub inline_qos: Option<ParameterList<'a>>,
    /// What [`bytes`](Self::bytes) is.
    pub payload: PayloadKind,
    /// The payload with its encapsulation header and any padding; empty if there is none.
    pub bytes: &'a [u8],
    /// Where in the whole message [`bytes`](Self::bytes) begins.
    pub payload_offset: usize,
    /// The byte order of the submessage; that of the payload stands in its encapsulation header.
    pub little_endian: bool,
    /// The payload is in a format of the vendor's, and must not be decoded.
    pub non_standard: bool,
}

impl<'a> Data<'a> {
    /// Reads a body that begins at `body_offset` of its message.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if the number is not positive; [`Error::InvalidFlags`] if
    /// the payload is to be both sample and key; [`Error::InvalidParameter`] or
    /// [`Error::MustUnderstand`] of inline QoS; [`Error::Truncated`].
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
        // Later minor versions may put more in front of the inline QoS, never less.
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

    /// What it does to its instance.
    #[inline]
    #[must_use]
    pub fn status_info(&self) -> StatusInfo {
        StatusInfo::of(self.inline_qos.as_ref())
    }

    /// The LIFESPAN of this sample, if it came along (RTPS 2.5 §8.7.2.2); else that of its writer holds.
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

    /// The key's hash, as the writer computed it, if it came along (RTPS 2.5 §9.6.4.8).
    #[inline]
    #[must_use]
    pub fn key_hash(&self) -> Option<[u8; 16]> {
        key_hash_of(self.inline_qos.as_ref())
    }

    /// The coherent set and the group it was written in, as far as it says so.
    #[must_use]
    pub fn set_mark(&self) -> SetMark {
        SetMark::of(self.inline_qos.as_ref())
    }

    /// What it says of the end of a coherent set, if it is no change but that (RTPS 2.5 §8.7.6).
    #[must_use]
    pub fn set_end(&self) -> Option<SetMark> {
        let mark = self.set_mark();
        let is_bare =
            self.payload == PayloadKind::None && self.status_info() == StatusInfo::default();
        (is_bare && mark.coherent_set == Some(SequenceNumber::UNKNOWN)).then_some(mark)
    }
}

/// What DATA and DATA_FRAG begin with, behind octetsToInlineQos.
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

/// Splits inline QoS, if the flags announce it, from what follows it.
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
    // A sample whose sender insists on something unknown here must not be used.
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

/// A DATA submessage up to its payload, to be written in front of a payload already in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHead {
    /// Who it is for; [`EntityId::UNKNOWN`]: all readers matched.
    pub reader: EntityId,
    /// Who writes it.
    pub writer: EntityId,
    /// Its number in the writer's history; from 1 up.
    pub sequence: SequenceNumber,
    /// The key's hash, to be sent along.
    pub key_hash: Option<[u8; 16]>,
    /// What it does to its instance, to be sent along.
    pub status: Option<StatusInfo>,
    /// What the payload is.
    pub payload: PayloadKind,
}

impl DataHead {
    /// Bytes of the longest head: with key hash and status.
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

    /// Writes the head into the first [`buffer_len`](Self::buffer_len) bytes of `head`.
    /// `payload_len`, in bytes with encapsulation header, is padded by the caller to a multiple of
    /// four, and 0 without a payload. If the whole is longer than the length field can say, it
    /// must be the last submessage of its message.
    ///
    /// # Panics
    /// If the buffer is shorter.
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

    /// The same as [`emit`](Self::emit) of a sample of a coherent set, or of a group.
    ///
    /// # Panics
    /// If the buffer is shorter than [`marked_len`](Self::marked_len).
    pub fn emit_marked(&self, mark: &SetMark, head: &mut [u8], payload_len: usize) {
        let head_len = self.marked_len(mark);
        let (key_hash, status) = (self.key_hash.as_ref(), self.status);
        // The fixed part and its flags are as without a mark; only what is behind it is longer.
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

/// The same with a mark; nothing at all where there is nothing to say.
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
