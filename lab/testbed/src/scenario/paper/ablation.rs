//! `ablation`: round trips by a lane under the flood, with the full host set-up, and without one measure at a time.
//! Other receive modes are measured with and without the flood. Each seed takes one boot.
//!
//! The guest configures its hosts itself (`apply`); the scenario `tune` shows the same through `isolane tune`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use isolane_bench::namespace::{Host, TestHosts};
use isolane_bench::report::Stage;
use isolane_bench::scenario::plan;
use isolane_bench::scenario::rtt::Config;
use isolane_support::Result;
use rustix::mount::{MountFlags, mount};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cell::{self, Cell, Extent};
use super::{guest, hosts, measure};
use crate::Bench;
use crate::inside::tools;
use crate::scenario::Scenario;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "ablation",
    shows: "the lane under the flood, without one part of its set-up at a time, and other ways to receive",
    run,
    inside,
};

/// Change to the lane's set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Variant {
    /// Unchanged.
    Full,
    /// Without one [`Measure`].
    Without(Measure),
    /// Without budgets for other traffic.
    WithoutBudgets,
    /// One AF_XDP socket for all levels.
    WithoutLanes,
    /// Kernel sockets: no demultiplexing before the kernel's stack.
    WithoutXdp,
    /// A separate transmit queue for ordinary-priority frames.
    TransmitQueues,
    /// NAPI deferred by a timer (`napi_defer_hard_irqs`, `gro_flush_timeout`): interrupts only after two empty polls.
    DeferredInterrupts,
    /// Busy polling by the threads that wait for frames.
    BusyPoll,
    NapiThreads,
}

/// Device attributes in sysfs, each with its value during the variant and afterwards.
type Files = &'static [[&'static str; 3]];

impl Variant {
    fn all() -> Vec<Variant> {
        let without = Measure::ALL.map(Variant::Without);
        let mut all = vec![Variant::Full];
        all.extend(without);
        all.extend([
            Variant::WithoutBudgets,
            Variant::WithoutLanes,
            Variant::WithoutXdp,
            Variant::DeferredInterrupts,
            Variant::BusyPoll,
            Variant::NapiThreads,
            // This variant is last, because it changes the device's queues.
            Variant::TransmitQueues,
        ]);
        all
    }

    fn name(self) -> String {
        match self {
            Variant::Full => "all of it".into(),
            Variant::Without(measure) => format!("without: {}", measure.name()),
            Variant::WithoutBudgets => "without: budgets for foreign traffic".into(),
            Variant::WithoutLanes => "without: a lane for each level (one for all)".into(),
            Variant::WithoutXdp => "without: AF_XDP (kernel sockets)".into(),
            Variant::TransmitQueues => "with: two transmit queues (mqprio)".into(),
            Variant::DeferredInterrupts => "with: deferred interrupts".into(),
            Variant::BusyPoll => "with: busy polling".into(),
            Variant::NapiThreads => "with: NAPI threads (60)".into(),
        }
    }

    /// Loads under which the variant runs, true for the flood. Other receive modes run with and without the flood.
    fn loads(self) -> &'static [bool] {
        match self {
            Variant::Full
            | Variant::WithoutXdp
            | Variant::DeferredInterrupts
            | Variant::BusyPoll
            | Variant::NapiThreads => &[false, true],
            _ => &[true],
        }
    }

    fn path(self) -> cell::Path {
        match self {
            Variant::WithoutXdp => cell::Path::SocketsTuned,
            _ => cell::Path::LaneTuned,
        }
    }

    fn config(self, cell: Cell) -> Config {
        let config = cell.config(Extent::Whole);
        let left_out = match self {
            Variant::WithoutBudgets => Stage::Budgets,
            Variant::WithoutLanes => Stage::Lanes,
            _ => return config,
        };
        let mut scenario = config.scenario.clone();
        scenario.stages.retain(|&stage| stage != left_out);
        let changed = plan::in_place(config.place, scenario, config.seconds);
        Config {
            flood: config.flood,
            ..changed
        }
    }

    /// Command lines for each device, before the lane is attached.
    fn lines(self) -> &'static [&'static str] {
        match self {
            Variant::TransmitQueues => &[
                "ethtool --set-channels {} combined 2",
                // All frames are received on the lane's queue.
                "ethtool --set-rxfh-indir {} equal 1",
                "tc qdisc replace dev {} root mqprio num_tc 2 map 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
                 queues 1@0 1@1 hw 0",
            ],
            _ => &[],
        }
    }

    fn files(self) -> Files {
        match self {
            Variant::DeferredInterrupts => &[
                ["napi_defer_hard_irqs", "2", "0"],
                // 50 us.
                ["gro_flush_timeout", "50000", "0"],
            ],
            Variant::NapiThreads => &[["threaded", "1", "0"]],
            _ => &[],
        }
    }
}

/// Kernel settings (sysctl) for busy polling, in microseconds.
const BUSY_POLL: [&str; 2] = [
    "/proc/sys/net/core/busy_poll",
    "/proc/sys/net/core/busy_read",
];
const BUSY_POLL_US: &str = "50";

/// Result of a variant.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    variant: Variant,
    result: cell::Result,
}

#[derive(Debug, Serialize)]
struct Seed {
    seed: u64,
    rows: Vec<Row>,
}

fn run(bench: &Bench) -> Result<bool> {
    let mut seeds = Vec::new();
    for seed in bench.first_seed..bench.first_seed + bench.seeds {
        let result = guest(seed, "ablation", &[SCENARIO.name]).run(&bench.machine)?;
        let seed = Seed {
            seed,
            rows: serde_json::from_value(result)?,
        };
        print!("{}", table(&seed));
        seeds.push(seed);
    }
    bench.report(&seeds)?;
    let mut rows = seeds.iter().flat_map(|seed| &seed.rows);
    Ok(rows.all(|row| row.result.run.invalid.is_none()))
}

fn inside(_: &[String]) -> Result<Value> {
    let hosts = hosts()?;
    for host in Host::BOTH {
        mount_settings(&hosts, host)?;
    }
    let mut rows = Vec::new();
    for variant in Variant::all() {
        let without = match variant {
            Variant::Without(measure) => Some(measure),
            _ => None,
        };
        for host in Host::BOTH {
            apply(&hosts, host, without)?;
            for line in variant.lines() {
                on_device(&hosts, host, line)?;
            }
        }
        for &is_disturbed in variant.loads() {
            let cell = Cell {
                path: variant.path(),
                is_disturbed,
            };
            let config = variant.config(cell);
            let set_up = || set_up(variant);
            let (result, _) = measure(&hosts, cell, &config, set_up)?;
            undo(variant)?;
            eprintln!(
                "{:?} {is_disturbed} {:.1} {:.1} {:.1}",
                variant, result.median_us, result.p99_9_us, result.max_us
            );
            rows.push(Row { variant, result });
        }
    }
    Ok(serde_json::to_value(rows)?)
}

/// Settings that are applied after the lanes are attached.
fn set_up(variant: Variant) -> Result<()> {
    for host in Host::BOTH {
        for [file, value, _] in variant.files() {
            write_setting(host, file, value)?;
        }
        if variant != Variant::Without(Measure::ThreadOrder) {
            order_threads(host)?;
        }
        if variant == Variant::NapiThreads {
            order_napi_threads(host)?;
        }
    }
    if variant == Variant::BusyPoll {
        set_busy_poll(BUSY_POLL_US)?;
    }
    Ok(())
}

/// Restores the settings.
fn undo(variant: Variant) -> Result<()> {
    for host in Host::BOTH {
        for [file, _, value] in variant.files() {
            write_setting(host, file, value)?;
        }
    }
    if variant == Variant::BusyPoll {
        set_busy_poll("0")?;
    }
    Ok(())
}

fn set_busy_poll(us: &str) -> Result<()> {
    BUSY_POLL.iter().try_for_each(|file| write(file, us))
}

/// Folder of a host's devices: sysfs shows the devices of the namespace in which it was mounted.
fn settings(host: Host) -> String {
    format!("/run/{}", host.interface())
}

fn mount_settings(hosts: &TestHosts, host: Host) -> Result<()> {
    let folder = settings(host);
    fs::create_dir_all(&folder)?;
    let mounted = hosts.run(host, || {
        mount("sysfs", &folder, "sysfs", MountFlags::empty(), None)
    })?;
    mounted.map_err(|error| format!("cannot mount {folder}: {error}").into())
}

fn write_setting(host: Host, file: &str, value: &str) -> Result<()> {
    let interface = host.interface();
    write(
        format!("{}/class/net/{interface}/{file}", settings(host)),
        value,
    )
}

fn write(file: impl AsRef<Path>, value: &str) -> Result<()> {
    let file = file.as_ref();
    fs::write(file, value).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Table of a seed, relative to the full set-up under the same load.
fn table(seed: &Seed) -> String {
    let mut text = format!(
        "seed {}, microseconds\n{:52} {:>5} {:>8} {:>8} {:>8} {:>12} {:>8}\n",
        seed.seed, "", "flood", "median", "p99.9", "max", "p99.9/full", "max/full"
    );
    for row in &seed.rows {
        let result = &row.result;
        let is_disturbed = result.cell.is_disturbed;
        let mut rows = seed.rows.iter().filter(|row| row.variant == Variant::Full);
        let full = rows.find(|row| row.result.cell.is_disturbed == is_disturbed);
        let over = |of: fn(&cell::Result) -> f64| {
            full.map_or(f64::NAN, |full| of(result) / of(&full.result))
        };
        let _ = writeln!(
            text,
            "{:52} {:>5} {:>8.1} {:>8.1} {:>8.1} {:>12.2} {:>8.2}{}",
            row.variant.name(),
            if is_disturbed { "yes" } else { "no" },
            result.median_us,
            result.p99_9_us,
            result.max_us,
            over(|result| result.p99_9_us),
            over(|result| result.max_us),
            result
                .run
                .invalid
                .as_ref()
                .map_or(String::new(), |reason| format!("  INVALID: {reason}"))
        );
    }
    text
}

/// Measure of the host set-up, with its reason.
///
/// With one processor the driver has one queue for all frames in both directions, so there is nothing to steer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// An interrupt for each frame, without coalescing.
    PromptInterrupts,
    /// Without GRO: no frame waits to be merged with others.
    NoMerging,
    /// One FIFO queueing discipline, without fairness between flows, as in Meszlényi et al.
    PlainQueue,
    /// Receive threads above transmit-completion threads ([`RECEIVE_PRIORITY`]).
    ThreadOrder,
}

impl Measure {
    pub(super) const ALL: [Measure; 4] = [
        Measure::PromptInterrupts,
        Measure::NoMerging,
        Measure::PlainQueue,
        Measure::ThreadOrder,
    ];

    /// Name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Measure::PromptInterrupts => "interrupts at once (rx-usecs 0, not 3)",
            Measure::NoMerging => "no merging of frames (gro off)",
            Measure::PlainQueue => "a plain transmit queue (pfifo, not fq_codel)",
            Measure::ThreadOrder => "receive threads first (60, not 50)",
        }
    }

    /// Command line that applies the measure to a device, `{}`, and the one that restores the device.
    fn lines(self) -> Option<[&'static str; 2]> {
        match self {
            Measure::PromptInterrupts => Some([
                "ethtool --coalesce {} rx-usecs 0",
                "ethtool --coalesce {} rx-usecs 3",
            ]),
            Measure::NoMerging => Some([
                "ethtool --offload {} gro off",
                "ethtool --offload {} gro on",
            ]),
            Measure::PlainQueue => Some([
                "tc qdisc replace dev {} root pfifo",
                "tc qdisc replace dev {} root fq_codel",
            ]),
            Measure::ThreadOrder => None,
        }
    }
}

/// Priority of receive threads: above transmit-completion threads (50, as all interrupt threads), which no one waits
/// for, and below the applications (70). In a trace, each round trip waited for transmit-completion threads of both
/// hosts before its reply was received, and under a flood for more of them. With one queue, no thread serves bulk
/// traffic alone, so none is raised wrongly.
const RECEIVE_PRIORITY: u8 = 60;

/// Configures a host's device, without one of the measures if the variant omits it.
pub(super) fn apply(hosts: &TestHosts, host: Host, without: Option<Measure>) -> Result<()> {
    for measure in Measure::ALL {
        if let Some([with, as_found]) = measure.lines() {
            let line = if without == Some(measure) {
                as_found
            } else {
                with
            };
            on_device(hosts, host, line)?;
        }
    }
    Ok(())
}

/// Runs a command line of the guest's programs in a host's namespace; `{}` is the device.
pub(super) fn on_device(hosts: &TestHosts, host: Host, line: &str) -> Result<String> {
    in_host(hosts, host, &line.replace("{}", host.interface()))
}

/// Sets the priorities of a host's interrupt threads, once the ends run: the driver requests its interrupts anew when a
/// lane is attached or detached, and their threads start with the default priority.
pub(super) fn order_threads(host: Host) -> Result<()> {
    let name = format!("{}-rx-", host.interface());
    let interrupts = fs::read_to_string("/proc/interrupts")?;
    let receive = interrupts_of(&name, &interrupts);
    if receive.is_empty() {
        return Err(format!("there is no interrupt {name}*: {interrupts}").into());
    }
    for interrupt in receive {
        let [thread] = threads_of(&format!("irq/{interrupt}-"))?[..] else {
            return Err(format!(
                "interrupt {interrupt} has no thread: is this a kernel with PREEMPT_RT?"
            )
            .into());
        };
        order(thread)?;
    }
    Ok(())
}

/// Sets the priorities of NAPI threads, under threaded NAPI; the receiving ones come first in the driver's order.
pub(super) fn order_napi_threads(host: Host) -> Result<()> {
    let threads = threads_of(&format!("napi/{}-", host.interface()))?;
    let receive = threads.len() / 2;
    threads[..receive]
        .iter()
        .try_for_each(|&thread| order(thread))
}

fn order(thread: u32) -> Result<()> {
    tools::run("chrt", &format!("--fifo --pid {RECEIVE_PRIORITY} {thread}"))?;
    Ok(())
}

/// Interrupt numbers in `/proc/interrupts` whose names have this prefix.
fn interrupts_of(name: &str, interrupts: &str) -> Vec<u32> {
    let of_name = interrupts.lines().filter(|line| {
        let last = line.split_whitespace().next_back();
        last.is_some_and(|last| last.starts_with(name))
    });
    let numbers = of_name.filter_map(|line| line.split_once(':')?.0.trim().parse().ok());
    numbers.collect()
}

/// Kernel threads whose names have this prefix, in the order of creation.
fn threads_of(name: &str) -> Result<Vec<u32>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let id = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let command = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if let Some(id) = id
            && command.starts_with(name)
        {
            threads.push(id);
        }
    }
    threads.sort_unstable();
    Ok(threads)
}

/// Runs a command line of the guest's programs in a host's namespace.
pub(super) fn in_host(hosts: &TestHosts, host: Host, line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let mut command: Command = tools::program(words.next().unwrap_or_default());
    command.args(words);
    tools::output(hosts.command(host, command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variant_can_be_measured_and_differs_in_one_thing() {
        for variant in Variant::all() {
            let cell = Cell {
                path: variant.path(),
                is_disturbed: true,
            };
            let config = variant.config(cell);
            assert_eq!(config.check(), Ok(()), "{variant:?}");
            let full = Variant::Full.config(cell);
            assert_eq!(config.flood, full.flood);
            let left_out = full.scenario.stages.len() - config.scenario.stages.len();
            let is_of_lanes = matches!(variant, Variant::WithoutBudgets | Variant::WithoutLanes);
            assert_eq!(left_out, usize::from(is_of_lanes), "{variant:?}");
        }
    }

    #[test]
    fn without_budgets_strangers_have_none() {
        let cell = Cell {
            path: cell::Path::LaneTuned,
            is_disturbed: true,
        };
        assert!(!Variant::Full.config(cell).policing.is_off());
        assert!(Variant::WithoutBudgets.config(cell).policing.is_off());
    }

    #[test]
    fn an_interrupt_is_found_by_the_name_of_its_queue() {
        let interrupts = "           CPU0\n 27:  104  PCI-MSIX-0000:01:00.0  1-edge  host-a-rx-0\n \
                          28:  99  PCI-MSIX-0000:01:00.0  2-edge  host-a-tx-0\nNMI:  0  Non-maskable interrupts\n";
        assert_eq!(interrupts_of("host-a-rx-", interrupts), [27]);
        assert_eq!(interrupts_of("host-b-rx-", interrupts), [0; 0]);
    }
}
