//! DATA_FRAG submessage (RTPS 2.5 §8.3.8.3).

use super::{
    PayloadKind, SetMark, StatusInfo,
    data::{
        Head, INLINE_QOS, OCTETS_TO_INLINE_QOS, inline_qos_len, key_hash_of, read_inline_qos,
        write_inline_qos, write_marked_inline_qos,
    },
    submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header},
};
use crate::{
    ByteOrder, Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    parameter::ParameterList,
    sequence::SequenceNumber,
};

/// Flag K of DATA_FRAG: the payload is a serialized key. (In DATA this bit is flag D.)
const KEY: u8 = 0x04;
/// Flag N of DATA_FRAG: the payload is in a non-standard format. (In DATA this bit is flag K.)
const NON_STANDARD: u8 = 0x08;

/// Size of extraFlags and octetsToInlineQos in bytes; the latter counts from its own end.
const BEFORE_COUNTED: usize = 4;
/// Size of the fragment fields, which follow the fields common with DATA, in bytes.
const FRAGMENT_BYTES: usize = 12;
const FIXED_BYTES: usize = BEFORE_COUNTED + OCTETS_TO_INLINE_QOS as usize + FRAGMENT_BYTES;

/// DATA_FRAG: consecutive fragments of a change, borrowed from their message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataFrag<'a> {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sequence: SequenceNumber,
    /// Number of the first fragment here; fragments count from 1.
    pub first_fragment: u32,
    /// Number of fragments here, at least 1.
    pub fragments: u16,
    /// Fragment size in bytes, at least 1; only the change's last fragment may be shorter.
    pub fragment_size: u16,
    /// Size of the whole payload in bytes, including its encapsulation header.
    pub sample_size: u32,
    /// Inline QoS.
    pub inline_qos: Option<ParameterList<'a>>,
    /// Kind of the payload; never [`PayloadKind::None`].
    pub payload: PayloadKind,
    /// The fragments without padding; the length matches the fragment fields.
    pub bytes: &'a [u8],
    /// Offset of [`bytes`](Self::bytes) in the message.
    pub payload_offset: usize,
    /// Byte order of the submessage; the payload's is in its encapsulation header.
    pub little_endian: bool,
    /// True if the payload is in a vendor's format and must not be decoded.
    pub non_standard: bool,
}

impl<'a> DataFrag<'a> {
    /// Parses a submessage body at `body_offset` of its message.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if the number is not positive; [`Error::InvalidFragment`] if a number or
    /// size is 0, a fragment is beyond the end of the sample or larger than it, or the payload is longer than
    /// its fragments; [`Error::InvalidParameter`] or [`Error::MustUnderstand`] for inline QoS;
    /// [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &'a [u8], body_offset: usize) -> Result<Self, Error> {
        let order = order_of(flags);
        let mut reader = Reader::fixed::<FIXED_BYTES>(body, order)?;
        let _extra_flags = reader.u16()?;
        let to_inline_qos = usize::from(reader.u16()?);
        let head = Head::read(&mut reader)?;
        let first_fragment = reader.u32()?;
        let fragments = reader.u16()?;
        let fragment_size = reader.u16()?;
        let sample_size = reader.u32()?;
        let length = fragments_len(first_fragment, fragments, fragment_size, sample_size)
            .ok_or(Error::InvalidFragment)?;
        let after_head = BEFORE_COUNTED + to_inline_qos;
        if after_head < FIXED_BYTES {
            return Err(Error::Truncated);
        }
        let rest = body.get(after_head..).ok_or(Error::Truncated)?;
        let (inline_qos, rest) = read_inline_qos(flags, rest, order)?;
        let bytes = rest.get(..length).ok_or(Error::Truncated)?;
        // Only padding of the submessage to a multiple of four may follow.
        if rest.len() - length > 3 {
            return Err(Error::InvalidFragment);
        }
        Ok(Self {
            reader: head.reader,
            writer: head.writer,
            sequence: head.sequence,
            first_fragment,
            fragments,
            fragment_size,
            sample_size,
            inline_qos,
            payload: if flags & KEY == 0 {
                PayloadKind::Data
            } else {
                PayloadKind::Key
            },
            bytes,
            payload_offset: body_offset + (body.len() - rest.len()),
            little_endian: order == ByteOrder::Little,
            non_standard: flags & NON_STANDARD != 0,
        })
    }

    /// Number of fragments of the whole payload.
    #[must_use]
    pub fn total_fragments(&self) -> u32 {
        self.sample_size.div_ceil(u32::from(self.fragment_size))
    }

    /// Offset of [`bytes`](Self::bytes) in the whole payload.
    #[must_use]
    pub fn sample_offset(&self) -> usize {
        (self.first_fragment - 1) as usize * usize::from(self.fragment_size)
    }

    /// Status of the instance: disposed, unregistered.
    #[must_use]
    pub fn status_info(&self) -> StatusInfo {
        StatusInfo::of(self.inline_qos.as_ref())
    }

    /// Key hash from inline QoS.
    #[must_use]
    pub fn key_hash(&self) -> Option<[u8; 16]> {
        key_hash_of(self.inline_qos.as_ref())
    }
}

/// Size of the fragments in bytes; `None` if the fields contradict each other.
fn fragments_len(first: u32, count: u16, size: u16, sample_size: u32) -> Option<usize> {
    let (count, size) = (u64::from(count), u64::from(size));
    let sample_size = u64::from(sample_size);
    if count == 0 || size == 0 || size > sample_size {
        return None;
    }
    let before = u64::from(first.checked_sub(1)?);
    if before + count > sample_size.div_ceil(size) {
        return None;
    }
    let end = ((before + count) * size).min(sample_size);
    usize::try_from(end - before * size).ok()
}

/// DATA_FRAG submessage up to its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataFragHead {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer.
    pub writer: EntityId,
    /// Sequence number, at least 1.
    pub sequence: SequenceNumber,
    /// Number of the first fragment here; fragments count from 1.
    pub first_fragment: u32,
    /// Number of fragments here, at least 1.
    pub fragments: u16,
    /// Fragment size in bytes; only the change's last fragment may be shorter.
    pub fragment_size: u16,
    /// Size of the whole payload in bytes, including its encapsulation header.
    pub sample_size: u32,
    /// Key hash to send as inline QoS.
    pub key_hash: Option<[u8; 16]>,
    /// Status to send as inline QoS.
    pub status: Option<StatusInfo>,
    /// True if the payload is a serialized key.
    pub is_key: bool,
}

impl DataFragHead {
    /// Bytes that [`emit`](Self::emit) writes: submessage header, fixed part and inline QoS.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        SUBMESSAGE_HEADER_BYTES + FIXED_BYTES + inline_qos_len(self.key_hash.as_ref(), self.status)
    }

    /// Writes the head to the first [`buffer_len`](Self::buffer_len) bytes of `head`. The fragments follow:
    /// `payload_len` bytes, padded to a multiple of four.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub fn emit(&self, head: &mut [u8], payload_len: usize) {
        let inline_qos_len = inline_qos_len(self.key_hash.as_ref(), self.status);
        let mut writer = Writer::new(head);
        self.write_fixed(&mut writer, inline_qos_len, payload_len);
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
        let inline_qos_len = mark.inline_qos_len(self.key_hash.is_some(), self.status.is_some());
        let mut writer = Writer::new(head);
        self.write_fixed(&mut writer, inline_qos_len, payload_len);
        write_marked_inline_qos(&mut writer, self.key_hash.as_ref(), self.status, mark);
    }

    fn write_fixed(&self, writer: &mut Writer<'_>, inline_qos_len: usize, payload_len: usize) {
        let mut flags = if self.is_key { KEY } else { 0 };
        if inline_qos_len != 0 {
            flags |= INLINE_QOS;
        }
        let body = FIXED_BYTES + inline_qos_len + payload_len;
        write_header(writer, SubmessageId::DATA_FRAG, flags, body);
        writer.u16(0);
        writer.u16(OCTETS_TO_INLINE_QOS + FRAGMENT_BYTES as u16);
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.sequence.write(writer);
        writer.u32(self.first_fragment);
        writer.u16(self.fragments);
        writer.u16(self.fragment_size);
        writer.u32(self.sample_size);
    }
}
