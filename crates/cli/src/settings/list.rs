//! Settings of `isolane ls`.

use std::time::Duration;

use isolane_model::{Sourced, System};

use super::lane::LaneSettings;
use super::{NetworkSettings, hostname, list_or_default, or_default, seconds};
use crate::arguments::ListArguments;
use crate::failure::Failure;
use crate::values::{Destination, Peer};

#[derive(Debug)]
pub(crate) struct ListSettings {
    pub(crate) network: NetworkSettings,
    pub(crate) lane: LaneSettings,
    pub(crate) listen_for: Sourced<Duration>,
    pub(crate) peers: Sourced<Vec<Peer>>,
    pub(crate) json: Option<Destination>,
}

impl ListSettings {
    pub(super) fn new(
        mut network: NetworkSettings,
        arguments: ListArguments,
        system: Option<&System>,
    ) -> Result<Self, Failure> {
        let lane = LaneSettings::new(arguments.lane, &mut network, system, &hostname())?;
        Ok(Self {
            network,
            lane,
            listen_for: or_default(arguments.seconds, "--seconds", 3).map(seconds),
            peers: list_or_default(arguments.peer, "--peer", &[]),
            json: arguments.json,
        })
    }
}
