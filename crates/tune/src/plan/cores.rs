//! Plan for the executor's core: clock rate, idle states, SMT siblings, kernel housekeeping.

use crate::limits::STATISTICS_SECONDS;
use crate::lists::{cores_of_mask, list, mask_like};
use crate::probe::files::number_list;

use super::carrier::{Asked, CPUS};
use super::draft::{Draft, Said};

/// Maximum number of idle states per core (CPUIDLE_STATE_MAX).
const IDLE_STATES: u32 = 10;

pub(super) fn plan(asked: &Asked<'_>, draft: &mut Draft) {
    let Some(core) = asked.core() else {
        return without(asked, draft);
    };
    if asked.tuning.siblings_off.value {
        siblings(asked, core, draft);
    }
    if asked.tuning.full_speed.value {
        speed(asked, core, draft);
    }
    idle(asked, core, draft);
    if asked.tuning.housekeeping.value {
        housekeeping(asked, core, draft);
    }
}

fn without(asked: &Asked<'_>, draft: &mut Draft) {
    let online = &asked.facts.cores.online;
    if online.is_empty() {
        return;
    }
    let why = match asked.needs.core {
        Some(core) => {
            format!("the description puts the executor on core {core}, which does not run")
        }
        None => String::from(
            "the description does not say which core the executor is on: no core is set up",
        ),
    };
    let last = online.last().copied().unwrap_or_default();
    draft.refuse(
        "cores.executor",
        why,
        format!("core = {last} in [host.NAME]"),
    );
}

fn siblings(asked: &Asked<'_>, core: u16, draft: &mut Draft) {
    let Some(siblings) = asked.siblings(core) else {
        if asked.facts.cores.smt_active == Some(true) {
            draft.refuse(
                "cores.siblings",
                "which hardware threads share the executor's core cannot be seen",
                format!("look: cat {CPUS}/cpu{core}/topology/thread_siblings_list; switch each off: echo 0 > {CPUS}/cpuN/online"),
            );
        }
        return;
    };
    let online = &asked.facts.cores.online;
    for sibling in siblings {
        if sibling == core || !online.contains(&sibling) {
            continue;
        }
        let path = format!("{CPUS}/cpu{sibling}/online");
        if asked.facts.attribute(&path).is_none() {
            draft.refuse(
                format!("cores.siblings.{sibling}"),
                format!("core {sibling} is the other hardware thread of core {core}, and cannot be switched off"),
                "put the executor on a core whose sibling can: core = N in [host.NAME]",
            );
            continue;
        }
        draft.attribute(
            asked.facts,
            format!("cores.sibling.{sibling}"),
            &path,
            "0",
            Said::of_all(
                format!(
                    "cores {core} and {sibling} are two threads of one: what runs on the other takes up to half of \
                     the executor's speed"
                ),
                format!("core {sibling} is gone: other programs have one hardware thread less"),
            ),
        );
    }
}

fn speed(asked: &Asked<'_>, core: u16, draft: &mut Draft) {
    draft.attribute(
        asked.facts,
        format!("cores.governor.{core}"),
        &format!("{CPUS}/cpu{core}/cpufreq/scaling_governor"),
        "performance",
        Said::of_all(
            "after a pause a core runs at a fraction of its speed for milliseconds, and everything takes longer by \
             as much",
            "power and heat of one core; less room for others to run above their nominal clock rate",
        ),
    );
}

fn idle(asked: &Asked<'_>, core: u16, draft: &mut Draft) {
    let Some(most_us) = asked.tuning.idle_latency_us.value else {
        return;
    };
    for state in 0..IDLE_STATES {
        let folder = format!("{CPUS}/cpu{core}/cpuidle/state{state}");
        let latency = asked.facts.attribute(&format!("{folder}/latency"));
        let Some(latency_us) = latency.and_then(|text| text.parse::<u32>().ok()) else {
            continue;
        };
        if latency_us <= most_us {
            continue;
        }
        draft.attribute(
            asked.facts,
            format!("cores.idle-state-{state}.{core}"),
            &format!("{folder}/disable"),
            "1",
            Said::of_all(
                format!("core {core} takes {latency_us} us to leave this idle state: the first sample after a pause waits for it"),
                "power and heat of one core",
            ),
        );
    }
}

fn housekeeping(asked: &Asked<'_>, core: u16, draft: &mut Draft) {
    let others = asked.other_cores();
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
        let Some(mask) = asked.facts.attribute(path) else {
            continue;
        };
        if cores_of_mask(&mask).is_none_or(|cores| !cores.contains(&core)) {
            continue;
        }
        draft.attribute(
            asked.facts,
            id,
            path,
            mask_like(&mask, &others),
            Said::of_all(
                format!("{what} may come to core {core}: some microseconds each"),
                "the other cores do it",
            ),
        );
    }
    let watched = asked.facts.attribute("/proc/sys/kernel/watchdog_cpumask");
    if watched.is_some_and(|watched| number_list(&watched).contains(&core)) {
        draft.attribute(
            asked.facts,
            "cores.watchdog",
            "/proc/sys/kernel/watchdog_cpumask",
            list(&others),
            Said::of_all(
                format!("a thread at the highest priority looks every 4 s whether core {core} still runs"),
                format!("a lock-up of core {core} is not reported by it"),
            ),
        );
    }
    let seconds = asked.facts.attribute("/proc/sys/vm/stat_interval");
    if seconds.and_then(|text| text.parse::<u32>().ok()) < Some(STATISTICS_SECONDS) {
        draft.attribute(
            asked.facts,
            "cores.statistics",
            "/proc/sys/vm/stat_interval",
            STATISTICS_SECONDS.to_string(),
            Said::of_all(
                "each second every core adds up its counters of memory: some microseconds",
                format!("counters of memory (vmstat) are up to {STATISTICS_SECONDS} s old"),
            ),
        );
    }
}
