//! Findings about cores: count, isolation, clock rate, idle states, interrupts.

use super::{Findings, list};
use crate::facts::{Facts, Interrupt};
use crate::kernel_lists::number_list;
use crate::limits::IDLE_LATENCY_US;
use crate::needs::Needs;
use crate::plan::{interrupts_that_may_reach, list_interrupts};

pub(super) fn examine(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    if facts.cores.online.is_empty() {
        return;
    }
    described(facts, needs, findings);
    isolation(facts, needs, findings);
    clock_rate(facts, needs, findings);
    idle(facts, findings);
    other_interrupts(facts, needs, findings);
    if facts.cores.smt_active == Some(true) {
        findings.warn(
            "cores.smt",
            "two hardware threads share a core",
            "programs on the sibling of the executor's core take up to half of its speed, and bounds must include that",
            "echo off > /sys/devices/system/cpu/smt/control; permanently: boot with nosmt",
        );
    } else if facts.cores.smt_active == Some(false) {
        findings.ok("cores.smt", "each core runs one hardware thread");
    }
}

fn described(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    let online = &facts.cores.online;
    let there = format!("cores {}", list(online));
    match needs.core {
        Some(core) if !online.contains(&core) => findings.error(
            "cores.described",
            format!(
                "the description puts the executor on core {core}, but this machine has {there}"
            ),
            "the executor cannot run on the described core",
            format!("set `core` of the host to one of {}", list(online)),
        ),
        Some(core) => findings.ok(
            "cores.described",
            format!("the executor's core {core} is one of {there}"),
        ),
        None if online.len() == 1 => {}
        None => findings.ok("cores.described", there),
    }
    if online.len() == 1 {
        findings.warn(
            "cores.count",
            "this machine has one core",
            "the executor shares the core with interrupts, the kernel's threads and every other program",
            "use a machine with two cores or more, one of them for the executor",
        );
    }
}

fn isolation(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    let cores = &facts.cores;
    if cores.online.len() < 2 {
        return;
    }
    let isolated = cores.isolated.as_deref().unwrap_or_default();
    let last = cores.online.last().copied().unwrap_or_default();
    let core = needs.core.unwrap_or(last);
    let is_wanted = |cores: &[u16]| match needs.core {
        Some(core) => cores.contains(&core),
        None => !cores.is_empty(),
    };
    if is_wanted(isolated) {
        findings.ok(
            "cores.isolated",
            format!("cores {} are kept free of other programs", list(isolated)),
        );
    } else {
        let what = match (needs.core, isolated) {
            (Some(core), []) => format!("core {core} is not kept free of other programs"),
            (Some(core), some) => format!(
                "core {core} is not kept free of other programs; {} are",
                list(some)
            ),
            (None, _) => String::from("no core is kept free of other programs"),
        };
        findings.warn(
            "cores.isolated",
            what,
            "other programs and the kernel's housekeeping run on the executor's core: a few microseconds each time, \
             and cold caches afterwards; on a loaded machine as delivered, a one-way delay was up to 3,998 us, and \
             with isolated cores and tuning up to 115 us (AF_XDP, Rovelli et al. 2025, table 1)",
            format!(
                "boot with isolcpus={core} nohz_full={core} rcu_nocbs={core}; or give the executor \
                 an exclusive cpuset"
            ),
        );
    }
    let nohz = cores.nohz_full.as_deref().unwrap_or_default();
    if is_wanted(nohz) {
        findings.ok(
            "cores.tick",
            format!("cores {} have no tick while one program runs", list(nohz)),
        );
    } else {
        findings.info(
            "cores.tick",
            "the scheduler's tick interrupts every core",
            "1 to 10 microseconds, 100 to 1000 times a second",
            format!("boot with nohz_full={core} (the kernel must be built with NO_HZ_FULL)"),
        );
    }
}

fn clock_rate(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    let governors = &facts.cores.governors;
    let slow: Vec<u16> = governors
        .iter()
        .filter(|(core, _)| needs.core.is_none_or(|wanted| wanted == **core))
        .filter(|(_, governor)| *governor != "performance")
        .map(|(core, _)| *core)
        .collect();
    if governors.is_empty() {
        findings.info(
            "cores.governor",
            "cpufreq is not available here",
            "the firmware or the hypervisor controls the clock rate",
            "check the firmware's settings for power saving",
        );
    } else if slow.is_empty() {
        findings.ok("cores.governor", "the clock rate stays at its maximum");
    } else {
        let governor = slow.first().and_then(|core| governors.get(core));
        findings.warn(
            "cores.governor",
            format!(
                "cores {} use the cpufreq governor {}",
                list(&slow),
                governor.map_or("?", String::as_str)
            ),
            "after a pause a core runs at a fraction of its speed for milliseconds: everything, including the worst \
             case, takes up to several times as long",
            "cpupower frequency-set --governor performance",
        );
    }
}

fn idle(facts: &Facts, findings: &mut Findings) {
    let states = &facts.cores.idle_states;
    let slow: Vec<String> = states
        .iter()
        .filter(|state| !state.disabled && state.latency_us > IDLE_LATENCY_US)
        .map(|state| format!("{} ({} us)", state.name, state.latency_us))
        .collect();
    if states.is_empty() {
        findings.info(
            "cores.idle-states",
            "idle states are not visible here",
            "waking from a deep idle state takes up to hundreds of microseconds",
            "boot with cpuidle.off=1 or idle=poll and compare: isolane bench rtt",
        );
    } else if slow.is_empty() {
        findings.ok(
            "cores.idle-states",
            format!("each enabled idle state takes at most {IDLE_LATENCY_US} us to leave"),
        );
    } else {
        findings.warn(
            "cores.idle-states",
            format!("cores use deep idle states: {}", slow.join(", ")),
            "the first sample after a pause is late by the wake-up time given above: without load, round trips of 215 \
             us became 370 us (measured on veth)",
            format!(
                "cpupower idle-set --disable-by-latency {IDLE_LATENCY_US}; or let the program hold \
                 /dev/cpu_dma_latency open with the value {IDLE_LATENCY_US}"
            ),
        );
    }
}

/// Cores for all work but the executor's. SMT siblings of the executor's core, which plans take offline, are left out
/// unless there are no other cores.
fn cores_for_others(facts: &Facts, core: u16) -> Vec<u16> {
    let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    let siblings = number_list(&facts.attribute(&path).unwrap_or_default());
    let online = facts.cores.online.iter().copied();
    let (smt_siblings, apart): (Vec<u16>, Vec<u16>) = online
        .filter(|other| *other != core)
        .partition(|other| siblings.contains(other));
    if apart.is_empty() {
        smt_siblings
    } else {
        apart
    }
}

fn other_interrupts(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    let online = &facts.cores.online;
    let Some(core) = needs
        .core
        .filter(|core| online.len() > 1 && online.contains(core))
    else {
        return;
    };
    let id = "cores.other-interrupts";
    let rest = cores_for_others(facts, core);
    let there = interrupts_that_may_reach(facts, needs, core, &rest);
    let movable = there.into_iter().filter(|it| !it.is_managed);
    let there: Vec<&Interrupt> = movable.collect();
    let line = facts.kernel.command_line.as_deref().unwrap_or_default();
    let mut words = line.split_whitespace();
    let begin = words.find_map(|word| word.strip_prefix("irqaffinity="));
    let what = match (there.as_slice(), begin) {
        ([], Some(begin)) if !number_list(begin).contains(&core) => {
            return findings.ok(
                id,
                format!("new interrupts of devices start on other cores than {core} (irqaffinity)"),
            );
        }
        ([], _) if !facts.interrupts.is_empty() => {
            return findings.ok(
                id,
                format!(
                    "no interrupt of another device can arrive on core {core}, except those that cannot be moved"
                ),
            );
        }
        ([], _) => format!(
            "interrupts of disks, USB and the like may arrive on core {core}: the facts do not contain them"
        ),
        (some, _) => format!(
            "interrupts of other devices may arrive on core {core}: {}",
            list_interrupts(some.iter().copied())
        ),
    };
    let rest = list(&rest);
    findings.info(
        id,
        what,
        "some microseconds for each interrupt",
        format!(
            "boot with irqaffinity={rest}; or find the interrupts (grep -w {core} \
             /proc/irq/*/effective_affinity_list) and move each: echo {rest} > /proc/irq/NUMBER/smp_affinity_list"
        ),
    );
}
