//! Receive processing beyond the NAPI budget, on a kernel with threaded interrupts.

use super::Findings;
use crate::facts::{Device, Facts};

/// Checks whether receive processing keeps its thread's priority. The soft interrupt of an interrupt thread runs at
/// that thread's priority until its budget is used up (`netdev_budget`, `netdev_budget_usecs`); the core's ksoftirqd
/// processes the rest.
pub(super) fn examine(facts: &Facts, device: &Device, findings: &mut Findings) {
    let is_in_threads = facts.kernel.realtime == Some(true) && !device.interrupts.is_empty();
    let name = &device.interface;
    let id = format!("interface.receive-budget.{name}");
    match device.threaded {
        _ if !is_in_threads => {}
        Some(true) => findings.ok(
            &id,
            format!("receive processing of {name} runs in NAPI threads, whatever the load"),
        ),
        threaded => findings.info(
            &id,
            format!(
                "if {name} has more receive work than its budget (300 frames, or 2 ms), ksoftirqd continues it at \
                 ordinary priority"
            ),
            "real-time threads then preempt this receive work, and ordinary programs share its core: milliseconds of \
             delay under heavy load",
            match threaded {
                Some(_) => format!(
                    "echo 1 > /sys/class/net/{name}/threaded, and give its NAPI threads priorities (isolane tune \
                     plan); or, for each core N that receives its interrupts: chrt -f -p 60 $(pgrep -x ksoftirqd/N)"
                ),
                None => String::from(
                    "for each core N that receives its interrupts: chrt -f -p 60 $(pgrep -x ksoftirqd/N)",
                ),
            },
        ),
    }
}
