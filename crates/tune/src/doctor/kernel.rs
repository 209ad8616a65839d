//! Findings about the kernel, its clock source, memory, and programs that move work.

use super::Findings;
use crate::facts::Facts;

/// Clock sources that are read without a device or hypervisor access.
const FAST_CLOCKS: [&str; 3] = ["tsc", "arch_sys_counter", "riscv_clocksource"];

/// Programs that set the clock, by process name (15 bytes).
const TIME_KEEPERS: [&str; 5] = ["chronyd", "ntpd", "systemd-timesyn", "ptp4l", "phc2sys"];

/// Programs that set up devices and cores: process name (15 bytes) and full name.
const MANAGERS: [(&str, &str); 4] = [
    ("NetworkManager", "NetworkManager"),
    ("systemd-network", "systemd-networkd"),
    ("tuned", "TuneD"),
    ("power-profiles-", "power-profiles-daemon"),
];

pub(super) fn examine(facts: &Facts, findings: &mut Findings) {
    realtime(facts, findings);
    clock(facts, findings);
    time_keeping(facts, findings);
    memory(facts, findings);
    programs(facts, findings);
}

fn realtime(facts: &Facts, findings: &mut Findings) {
    let release = &facts.kernel.release;
    match facts.kernel.realtime {
        Some(true) => findings.ok("kernel.realtime", format!("kernel {release} is PREEMPT_RT")),
        Some(false) => findings.warn(
            "kernel.realtime",
            format!("kernel {release} is not PREEMPT_RT"),
            "a critical sample waits until the kernel has finished its present work: usually tens of microseconds, \
             behind heavy receive work milliseconds, and no bound can be stated; in two runs of an emulated machine, \
             the latest of 4,000 wake-ups under load came 862 us and 1,218 us late; with PREEMPT_RT, 26 us and 30 us",
            "install a PREEMPT_RT kernel (Debian: apt install linux-image-rt-amd64) and boot it",
        ),
        None => findings.info(
            "kernel.realtime",
            format!("cannot determine whether kernel {release} is PREEMPT_RT"),
            "without PREEMPT_RT no bound can be stated",
            "look for PREEMPT_RT in: uname -v",
        ),
    }
    if facts.kernel.virtual_machine == Some(true) {
        findings.warn(
            "kernel.virtual-machine",
            "this is a virtual machine",
            "the hypervisor takes cores away for milliseconds, whatever is set in this machine; maxima measured here \
             are the hypervisor's",
            "to state bounds, run on hardware; or pin virtual cores to physical ones on the host and keep other \
             guests off them",
        );
    }
}

fn clock(facts: &Facts, findings: &mut Findings) {
    match facts.kernel.clocksource.as_deref() {
        Some(source) if FAST_CLOCKS.contains(&source) => {
            findings.ok("kernel.clocksource", format!("the kernel's clock source is {source}"));
        }
        Some(source) => findings.warn(
            "kernel.clocksource",
            format!("the kernel's clock source is {source}"),
            "each read of the clock accesses a device or the hypervisor: 0.5 to several microseconds, \
             a few times per sample",
            "find out why the kernel gave up tsc (dmesg | grep -i clocksource); if the hardware is sound, boot with \
             tsc=reliable clocksource=tsc",
        ),
        None => {}
    }
}

/// Checks whether a program synchronises the clock. Else source time stamps of different hosts cannot be compared.
fn time_keeping(facts: &Facts, findings: &mut Findings) {
    let keepers = TIME_KEEPERS.into_iter().filter(|name| facts.runs(name));
    let keepers: Vec<&str> = keepers.collect();
    if keepers.is_empty() {
        findings.info(
            "kernel.time-keeping",
            "no program that sets the clock is running",
            "clocks of different hosts drift apart, so source timestamps and one-way delays between hosts mean \
             nothing; round trips are correct",
            "run chrony; or linuxptp (ptp4l and phc2sys), if the interface timestamps frames in hardware",
        );
    } else {
        findings.ok(
            "kernel.time-keeping",
            format!("the clock is set by {}", keepers.join(", ")),
        );
    }
    if facts.kernel.clock_is_synchronised == Some(false) {
        findings.info(
            "kernel.clock-error",
            "the kernel reports its clock as unsynchronised",
            "one-way delays between hosts mean nothing, because clocks drift apart by up to 100 us a second; round \
             trips are correct",
            match facts.runs("chronyd") {
                true => {
                    "wait until chrony has found its source; without the line rtcsync in chrony.conf, chrony never \
                     reports to the kernel that the clock is synchronised"
                }
                false => "run chrony, or linuxptp, and wait until it has found its source",
            },
        );
    }
}

fn memory(facts: &Facts, findings: &mut Findings) {
    match facts.memory.swap_bytes {
        Some(0) => findings.ok("memory.swap", "no swap is enabled"),
        Some(bytes) => findings.warn(
            "memory.swap",
            format!("{} MiB of swap are enabled", bytes >> 20),
            "reading a swapped-out page takes milliseconds when a critical job touches it",
            "swapoff -a, and remove the swap entry from /etc/fstab; or lock the program's memory (mlockall)",
        ),
        None => {}
    }
    if facts.memory.transparent_huge_pages.as_deref() == Some("always") {
        findings.info(
            "memory.huge-pages",
            "transparent huge pages are on for all programs",
            "now and then a page fault copies 2 MiB, which takes some 100 microseconds; isolane allocates its memory \
             in advance, but other parts of a program may not",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        );
    } else if let Some(setting) = &facts.memory.transparent_huge_pages {
        findings.ok(
            "memory.huge-pages",
            format!("transparent huge pages: {setting}"),
        );
    }
}

fn programs(facts: &Facts, findings: &mut Findings) {
    if facts.runs("irqbalance") {
        findings.warn(
            "programs.irqbalance",
            "irqbalance is running",
            "irqbalance moves interrupts between cores every ten seconds, also to the executor's core: tens of \
             microseconds for each interrupt there; it also undoes affinities that were set by hand",
            "systemctl disable --now irqbalance; or exclude the executor's core (IRQBALANCE_BANNED_CPULIST in \
             /etc/default/irqbalance) and a critical queue's interrupt (IRQBALANCE_ARGS=\"--banirq=NUMBER\")",
        );
    } else {
        findings.ok("programs.irqbalance", "irqbalance is not running");
    }
    let there = MANAGERS.iter().filter(|(shown, _)| facts.runs(shown));
    let names: Vec<&str> = there.map(|(_, name)| *name).collect();
    if !names.is_empty() {
        findings.info(
            "programs.managers",
            format!("{} may change settings of devices and cores", names.join(", ")),
            "they may undo other programs' settings when they start or when a link comes up; latency is then the same \
             as before tuning",
            "check: isolane tune status; watch: isolane tune verify --watch; TuneD can use a plan as its profile: isolane \
             tune export --format tuned",
        );
    }
}
