//! Discovery data of participants and endpoints (RTPS 2.5 §8.5, §9.6.3).
//!
//! The payload of an announcement is an encapsulation header and a parameter list. An omitted parameter has the
//! standard's default. An unknown parameter is skipped, unless its must-understand flag is set. The payload of a
//! dispose has only the GUID. Liveliness assertions are not parameter lists, see [`ParticipantMessage`].

mod content_filter;
mod endpoint;
mod participant;

pub use crate::locator::LocatorList;
pub use content_filter::ContentFilterProperty;
pub use endpoint::EndpointData;
pub use participant::{BuiltinEndpoints, ParticipantData, ParticipantMessage};

use crate::{
    BufferTooSmall, ByteOrder, Error,
    bytes::Reader,
    cdr::{ENCAPSULATION_BYTES, EncapsulationId},
    guid::Guid,
    locator::{LOCATOR_BYTES, Locator},
    parameter::{Parameter, ParameterList, ParameterWriter, pid},
};

/// Replaces the reader's error with one that names the parameter.
fn valid<T>(id: u16, value: Result<T, Error>) -> Result<T, Error> {
    value.map_err(|_| Error::InvalidParameter(id))
}

fn read_guid(id: u16, reader: &mut Reader<'_>) -> Result<Guid, Error> {
    valid(id, reader.array().copied().map(Guid::from_bytes))
}

/// Adds a locator if it is a UDP locator and the list has room. Vendors also announce locators of private kinds.
fn read_locator(id: u16, reader: &mut Reader<'_>, list: &mut LocatorList) -> Result<(), Error> {
    let locator = valid(id, Locator::read(reader))?;
    if locator.is_udp() {
        // A locator beyond the capacity is skipped, because the earlier locators reach the same entity.
        let _ = list.push(locator);
    }
    Ok(())
}

fn put_locators(list: &mut ParameterWriter<'_>, id: u16, locators: &LocatorList) {
    for locator in locators {
        list.put_with(id, LOCATOR_BYTES, |writer| {
            locator.write(writer);
        });
    }
}

/// Skips an unknown parameter, or returns an error if its must-understand flag is set.
fn skip(parameter: &Parameter<'_>) -> Result<(), Error> {
    if parameter.must_understand {
        return Err(Error::MustUnderstand(parameter.id));
    }
    Ok(())
}

/// Parses a payload that is a parameter list (RTPS 2.5 §10, DDS-XTypes 1.3 §7.4.3.4).
fn parse_payload(payload: &[u8]) -> Result<ParameterList<'_>, Error> {
    let (order, rest) = split_encapsulation(payload, EncapsulationId::PL_CDR_BE)?;
    Ok(ParameterList::parse(rest, order)?.0)
}

/// Writes a payload with the parameters that `put` adds and returns its length.
fn emit_payload(
    buffer: &mut [u8],
    put: impl FnOnce(&mut ParameterWriter<'_>),
) -> Result<usize, BufferTooSmall> {
    let (head, rest) = buffer.split_first_chunk_mut().ok_or(BufferTooSmall)?;
    *head = encapsulation_header(EncapsulationId::PL_CDR_LE);
    let mut list = ParameterWriter::new(rest);
    put(&mut list);
    Ok(ENCAPSULATION_BYTES + list.finish()?)
}

fn encapsulation_header(id: EncapsulationId) -> [u8; ENCAPSULATION_BYTES] {
    let [high, low] = id.0.to_be_bytes();
    [high, low, 0, 0]
}

/// Splits a payload into byte order and body. The only valid encapsulations are `big_endian` and its little-endian
/// variant, the next identifier.
fn split_encapsulation(
    payload: &[u8],
    big_endian: EncapsulationId,
) -> Result<(ByteOrder, &[u8]), Error> {
    let (&[high, low, _, _], rest) = payload.split_first_chunk().ok_or(Error::Truncated)?;
    let id = u16::from_be_bytes([high, low]);
    match id.wrapping_sub(big_endian.0) {
        0 => Ok((ByteOrder::Big, rest)),
        1 => Ok((ByteOrder::Little, rest)),
        _ => Err(Error::UnknownEncapsulation(id)),
    }
}

/// Kind of entity whose GUID is a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// A participant.
    Participant,
    /// A writer or reader.
    Endpoint,
}

/// Reads the GUID from the key payload of a disposed participant or endpoint (RTPS 2.5 §8.5.3). An endpoint's GUID
/// takes precedence. `None` if the payload is not a parameter list, or has no GUID.
#[must_use]
pub fn parse_key_guid(payload: &[u8]) -> Option<Guid> {
    let list = parse_payload(payload).ok()?;
    let value = list
        .find(pid::ENDPOINT_GUID)
        .or_else(|| list.find(pid::PARTICIPANT_GUID))?;
    value.first_chunk().copied().map(Guid::from_bytes)
}

/// Writes a key payload and returns its length.
///
/// # Errors
/// [`BufferTooSmall`].
pub fn emit_key_guid(key: KeyKind, guid: Guid, buffer: &mut [u8]) -> Result<usize, BufferTooSmall> {
    let id = match key {
        KeyKind::Participant => pid::PARTICIPANT_GUID,
        KeyKind::Endpoint => pid::ENDPOINT_GUID,
    };
    emit_payload(buffer, |list| {
        list.put(id, &guid.to_bytes());
    })
}
