//! Announcements composed parameter by parameter.

use isolane_wire::{
    Error,
    builtin_data::{EndpointData, ParticipantData},
    guid::{EntityId, EntityKind, Guid, GuidPrefix},
    locator::Locator,
    parameter::{ParameterWriter, pid},
};

pub(crate) const PREFIX: GuidPrefix = GuidPrefix(*b"twelve bytes");

pub(crate) const WRITER: Guid = Guid {
    prefix: PREFIX,
    entity: EntityId::user(1, EntityKind::WRITER_WITH_KEY),
};

pub(crate) const READER: Guid = Guid {
    prefix: PREFIX,
    entity: EntityId::user(2, EntityKind::READER_NO_KEY),
};

/// Payload of the parameters that `put` writes.
pub(crate) fn payload(put: impl FnOnce(&mut ParameterWriter<'_>)) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    bytes[..4].copy_from_slice(&[0, 3, 0, 0]);
    let mut list = ParameterWriter::new(&mut bytes[4..]);
    put(&mut list);
    let length = 4 + list.finish().unwrap();
    bytes.truncate(length);
    bytes
}

/// Announcement of a writer with the required parameters and those of `put`.
pub(crate) fn writer_with(
    put: impl FnOnce(&mut ParameterWriter<'_>),
) -> Result<EndpointData, Error> {
    EndpointData::parse_writer(&payload(|list| {
        list.put(pid::ENDPOINT_GUID, &WRITER.to_bytes());
        list.put_str(pid::TOPIC_NAME, "Square");
        list.put_str(pid::TYPE_NAME, "ShapeType");
        put(list);
    }))
}

pub(crate) fn participant_with(
    put: impl FnOnce(&mut ParameterWriter<'_>),
) -> Result<ParticipantData, Error> {
    ParticipantData::parse(&payload(|list| {
        let guid = ParticipantData::new(PREFIX).guid;
        list.put(pid::PARTICIPANT_GUID, &guid.to_bytes());
        put(list);
    }))
}

pub(crate) fn locator_bytes(locator: Locator) -> Vec<u8> {
    [
        &locator.kind.to_le_bytes()[..],
        &locator.port.to_le_bytes(),
        &locator.address,
    ]
    .concat()
}
