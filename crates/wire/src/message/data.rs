//! DATA and DATA_FRAG submessages (RTPS 2.5 §8.3.8.2, §8.3.8.3). The prefix of a submessage is all of its bytes before
//! the payload; a prefix is written before a payload that is already in the buffer.

use super::{
    CoherentSetInfo, HEADER_BYTES, Header, INFO_TIMESTAMP_BYTES, InfoTimestamp, StatusInfo,
    inline_qos::{INLINE_QOS, InlineQos, key_hash_of, read_inline_qos},
    {SUBMESSAGE_HEADER_BYTES, SubmessageId, length_field, write_header},
};
use crate::{
    ByteOrder, Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    parameter::{ParameterList, pid},
    sequence::SequenceNumber,
    time::{Duration, Timestamp},
};

/// Flag D of DATA: the payload is a whole sample.
const DATA: u8 = 0x04;
/// Flag K of DATA: the payload is a serialized key.
const KEY: u8 = 0x08;
/// Flag N of DATA: the payload is in a non-standard format.
const NON_STANDARD: u8 = 0x10;

/// Flag K of DATA_FRAG. (In DATA this bit is flag D.)
const FRAG_KEY: u8 = 0x04;
/// Flag N of DATA_FRAG. (In DATA this bit is flag K.)
const FRAG_NON_STANDARD: u8 = 0x08;

/// Size of extraFlags and octetsToInlineQos in bytes. octetsToInlineQos counts from its own end.
const BEFORE_COUNTED: usize = 4;
/// Value of octetsToInlineQos that isolane writes in a DATA: two entity ids and a sequence number.
const OCTETS_TO_INLINE_QOS: u16 = 16;
/// Size of the fixed part of a DATA's body in bytes.
const FIXED_BYTES: usize = BEFORE_COUNTED + OCTETS_TO_INLINE_QOS as usize;
/// Size in bytes of the fragment fields, which follow the fields that DATA and DATA_FRAG share.
const FRAGMENT_BYTES: usize = 12;
const FRAG_FIXED_BYTES: usize = FIXED_BYTES + FRAGMENT_BYTES;

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
    /// True if the submessage is little-endian. The payload's byte order is in its encapsulation header.
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
        let common = CommonFields::read(&mut reader)?;
        let rest = common.after_fields::<FIXED_BYTES>(body)?;
        let (inline_qos, rest) = read_inline_qos(flags, rest, order)?;
        let bytes = match payload {
            PayloadKind::None => &[],
            PayloadKind::Data | PayloadKind::Key => rest,
        };
        Ok(Self {
            reader: common.reader,
            writer: common.writer,
            sequence: common.sequence,
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

    /// LIFESPAN of this sample from inline QoS (RTPS 2.5 §8.7.2.2). If it is absent, the writer's LIFESPAN applies.
    #[must_use]
    pub fn lifespan(&self) -> Option<Duration> {
        let list = self.inline_qos.as_ref()?;
        let value = list.find(pid::LIFESPAN)?;
        let lifespan = Duration::read(&mut list.reader(value)).ok()?;
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
    pub fn coherent_set_info(&self) -> CoherentSetInfo {
        CoherentSetInfo::of(self.inline_qos.as_ref())
    }

    /// Coherent set information of an end-of-set marker: a DATA without payload or status (RTPS 2.5 §8.7.6).
    /// `None` for other changes.
    #[must_use]
    pub fn set_end(&self) -> Option<CoherentSetInfo> {
        let set = self.coherent_set_info();
        let is_bare =
            self.payload == PayloadKind::None && self.status_info() == StatusInfo::default();
        (is_bare && set.coherent_set == Some(SequenceNumber::UNKNOWN)).then_some(set)
    }
}

/// DATA_FRAG: consecutive fragments of a change, borrowed from their message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataFrag<'a> {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sequence: SequenceNumber,
    /// Number of the first fragment in this submessage; fragments are numbered from 1.
    pub first_fragment: u32,
    /// Number of fragments in this submessage, at least 1.
    pub fragments: u16,
    /// Fragment size in bytes, at least 1; only the change's last fragment may be shorter.
    pub fragment_size: u16,
    /// Size of the whole payload in bytes, including its encapsulation header.
    pub sample_size: u32,
    /// Inline QoS.
    pub inline_qos: Option<ParameterList<'a>>,
    /// Kind of the payload; never [`PayloadKind::None`].
    pub payload: PayloadKind,
    /// Fragments without padding; their length matches the fragment fields.
    pub bytes: &'a [u8],
    /// Offset of [`bytes`](Self::bytes) in the message.
    pub payload_offset: usize,
    /// True if the submessage is little-endian. The payload's byte order is in its encapsulation header.
    pub little_endian: bool,
    /// True if the payload is in a vendor's format and must not be decoded.
    pub non_standard: bool,
}

impl<'a> DataFrag<'a> {
    /// Parses a submessage body at `body_offset` of its message.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if the number is not positive; [`Error::InvalidFragment`] if a number or
    /// size is 0, a fragment is larger than the sample or ends beyond it, or bytes other than padding follow the
    /// fragments; [`Error::InvalidParameter`] or [`Error::MustUnderstand`] for inline QoS;
    /// [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &'a [u8], body_offset: usize) -> Result<Self, Error> {
        let order = order_of(flags);
        let mut reader = Reader::fixed::<FRAG_FIXED_BYTES>(body, order)?;
        let common = CommonFields::read(&mut reader)?;
        let first_fragment = reader.u32()?;
        let fragments = reader.u16()?;
        let fragment_size = reader.u16()?;
        let sample_size = reader.u32()?;
        let length = fragments_len(first_fragment, fragments, fragment_size, sample_size)
            .ok_or(Error::InvalidFragment)?;
        let rest = common.after_fields::<FRAG_FIXED_BYTES>(body)?;
        let (inline_qos, rest) = read_inline_qos(flags, rest, order)?;
        let bytes = rest.get(..length).ok_or(Error::Truncated)?;
        // After the fragments, only padding of the submessage to a multiple of four is allowed.
        if rest.len() - length > 3 {
            return Err(Error::InvalidFragment);
        }
        Ok(Self {
            reader: common.reader,
            writer: common.writer,
            sequence: common.sequence,
            first_fragment,
            fragments,
            fragment_size,
            sample_size,
            inline_qos,
            payload: if flags & FRAG_KEY == 0 {
                PayloadKind::Data
            } else {
                PayloadKind::Key
            },
            bytes,
            payload_offset: body_offset + (body.len() - rest.len()),
            little_endian: order == ByteOrder::Little,
            non_standard: flags & FRAG_NON_STANDARD != 0,
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

/// Size of a DATA_FRAG's fragments in bytes; `None` if its fields contradict each other.
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

/// Fields at the start of both DATA and DATA_FRAG.
struct CommonFields {
    octets_to_inline_qos: u16,
    reader: EntityId,
    writer: EntityId,
    sequence: SequenceNumber,
}

impl CommonFields {
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let _extra_flags = reader.u16()?;
        Ok(Self {
            octets_to_inline_qos: reader.u16()?,
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            sequence: SequenceNumber::read_positive(reader)?,
        })
    }

    /// Returns the bytes after the fields: inline QoS and payload. Later minor versions may insert fields after the
    /// `FIXED` bytes, but never remove fields.
    #[inline]
    fn after_fields<'a, const FIXED: usize>(&self, body: &'a [u8]) -> Result<&'a [u8], Error> {
        let end = BEFORE_COUNTED + usize::from(self.octets_to_inline_qos);
        if end < FIXED {
            return Err(Error::Truncated);
        }
        body.get(end..).ok_or(Error::Truncated)
    }
}

/// DATA submessage up to its payload, written before a payload that is already in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataPrefix {
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

impl DataPrefix {
    /// Size in bytes of a prefix with key hash and status, the longest that [`emit`](Self::emit) writes.
    pub const MAX_BYTES: usize = SUBMESSAGE_HEADER_BYTES + FIXED_BYTES + InlineQos::MAX_BYTES;

    /// Bytes that [`emit`](Self::emit) writes: submessage header, fixed part and inline QoS.
    #[inline]
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        SUBMESSAGE_HEADER_BYTES + FIXED_BYTES + self.inline_qos(None).buffer_len()
    }

    /// Writes the prefix to the first [`buffer_len`](Self::buffer_len) bytes of `prefix`. `payload_len` is in bytes and
    /// includes the encapsulation header and padding to a multiple of four; it is 0 without a payload. A submessage
    /// that is too long for its length field must be the last of its message.
    ///
    /// # Panics
    /// If the buffer is too short.
    #[inline]
    pub fn emit(&self, prefix: &mut [u8], payload_len: usize) {
        self.write(self.inline_qos(None), prefix, payload_len);
    }

    /// Bytes that [`emit_with_set`](Self::emit_with_set) writes.
    #[must_use]
    pub fn len_with_set(&self, set: &CoherentSetInfo) -> usize {
        SUBMESSAGE_HEADER_BYTES + FIXED_BYTES + self.inline_qos(Some(set)).buffer_len()
    }

    /// Writes the prefix like [`emit`](Self::emit), with coherent set and group parameters.
    ///
    /// # Panics
    /// If the buffer is shorter than [`len_with_set`](Self::len_with_set).
    pub fn emit_with_set(&self, set: &CoherentSetInfo, prefix: &mut [u8], payload_len: usize) {
        self.write(self.inline_qos(Some(set)), prefix, payload_len);
    }

    #[inline]
    fn inline_qos<'a>(&'a self, set: Option<&'a CoherentSetInfo>) -> InlineQos<'a> {
        InlineQos {
            key_hash: self.key_hash.as_ref(),
            status: self.status,
            set,
        }
    }

    #[inline]
    fn write(&self, inline_qos: InlineQos<'_>, prefix: &mut [u8], payload_len: usize) {
        let inline_qos_len = inline_qos.buffer_len();
        let mut flags = match self.payload {
            PayloadKind::None => 0,
            PayloadKind::Data => DATA,
            PayloadKind::Key => KEY,
        };
        if inline_qos_len != 0 {
            flags |= INLINE_QOS;
        }
        let body = FIXED_BYTES + inline_qos_len + payload_len;
        let mut writer = Writer::new(prefix);
        write_header(&mut writer, SubmessageId::DATA, flags, body);
        writer.u16(0);
        writer.u16(OCTETS_TO_INLINE_QOS);
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.sequence.write(&mut writer);
        inline_qos.write(&mut writer);
    }
}

/// DATA_FRAG submessage up to its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataFragPrefix {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer.
    pub writer: EntityId,
    /// Sequence number, at least 1.
    pub sequence: SequenceNumber,
    /// Number of the first fragment in this submessage; fragments are numbered from 1.
    pub first_fragment: u32,
    /// Number of fragments in this submessage, at least 1.
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

impl DataFragPrefix {
    /// Bytes that [`emit`](Self::emit) writes: submessage header, fixed part and inline QoS.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        SUBMESSAGE_HEADER_BYTES + FRAG_FIXED_BYTES + self.inline_qos(None).buffer_len()
    }

    /// Writes the prefix to the first [`buffer_len`](Self::buffer_len) bytes of `prefix`. The fragments follow:
    /// `payload_len` bytes, padded to a multiple of four.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub fn emit(&self, prefix: &mut [u8], payload_len: usize) {
        self.write(self.inline_qos(None), prefix, payload_len);
    }

    /// Bytes that [`emit_with_set`](Self::emit_with_set) writes.
    #[must_use]
    pub fn len_with_set(&self, set: &CoherentSetInfo) -> usize {
        SUBMESSAGE_HEADER_BYTES + FRAG_FIXED_BYTES + self.inline_qos(Some(set)).buffer_len()
    }

    /// Writes the prefix like [`emit`](Self::emit), with coherent set and group parameters.
    ///
    /// # Panics
    /// If the buffer is shorter than [`len_with_set`](Self::len_with_set).
    pub fn emit_with_set(&self, set: &CoherentSetInfo, prefix: &mut [u8], payload_len: usize) {
        self.write(self.inline_qos(Some(set)), prefix, payload_len);
    }

    fn inline_qos<'a>(&'a self, set: Option<&'a CoherentSetInfo>) -> InlineQos<'a> {
        InlineQos {
            key_hash: self.key_hash.as_ref(),
            status: self.status,
            set,
        }
    }

    fn write(&self, inline_qos: InlineQos<'_>, prefix: &mut [u8], payload_len: usize) {
        let inline_qos_len = inline_qos.buffer_len();
        let mut flags = if self.is_key { FRAG_KEY } else { 0 };
        if inline_qos_len != 0 {
            flags |= INLINE_QOS;
        }
        let body = FRAG_FIXED_BYTES + inline_qos_len + payload_len;
        let mut writer = Writer::new(prefix);
        write_header(&mut writer, SubmessageId::DATA_FRAG, flags, body);
        writer.u16(0);
        writer.u16(OCTETS_TO_INLINE_QOS + FRAGMENT_BYTES as u16);
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.sequence.write(&mut writer);
        writer.u32(self.first_fragment);
        writer.u16(self.fragments);
        writer.u16(self.fragment_size);
        writer.u32(self.sample_size);
        inline_qos.write(&mut writer);
    }
}

/// Size of header, INFO_TS and the prefix of a DATA without inline QoS, in bytes.
pub const SAMPLE_PREFIX_BYTES: usize = DATA_AT + SUBMESSAGE_HEADER_BYTES + FIXED_BYTES;

const DATA_AT: usize = HEADER_BYTES + INFO_TIMESTAMP_BYTES;
const TIMESTAMP_AT: usize = HEADER_BYTES + SUBMESSAGE_HEADER_BYTES;
/// Offset of the length field, after the submessage's id and flags.
const LENGTH_AT: usize = DATA_AT + 2;
/// Offset of the sequence number, after the two entity ids.
const SEQUENCE_AT: usize = DATA_AT + SUBMESSAGE_HEADER_BYTES + BEFORE_COUNTED + 8;

/// Preformatted prefix of a message with one sample to all readers: header, INFO_TS and the prefix of a DATA.
///
/// The prefixes of a writer's samples without inline QoS differ only in timestamp, sequence number and length. The
/// other bytes are formatted once and copied for each sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplePrefix {
    bytes: [u8; SAMPLE_PREFIX_BYTES],
}

impl SamplePrefix {
    /// Formats the constant parts of a writer's samples.
    #[must_use]
    pub fn new(header: &Header, writer: EntityId) -> Self {
        let mut bytes = [0; SAMPLE_PREFIX_BYTES];
        let data = DataPrefix {
            reader: EntityId::UNKNOWN,
            writer,
            sequence: SequenceNumber::UNKNOWN,
            key_hash: None,
            status: None,
            payload: PayloadKind::Data,
        };
        header.emit(&mut bytes);
        InfoTimestamp(Some(Timestamp::ZERO)).emit(&mut bytes[HEADER_BYTES..]);
        data.emit(&mut bytes[DATA_AT..], 0);
        Self { bytes }
    }

    /// Writes the prefix of one sample. `payload_len` is as in [`DataPrefix::emit`]. The DATA must be the last
    /// submessage of its message.
    #[inline]
    pub fn emit(
        &self,
        prefixes: &mut [u8; SAMPLE_PREFIX_BYTES],
        timestamp: Timestamp,
        sequence: SequenceNumber,
        payload_len: usize,
    ) {
        *prefixes = self.bytes;
        timestamp.write(&mut Writer::new(&mut prefixes[TIMESTAMP_AT..]));
        Writer::new(&mut prefixes[LENGTH_AT..]).u16(length_field(FIXED_BYTES + payload_len));
        sequence.write(&mut Writer::new(&mut prefixes[SEQUENCE_AT..]));
    }
}
