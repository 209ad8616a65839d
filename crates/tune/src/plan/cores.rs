//! Plan for the executor's core: clock rate, idle states, SMT siblings, kernel housekeeping.

use crate::limits::STATISTICS_SECONDS;
use crate::lists::{cores_of_mask, list, mask_like};
use crate::probe::files::number_list;

use super::builder::{PlanBuilder, Rationale};
use super::target::{CPUS, PlanInput};

/// Maximum number of idle states per core (CPUIDLE_STATE_MAX).
const IDLE_STATES: u32 = 10;

pub(super) fn plan(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    let Some(core) = input.core() else {
        return without(input, builder);
    };
    if input.tuning.siblings_off.value {
        siblings(input, core, builder);
    }
    if input.tuning.full_speed.value {
        speed(input, core, builder);
    }
    idle(input, core, builder);
    if input.tuning.housekeeping.value {
        housekeeping(input, core, builder);
    }
}

fn without(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    let online = &input.facts.cores.online;
    if online.is_empty() {
        return;
    }
    let why = match input.needs.core {
        Some(core) => {
            format!("the description puts the executor on core {core}, which does not run")
        }
        None => String::from(
            "the description does not say which core the executor is on: no core is set up",
        ),
    };
    let last = online.last().copied().unwrap_or_default();
    builder.not_planned(
        "cores.executor",
        why,
        format!("core = {last} in [host.NAME]"),
    );
}

fn siblings(input: &PlanInput<'_>, core: u16, builder: &mut PlanBuilder) {
    let Some(siblings) = input.siblings(core) else {
        if input.facts.cores.smt_active == Some(true) {
            builder.not_planned(
                "cores.siblings",
                "which hardware threads share the executor's core cannot be seen",
                format!("look: cat {CPUS}/cpu{core}/topology/thread_siblings_list; switch each off: echo 0 > {CPUS}/cpuN/online"),
            );
        }
        return;
    };
    let online = &input.facts.cores.online;
    for sibling in siblings {
        if sibling == core || !online.contains(&sibling) {
            continue;
        }
        let path = format!("{CPUS}/cpu{sibling}/online");
        if input.facts.attribute(&path).is_none() {
            builder.not_planned(
                format!("cores.siblings.{sibling}"),
                format!("core {sibling} is the other hardware thread of core {core}, and cannot be switched off"),
                "put the executor on a core whose sibling can: core = N in [host.NAME]",
            );
            continue;
        }
        builder.attribute(
            input.facts,
            format!("cores.sibling.{sibling}"),
            &path,
            "0",
            Rationale::of_all(
                format!(
                    "cores {core} and {sibling} are two threads of one: what runs on the other takes up to half of \
                     the executor's speed"
                ),
                format!("core {sibling} is gone: other programs have one hardware thread less"),
            ),
        );
    }
}

fn speed(input: &PlanInput<'_>, core: u16, builder: &mut PlanBuilder) {
    builder.attribute(
        input.facts,
        format!("cores.governor.{core}"),
        &format!("{CPUS}/cpu{core}/cpufreq/scaling_governor"),
        "performance",
        Rationale::of_all(
            "after a pause a core runs at a fraction of its speed for milliseconds, and everything takes longer by \
             as much",
            "power and heat of one core; less room for others to run above their nominal clock rate",
        ),
    );
}

fn idle(input: &PlanInput<'_>, core: u16, builder: &mut PlanBuilder) {
    let Some(most_us) = input.tuning.idle_latency_us.value else {
        return;
    };
    for state in 0..IDLE_STATES {
        let folder = format!("{CPUS}/cpu{core}/cpuidle/state{state}");
        let latency = input.facts.attribute(&format!("{folder}/latency"));
        let Some(latency_us) = latency.and_then(|text| text.parse::<u32>().ok()) else {
            continue;
        };
        if latency_us <= most_us {
            continue;
        }
        builder.attribute(
            input.facts,
            format!("cores.idle-state-{state}.{core}"),
            &format!("{folder}/disable"),
            "1",
            Rationale::of_all(
                format!("core {core} takes {latency_us} us to leave this idle state: the first sample after a pause waits for it"),
                "power and heat of one core",
            ),
        );
    }
}

fn housekeeping(input: &PlanInput<'_>, core: u16, builder: &mut PlanBuilder) {
    let others = input.other_cores();
    if others.is_empty() {
        return;
    }
    for (id, path, what) in [
        (
            "cores.work-queues",
            "/sys/devices/virtual/workqueue/cpumask",
            "work that drivers and file systems put off",
        ),
        (
            "cores.new-interrupts",
            "/proc/irq/default_smp_affinity",
            "interrupts that are asked for from now on",
        ),
    ] {
        let Some(mask) = input.facts.attribute(path) else {
            continue;
        };
        if cores_of_mask(&mask).is_none_or(|cores| !cores.contains(&core)) {
            continue;
        }
        builder.attribute(
            input.facts,
            id,
            path,
            mask_like(&mask, &others),
            Rationale::of_all(
                format!("{what} may come to core {core}: some microseconds each"),
                "the other cores do it",
            ),
        );
    }
    let watched = input.facts.attribute("/proc/sys/kernel/watchdog_cpumask");
    if watched.is_some_and(|watched| number_list(&watched).contains(&core)) {
        builder.attribute(
            input.facts,
            "cores.watchdog",
            "/proc/sys/kernel/watchdog_cpumask",
            list(&others),
            Rationale::of_all(
                format!("a thread at the highest priority looks every 4 s whether core {core} still runs"),
                format!("a lock-up of core {core} is not reported by it"),
            ),
        );
    }
    let seconds = input.facts.attribute("/proc/sys/vm/stat_interval");
    if seconds.and_then(|text| text.parse::<u32>().ok()) < Some(STATISTICS_SECONDS) {
        builder.attribute(
            input.facts,
            "cores.statistics",
            "/proc/sys/vm/stat_interval",
            STATISTICS_SECONDS.to_string(),
            Rationale::of_all(
                "each second every core adds up its counters of memory: some microseconds",
                format!("counters of memory (vmstat) are up to {STATISTICS_SECONDS} s old"),
            ),
        );
    }
}
