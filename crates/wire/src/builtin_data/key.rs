//! Key payload of a disposed participant or endpoint: its GUID alone (RTPS 2.5 §8.5.3).

use super::payload;
use crate::{BufferTooSmall, guid::Guid, parameter::pid};

/// Kind of entity that a key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndpointKey {
    /// A participant.
    Participant,
    /// A writer or reader.
    Endpoint,
}

/// Reads the GUID from a key payload: the endpoint's, or else the participant's. `None` if the payload is not a
/// parameter list, or has neither.
#[must_use]
pub fn parse_key_guid(payload: &[u8]) -> Option<Guid> {
    let list = payload::parse(payload).ok()?;
    let value = list
        .find(pid::ENDPOINT_GUID)
        .or_else(|| list.find(pid::PARTICIPANT_GUID))?;
    value.first_chunk().copied().map(Guid::from_bytes)
}

/// Writes a key payload and returns its length.
///
/// # Errors
/// [`BufferTooSmall`].
pub fn emit_key_guid(
    key: EndpointKey,
    guid: Guid,
    buffer: &mut [u8],
) -> Result<usize, BufferTooSmall> {
    let id = match key {
        EndpointKey::Participant => pid::PARTICIPANT_GUID,
        EndpointKey::Endpoint => pid::ENDPOINT_GUID,
    };
    payload::emit(buffer, |list| {
        list.put(id, &guid.to_bytes());
    })
}
