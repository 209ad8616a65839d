//! What participants and endpoints announce of themselves (RTPS 2.5 §8.5, §9.6.3).
//!
//! An announcement is a payload: an encapsulation header, then a parameter list. What it leaves out
//! has the standard's default; what isolane does not know is skipped, unless the sender insists on
//! it. The end of a participant or endpoint is told by a payload that holds its GUID alone. What a
//! participant says of liveliness is no list: [`ParticipantMessage`].

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

/// Gives the cursor's error the parameter's name.
fn valid<T>(id: u16, value: Result<T, Error>) -> Result<T, Error> {
    value.map_err(|_| Error::InvalidParameter(id))
}

fn read_guid(id: u16, reader: &mut Reader<'_>) -> Result<Guid, Error> {
    valid(id, reader.array().copied().map(Guid::from_bytes))
}

/// Adds a locator, if a datagram can be sent there and there is room: vendors announce kinds of
/// their own.
fn read_locator(id: u16, reader: &mut Reader<'_>, list: &mut LocatorList) -> Result<(), Error> {
    let locator = valid(id, Locator::read(reader))?;
    if locator.is_udp() {
        // One that finds no room is skipped: those before it reach the same entity.
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

/// What to do with a parameter that nobody took.
fn skip(parameter: &Parameter<'_>) -> Result<(), Error> {
    if parameter.must_understand {
        return Err(Error::MustUnderstand(parameter.id));
    }
    Ok(())
}
