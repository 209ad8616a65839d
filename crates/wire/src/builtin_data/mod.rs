//! Discovery data of participants and endpoints (RTPS 2.5 §8.5, §9.6.3).
//!
//! An announcement is a payload: an encapsulation header and a parameter list. An omitted parameter has the
//! standard's default; an unknown one is skipped, unless its must-understand flag is set. A payload that holds
//! only the GUID ends a participant or endpoint. Liveliness assertions are not parameter lists, see
//! [`ParticipantMessage`].

mod content_filter;
mod endpoint;
mod key;
mod participant;
mod participant_message;
mod payload;

pub use crate::locator::LocatorList;
pub use content_filter::ContentFilterProperty;
pub use endpoint::EndpointData;
pub use key::{EndpointKey, emit_key_guid, parse_key_guid};
pub use participant::{BuiltinEndpoints, ParticipantData};
pub use participant_message::ParticipantMessage;

use crate::{
    Error,
    bytes::Reader,
    guid::Guid,
    locator::Locator,
    parameter::{Parameter, ParameterWriter},
};

/// Replaces the cursor's error with one that names the parameter.
fn valid<T>(id: u16, value: Result<T, Error>) -> Result<T, Error> {
    value.map_err(|_| Error::InvalidParameter(id))
}

fn read_guid(id: u16, reader: &mut Reader<'_>) -> Result<Guid, Error> {
    valid(id, reader.array().copied().map(Guid::from_bytes))
}

/// Adds a locator if it is UDP and the list has room; vendors also announce locators of private kinds.
fn read_locator(id: u16, reader: &mut Reader<'_>, list: &mut LocatorList) -> Result<(), Error> {
    let locator = valid(id, Locator::read(reader))?;
    if locator.is_udp() {
        // A locator beyond the capacity is skipped: those before it reach the same entity.
        let _ = list.push(locator);
    }
    Ok(())
}

fn put_locators(list: &mut ParameterWriter<'_>, id: u16, locators: &LocatorList) {
    for locator in locators {
        list.put_with(id, crate::locator::LOCATOR_BYTES, |writer| {
            locator.write(writer);
        });
    }
}

/// Handles an unknown parameter: skipped, or an error with must-understand.
fn skip(parameter: &Parameter<'_>) -> Result<(), Error> {
    if parameter.must_understand {
        return Err(Error::MustUnderstand(parameter.id));
    }
    Ok(())
}
