//! Whether lanes work here.

use isolane_datapath::udp::interfaces;

use super::config::XdpConfig;
use super::lanes::choose;
use super::plan::Plan;
use crate::preflight::{Outcome, Wanted, look};
use crate::socket::BindMode;

/// Why lanes do not work on this machine as it is now, and what to do about it; `None` if nothing is
/// known to be in their way. Looks only: nothing is attached or opened.
#[must_use]
pub fn why_not(config: &XdpConfig) -> Option<String> {
    let options = &config.options;
    let present = interfaces::list().unwrap_or_default();
    let interface = match choose(&config.udp, options, &present) {
        Ok(interface) => interface,
        Err(error) => return Some(error.to_string()),
    };
    // The MTU is looked at by the checks, by name.
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
    let checks = look(&interface.name, &wanted).into_iter();
    let impossible = checks.filter(|check| check.outcome == Outcome::Impossible);
    let reasons: Vec<String> = impossible
        .map(|check| format!("{}: {}", check.what, check.remedy))
        .collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}
