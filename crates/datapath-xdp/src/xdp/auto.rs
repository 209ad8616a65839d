//! Availability of lanes on this host.

use std::thread;
use std::time::Instant;

use isolane_datapath::kind::{Met, Requirement};
use isolane_datapath::udp::interfaces;
use isolane_datapath::{Datapath, DatapathFactory, NetworkConfig, OpenError};

use super::Xdp;
use super::config::{OnFailure, XdpConfig, XdpOptions};
use super::lanes::choose;
use super::plan::Plan;
use crate::limits::{BIND_PATIENCE, BIND_RETRY};
use crate::requirements::{Wanted, facts, requirements};
use crate::socket::BindMode;

impl DatapathFactory for XdpOptions {
    fn name(&self) -> &'static str {
        "xdp"
    }

    fn unmet(&self, network: &NetworkConfig) -> Option<String> {
        why_not(&self.with(network.clone()))
    }

    fn tolerate_lane_failure(&mut self) {
        self.on_failure = OnFailure::Sockets;
    }

    fn open(self: Box<Self>, network: NetworkConfig) -> Result<Box<dyn Datapath>, OpenError> {
        Ok(Box::new(Xdp::new(self.with(network))?))
    }
}

impl XdpOptions {
    fn with(&self, udp: NetworkConfig) -> XdpConfig {
        XdpConfig {
            udp,
            options: self.clone(),
        }
    }
}

/// Returns why lanes cannot work on this host now, with remedies; `None` if no obstacle is known. Opens and attaches
/// nothing.
#[must_use]
pub fn why_not(config: &XdpConfig) -> Option<String> {
    let options = &config.options;
    let present = interfaces::list().unwrap_or_default();
    let interface = match choose(&config.udp, options, &present) {
        Ok(interface) => interface,
        Err(error) => return Some(error.to_string()),
    };
    // The MTU has its own check.
    let plan = Plan::new(options, config.udp.pool, &interface.name, 0);
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => return Some(error.to_string()),
    };
    let memory_bytes = plan
        .pool
        .device
        .map_or(0, |device| (device.chunks * device.chunk_bytes) as u64);
    let wanted = Wanted {
        queues: plan.queues.iter().map(|queue| queue.queue).collect(),
        zero_copy: options.mode == BindMode::ZeroCopy,
        memory_bytes,
        vlan: options.vlan.is_some(),
    };
    let begin = Instant::now();
    loop {
        let mut unmet = requirements(&facts(&interface.name), &wanted);
        unmet.retain(|requirement| requirement.met == Met::No);
        // The queue of a process that has just died stays bound for a while; wait for it, as opening does.
        let may_be_over = |requirement: &Requirement| requirement.id == "queues";
        let is_over_soon = !unmet.is_empty() && unmet.iter().all(may_be_over);
        if is_over_soon && begin.elapsed() < BIND_PATIENCE {
            thread::sleep(BIND_RETRY);
            continue;
        }
        let reasons = unmet.iter();
        let reasons = reasons.map(|it| format!("{}: {}", it.found, it.remedy));
        return (!unmet.is_empty()).then(|| reasons.collect::<Vec<_>>().join("; "));
    }
}
