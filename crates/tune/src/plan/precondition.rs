//! Reliances of steps that do harm without them: the steering under which the receive queues of critical flows were
//! measured.

use crate::setting::{Setting, Value};

use super::Precondition;
use super::builder::{PlanBuilder, RULES};
use super::target::TopicInterface;

/// Adds the device's current steering as reliances of the plan.
pub(super) fn require_current_steering(target: &TopicInterface<'_>, builder: &mut PlanBuilder) {
    let device = target.device;
    let interface = || target.name().to_owned();
    let mut relies_on: Vec<(Setting, Value)> = Vec::new();
    if let Some(queues) = device.queues {
        let setting = Setting::Channels {
            interface: interface(),
        };
        relies_on.push((setting, Value::Queues(queues)));
    }
    if let Some(hash) = device
        .receive_hash
        .as_ref()
        .filter(|hash| !hash.table.is_empty())
    {
        if let Some(on) = hash.udp4_hashes_ports {
            let setting = Setting::UdpHash {
                interface: interface(),
            };
            relies_on.push((setting, Value::Switch(on)));
        }
        let setting = Setting::RssTable {
            interface: interface(),
        };
        relies_on.push((setting, Value::Table(hash.table.clone())));
    }
    if let Some(rules) = device
        .flow_rules
        .as_ref()
        .filter(|rules| !rules.rules.is_empty())
    {
        let setting = Setting::Feature {
            interface: interface(),
            feature: String::from(RULES),
        };
        if device.features.contains_key(RULES) {
            relies_on.push((setting, Value::Switch(true)));
        }
        for (location, rule) in &rules.rules {
            let setting = Setting::FlowRule {
                interface: interface(),
                location: *location,
            };
            relies_on.push((setting, Value::Rule(*rule)));
        }
    }
    for (setting, value) in relies_on {
        if !builder
            .relies_on
            .iter()
            .any(|known| known.setting == setting)
        {
            builder.relies_on.push(Precondition { setting, value });
        }
    }
}
