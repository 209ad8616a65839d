//! Discovery data of a writer or reader (SEDP; RTPS 2.5 §8.5.4.4).

use super::{
    LocatorList, emit_payload, parse_payload, put_locators, read_guid, read_locator, skip, valid,
};
use crate::{
    BufferTooSmall, Error,
    guid::{EntityId, Guid},
    limits::MAX_NAME_BYTES,
    parameter::pid,
    qos::QosPolicies,
};

/// Discovery data of a writer or reader. The entity kind in its GUID says which, and whether the topic is keyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointData {
    /// GUID of the endpoint.
    pub guid: Guid,
    /// Topic name.
    pub topic_name: heapless::String<MAX_NAME_BYTES>,
    /// Type name.
    pub type_name: heapless::String<MAX_NAME_BYTES>,
    /// QoS policies.
    pub qos: QosPolicies,
    /// Unicast locators. If they and `multicast` are empty, the participant's default locators apply.
    pub unicast: LocatorList,
    /// Multicast locators.
    pub multicast: LocatorList,
    /// True for a reader that needs inline QoS with every sample.
    pub expects_inline_qos: bool,
    /// Entity id of the publisher or subscriber; `None` if not announced.
    pub group: Option<EntityId>,
}

impl EndpointData {
    /// Creates an endpoint without a topic, with the default QoS of its entity kind.
    #[must_use]
    pub fn new(guid: Guid) -> Self {
        let qos = if guid.entity.is_writer() {
            QosPolicies::writer_default()
        } else {
            QosPolicies::reader_default()
        };
        Self::with_qos(guid, qos)
    }

    fn with_qos(guid: Guid, qos: QosPolicies) -> Self {
        Self {
            guid,
            topic_name: heapless::String::new(),
            type_name: heapless::String::new(),
            qos,
            unicast: LocatorList::new(),
            multicast: LocatorList::new(),
            expects_inline_qos: false,
            group: None,
        }
    }

    /// GUID of the participant.
    #[must_use]
    pub fn participant(&self) -> Guid {
        Guid {
            prefix: self.guid.prefix,
            entity: EntityId::PARTICIPANT,
        }
    }

    /// Returns true if the topic is keyed.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.guid.entity.is_keyed()
    }

    /// Parses the announcement of a writer.
    ///
    /// # Errors
    /// [`Error::MissingParameter`] without a GUID, topic name or type name;
    /// [`Error::BoundExceeded`] of a name or of PARTITION; [`Error::InvalidParameter`],
    /// [`Error::MustUnderstand`] of any parameter; [`Error::UnknownEncapsulation`];
    /// [`Error::Truncated`].
    pub fn parse_writer(payload: &[u8]) -> Result<Self, Error> {
        Self::parse(payload, QosPolicies::writer_default())
    }

    /// Parses the announcement of a reader.
    ///
    /// # Errors
    /// Those of [`parse_writer`](Self::parse_writer).
    pub fn parse_reader(payload: &[u8]) -> Result<Self, Error> {
        Self::parse(payload, QosPolicies::reader_default())
    }

    fn parse(payload: &[u8], defaults: QosPolicies) -> Result<Self, Error> {
        let list = parse_payload(payload)?;
        let mut data = Self::with_qos(Guid::UNKNOWN, defaults);
        let (mut guid, mut participant) = (None, None);
        for parameter in &list {
            let id = parameter.id;
            let reader = &mut list.reader(parameter.value);
            match id {
                pid::ENDPOINT_GUID => guid = Some(read_guid(id, reader)?),
                pid::PARTICIPANT_GUID => participant = Some(read_guid(id, reader)?),
                pid::TOPIC_NAME => data.topic_name = name(id, reader.string())?,
                pid::TYPE_NAME => data.type_name = name(id, reader.string())?,
                pid::UNICAST_LOCATOR => read_locator(id, reader, &mut data.unicast)?,
                pid::MULTICAST_LOCATOR => read_locator(id, reader, &mut data.multicast)?,
                // Parsed on demand by `ContentFilterProperty`.
                pid::CONTENT_FILTER_PROPERTY => {}
                pid::EXPECTS_INLINE_QOS => {
                    let [byte] = *valid(id, reader.array())?;
                    data.expects_inline_qos = byte != 0;
                }
                pid::GROUP_ENTITY_ID => data.group = Some(EntityId(*valid(id, reader.array())?)),
                _ => {
                    if !data.qos.take(id, reader)? {
                        skip(&parameter)?;
                    }
                }
            }
        }
        data.guid = guid.ok_or(Error::MissingParameter(pid::ENDPOINT_GUID))?;
        if data.topic_name.is_empty() {
            return Err(Error::MissingParameter(pid::TOPIC_NAME));
        }
        if data.type_name.is_empty() {
            return Err(Error::MissingParameter(pid::TYPE_NAME));
        }
        // The prefix of the endpoint's GUID identifies its participant. Another prefix is an error.
        if participant.is_some_and(|participant| participant.prefix != data.guid.prefix) {
            return Err(Error::InvalidParameter(pid::PARTICIPANT_GUID));
        }
        Ok(data)
    }

    /// Writes the announcement and returns its length in bytes. Values equal to their default are omitted.
    ///
    /// # Errors
    /// [`BufferTooSmall`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, BufferTooSmall> {
        self.emit_filtered(None, buffer)
    }

    /// Writes the announcement of a reader with a content filter, an encoded
    /// [`ContentFilterProperty`](super::ContentFilterProperty).
    ///
    /// # Errors
    /// [`BufferTooSmall`].
    pub fn emit_filtered(
        &self,
        filter: Option<&[u8]>,
        buffer: &mut [u8],
    ) -> Result<usize, BufferTooSmall> {
        emit_payload(buffer, |list| {
            list.put(pid::ENDPOINT_GUID, &self.guid.to_bytes());
            list.put(pid::PARTICIPANT_GUID, &self.participant().to_bytes());
            list.put_str(pid::TOPIC_NAME, &self.topic_name);
            list.put_str(pid::TYPE_NAME, &self.type_name);
            self.qos.put(list);
            put_locators(list, pid::UNICAST_LOCATOR, &self.unicast);
            put_locators(list, pid::MULTICAST_LOCATOR, &self.multicast);
            if self.expects_inline_qos {
                list.put_u8(pid::EXPECTS_INLINE_QOS, 1);
            }
            if let Some(group) = self.group {
                list.put(pid::GROUP_ENTITY_ID, &group.0);
            }
            if let Some(filter) = filter {
                list.put(pid::CONTENT_FILTER_PROPERTY, filter);
            }
        })
    }
}

fn name(id: u16, text: Option<&str>) -> Result<heapless::String<MAX_NAME_BYTES>, Error> {
    let text = text.ok_or(Error::InvalidParameter(id))?;
    heapless::String::try_from(text).map_err(|_| Error::BoundExceeded(id))
}
