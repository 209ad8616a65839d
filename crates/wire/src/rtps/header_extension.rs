//! HEADER_EXTENSION: what belongs to the header and would have no place there (RTPS 2.5 §8.3.7,
//! §9.4.5.2).
//!
//! It stands directly behind the header and is about the whole message: how long it is, when it left,
//! a checksum over it. Receivers of earlier versions skip it. Reading one says what it claims;
//! [`HeaderExtension::verify`] compares that with the message. When a message was sent is not when its
//! samples were written: that is INFO_TS (RTPS 2.5 §8.3.7.4, §8.3.8.11).

use super::{
    ChecksumKind, HEADER_BYTES, MessageChecksum,
    submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header},
};
use crate::{
    ByteOrder, Error,
    bytes::{Reader, Writer, order_of},
    parameter::{ParameterList, SENTINEL_BYTES},
    time::Timestamp,
};

/// Flag L: there is a length.
const LENGTH: u8 = 0x02;
/// Flag T: there is a time.
const TIMESTAMP: u8 = 0x04;
/// Flag U: there are four bytes for later versions.
const U_EXTENSION: u8 = 0x08;
/// Flag W: there are eight bytes for later versions.
const W_EXTENSION: u8 = 0x10;
/// Flags C2 and C1, from which bit on: which checksum there is.
const CHECKSUM_SHIFT: u8 = 5;
/// Flag P: there are parameters.
const PARAMETERS: u8 = 0x80;

/// Where its body begins: nothing may stand between it and the header.
const BODY_AT: usize = HEADER_BYTES + SUBMESSAGE_HEADER_BYTES;

/// What a message says of itself as a whole; what it does not say is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeaderExtension<'a> {
    /// Bytes of the message with its header.
    pub message_bytes: Option<u32>,
    /// When it was sent, by the sender's clock.
    pub sent: Option<Timestamp>,
    /// Bytes that a later version may give a meaning (`uExtension4`).
    pub u_extension: Option<[u8; 4]>,
    /// Bytes that a later version may give a meaning (`wExtension8`).
    pub w_extension: Option<[u8; 8]>,
    /// Its checksum.
    pub checksum: Option<MessageChecksum>,
    /// Parameters of vendors and later versions, none of which must be understood.
    pub parameters: Option<ParameterList<'a>>,
}

impl<'a> HeaderExtension<'a> {
    /// Reads a body that begins at `body_offset` of its message.
    ///
    /// # Errors
    /// Each invalidates the whole message: [`Error::Misplaced`] if it does not follow the header;
    /// [`Error::MessageLength`] if it says the message is shorter than header and extension;
    /// [`Error::MustUnderstand`], since this version defines no parameters;
    /// [`Error::InvalidParameter`]; [`Error::Truncated`].
    pub fn parse(flags: u8, body: &'a [u8], body_offset: usize) -> Result<Self, Error> {
        if body_offset != BODY_AT {
            return Err(Error::Misplaced);
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

    /// Compares what it says with the whole message that it was read from.
    ///
    /// # Errors
    /// [`Error::MessageLength`] or [`Error::Checksum`]: the message is damaged, and nothing in it is to
    /// be believed.
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

    /// The checksum of a message with this extension; `None` if the message ends before it.
    fn checksum_of(&self, kind: ChecksumKind, message: &[u8]) -> Option<MessageChecksum> {
        let (before, rest) = message.split_at_checked(self.checksum_at())?;
        let behind = rest.get(kind.bytes()..)?;
        Some(MessageChecksum::of(kind, before, behind))
    }

    /// Where in the message the checksum begins.
    fn checksum_at(&self) -> usize {
        BODY_AT
            + self.message_bytes.map_or(0, |_| 4)
            + self.sent.map_or(0, |_| 8)
            + self.u_extension.map_or(0, |_| 4)
            + self.w_extension.map_or(0, |_| 8)
    }

    /// The parameters that are written: of a big-endian list only its sender knows which bytes to turn.
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

    /// Bytes that [`emit`](Self::emit) writes. One that says nothing has none: a length of 0 would
    /// mean that it goes on to the end of the message.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        match self.body_len() {
            0 => 0,
            body => SUBMESSAGE_HEADER_BYTES + body,
        }
    }

    /// Writes the submessage with its header; returns its length. Length and checksum are written as
    /// they are: [`seal`](Self::seal) makes them those of the message. Parameters that were read
    /// big-endian are left out.
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

    /// Makes length and checksum those of the whole message, if there are such. The message begins with a
    /// header and this extension, as [`emit`](Self::emit) has written it; nothing is changed in it later.
    ///
    /// # Panics
    /// If the message ends before that.
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

/// The list at the end of an extension. It may do without a sentinel (RTPS 2.5 §9.4.2.11).
fn read_parameters(bytes: &[u8], order: ByteOrder) -> Result<ParameterList<'_>, Error> {
    let list = ParameterList::parse_to_end(bytes, order)?;
    match list.iter().find(|parameter| parameter.must_understand) {
        Some(parameter) => Err(Error::MustUnderstand(parameter.id)),
        None => Ok(list),
    }
}
