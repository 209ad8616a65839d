//! Settings of `isolane why`: the topic, the domains and the time.

use std::time::Duration;

use isolane_model::{Domain, Sourced, System, check_topic_name};

use super::described::check_ports;
use super::lane::LaneSettings;
use super::{NetworkSettings, hostname, list_or_default, or_default, seconds};
use crate::arguments::WhyArguments;
use crate::failure::Failure;
use crate::limits::OTHER_DOMAINS;
use crate::values::{Destination, Peer};

#[derive(Debug)]
pub(crate) struct WhySettings {
    pub(crate) network: NetworkSettings,
    pub(crate) lane: LaneSettings,
    pub(crate) topic: String,
    /// Domains where the topic may be by mistake.
    pub(crate) other_domains: Sourced<Vec<Domain>>,
    pub(crate) listen_for: Sourced<Duration>,
    pub(crate) peers: Sourced<Vec<Peer>>,
    pub(crate) json: Option<Destination>,
    /// Description whose participants may use the topic without discovery.
    pub(crate) system: Option<System>,
}

impl WhySettings {
    pub(super) fn new(
        mut network: NetworkSettings,
        arguments: WhyArguments,
        system: Option<&System>,
    ) -> Result<Self, Failure> {
        let lane = LaneSettings::new(arguments.lane, &mut network, system, &hostname())?;
        if let Err(reason) = check_topic_name(&arguments.topic) {
            let topic = arguments.topic.escape_debug();
            return Err(Failure::wrong_usage(
                format!("\"{topic}\" cannot be the name of a topic"),
                reason.to_string(),
            ));
        }
        if let Some(system) = system {
            check_ports(system, &network.domain)?;
        }
        let own = network.domain.value;
        let is_other = |domain: &Domain| *domain != own;
        let usual: Vec<Domain> = OTHER_DOMAINS.filter_map(Domain::new).collect();
        let mut other_domains = match arguments.no_other_domains {
            true => or_default(Some(Vec::new()), "--no-other-domains", Vec::new()),
            false => list_or_default(arguments.other_domains, "--other-domains", &usual),
        };
        other_domains.value.retain(is_other);
        Ok(Self {
            network,
            lane,
            topic: arguments.topic,
            other_domains,
            listen_for: or_default(arguments.seconds, "--seconds", 3).map(seconds),
            peers: list_or_default(arguments.peer, "--peer", &[]),
            json: arguments.json,
            system: system.cloned(),
        })
    }
}
