//! Static description of this participant: its announcements and the GUIDs of its endpoints.

use isolane_wire::guid::{EntityId, GuidPrefix};

use super::{
    super::EndpointKind,
    Announces, StaticParticipant,
    names::{NOT_HEARD, kind_of, start_of},
};
use crate::{
    endpoints::{CreateError, EndpointConfig},
    engine::Engine,
};

impl Engine {
    /// Returns which announcements this participant makes.
    #[must_use]
    pub fn announces(&self) -> Announces {
        let described = self.config.described.as_ref();
        described.map_or(Announces::All, |described| described.announces)
    }

    /// Returns whether peers may know this participant by a description.
    #[must_use]
    pub fn has_description(&self) -> bool {
        self.config.described.is_some()
    }

    /// Digest of this participant's own description, for its announcement.
    pub(in crate::discovery) fn own_digest(&self) -> Option<u64> {
        self.config
            .described
            .as_ref()
            .map(StaticParticipant::digest)
    }

    /// Returns whether an endpoint of this participant is described, and therefore not announced.
    pub(crate) fn is_described(&self, entity: EntityId) -> bool {
        let described = self.config.described.as_ref();
        described.is_some_and(|described| {
            let mut endpoints = described.endpoints.iter();
            endpoints.any(|endpoint| endpoint.guid.entity == entity)
        })
    }

    /// Returns the entity id of a new endpoint if it is described; `None` if it gets a number.
    pub(crate) fn described_entity(
        &self,
        kind: EndpointKind,
        config: &EndpointConfig<'_>,
    ) -> Result<Option<EntityId>, CreateError> {
        let Some(described) = &self.config.described else {
            return Ok(None);
        };
        let mut endpoints = described.endpoints.iter();
        let found = endpoints.find(|endpoint| {
            endpoint.topic_name == config.topic_name && kind_of(endpoint.guid.entity) == kind
        });
        let Some(found) = found else {
            return match described.announces {
                Announces::All => Ok(None),
                Announces::Itself | Announces::Nothing => Err(CreateError::NotDescribed),
            };
        };
        let (is, wanted) = (&config.qos, &found.qos);
        let checks = [
            (found.type_name == config.type_name, "its type"),
            (found.is_keyed() == config.keyed, "whether it has a key"),
            (
                is.transport_priority == wanted.transport_priority,
                "its level",
            ),
            (
                is.reliability.kind == wanted.reliability.kind,
                "RELIABILITY",
            ),
            (is.durability == wanted.durability, "DURABILITY"),
            (
                kind == EndpointKind::Reader
                    || is.data_representation == wanted.data_representation,
                "DATA_REPRESENTATION",
            ),
        ];
        if let Some(&(_, what)) = checks.iter().find(|(agrees, _)| !agrees) {
            return Err(CreateError::NotAsDescribed(what));
        }
        let entity = found.guid.entity;
        let is_taken = match kind {
            EndpointKind::Writer => self.writer_by_entity.contains_key(&entity),
            EndpointKind::Reader => self
                .readers
                .find(|reader| reader.guid.entity == entity)
                .is_some(),
        };
        match is_taken {
            true => Err(CreateError::DescribedOnce),
            false => Ok(Some(entity)),
        }
    }

    /// Returns whether a destination prefix means this participant at any start.
    pub(crate) fn is_any_start_of_this(&self, prefix: GuidPrefix) -> bool {
        self.config.described.is_some() && start_of(self.guid_prefix(), prefix) == Some(NOT_HEARD)
    }
}
