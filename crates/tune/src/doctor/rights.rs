//! Findings about the rights of this process, and about scheduler limits on real-time threads.

use super::Findings;
use crate::facts::{Facts, Permission};

/// Remedy that grants file capabilities. `setcap` replaces all capabilities, so every remedy lists all that isolane
/// uses.
const FILE_RIGHTS: &str = "run as root, or: sudo setcap \
                           cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon,cap_sys_nice,cap_ipc_lock+ep \
                           \"$(command -v isolane)\"";

/// Scope of the limits in remedies.
const GROUP: &str = "for members of a group realtime (groupadd realtime; usermod -aG realtime USER) from their next \
                     login on";

/// Scope of the remedies for services.
const AS_SERVICE: &str = "in a systemd service";

pub(super) fn examine(facts: &Facts, findings: &mut Findings) {
    priority(facts, findings);
    memory(facts, findings);
    raw(facts, findings);
    throttling(facts, findings);
}

fn priority(facts: &Facts, findings: &mut Findings) {
    let rights = &facts.rights;
    match (rights.sys_nice, rights.realtime_priority_limit) {
        (Some(true), _) => findings.ok("rights.realtime", "real-time priorities are permitted"),
        (_, Some(limit @ 1..)) => findings.ok(
            "rights.realtime",
            format!("real-time priorities up to {} are permitted", limit.min(99)),
        ),
        (None, _) | (_, None) => {}
        (Some(false), Some(0)) => findings.warn(
            "rights.realtime",
            "real-time priorities (SCHED_FIFO) are not permitted",
            "the executor competes with every program on its core: milliseconds whenever one of \
             them has work",
            format!(
                "run as root; or {GROUP}: echo '@realtime - rtprio 80' >> \
                 /etc/security/limits.d/isolane.conf; {AS_SERVICE}: LimitRTPRIO=80"
            ),
        ),
    }
}

fn memory(facts: &Facts, findings: &mut Findings) {
    let rights = &facts.rights;
    match (rights.ipc_lock, rights.locked_memory_limit_bytes) {
        (Some(true), _) => findings.ok("rights.lock-memory", "memory may be locked"),
        (_, Some(u64::MAX)) => findings.ok("rights.lock-memory", "all memory may be locked"),
        (_, Some(bytes)) => findings.warn(
            "rights.lock-memory",
            format!("only {} KiB of memory may be locked", bytes >> 10),
            "the kernel can evict pages: a critical job that touches an evicted page waits for it, up to milliseconds \
             from a disk",
            format!(
                "run as root; or {GROUP}: echo '@realtime - memlock unlimited' >> \
                 /etc/security/limits.d/isolane.conf; {AS_SERVICE}: LimitMEMLOCK=infinity"
            ),
        ),
        (_, None) => {}
    }
}

fn raw(facts: &Facts, findings: &mut Findings) {
    let rights = &facts.rights;
    match rights.net_raw {
        Some(true) => findings.ok(
            "rights.net-raw",
            "this process may capture frames (`isolane spy`)",
        ),
        Some(false) => findings.info(
            "rights.net-raw",
            "CAP_NET_RAW is missing",
            "no latency; `isolane spy` can read capture files, but not capture from interfaces",
            FILE_RIGHTS,
        ),
        None => {}
    }
    match rights.net_admin {
        Some(true) => findings.ok(
            "rights.net-admin",
            "this process may configure interfaces, and use receive buffers larger than rmem_max",
        ),
        Some(false) => findings.info(
            "rights.net-admin",
            "CAP_NET_ADMIN is missing",
            "sockets get no priority above 6 and no buffer larger than rmem_max; `isolane demo` cannot create its \
             test hosts, which needs root",
            FILE_RIGHTS,
        ),
        None => {}
    }
    match rights.af_xdp {
        Permission::Granted => findings.ok("rights.af-xdp", "the kernel has AF_XDP sockets"),
        Permission::Refused => findings.info(
            "rights.af-xdp",
            "the kernel has AF_XDP sockets, but this process may not open them",
            "no lanes: topics use the kernel's sockets, and share its receive work with all other traffic",
            FILE_RIGHTS,
        ),
        Permission::Absent => findings.info(
            "rights.af-xdp",
            "the kernel has no AF_XDP sockets",
            "no lanes: topics use the kernel's sockets, and share its receive work with all other traffic",
            "use a kernel with CONFIG_XDP_SOCKETS=y",
        ),
        Permission::Unknown => {}
    }
}

fn throttling(facts: &Facts, findings: &mut Findings) {
    let scheduling = &facts.scheduling;
    match (
        scheduling.realtime_runtime_us,
        scheduling.realtime_period_us,
    ) {
        (Some(-1), _) => findings.ok(
            "scheduler.throttling",
            "real-time threads are never throttled (a runaway thread occupies its core for ever)",
        ),
        (Some(runtime), Some(period)) if runtime < period => findings.info(
            "scheduler.throttling",
            format!(
                "real-time threads get {} ms of every {} ms of a core",
                runtime / 1000,
                period / 1000
            ),
            "none while the executor sleeps often enough; an executor that spins at a real-time priority is stopped \
             for the rest of each period",
            "before spinning (Waiting::Spin) at a real-time priority: sysctl -w \
             kernel.sched_rt_runtime_us=-1",
        ),
        _ => {}
    }
    let kept: Vec<u64> = scheduling
        .fair_server_runtime_ns
        .values()
        .copied()
        .filter(|runtime| *runtime > 0)
        .collect();
    if let Some(most) = kept.iter().max() {
        findings.info(
            "scheduler.fair-server",
            format!(
                "the fair server keeps {} ms of each second for ordinary programs",
                most / 1_000_000
            ),
            "only a real-time thread that never sleeps is stopped, for that time",
            "before spinning at a real-time priority, for the executor's core N: echo 0 > \
             /sys/kernel/debug/sched/fair_server/cpuN/runtime",
        );
    } else if !scheduling.fair_server_runtime_ns.is_empty() {
        findings.ok("scheduler.fair-server", "the fair server is off");
    }
}
