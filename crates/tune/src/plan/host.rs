//! Steps for the host: executor core, scheduler, memory, services and sockets; and limits that no plan can change.

use super::builder::{PlanBuilder, Rationale};
use super::input::{CPUS, PlanInput};
use crate::kernel_lists::{cores_of_mask, list, mask_like, number_list, range_list};
use crate::limits::{
    BUFFER_PERCENT, KERNEL_BYTES_PER_DATAGRAM, MAX_IDLE_STATES, STALL_US, STATISTICS_SECONDS,
};
use crate::setting::Document;

pub(super) fn plan_cores(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    let Some(core) = input.core() else {
        return without(input, builder);
    };
    if !input.tuning.smt.value {
        siblings(input, core, builder);
    }
    if input.tuning.performance_governor.value {
        speed(core, builder);
    }
    idle(input, core, builder);
    if input.tuning.housekeeping.value {
        housekeeping(input, core, builder);
    }
}

fn without(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    let online = &input.facts.cores.online;
    if online.is_empty() {
        return;
    }
    let why = match input.needs.core {
        Some(core) => {
            format!("the description puts the executor on core {core}, which is not online")
        }
        None => String::from(
            "the description names no core for the executor, so the plan configures no core",
        ),
    };
    let last = online.last().copied().unwrap_or_default();
    builder.not_planned(
        "cores.executor",
        why,
        format!("core = {last} in [host.NAME]"),
    );
}

fn siblings(input: &PlanInput<'_>, core: u16, builder: &mut PlanBuilder<'_>) {
    let Some(siblings) = input.siblings(core) else {
        if input.facts.cores.smt_active == Some(true) {
            builder.not_planned(
                "cores.siblings",
                "the hardware threads that share the executor's core cannot be determined",
                format!("show them: cat {CPUS}/cpu{core}/topology/thread_siblings_list; switch each off: echo 0 > \
                         {CPUS}/cpuN/online"),
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
                "put the executor on a core whose sibling can be switched off: core = N in [host.NAME]",
            );
            continue;
        }
        builder.attribute(
            format!("cores.sibling.{sibling}"),
            &path,
            "0",
            Rationale::of_all(
                format!(
                    "cores {core} and {sibling} are two hardware threads of one core: programs on core {sibling} take \
                     up to half of the executor's speed"
                ),
                format!("core {sibling} is switched off: other programs have one hardware thread less"),
            ),
        );
    }
}

fn speed(core: u16, builder: &mut PlanBuilder<'_>) {
    builder.attribute(
        format!("cores.governor.{core}"),
        &format!("{CPUS}/cpu{core}/cpufreq/scaling_governor"),
        "performance",
        Rationale::of_all(
            "after a pause a core runs at a fraction of its speed for milliseconds, and everything takes \
             correspondingly longer",
            "power and heat of one core; other cores can exceed their nominal clock rate less often",
        ),
    );
}

fn idle(input: &PlanInput<'_>, core: u16, builder: &mut PlanBuilder<'_>) {
    let Some(most_us) = input.tuning.idle_latency_us.value else {
        return;
    };
    for state in 0..MAX_IDLE_STATES {
        let folder = format!("{CPUS}/cpu{core}/cpuidle/state{state}");
        let latency = input.facts.attribute(&format!("{folder}/latency"));
        let Some(latency_us) = latency.and_then(|text| text.parse::<u32>().ok()) else {
            continue;
        };
        if latency_us <= most_us {
            continue;
        }
        builder.attribute(
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

fn housekeeping(input: &PlanInput<'_>, core: u16, builder: &mut PlanBuilder<'_>) {
    let others = input.other_cores();
    if others.is_empty() {
        return;
    }
    for (id, path, what) in [
        (
            "cores.work-queues",
            "/sys/devices/virtual/workqueue/cpumask",
            "deferred work of drivers and file systems",
        ),
        (
            "cores.new-interrupts",
            "/proc/irq/default_smp_affinity",
            "interrupts that are requested after this change",
        ),
    ] {
        let Some(mask) = input.facts.attribute(path) else {
            continue;
        };
        if cores_of_mask(&mask).is_none_or(|cores| !cores.contains(&core)) {
            continue;
        }
        builder.attribute(
            id,
            path,
            mask_like(&mask, &others),
            Rationale::of_all(
                format!("{what} may arrive on core {core}: some microseconds each"),
                "the other cores handle this work",
            ),
        );
    }
    let watched = input.facts.attribute("/proc/sys/kernel/watchdog_cpumask");
    if watched.is_some_and(|watched| number_list(&watched).contains(&core)) {
        builder.attribute(
            "cores.watchdog",
            "/proc/sys/kernel/watchdog_cpumask",
            list(&others),
            Rationale::of_all(
                format!("a watchdog thread of the highest priority checks every 4 s whether core {core} still runs"),
                format!("the watchdog does not report a lock-up of core {core}"),
            ),
        );
    }
    let seconds = input.facts.attribute("/proc/sys/vm/stat_interval");
    if seconds.and_then(|text| text.parse::<u32>().ok()) < Some(STATISTICS_SECONDS) {
        builder.attribute(
            "cores.statistics",
            "/proc/sys/vm/stat_interval",
            STATISTICS_SECONDS.to_string(),
            Rationale::of_all(
                "each second, every core updates its memory counters: some microseconds",
                format!("memory counters (vmstat) are up to {STATISTICS_SECONDS} s old"),
            ),
        );
    }
}

pub(super) fn plan_kernel_limits(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    let kernel = &input.facts.kernel;
    if kernel.realtime == Some(false) {
        builder.not_planned(
            "kernel.realtime",
            format!(
                "kernel {} is not PREEMPT_RT, so no bound can be stated, whatever is set",
                kernel.release
            ),
            "install a PREEMPT_RT kernel (Debian: apt install linux-image-rt-amd64), boot it, and plan again",
        );
    }
    if kernel.virtual_machine == Some(true) {
        builder.not_planned(
            "kernel.virtual-machine",
            "this is a virtual machine: the hypervisor takes cores away, whatever is set in this machine",
            "pin the virtual cores on the host, and keep other guests off them",
        );
    }
}

pub(super) fn plan_scheduler(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    let scheduling = &input.facts.scheduling;
    if !input.tuning.rt_throttling.value {
        let held = match (
            scheduling.realtime_runtime_us,
            scheduling.realtime_period_us,
        ) {
            (Some(runtime), Some(period)) => (period - runtime).max(0) / 1000,
            _ => 0,
        };
        builder.attribute(
            "scheduler.throttling",
            "/proc/sys/kernel/sched_rt_runtime_us",
            "-1",
            Rationale::of_all(
                format!("a real-time thread that does not sleep is stopped for {held} ms of each period"),
                "a runaway real-time thread occupies its core for ever: no ordinary program runs there again",
            ),
        );
    }
    let Some(core) = input.core().filter(|_| !input.tuning.fair_server.value) else {
        return;
    };
    builder.attribute(
        format!("scheduler.fair-server.{core}"),
        &format!("/sys/kernel/debug/sched/fair_server/cpu{core}/runtime"),
        "0",
        Rationale::of_all(
            "when ordinary programs wait on the executor's core, the kernel stops the executor for the time reserved \
             for them: 50 ms of each second by default",
            format!("ordinary programs on core {core} may starve"),
        ),
    );
}

pub(super) fn plan_memory(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    let facts = input.facts;
    if input.tuning.thp_madvise.value
        && facts.memory.transparent_huge_pages.as_deref() == Some("always")
    {
        builder.attribute(
            "memory.huge-pages",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "madvise",
            Rationale::of_all(
                "a page fault may copy 2 MiB, which takes some 100 us, in a program that did not request huge pages",
                "programs with large heaps have more page faults, unless they request huge pages (madvise)",
            ),
        );
    }
    if let Some(bytes @ 1..) = facts
        .memory
        .swap_bytes
        .filter(|_| input.tuning.thp_madvise.value)
    {
        builder.not_planned(
            "memory.swap",
            format!(
                "{} MiB of swap are enabled; turning swap off may end programs whose memory is in it",
                bytes >> 20
            ),
            "swapoff -a, and remove the swap entry from /etc/fstab; or lock the program's memory (mlockall)",
        );
    }
    limits(input, builder);
}

fn limits(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    if !input.tuning.realtime_limits.value {
        builder.not_planned(
            "rights.limits",
            "a profile does not decide who may use real-time priorities and lock memory",
            "realtime_limits = true in [tune] gives these rights to the group realtime; for a service: \
             LimitRTPRIO=80, LimitMEMLOCK=infinity",
        );
        return;
    }
    builder.document(
        "rights.limits",
        Document::RealtimeLimits,
        Rationale::of_all(
            "executors can use real-time priorities and locked memory without being root",
            "from their next login on, members of the group realtime can occupy a core",
        ),
    );
}

pub(super) const IRQBALANCE: &str = "irqbalance";
/// Services that change settings which plans set, too: process name, full name, remedy.
const OTHERS: [(&str, &str, &str); 2] = [
    (
        "tuned",
        "tuned",
        "isolane tune export --format tuned makes a TuneD profile of the plan; or: systemctl disable --now tuned",
    ),
    (
        // Name as `/proc` truncates it.
        "power-profiles-",
        "power-profiles-daemon",
        "systemctl disable --now power-profiles-daemon",
    ),
];

pub(super) fn plan_services(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    if !input.tuning.services.value {
        return;
    }
    for (shown, name, remedy) in OTHERS {
        if input.facts.runs(shown) {
            builder.not_planned(
                format!("services.{name}"),
                format!("{name} runs, and may undo steps of this plan at any time"),
                remedy,
            );
        }
    }
    let Some(core) = input.core().filter(|_| input.facts.runs(IRQBALANCE)) else {
        return;
    };
    if input.facts.boot.has_systemd != Some(true) {
        builder.not_planned(
            "services.irqbalance",
            "irqbalance runs, and was not started by systemd, so isolane cannot configure it by a file",
            format!("end irqbalance, or start it with IRQBALANCE_BANNED_CPULIST={core}"),
        );
        return;
    }
    builder.document(
        "services.irqbalance",
        Document::IrqbalanceBannedCpus { core },
        Rationale::of_all(
            format!(
                "every ten seconds irqbalance moves interrupts, also to core {core}, and undoes their affinities"
            ),
            "irqbalance uses only the other cores; it also moves the critical queue's interrupt there, unless \
             --banirq excludes it; the step takes effect after systemctl daemon-reload and a restart of irqbalance, \
             or after a boot; the same variable in /etc/default/irqbalance or /etc/sysconfig/irqbalance has \
             precedence",
        ),
    );
}

const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

pub(super) fn plan_sockets(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    if input.tuning.receive_buffers.value {
        buffers(input, builder);
    }
    if input.tuning.reserved_ports.value {
        ports(input, builder);
    }
    if !input.tuning.deferred_interrupts.value && !input.needs.spins {
        let has = input.facts.network.busy_read_us.unwrap_or(0);
        builder.attribute(
            "sockets.busy-read",
            "/proc/sys/net/core/busy_read",
            "0",
            Rationale::of_all(
                format!("each read of a socket first polls the device for {has} us, also on critical cores"),
                "programs that benefit from polling have one more interrupt for each read",
            ),
        );
    }
}

/// Plans receive buffers that hold all datagrams of a stall.
fn buffers(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    let Some((level, datagrams)) = input.needs.waiting_datagrams else {
        return;
    };
    let wanted =
        (datagrams * KERNEL_BYTES_PER_DATAGRAM * 100 / BUFFER_PERCENT).next_multiple_of(4096);
    let network = &input.facts.network;
    let topics: Vec<String> = input
        .needs
        .topics
        .iter()
        .filter(|topic| topic.is_received && topic.level == level)
        .map(|topic| topic.name.clone())
        .collect();
    for (id, path, has) in [
        (
            "sockets.buffer-most",
            "/proc/sys/net/core/rmem_max",
            network.rmem_max_bytes,
        ),
        (
            "sockets.buffer",
            "/proc/sys/net/core/rmem_default",
            network.rmem_default_bytes,
        ),
    ] {
        if has.is_none_or(|has| has >= wanted) {
            continue;
        }
        builder.attribute(
            id,
            path,
            wanted.to_string(),
            Rationale::of(
                &topics,
                format!(
                    "at level {level}, up to {datagrams} datagrams arrive within {} ms, and the kernel drops those \
                     that do not fit",
                    STALL_US / 1000
                ),
                "every socket may use as much kernel memory",
            ),
        );
    }
}

/// Reserves ports of described participants that are in the ephemeral range.
fn ports(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    let network = &input.facts.network;
    let Some((first, last)) = network.local_ports else {
        return;
    };
    let mut reserved = network.reserved_ports.clone();
    for place in &input.needs.participants {
        let (from, to) = (place.ports.start, place.ports.end - 1);
        if from <= last && first <= to {
            reserved.push((from, to));
        }
    }
    let reserved = merged(reserved);
    builder.attribute(
        "sockets.ports",
        RESERVED,
        range_list(&reserved),
        Rationale::of_all(
            format!("the kernel assigns ports {first} to {last} to programs that request no particular port: a \
                     described participant may find one of its ports taken, and cannot start"),
            "other programs do not get these ports",
        ),
    );
}

/// Merges ranges into the kernel's form: ascending, without overlapping or adjacent ones.
fn merged(mut ranges: Vec<(u16, u16)>) -> Vec<(u16, u16)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u16, u16)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if u32::from(first) <= u32::from(*end) + 1 => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::merged;

    #[test]
    fn ranges_that_touch_become_one() {
        assert_eq!(
            merged(vec![(9, 9), (1, 3), (4, 5), (2, 3), (u16::MAX, u16::MAX)]),
            [(1, 5), (9, 9), (u16::MAX, u16::MAX)]
        );
    }
}
