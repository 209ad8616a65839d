//! `paper`: the scenario of Meszlényi et al. (*Towards Timing Isolation for Mixed-Criticality Communication in
//! Software-Defined Vehicles*) in a machine in which every instruction takes the same time. Two hosts, each with a
//! device on one hub, share the guest's one processor. One boot measures round trips of critical samples by sockets and
//! by lanes: without load, and with a busy loop and a flood in each direction.
//!
//! A seed determines the samples to the bit: each seed runs twice, and both results are compared in full.

mod ablation;
mod cell;
mod trace;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::child::Program;
use isolane_bench::namespace::{Host, TestHosts, TestHostsConfig};
use isolane_bench::scenario::rtt::{self, Config};
use isolane_support::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Scenario;
use crate::Bench;
use crate::guest::{Guest, Network, Time};
use crate::inside::tools::{self, Counters};
use crate::inside::{appeared, never_rest};
pub(super) use ablation::SCENARIO as ABLATION;
use ablation::in_host;
use cell::{Cell, Extent};
pub(super) use trace::SCENARIO as TRACED;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "paper",
    shows: "what a flood and a busy loop do to round trips by sockets and by lanes, exactly repeatable",
    run,
    inside,
};

/// Short form of the scenario for `cargo xtask test --all`.
pub(super) const IN_BRIEF: Scenario = Scenario {
    name: "brief",
    shows: "the same with only the three compared cells, one second each",
    run: run_in_brief,
    inside,
};

/// Timeout of a boot. It takes two to four minutes on an idle machine, and many times that on a busy one.
const PATIENCE: Duration = Duration::from_secs(3_600);

#[derive(Debug, Serialize)]
struct Seed {
    seed: u64,
    /// True when a second boot gave the same result.
    is_repeatable: bool,
    cells: Vec<cell::Result>,
}

/// Result of a guest.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Boot {
    cells: Vec<cell::Result>,
}

fn run(bench: &Bench) -> Result<bool> {
    measured(bench, Extent::Whole)
}

/// Runs the compared cells for a second each.
fn run_in_brief(bench: &Bench) -> Result<bool> {
    measured(bench, Extent::Brief)
}

fn measured(bench: &Bench, extent: Extent) -> Result<bool> {
    let mut seeds = Vec::new();
    let machine = &bench.machine;
    for seed in bench.first_seed..bench.first_seed + bench.seeds {
        let start = Instant::now();
        // The two boots run concurrently, because a boot's result does not depend on the machine's load.
        let guests =
            ["once", "again"].map(|which| guest(seed, which, &[SCENARIO.name, extent.word()]));
        let [first, second] = [guests[0].start(machine)?, guests[1].start(machine)?];
        let (first, second) = (first.finish()?, second.finish()?);
        let is_repeatable = first == second;
        let cells = serde_json::from_value::<Boot>(first)?.cells;
        let seconds = start.elapsed().as_secs();
        let word = if is_repeatable {
            "the same twice"
        } else {
            "NOT the same twice"
        };
        eprintln!("seed {seed}: {word} ({seconds} s)");
        eprint!("{}", cell::of_seed(&cells));
        seeds.push(Seed {
            seed,
            is_repeatable,
            cells,
        });
    }
    let summary = cell::Summary::of(&seeds);
    eprint!("\n{summary}");
    bench.report(&seeds)?;
    Ok(summary.is_sound())
}

/// A guest with the two devices and instruction counting.
fn guest(seed: u64, which: &str, task: &[&str]) -> Guest {
    Guest {
        name: format!("paper-{seed}-{which}"),
        task: task.iter().map(|&word| word.to_owned()).collect(),
        time: Time::Counted { seed },
        network: Network::Hub { devices: 2 },
        processors: 1,
        patience: PATIENCE,
    }
}

fn inside(task: &[String]) -> Result<Value> {
    let extent = Extent::of(task.first().map(String::as_str)).ok_or("an extent is wanted")?;
    let hosts = hosts()?;
    let mut cells = Vec::new();
    let mut is_tuned = false;
    for cell in extent.cells() {
        if cell.path.is_tuned() && !is_tuned {
            for host in Host::BOTH {
                ablation::apply(&hosts, host, None)?;
            }
            is_tuned = true;
        }
        let (result, _) = measure_cell(&hosts, cell, extent)?;
        eprintln!(
            "{:16} {:5} median {:7.1} p99 {:7.1} p99.9 {:7.1} max {:7.1} lost {} {:?}",
            cell.path,
            cell.is_disturbed,
            result.median_us,
            result.p99_us,
            result.p99_9_us,
            result.max_us,
            result.run.lost,
            result.run.invalid,
        );
        cells.push(result);
    }
    Ok(serde_json::to_value(Boot { cells })?)
}

/// Program whose child processes are the ends of the round trips.
const PRODUCT: &str = "/usr/bin/isolane";
/// Hidden command of those processes.
const CHILD: &str = "child";
/// Wrapper that drops the right to a real-time priority, for an application without any set-up.
const ORDINARY: &str = "/usr/bin/setpriv";
const WITHOUT_RIGHT: [&str; 2] = ["--bounding-set", "-sys_nice"];
/// Iterations of the busy loop between two checks for the end.
const TURNS_A_LOOK: u32 = 10_000;
/// Devices of host A and of host B.
const DEVICES: [&str; 2] = ["eth0", "eth1"];

/// Both hosts, configured to reach each other, on a processor that never idles.
fn hosts() -> Result<TestHosts> {
    never_rest()?;
    for device in DEVICES {
        appeared(&Path::new("/sys/class/net").join(device))?;
    }
    let hosts = TestHosts::of_devices(DEVICES, &TestHostsConfig::default())?;
    wait_for_link(&hosts)?;
    Ok(hosts)
}

/// Waits for the carrier, which newly configured devices lack for a while.
fn wait_for_link(hosts: &TestHosts) -> Result<()> {
    for host in Host::BOTH {
        let line = format!("ip link show {}", host.interface());
        let since = Instant::now();
        while !in_host(hosts, host, &line)?.contains("LOWER_UP") {
            if since.elapsed() > Duration::from_secs(10) {
                return Err(format!("{} has no link", host.interface()).into());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

/// Measures a cell; returns its result, and its round trips in their order.
fn measure_cell(hosts: &TestHosts, cell: Cell, extent: Extent) -> Result<(cell::Result, Vec<u64>)> {
    measure(hosts, cell, &cell.config(extent), || {
        let mut tuned = Host::BOTH.iter().filter(|_| cell.path.is_tuned());
        tuned.try_for_each(|&host| ablation::order_threads(host))
    })
}

/// Measures a cell with another configuration; `set_up` runs once the ends have started.
fn measure(
    hosts: &TestHosts,
    cell: Cell,
    config: &Config,
    set_up: impl FnOnce() -> Result<()>,
) -> Result<(cell::Result, Vec<u64>)> {
    let before = counters(hosts)?;
    let is_over = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        if cell.is_disturbed {
            scope.spawn(|| busy_loop(&is_over));
        }
        let outcome = rtt::run_between_prepared_hosts(hosts, &program_of(cell), config, || {
            set_up().map_err(|error| error.to_string())
        });
        is_over.store(true, Ordering::Relaxed);
        outcome
    })?;
    let after = counters(hosts)?;
    let frames = [0, 1].map(|host| tools::between(&before[host], &after[host]));
    let rtt_ns = outcome.rounds.rtt_ns();
    Ok((cell::Result::of(cell, outcome, frames), rtt_ns))
}

/// Consumes all remaining processor time at the ordinary priority. A spin-loop hint would make the emulator wait, and
/// an emulated second take a minute.
fn busy_loop(is_over: &AtomicBool) {
    let mut turns = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..TURNS_A_LOOK {
            turns = std::hint::black_box(turns + 1);
        }
    }
}

fn counters(hosts: &TestHosts) -> Result<[Counters; 2]> {
    let of = |host: Host| -> Result<Counters> {
        let line = format!("ethtool --statistics {}", host.interface());
        Ok(tools::counters(&in_host(hosts, host, &line)?))
    };
    Ok([of(Host::A)?, of(Host::B)?])
}

fn program_of(cell: Cell) -> Program {
    match cell.path.is_real_time() {
        true => Program::new(PRODUCT, &[CHILD]),
        false => Program::new(ORDINARY, &[&WITHOUT_RIGHT[..], &[PRODUCT, CHILD]].concat()),
    }
}
