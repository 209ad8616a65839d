//! Data that a participant sends about itself: its announcement (SPDP; RTPS 2.5 §8.5.3.2) and liveliness assertions.

use core::time::Duration;

use super::{
    LocatorList, emit_payload, encapsulation_header, parse_payload, put_locators, read_guid,
    read_locator, skip, split_encapsulation, valid,
};
use crate::{
    BufferTooSmall, Error,
    bytes::{Reader, Writer},
    cdr::{ENCAPSULATION_BYTES, EncapsulationId},
    guid::{EntityId, Guid, GuidPrefix},
    limits::MAX_ENTITY_NAME_BYTES,
    message::VENDOR_ID,
    parameter::pid,
    qos::{Octets, ParameterValue},
    time,
};

/// Bits of [`ParticipantData::builtin_endpoints`] (RTPS 2.5 §9.3.2.12).
pub struct BuiltinEndpoints;

impl BuiltinEndpoints {
    /// SPDP writer.
    pub const PARTICIPANT_ANNOUNCER: u32 = 1 << 0;
    /// SPDP reader.
    pub const PARTICIPANT_DETECTOR: u32 = 1 << 1;
    /// SEDP publications writer.
    pub const PUBLICATIONS_ANNOUNCER: u32 = 1 << 2;
    /// SEDP publications reader.
    pub const PUBLICATIONS_DETECTOR: u32 = 1 << 3;
    /// SEDP subscriptions writer.
    pub const SUBSCRIPTIONS_ANNOUNCER: u32 = 1 << 4;
    /// SEDP subscriptions reader.
    pub const SUBSCRIPTIONS_DETECTOR: u32 = 1 << 5;
    /// Participant message writer: sends liveliness assertions.
    pub const P2P_MESSAGE_WRITER: u32 = 1 << 10;
    /// Participant message reader: receives liveliness assertions.
    pub const P2P_MESSAGE_READER: u32 = 1 << 11;
}

/// Discovery data of a participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParticipantData {
    /// GUID; the entity id is [`EntityId::PARTICIPANT`].
    pub guid: Guid,
    /// RTPS version, major and minor; zeros if not announced.
    pub version: [u8; 2],
    /// Vendor id; zeros if not announced.
    pub vendor: [u8; 2],
    /// Lease duration; [`Duration::MAX`] if infinite.
    pub lease: Duration,
    /// Built-in endpoints: bits of [`BuiltinEndpoints`].
    pub builtin_endpoints: u32,
    /// Domain id, if announced.
    pub domain_id: Option<u32>,
    /// Unicast locators of the built-in endpoints.
    pub metatraffic_unicast: LocatorList,
    /// Multicast locators of the built-in endpoints.
    pub metatraffic_multicast: LocatorList,
    /// Unicast locators of endpoints that announce no locators.
    pub default_unicast: LocatorList,
    /// Multicast locators of endpoints that announce no locators.
    pub default_multicast: LocatorList,
    /// Name for display, cut to the bound; empty if there is none.
    pub entity_name: heapless::String<MAX_ENTITY_NAME_BYTES>,
    /// USER_DATA of the participant.
    pub user_data: Octets,
    /// Digest of the static description of the participant's endpoints; only isolane participants announce it.
    pub static_digest: Option<u64>,
}

impl ParticipantData {
    /// Lease duration of a participant that announces none (RTPS 2.5 §8.5.3.2).
    const DEFAULT_LEASE: Duration = Duration::from_secs(100);

    /// Creates a participant that announces only its GUID.
    #[must_use]
    pub fn new(prefix: GuidPrefix) -> Self {
        Self {
            guid: Guid {
                prefix,
                entity: EntityId::PARTICIPANT,
            },
            version: [0; 2],
            vendor: [0; 2],
            lease: Self::DEFAULT_LEASE,
            builtin_endpoints: 0,
            domain_id: None,
            metatraffic_unicast: LocatorList::new(),
            metatraffic_multicast: LocatorList::new(),
            default_unicast: LocatorList::new(),
            default_multicast: LocatorList::new(),
            entity_name: heapless::String::new(),
            user_data: Octets::new(),
            static_digest: None,
        }
    }

    /// Parses an SPDP announcement.
    ///
    /// # Errors
    /// [`Error::MissingParameter`] without a GUID; [`Error::InvalidParameter`],
    /// [`Error::MustUnderstand`] of any parameter; [`Error::UnknownEncapsulation`];
    /// [`Error::Truncated`].
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let list = parse_payload(payload)?;
        let mut data = Self::new(GuidPrefix::UNKNOWN);
        let mut guid = None;
        for parameter in &list {
            let id = parameter.id;
            let reader = &mut list.reader(parameter.value);
            match id {
                pid::PARTICIPANT_GUID => guid = Some(read_guid(id, reader)?),
                pid::PROTOCOL_VERSION => data.version = *valid(id, reader.array())?,
                pid::VENDOR_ID => data.vendor = *valid(id, reader.array())?,
                pid::PARTICIPANT_LEASE_DURATION => {
                    let lease = valid(id, time::Duration::read(reader))?;
                    data.lease = lease.to_core().unwrap_or(Duration::MAX);
                }
                pid::BUILTIN_ENDPOINT_SET => data.builtin_endpoints = valid(id, reader.u32())?,
                pid::DOMAIN_ID => data.domain_id = Some(valid(id, reader.u32())?),
                pid::METATRAFFIC_UNICAST_LOCATOR => {
                    read_locator(id, reader, &mut data.metatraffic_unicast)?;
                }
                pid::METATRAFFIC_MULTICAST_LOCATOR => {
                    read_locator(id, reader, &mut data.metatraffic_multicast)?;
                }
                pid::DEFAULT_UNICAST_LOCATOR => {
                    read_locator(id, reader, &mut data.default_unicast)?;
                }
                pid::DEFAULT_MULTICAST_LOCATOR => {
                    read_locator(id, reader, &mut data.default_multicast)?;
                }
                pid::ENTITY_NAME => {
                    let name = reader.string().ok_or(Error::InvalidParameter(id))?;
                    data.entity_name = cut(name);
                }
                pid::USER_DATA => {
                    data.user_data = Octets::read(reader).ok_or(Error::InvalidParameter(id))?;
                }
                // Other vendors may give this identifier another meaning.
                pid::ISOLANE_STATIC_DIGEST if data.vendor == VENDOR_ID => {
                    data.static_digest = Some(u64::from_be_bytes(*valid(id, reader.array())?));
                }
                _ => skip(&parameter)?,
            }
        }
        data.guid = guid.ok_or(Error::MissingParameter(pid::PARTICIPANT_GUID))?;
        Ok(data)
    }

    /// Writes an SPDP announcement and returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, BufferTooSmall> {
        emit_payload(buffer, |list| {
            list.put(pid::PROTOCOL_VERSION, &self.version);
            list.put(pid::VENDOR_ID, &self.vendor);
            list.put(pid::PARTICIPANT_GUID, &self.guid.to_bytes());
            list.put_with(pid::PARTICIPANT_LEASE_DURATION, 8, |writer| {
                time::Duration::from(self.lease).write(writer);
            });
            list.put_u32(pid::BUILTIN_ENDPOINT_SET, self.builtin_endpoints);
            if let Some(domain_id) = self.domain_id {
                list.put_u32(pid::DOMAIN_ID, domain_id);
            }
            for (id, locators) in [
                (pid::METATRAFFIC_UNICAST_LOCATOR, &self.metatraffic_unicast),
                (
                    pid::METATRAFFIC_MULTICAST_LOCATOR,
                    &self.metatraffic_multicast,
                ),
                (pid::DEFAULT_UNICAST_LOCATOR, &self.default_unicast),
                (pid::DEFAULT_MULTICAST_LOCATOR, &self.default_multicast),
            ] {
                put_locators(list, id, locators);
            }
            if !self.entity_name.is_empty() {
                list.put_str(pid::ENTITY_NAME, &self.entity_name);
            }
            if !self.user_data.is_empty() {
                list.put_with(pid::USER_DATA, self.user_data.bytes(), |writer| {
                    self.user_data.write(writer);
                });
            }
            if let Some(digest) = self.static_digest {
                list.put(pid::ISOLANE_STATIC_DIGEST, &digest.to_be_bytes());
            }
        })
    }
}

/// Truncates a text to the capacity, at a character boundary.
fn cut<const N: usize>(text: &str) -> heapless::String<N> {
    let mut cut = heapless::String::new();
    for character in text.chars() {
        if cut.push(character).is_err() {
            break;
        }
    }
    cut
}

/// Participant message: a liveliness assertion or vendor-defined data (`ParticipantMessageData`, RTPS 2.5 §8.4.13.5,
/// §9.6.3.1), borrowed from its payload. Its key is the prefix and the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParticipantMessage<'a> {
    /// GUID prefix of the sender.
    pub participant: GuidPrefix,
    /// Kind: a `KIND_*` constant, or a vendor's kind if the first bit is set.
    pub kind: [u8; 4],
    /// Data of the kind; empty for liveliness assertions.
    pub data: &'a [u8],
}

impl<'a> ParticipantMessage<'a> {
    /// Size in bytes of encapsulation header, prefix, kind, and the length field of the data.
    const FIXED_BYTES: usize = ENCAPSULATION_BYTES + 12 + 4 + 4;

    /// Reserved kind.
    pub const KIND_UNKNOWN: [u8; 4] = [0, 0, 0, 0];
    /// Asserts the participant's writers with AUTOMATIC liveliness.
    pub const KIND_AUTOMATIC_LIVELINESS: [u8; 4] = [0, 0, 0, 1];
    /// Asserts the participant's writers with MANUAL_BY_PARTICIPANT liveliness.
    pub const KIND_MANUAL_LIVELINESS: [u8; 4] = [0, 0, 0, 2];

    /// Parses a payload.
    ///
    /// # Errors
    /// [`Error::UnknownEncapsulation`] if the payload is not plain CDR; [`Error::Truncated`].
    pub fn parse(payload: &'a [u8]) -> Result<Self, Error> {
        let (order, rest) = split_encapsulation(payload, EncapsulationId::CDR_BE)?;
        let mut reader = Reader::new(rest, order);
        let participant = GuidPrefix(*reader.array()?);
        let kind = *reader.array()?;
        let length = reader.u32()? as usize;
        Ok(Self {
            participant,
            kind,
            data: reader.take(length)?,
        })
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        Self::FIXED_BYTES + self.data.len()
    }

    /// Writes the payload, little-endian, and returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let room = buffer.get_mut(..self.buffer_len()).ok_or(BufferTooSmall)?;
        let mut writer = Writer::new(room);
        writer.put(&encapsulation_header(EncapsulationId::CDR_LE));
        writer.put(&self.participant.0);
        writer.put(&self.kind);
        writer.u32(self.data.len() as u32);
        writer.put(self.data);
        Ok(writer.len())
    }
}
