//! An end's participant: what moves its datagrams, what its receivers are protected with, and a reader
//! for what strangers send.

use std::num::NonZeroU32;
use std::time::Duration;

use isolane::{
    Budget, DataReader, InterfaceProtection, Limits, Over, Participant, ProtectError, Protection,
    Qos,
};

use super::EndConfig;
use crate::scenario::RttMessage;
use crate::scenario::end::{self, EndError, UNWRITTEN_TOPIC};
use crate::scenario::transport::{Allowance, Policing};

/// The participant of an end, its receivers protected.
pub(super) fn participant(config: &EndConfig, name: &str) -> Result<Participant, EndError> {
    let limits = Limits::default();
    let participant =
        end::participant_with(config.site, config.transport, name, config.order, limits)?;
    protect(&participant, config)?;
    Ok(participant)
}

/// A reader of a topic that nobody writes: its level's lane is open, so that strangers' bulk comes in
/// there.
pub(super) fn of_strangers(
    participant: &Participant,
    config: &EndConfig,
) -> Result<Option<DataReader<RttMessage>>, EndError> {
    let Some(level) = config.strangers() else {
        return Ok(None);
    };
    let qos = Qos::best_effort().level(level);
    let reader = participant.create_view_reader(UNWRITTEN_TOPIC, &qos)?;
    Ok(Some(reader))
}

/// Protects what receives, before there is an endpoint: so that it holds from the first datagram on.
fn protect(participant: &Participant, config: &EndConfig) -> Result<(), ProtectError> {
    let Policing { others, bulk } = config.policing;
    if let Some(others) = others {
        participant.protect_interface(InterfaceProtection {
            flows: None,
            others: Some(budget(others)),
        })?;
    }
    if let (Some(bulk), Some(level)) = (bulk, config.strangers()) {
        let protection = Protection {
            budget: budget(bulk),
            over: Over::Drop,
        };
        participant.protect_level(level, Some(protection))?;
    }
    Ok(())
}

fn budget(allowance: Allowance) -> Budget {
    Budget {
        // An allowance of nothing would be one of one.
        capacity: NonZeroU32::new(allowance.capacity).unwrap_or(NonZeroU32::MIN),
        period: Duration::from_micros(allowance.period_us.into()),
    }
}
