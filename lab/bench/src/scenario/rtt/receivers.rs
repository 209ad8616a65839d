//! Participant of an end: its transport, the policing of its receivers, and a reader for foreign traffic.

use std::num::NonZeroU32;
use std::time::Duration;

use isolane::{
    Budget, DataReader, InterfaceRateLimit, Limits, OverBudget, Participant, Qos, RateLimit,
    RateLimitError,
};

use super::EndConfig;
use crate::scenario::RttMessage;
use crate::scenario::end::{self, EndError, UNWRITTEN_TOPIC};
use crate::scenario::transport::{Allowance, Policing};

/// Creates the participant of an end with policed receivers.
pub(super) fn participant(config: &EndConfig, name: &str) -> Result<Participant, EndError> {
    let limits = Limits::default();
    let participant =
        end::participant_with(config.site, config.transport, name, config.order, limits)?;
    protect(&participant, config)?;
    Ok(participant)
}

/// Creates a reader of a topic without writers. It opens its level's lane, where foreign bulk arrives.
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

/// Polices the receivers before there is an endpoint, so that the first datagram is already policed.
fn protect(participant: &Participant, config: &EndConfig) -> Result<(), RateLimitError> {
    let Policing { others, bulk } = config.policing;
    if let Some(others) = others {
        participant.set_interface_limit(InterfaceRateLimit {
            topics: None,
            foreign: Some(budget(others)),
        })?;
    }
    if let (Some(bulk), Some(level)) = (bulk, config.strangers()) {
        let protection = RateLimit {
            budget: budget(bulk),
            over: OverBudget::Drop,
        };
        participant.set_level_limit(level, Some(protection))?;
    }
    Ok(())
}

fn budget(allowance: Allowance) -> Budget {
    Budget {
        // Budgets have a minimum capacity of one.
        capacity: NonZeroU32::new(allowance.capacity).unwrap_or(NonZeroU32::MIN),
        period: Duration::from_micros(allowance.period_us.into()),
    }
}
