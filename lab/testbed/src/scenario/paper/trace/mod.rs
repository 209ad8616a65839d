//! Why round trips took as long as they did: what the kernel says it did meanwhile, for all trips of a cell and
//! for its slowest.

mod line;
mod rounds;

use std::fs;
use std::path::Path;

use isolane_bench::namespace::Host;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cell::{self, Cell, Extent};
use super::{guest, measure, table, tuning};
use crate::Bench;
use crate::scenario::Scenario;
use isolane_support::Result;

use rounds::{Round, Share, rounds, shares};

/// Whose time it was.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "trace",
    shows: "whose time round trips by a lane take, without and beside the flood: where a miss comes from",
    run,
    inside,
};

/// The kernel's tracing, as the first process mounts it.
const FOLDER: &str = "/sys/kernel/tracing";
/// What is recorded: who runs, interrupts, receive work, and when a round trip begins. Each event takes
/// instructions, so there are no more than it takes to tell whose time it was.
const EVENTS: [&str; 4] = [
    "sched/sched_waking",
    "sched/sched_switch",
    "irq/irq_handler_entry",
    "napi/napi_poll",
];
/// Recorded in a cell of its own, with who waits: stacks take more instructions than everything else.
const LOCKS: &str = "lock/contention_begin";
const FILTERS: [(&str, &str); 1] = [("sched/sched_waking", "comm == \"publisher\"")];
/// Memory for a cell beside the flood.
const BUFFER_KIB: u32 = 196_608;
/// What the slowest are, of a thousand: as many as lie beyond the p99.9 of a cell, and a few more to judge by.
const SLOWEST_PER_MILLE: usize = 5;

/// What a cell's trace says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Account {
    /// On average in a round trip: all, and the slowest.
    pub(super) all: Vec<Share>,
    pub(super) slow: Vec<Share>,
    /// What happened in the slowest of all.
    pub(super) slowest: Vec<String>,
}

/// A cell by a lane, with what the kernel did in it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Traced {
    pub(super) is_disturbed: bool,
    /// With the locks that were waited for.
    pub(super) with_locks: bool,
    pub(super) p99_9_us: f64,
    pub(super) max_us: f64,
    pub(super) account: Account,
}

/// Boots once: recording takes instructions too, so nothing here is compared.
fn run(bench: &Bench) -> Result<bool> {
    let told = guest(bench.first_seed, "traced", &[SCENARIO.name]).run(&bench.machine)?;
    let cells: Vec<Traced> = serde_json::from_value(told)?;
    print!("{}", table::of_traced(&cells));
    bench.report(&cells)?;
    Ok(true)
}

fn inside(_: &[String]) -> Result<Value> {
    let hosts = measure::hosts()?;
    for host in Host::BOTH {
        tuning::apply(&hosts, host, None)?;
    }
    let mut cells = Vec::new();
    for (is_disturbed, with_locks) in [(false, false), (true, false), (true, true)] {
        let cell = Cell {
            path: cell::Path::LaneTuned,
            is_disturbed,
        };
        start(with_locks)?;
        let (result, rtt_ns) = measure::cell(&hosts, cell, Extent::Whole)?;
        cells.push(Traced {
            is_disturbed,
            with_locks,
            p99_9_us: result.p99_9_us,
            max_us: result.max_us,
            account: account(&rtt_ns)?,
        });
    }
    Ok(serde_json::to_value(cells)?)
}

/// Begins to record.
fn start(with_locks: bool) -> Result<()> {
    write("buffer_size_kb", &BUFFER_KIB.to_string())?;
    // As the round trips are measured.
    write("trace_clock", "mono")?;
    for event in EVENTS {
        write(&format!("events/{event}/enable"), "1")?;
    }
    if with_locks {
        write(&format!("events/{LOCKS}/trigger"), "stacktrace")?;
        write(&format!("events/{LOCKS}/enable"), "1")?;
    }
    for (event, filter) in FILTERS {
        write(&format!("events/{event}/filter"), filter)?;
    }
    write("trace", "")?;
    write("tracing_on", "1")
}

/// Ends it, and says where these round trips' time went.
fn account(rtt_ns: &[u64]) -> Result<Account> {
    write("tracing_on", "0")?;
    let text = fs::read_to_string(Path::new(FOLDER).join("trace"))?;
    write("trace", "")?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut rounds = rounds(&lines, rtt_ns);
    if rounds.len() < rtt_ns.len() {
        let (told, made) = (rounds.len(), rtt_ns.len());
        return Err(format!("the trace tells of {told} round trips, not of {made}").into());
    }
    rounds.sort_by_key(|round| std::cmp::Reverse(round.took_ns));
    let slow = &rounds[..(rounds.len() * SLOWEST_PER_MILLE).div_ceil(1_000)];
    let slowest = slow.first().map(Round::lines).unwrap_or_default();
    Ok(Account {
        all: shares(&rounds),
        slow: shares(slow),
        slowest: slowest.iter().map(|line| line.trim().to_owned()).collect(),
    })
}

fn write(file: &str, text: &str) -> Result<()> {
    let path = Path::new(FOLDER).join(file);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()).into())
}
