//! HEADER_EXTENSION: length, send time and checksum of the whole message (RTPS 2.5 §8.3.7, §9.4.5.2).
//!
//! A HEADER_EXTENSION follows the header directly. Receivers of earlier RTPS versions skip it. Parsing does not verify
//! length and checksum; [`HeaderExtension::verify`] does. The send time differs from the source timestamp of the
//! samples, which is in INFO_TS (§8.3.7.4, §8.3.8.11).

use crc::{CRC_32_ISCSI, CRC_64_XZ, Crc};
use md5::{Digest as _, Md5};

use super::{HEADER_BYTES, SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    ByteOrder, Error,
    bytes::{Reader, Writer, order_of},
    parameter::{ParameterList, SENTINEL_BYTES},
    time::Timestamp,
};

/// Flag L: the message length is present.
const LENGTH: u8 = 0x02;
/// Flag T: the send time is present.
const TIMESTAMP: u8 = 0x04;
/// Flag U: four bytes for later versions are present.
const U_EXTENSION: u8 = 0x08;
/// Flag W: eight bytes for later versions are present.
const W_EXTENSION: u8 = 0x10;
/// Shift of the flags C2 and C1, which give the kind of checksum.
const CHECKSUM_SHIFT: u8 = 5;
/// Flag P: parameters are present.
const PARAMETERS: u8 = 0x80;

/// Offset of the body: directly after the message header.
const BODY_AT: usize = HEADER_BYTES + SUBMESSAGE_HEADER_BYTES;

/// Header extension of a message; absent fields are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeaderExtension<'a> {
    /// Length of the message in bytes, including its header.
    pub message_bytes: Option<u32>,
    /// Send time by the sender's clock.
    pub sent: Option<Timestamp>,
    /// Bytes reserved for later versions (`uExtension4`).
    pub u_extension: Option<[u8; 4]>,
    /// Bytes reserved for later versions (`wExtension8`).
    pub w_extension: Option<[u8; 8]>,
    /// Checksum of the message.
    pub checksum: Option<MessageChecksum>,
    /// Parameters of vendors and later versions; none has the must-understand flag.
    pub parameters: Option<ParameterList<'a>>,
}

impl<'a> HeaderExtension<'a> {
    /// Parses a submessage body at `body_offset` of its message.
    ///
    /// # Errors
    /// Each error invalidates the whole message: [`Error::HeaderExtensionMisplaced`] if the extension does not directly
    /// follow the message header; [`Error::MessageLength`] if the length is less than that of header and extension;
    /// [`Error::MustUnderstand`] for any must-understand parameter, because this version defines none;
    /// [`Error::InvalidParameter`]; [`Error::Truncated`].
    pub fn parse(flags: u8, body: &'a [u8], body_offset: usize) -> Result<Self, Error> {
        if body_offset != BODY_AT {
            return Err(Error::HeaderExtensionMisplaced);
        }
        let mut reader = Reader::new(body, order_of(flags));
        let mut parsed = Self::default();
        if flags & LENGTH != 0 {
            let message_bytes = reader.u32()?;
            if (message_bytes as usize) < BODY_AT + body.len() {
                return Err(Error::MessageLength);
            }
            parsed.message_bytes = Some(message_bytes);
        }
        if flags & TIMESTAMP != 0 {
            parsed.sent = Some(Timestamp::read(&mut reader)?);
        }
        if flags & U_EXTENSION != 0 {
            parsed.u_extension = Some(*reader.array()?);
        }
        if flags & W_EXTENSION != 0 {
            parsed.w_extension = Some(*reader.array()?);
        }
        if let Some(kind) = ChecksumKind::from_bits(flags >> CHECKSUM_SHIFT & 3) {
            parsed.checksum = Some(MessageChecksum::new(kind, reader.take(kind.bytes())?));
        }
        if flags & PARAMETERS != 0 {
            parsed.parameters = Some(read_parameters(reader.rest(), reader.order())?);
        }
        Ok(parsed)
    }

    /// Verifies length and checksum against the whole message.
    ///
    /// # Errors
    /// [`Error::MessageLength`] or [`Error::Checksum`]: the message is corrupt and must be ignored.
    pub fn verify(&self, message: &[u8]) -> Result<(), Error> {
        let is_length = |bytes: u32| usize::try_from(bytes) == Ok(message.len());
        if !self.message_bytes.is_none_or(is_length) {
            return Err(Error::MessageLength);
        }
        match self.checksum {
            Some(said) if self.checksum_of(said.kind(), message) != Some(said) => {
                Err(Error::Checksum)
            }
            _ => Ok(()),
        }
    }

    /// Checksum of a message with this extension; `None` if the message ends before the checksum field does.
    fn checksum_of(&self, kind: ChecksumKind, message: &[u8]) -> Option<MessageChecksum> {
        let (before, rest) = message.split_at_checked(self.checksum_at())?;
        let behind = rest.get(kind.bytes()..)?;
        Some(MessageChecksum::of(kind, before, behind))
    }

    /// Offset of the checksum in the message.
    fn checksum_at(&self) -> usize {
        BODY_AT
            + self.message_bytes.map_or(0, |_| 4)
            + self.sent.map_or(0, |_| 8)
            + self.u_extension.map_or(0, |_| 4)
            + self.w_extension.map_or(0, |_| 8)
    }

    /// Parameters to write. A big-endian list cannot be converted, because the types of its values are unknown.
    fn written_parameters(&self) -> Option<ParameterList<'a>> {
        self.parameters
            .filter(|list| list.order() == ByteOrder::Little)
    }

    fn body_len(&self) -> usize {
        let parameters = self.written_parameters();
        self.checksum_at() - BODY_AT
            + self.checksum.map_or(0, |checksum| checksum.bytes().len())
            + parameters.map_or(0, |list| list.as_bytes().len() + SENTINEL_BYTES)
    }

    /// Number of bytes that [`emit`](Self::emit) writes. An empty extension is omitted, because a length field of 0
    /// would mean "to the end of the message".
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        match self.body_len() {
            0 => 0,
            body => SUBMESSAGE_HEADER_BYTES + body,
        }
    }

    /// Writes the submessage with its header and returns its length. Length and checksum are written as they are;
    /// [`seal`](Self::seal) computes them. Parameters parsed as big-endian are omitted.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len).
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let body = self.body_len();
        if body == 0 {
            return 0;
        }
        let mut writer = Writer::new(buffer);
        write_header(
            &mut writer,
            SubmessageId::HEADER_EXTENSION,
            self.flags(),
            body,
        );
        if let Some(bytes) = self.message_bytes {
            writer.u32(bytes);
        }
        if let Some(sent) = self.sent {
            sent.write(&mut writer);
        }
        if let Some(bytes) = &self.u_extension {
            writer.put(bytes);
        }
        if let Some(bytes) = &self.w_extension {
            writer.put(bytes);
        }
        if let Some(checksum) = &self.checksum {
            writer.put(checksum.bytes());
        }
        if let Some(list) = self.written_parameters() {
            list.write(&mut writer);
        }
        writer.len()
    }

    fn flags(&self) -> u8 {
        let checksum = self.checksum.map_or(0, |checksum| checksum.kind().bits());
        let flags = [
            (self.message_bytes.is_some(), LENGTH),
            (self.sent.is_some(), TIMESTAMP),
            (self.u_extension.is_some(), U_EXTENSION),
            (self.w_extension.is_some(), W_EXTENSION),
            (self.written_parameters().is_some(), PARAMETERS),
        ];
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        set.fold(checksum << CHECKSUM_SHIFT, |all, (_, flag)| all | flag)
    }

    /// Computes length and checksum of the complete message, if this extension has them. The message begins with a
    /// header and this extension as written by [`emit`](Self::emit), and must not change afterwards.
    ///
    /// # Panics
    /// If the message is shorter than its header and this extension.
    pub fn seal(&mut self, message: &mut [u8]) {
        let said = message.len() as u32;
        if let Some(bytes) = &mut self.message_bytes {
            *bytes = said;
            Writer::new(&mut message[BODY_AT..]).u32(said);
        }
        let Some(placeholder) = self.checksum else {
            return;
        };
        let at = self.checksum_at();
        let (before, rest) = message.split_at_mut(at);
        let (place, behind) = rest.split_at_mut(placeholder.bytes().len());
        let checksum = MessageChecksum::of(placeholder.kind(), before, behind);
        place.copy_from_slice(checksum.bytes());
        self.checksum = Some(checksum);
    }
}

/// Parameter list at the end of an extension. The sentinel may be missing (RTPS 2.5 §9.4.2.11).
fn read_parameters(bytes: &[u8], order: ByteOrder) -> Result<ParameterList<'_>, Error> {
    let list = ParameterList::parse_to_end(bytes, order)?;
    match list.iter().find(|parameter| parameter.must_understand) {
        Some(parameter) => Err(Error::MustUnderstand(parameter.id)),
        None => Ok(list),
    }
}

/// Checksum algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChecksumKind {
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// CRC-64/XZ.
    Crc64,
    /// MD5 digest. Detects corruption; no protection against attackers.
    Md5,
}

impl ChecksumKind {
    /// Flags C1 and C2 as a number (RTPS 2.5 Table 9.8).
    pub(super) const fn bits(self) -> u8 {
        match self {
            Self::Crc32c => 1,
            Self::Crc64 => 2,
            Self::Md5 => 3,
        }
    }

    pub(super) const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            1 => Some(Self::Crc32c),
            2 => Some(Self::Crc64),
            3 => Some(Self::Md5),
            _ => None,
        }
    }

    /// Size of the checksum in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Crc32c => 4,
            Self::Crc64 => 8,
            Self::Md5 => 16,
        }
    }
}

/// Checksum of a whole message (RTPS 2.5 §9.4.2.15).
///
/// The checksum covers the whole message, with the checksum field taken as zero. It is stored as bytes, because it is
/// big-endian in every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageChecksum {
    kind: ChecksumKind,
    /// Checksum, padded with zeros.
    value: [u8; Self::MAX_BYTES],
}

impl MessageChecksum {
    const MAX_BYTES: usize = 16;

    /// Creates a zero checksum, the field's value during computation.
    #[must_use]
    pub const fn zero(kind: ChecksumKind) -> Self {
        Self {
            kind,
            value: [0; Self::MAX_BYTES],
        }
    }

    /// Copies as many bytes as a checksum of this kind has, and ignores further bytes.
    pub(super) fn new(kind: ChecksumKind, bytes: &[u8]) -> Self {
        let mut checksum = Self::zero(kind);
        let places = &mut checksum.value[..kind.bytes()];
        for (place, byte) in places.iter_mut().zip(bytes) {
            *place = *byte;
        }
        checksum
    }

    /// Algorithm.
    #[must_use]
    pub const fn kind(&self) -> ChecksumKind {
        self.kind
    }

    /// Checksum in wire order.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.value[..self.kind.bytes()]
    }

    /// Computes the checksum of a message whose checksum field is between `before` and `behind`.
    pub(super) fn of(kind: ChecksumKind, before: &[u8], behind: &[u8]) -> Self {
        let zero = Self::zero(kind);
        let parts = [before, zero.bytes(), behind];
        match kind {
            ChecksumKind::Crc32c => Self::new(kind, &crc_32c(parts).to_be_bytes()),
            ChecksumKind::Crc64 => Self::new(kind, &crc_64(parts).to_be_bytes()),
            ChecksumKind::Md5 => {
                let mut digest = Md5::new();
                for part in parts {
                    digest.update(part);
                }
                Self::new(kind, &digest.finalize())
            }
        }
    }
}

fn crc_32c(parts: [&[u8]; 3]) -> u32 {
    static ALGORITHM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
    let mut digest = ALGORITHM.digest();
    for part in parts {
        digest.update(part);
    }
    digest.finalize()
}

fn crc_64(parts: [&[u8]; 3]) -> u64 {
    static ALGORITHM: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);
    let mut digest = ALGORITHM.digest();
    for part in parts {
        digest.update(part);
    }
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: [u8; 9] = [0x33, 0x22, 0x55, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];

    #[test]
    fn the_examples_of_the_standard_come_out() {
        for (input, expected) in [
            (&[0; 4][..], 0x4867_4bc7),
            (&[0xff; 4], 0xffff_ffff),
            (&LONG, 0xb59c_a09b),
        ] {
            assert_eq!(crc_32c([input, &[], &[]]), expected);
        }
        for (input, expected) in [
            (&[0; 4][..], 0xf4a5_8635_1e1b_9f4b),
            (&[0xff; 4], 0xffff_ffff_0000_0000),
            (&LONG, 0x701e_ceb2_19a8_e5d5),
        ] {
            assert_eq!(crc_64([input, &[], &[]]), expected);
        }
    }

    #[test]
    fn its_own_bytes_count_as_zero() {
        for kind in [ChecksumKind::Crc32c, ChecksumKind::Crc64, ChecksumKind::Md5] {
            let zeros = MessageChecksum::zero(kind);
            let whole = [&b"before"[..], zeros.bytes(), b"behind"].concat();
            let between = MessageChecksum::of(kind, b"before", b"behind");
            let expected = match kind {
                ChecksumKind::Crc32c => crc_32c([&whole, &[], &[]]).to_be_bytes().to_vec(),
                ChecksumKind::Crc64 => crc_64([&whole, &[], &[]]).to_be_bytes().to_vec(),
                ChecksumKind::Md5 => Md5::digest(&whole).to_vec(),
            };
            assert_eq!(between.bytes(), expected);
        }
    }
}
