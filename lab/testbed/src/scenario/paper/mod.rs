//! `paper`: the scenario of Meszlényi et al. (*Towards Timing Isolation for Mixed-Criticality Communication in
//! Software-Defined Vehicles*) in a machine in which every instruction takes the same time. Two hosts, each with a
//! device on one hub, share the guest's one processor. One boot measures round trips of critical samples by sockets and
//! by lanes: without load, and with a busy loop and a flood in each direction.
//!
//! A seed determines the samples to the bit: each seed is booted twice, and both results are compared in full.
//!
//! `ablation` measures round trips by a lane under the flood in the same way: with the full host set-up, and without one
//! part at a time. Other receive modes are measured with and without the flood. Each seed is booted once.
//!
//! The files of both are in `lab/testbed/scenarios`.

mod cell;
mod set_up;
mod table;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{slice, thread};

use isolane_bench::child::Program;
use isolane_bench::experiment::Load;
use isolane_bench::namespace::{Host, TestHosts, TestHostsConfig};
use isolane_bench::report::Environment;
use isolane_bench::scenario::rtt;
use isolane_support::Result;
use serde_json::Value;

use super::{Scenario, failed};
use crate::Bench;
use crate::guest::{Guest, Network, Started, Time};
use crate::inside::tools::{self, Counters};
use crate::inside::{appeared, never_rest, wait_until};
use cell::{Cell, Experiment, Measured};
use set_up::{SetUp, in_host, mount_attributes};
use table::Seed;

const PAPER: &str = include_str!("../../../scenarios/paper.toml");
const BRIEF: &str = include_str!("../../../scenarios/brief.toml");
const ABLATION: &str = include_str!("../../../scenarios/ablation.toml");

pub(super) const SCENARIO: Scenario = Scenario {
    name: "paper",
    shows: "what a flood and a busy loop do to round trips by sockets and by lanes, exactly repeatable",
    run: |bench| run(bench, "paper", PAPER),
    inside: |_| inside(PAPER),
};

/// Short form of the scenario for `cargo xtask test --all`.
pub(super) const IN_BRIEF: Scenario = Scenario {
    name: "brief",
    shows: "the same with only the three compared cells, one second each",
    run: |bench| run(bench, "brief", BRIEF),
    inside: |_| inside(BRIEF),
};

pub(super) const ABLATED: Scenario = Scenario {
    name: "ablation",
    shows: "the lane under the flood, without one part of its set-up at a time, and other ways to receive",
    run: |bench| run(bench, "ablation", ABLATION),
    inside: |_| inside(ABLATION),
};

/// Timeout of a boot. It takes two to four minutes on an idle machine, and many times that on a busy one.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Boots all seeds, and prints a table of each on standard error and the result on standard output.
fn run(bench: &Bench, name: &str, file: &str) -> Result<bool> {
    let experiment = Experiment::parse(file)?;
    let began = Environment::probe();
    let mut seeds = Vec::new();
    for seed in bench.seeds() {
        let start = Instant::now();
        // The boots run concurrently, because a boot's result does not depend on the machine's load.
        let guests = (1..=experiment.boots.get()).map(|boot| guest(name, seed, boot));
        let guests: Vec<Guest> = guests.collect();
        let started = guests.iter().map(|guest| guest.start(&bench.machine));
        let started = started.collect::<Result<Vec<Started<'_>>>>()?;
        let results = started.into_iter().map(Started::finish);
        let results = results.collect::<Result<Vec<Value>>>()?;
        let seed = Seed {
            seed,
            is_repeatable: results.iter().all(|result| *result == results[0]),
            cells: serde_json::from_value(results[0].clone())?,
        };
        let seconds = start.elapsed().as_secs();
        let of_seed = table::text(&experiment, slice::from_ref(&seed));
        eprintln!("{of_seed}seed {} took {seconds} s\n", seed.seed);
        seeds.push(seed);
    }
    let faults: Vec<String> = seeds.iter().flat_map(Seed::faults).collect();
    let repeated = seeds.iter().filter(|seed| seed.is_repeatable).count();
    let repeatable = match experiment.boots.get() {
        1 => String::new(),
        boots => format!(
            "\n{repeated} of {} seeds had the same result in {boots} boots\n",
            seeds.len()
        ),
    };
    let text = table::text(&experiment, &seeds) + &repeatable + &failed(&faults);
    bench.publish(
        (&experiment.title, &experiment.about),
        (&began, file),
        &text,
        &seeds,
    )?;
    Ok(faults.is_empty())
}

/// A guest with the two devices and instruction counting.
fn guest(name: &str, seed: u64, boot: usize) -> Guest {
    Guest {
        name: format!("{name}-{seed}-{boot}"),
        task: vec![name.to_owned()],
        time: Time::Counted { seed },
        network: Network::Hub { devices: 2 },
        processors: 1,
        patience: PATIENCE,
    }
}

fn inside(file: &str) -> Result<Value> {
    let experiment = Experiment::parse(file)?;
    let hosts = hosts()?;
    let mut results = Vec::new();
    let mut applied = None;
    for cell in &experiment.cells {
        let set_up = &cell.set_up;
        if applied.replace(&set_up.name) != Some(&set_up.name) {
            set_up.apply(&hosts, &experiment.tuned)?;
        }
        let result = measure(&hosts, cell)?;
        eprintln!(
            "{}: {:.1} us, {:?}",
            set_up.name, result.median_us, result.run.invalid
        );
        results.push(result);
    }
    Ok(serde_json::to_value(results)?)
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
/// Timeout for the carrier of newly configured devices.
const LINK_PATIENCE: Duration = Duration::from_secs(10);

/// Both hosts, configured to reach each other, on a processor that never idles.
fn hosts() -> Result<TestHosts> {
    never_rest()?;
    for device in DEVICES {
        appeared(&Path::new("/sys/class/net").join(device))?;
    }
    let hosts = TestHosts::of_devices(DEVICES, &TestHostsConfig::default())?;
    for host in Host::BOTH {
        let line = format!("ip link show {}", host.interface());
        let failure = format!("{} has no link", host.interface());
        wait_until(&failure, LINK_PATIENCE, || {
            Ok(in_host(&hosts, host, &line)?.contains("LOWER_UP"))
        })?;
        mount_attributes(&hosts, host)?;
    }
    Ok(hosts)
}

/// Measures a cell.
fn measure(hosts: &TestHosts, cell: &Cell) -> Result<Measured> {
    let before = counters(hosts)?;
    let is_over = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        if cell.disturbance != Load::None {
            scope.spawn(|| busy_loop(&is_over));
        }
        let (program, config) = (program_of(&cell.set_up), cell.config());
        let outcome = rtt::run_between_prepared_hosts(hosts, &program, &config, || {
            cell.set_up.begin().map_err(|error| error.to_string())
        });
        is_over.store(true, Ordering::Relaxed);
        outcome
    })?;
    cell.set_up.end()?;
    let after = counters(hosts)?;
    let frames = [0, 1].map(|host| tools::between(&before[host], &after[host]));
    Ok(Measured::of(cell, outcome, frames))
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

fn program_of(set_up: &SetUp) -> Program {
    match set_up.real_time {
        true => Program::new(PRODUCT, &[CHILD]),
        false => Program::new(ORDINARY, &[&WITHOUT_RIGHT[..], &[PRODUCT, CHILD]].concat()),
    }
}
