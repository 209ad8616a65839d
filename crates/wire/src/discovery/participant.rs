//! What a participant announces of itself (SPDP; RTPS 2.5 §8.5.3.2).

use core::time::Duration;

use super::{LocatorList, payload, put_locators, read_guid, read_locator, skip, valid};
use crate::{
    BufferTooSmall, Error,
    guid::{EntityId, Guid, GuidPrefix},
    limits::MAX_ENTITY_NAME_BYTES,
    parameter::pid,
    qos::{Octets, WireForm},
    rtps::VENDOR_ID,
    time,
};

/// The bits of [`ParticipantData::builtin_endpoints`] (RTPS 2.5 §9.3.2.12).
pub struct BuiltinEndpoints;

impl BuiltinEndpoints {
    /// Announces participants.
    pub const PARTICIPANT_ANNOUNCER: u32 = 1 << 0;
    /// Hears of participants.
    pub const PARTICIPANT_DETECTOR: u32 = 1 << 1;
    /// Announces writers.
    pub const PUBLICATIONS_ANNOUNCER: u32 = 1 << 2;
    /// Hears of writers.
    pub const PUBLICATIONS_DETECTOR: u32 = 1 << 3;
    /// Announces readers.
    pub const SUBSCRIPTIONS_ANNOUNCER: u32 = 1 << 4;
    /// Hears of readers.
    pub const SUBSCRIPTIONS_DETECTOR: u32 = 1 << 5;
    /// Says that writers are alive.
    pub const P2P_MESSAGE_WRITER: u32 = 1 << 10;
    /// Hears that writers are alive.
    pub const P2P_MESSAGE_READER: u32 = 1 << 11;
}

/// A participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParticipantData {
    /// Its GUID; the entity is [`EntityId::PARTICIPANT`].
    pub guid: Guid,
    /// Its version of the protocol, major and minor; zeros if it did not say.
    pub version: [u8; 2],
    /// Its vendor; zeros if it did not say.
    pub vendor: [u8; 2],
    /// How long it may be silent before it counts as gone; [`Duration::MAX`] if for ever.
    pub lease: Duration,
    /// Which built-in endpoints it has: bits of [`BuiltinEndpoints`].
    pub builtin_endpoints: u32,
    /// Its domain, if it said.
    pub domain_id: Option<u32>,
    /// Where its built-in endpoints are reached.
    pub metatraffic_unicast: LocatorList,
    /// Groups its built-in endpoints have joined.
    pub metatraffic_multicast: LocatorList,
    /// Where endpoints without locators of their own are reached.
    pub default_unicast: LocatorList,
    /// Groups that endpoints without locators of their own have joined.
    pub default_multicast: LocatorList,
    /// Its name for people, cut to the bound; empty if it has none.
    pub entity_name: heapless::String<MAX_ENTITY_NAME_BYTES>,
    /// What its user says of it.
    pub user_data: Octets,
    /// A number for what peers are described of its endpoints, of a participant of isolane that is described.
    pub static_digest: Option<u64>,
}

impl ParticipantData {
    /// The lease of a participant that announces none, in seconds (RTPS 2.5 §8.5.3.2).
    const DEFAULT_LEASE: Duration = Duration::from_secs(100);

    /// A participant that announces nothing but its GUID.
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

    /// Reads the payload of an SPDP announcement.
    ///
    /// # Errors
    /// [`Error::MissingParameter`] without a GUID; [`Error::InvalidParameter`],
    /// [`Error::MustUnderstand`] of any parameter; [`Error::UnknownEncapsulation`];
    /// [`Error::Truncated`].
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let list = payload::parse(payload)?;
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
                // Of another vendor it means something else.
                pid::ISOLANE_STATIC_DIGEST if data.vendor == VENDOR_ID => {
                    data.static_digest = Some(u64::from_be_bytes(*valid(id, reader.array())?));
                }
                _ => skip(&parameter)?,
            }
        }
        data.guid = guid.ok_or(Error::MissingParameter(pid::PARTICIPANT_GUID))?;
        Ok(data)
    }

    /// Writes the payload of an SPDP announcement; returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, BufferTooSmall> {
        payload::emit(buffer, |list| {
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

/// As much of a text as fits, in whole characters.
fn cut<const N: usize>(text: &str) -> heapless::String<N> {
    let mut cut = heapless::String::new();
    for character in text.chars() {
        if cut.push(character).is_err() {
            break;
        }
    }
    cut
}
