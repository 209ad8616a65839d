//! The two participants of a capture, each with one endpoint.

use isolane_wire::{
    builtin_data::EndpointData,
    guid::{EntityId, GuidPrefix},
    message::{Data, HEADER_BYTES, Header, PayloadKind, Submessage, Submessages},
};

use crate::conversation::Said;

/// Participant of the capture.
pub(super) struct Participant {
    pub(super) prefix: GuidPrefix,
    pub(super) vendor: [u8; 2],
    /// Endpoint that it announced.
    pub(super) endpoint: EndpointData,
}

/// Both participants of the capture.
pub(super) struct Cast {
    pub(super) participants: Vec<Participant>,
}

impl Cast {
    pub(super) fn of(name: &str, said: &[Said]) -> Self {
        let mut participants: Vec<Participant> = Vec::new();
        for said in said {
            let header = Header::parse(&said.message).expect("a header");
            for data in data_in(&said.message) {
                let Some(endpoint) = announced(&data) else {
                    continue;
                };
                assert_eq!(endpoint.guid.prefix, header.prefix, "{name}");
                if participants
                    .iter()
                    .all(|known| known.prefix != header.prefix)
                {
                    participants.push(Participant {
                        prefix: header.prefix,
                        vendor: header.vendor,
                        endpoint,
                    });
                }
            }
        }
        assert_eq!(participants.len(), 2, "{name}");
        participants.sort_by_key(|one| one.endpoint.guid.entity.is_reader());
        Self { participants }
    }
}

/// DATA submessages of a message.
pub(super) fn data_in(message: &[u8]) -> impl Iterator<Item = Data<'_>> {
    Submessages::new(message, HEADER_BYTES).filter_map(|submessage| match submessage {
        Ok(Submessage::Data(data)) => Some(data),
        _ => None,
    })
}

fn announced(data: &Data<'_>) -> Option<EndpointData> {
    if data.payload != PayloadKind::Data {
        return None;
    }
    match data.writer {
        EntityId::SEDP_PUBLICATIONS_WRITER => EndpointData::parse_writer(data.bytes).ok(),
        EntityId::SEDP_SUBSCRIPTIONS_WRITER => EndpointData::parse_reader(data.bytes).ok(),
        _ => None,
    }
}
