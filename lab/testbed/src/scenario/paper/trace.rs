//! `trace`: processor time in round trips, from the kernel's trace, for all round trips of a cell and for its slowest.
//! The trace is cut into round trips, and the time of each is attributed to threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use isolane_bench::namespace::Host;
use isolane_support::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cell::{self, Cell, Extent};
use super::{ablation, guest, hosts, measure_cell};
use crate::Bench;
use crate::scenario::Scenario;

/// Scenario that attributes round trips' time to threads.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "trace",
    shows: "CPU time of each part of a round trip by a lane, undisturbed and under the flood",
    run,
    inside,
};

/// tracefs, as the first process mounts it.
const FOLDER: &str = "/sys/kernel/tracing";
/// Recorded events: context switches, interrupts, receive polls, and the start of a round trip. Each event costs
/// instructions, so only the necessary ones are recorded.
const EVENTS: [&str; 4] = [
    "sched/sched_waking",
    "sched/sched_switch",
    "irq/irq_handler_entry",
    "napi/napi_poll",
];
/// Lock contention, recorded in its own cell with stacks, which cost more instructions than all other events.
const LOCKS: &str = "lock/contention_begin";
const FILTERS: [(&str, &str); 1] = [("sched/sched_waking", "comm == \"publisher\"")];
/// Trace buffer for a cell under the flood.
const BUFFER_KIB: u32 = 196_608;
/// Share of the slowest round trips, per mille: those beyond p99.9, and a few more for comparison.
const SLOWEST_PER_MILLE: usize = 5;

/// Analysis of a cell's trace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Account {
    /// Mean shares in a round trip: of all round trips, and of the slowest.
    pub(super) all: Vec<Share>,
    pub(super) slow: Vec<Share>,
    /// Trace of the slowest round trip.
    pub(super) slowest: Vec<String>,
}

/// A lane's cell with the analysis of its trace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Traced {
    pub(super) is_disturbed: bool,
    /// True when lock contention is recorded.
    pub(super) with_locks: bool,
    pub(super) p99_9_us: f64,
    pub(super) max_us: f64,
    pub(super) account: Account,
}

/// Boots once: tracing costs instructions, so these results are compared with nothing.
fn run(bench: &Bench) -> Result<bool> {
    let result = guest(bench.first_seed, "traced", &[SCENARIO.name]).run(&bench.machine)?;
    let cells: Vec<Traced> = serde_json::from_value(result)?;
    print!("{}", cell::of_traced(&cells));
    bench.report(&cells)?;
    Ok(true)
}

fn inside(_: &[String]) -> Result<Value> {
    let hosts = hosts()?;
    for host in Host::BOTH {
        ablation::apply(&hosts, host, None)?;
    }
    let mut cells = Vec::new();
    for (is_disturbed, with_locks) in [(false, false), (true, false), (true, true)] {
        let cell = Cell {
            path: cell::Path::LaneTuned,
            is_disturbed,
        };
        start(with_locks)?;
        let (result, rtt_ns) = measure_cell(&hosts, cell, Extent::Whole)?;
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

/// Starts tracing.
fn start(with_locks: bool) -> Result<()> {
    write("buffer_size_kb", &BUFFER_KIB.to_string())?;
    // The clock by which the round trips are timed.
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

/// Stops tracing, and attributes the time of these round trips.
fn account(rtt_ns: &[u64]) -> Result<Account> {
    write("tracing_on", "0")?;
    let text = fs::read_to_string(Path::new(FOLDER).join("trace"))?;
    write("trace", "")?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut rounds = rounds(&lines, rtt_ns);
    if rounds.len() < rtt_ns.len() {
        let (traced, made) = (rounds.len(), rtt_ns.len());
        return Err(format!("the trace has {traced} round trips instead of {made}").into());
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

/// Event of a trace line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// A thread of this name becomes ready.
    Woken(&'a str),
    /// The processor switches to another thread.
    Switched(Thread<'a>),
    /// A device's NAPI poll ended, with its number of frames.
    Polled(u64),
    /// A thread waits for a lock.
    Contended,
    /// A device's interrupt.
    Interrupted,
    Other,
}

/// Thread that gets the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread<'a> {
    pub(super) name: &'a str,
    pub(super) id: u32,
    /// The kernel's priority number: 120 is the ordinary one; a real-time priority is 99 minus the number.
    pub(super) priority: u32,
}

/// Function of a stack line; the innermost comes first.
pub(super) fn function(line: &str) -> Option<&str> {
    line.trim().strip_prefix("=> ")
}

/// Time in nanoseconds and event; `None` for other lines (a stack, an empty line).
pub(super) fn parse(line: &str) -> Option<(u64, Event<'_>)> {
    // Thread names may hold blanks, but never "] ".
    let (_, behind) = line.split_once("] ")?;
    let mut parts = behind.splitn(3, ": ");
    let time_ns = time_ns(parts.next()?.split_whitespace().next_back()?)?;
    let (event, text) = (parts.next()?, parts.next().unwrap_or_default());
    Some((time_ns, of(event, text)))
}

fn of<'a>(event: &str, text: &'a str) -> Event<'a> {
    let event = match event {
        "sched_waking" => value(text, "comm=").map(Event::Woken),
        "sched_switch" => next(text).map(Event::Switched),
        "napi_poll" => word_after(text, "work").map(Event::Polled),
        "contention_begin" => Some(Event::Contended),
        "irq_handler_entry" => Some(Event::Interrupted),
        _ => None,
    };
    event.unwrap_or(Event::Other)
}

fn next(text: &str) -> Option<Thread<'_>> {
    Some(Thread {
        name: value(text, "next_comm=")?,
        id: value(text, "next_pid=")?.parse().ok()?,
        priority: value(text, "next_prio=")?.parse().ok()?,
    })
}

/// Value after the key, up to the next blank.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, behind) = text.split_once(key)?;
    behind.split(' ').next()
}

fn word_after(text: &str, word: &str) -> Option<u64> {
    let mut words = text.split(' ');
    words.find(|&other| other == word)?;
    words.next()?.parse().ok()
}

/// Parses `12.345678`, the kernel's seconds with microseconds.
fn time_ns(seconds: &str) -> Option<u64> {
    let (whole, fraction) = seconds.split_once('.')?;
    if fraction.len() != 6 {
        return None;
    }
    let us: u64 = fraction.parse().ok()?;
    Some(whole.parse::<u64>().ok()? * 1_000_000_000 + us * 1_000)
}

/// Thread that begins a round trip (`PublisherThread` of the benchmark); the trip begins at its wake-up.
const BEGINS: &str = "publisher";
/// The kernel's number of the ordinary priority.
const ORDINARY: u32 = 120;
/// Name of the threads of isolane's processes.
const OURS: &str = "isolane";

#[derive(Debug)]
pub(super) struct Round<'a> {
    pub(super) took_ns: u64,
    /// Processor time by thread.
    of_threads: BTreeMap<String, u64>,
    /// Counts of context switches, received frames, interrupts and lock waits.
    counts: BTreeMap<String, u64>,
    lines: Vec<&'a str>,
}

/// Mean share of a thread, or of an event, in a round trip.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) what: String,
    /// Microseconds of a thread, or number of events.
    pub(crate) mean: f64,
}

impl<'a> Round<'a> {
    pub(super) fn lines(&self) -> Vec<&'a str> {
        self.lines.clone()
    }
}

/// Round trips of these durations, in the order of their beginnings: the last ones of the trace.
pub(super) fn rounds<'a>(lines: &[&'a str], rtt_ns: &[u64]) -> Vec<Round<'a>> {
    let parsed = lines.iter().enumerate().filter_map(|(index, line)| {
        let (time_ns, event) = parse(line)?;
        let of = match event {
            Event::Contended => waits_in(&lines[index + 1..]).unwrap_or(line),
            _ => line,
        };
        Some((time_ns, event, of))
    });
    let events: Vec<(u64, Event<'a>, &'a str)> = parsed.collect();
    let names = names(&events);
    let begins: Vec<usize> = (0..events.len())
        .filter(|&index| events[index].1 == Event::Woken(BEGINS))
        .collect();
    // The publisher is also woken before the first round trip, when the run starts.
    let skipped = begins.len().saturating_sub(rtt_ns.len());
    let mut rounds = Vec::new();
    for (&begin, &took_ns) in begins[skipped..].iter().zip(rtt_ns) {
        let running = events[..begin]
            .iter()
            .rev()
            .find_map(|event| running(event.1));
        rounds.push(round(&events[begin..], running, took_ns, &names));
    }
    rounds
}

/// Function that wants a lock, from the stack that follows: the first that belongs neither to locking nor to tracing.
fn waits_in<'a>(lines: &[&'a str]) -> Option<&'a str> {
    // The first line is the stack's head.
    let functions = lines.iter().skip(1).map_while(|line| function(line));
    let is_own = |name: &str| {
        ["lock", "trace", "contention"]
            .iter()
            .any(|part| name.contains(part))
    };
    let mut wanting = functions.filter(|name| !is_own(name));
    wanting.next()
}

fn running(event: Event<'_>) -> Option<Thread<'_>> {
    match event {
        Event::Switched(thread) => Some(thread),
        _ => None,
    }
}

fn round<'a>(
    events: &[(u64, Event<'a>, &'a str)],
    mut running: Option<Thread<'a>>,
    took_ns: u64,
    names: &BTreeMap<u32, String>,
) -> Round<'a> {
    let begin_ns = events[0].0;
    let end_ns = begin_ns + took_ns;
    let mut round = Round {
        took_ns,
        of_threads: BTreeMap::new(),
        counts: BTreeMap::new(),
        lines: Vec::new(),
    };
    let mut since_ns = begin_ns;
    let mut spend = |round: &mut Round<'a>, thread: Option<Thread<'a>>, until_ns: u64| {
        let name = thread.and_then(|thread| names.get(&thread.id).cloned());
        *round
            .of_threads
            .entry(name.unwrap_or_default())
            .or_default() += until_ns - since_ns;
        since_ns = until_ns;
    };
    for &(time_ns, event, line) in events {
        if time_ns >= end_ns {
            break;
        }
        round.lines.push(line);
        let (count, by) = match event {
            Event::Switched(_) => ("switches".to_owned(), 1),
            Event::Polled(frames) => ("frames received".to_owned(), frames),
            Event::Contended => (format!("lock waited for in {line}"), 1),
            Event::Interrupted => ("interrupts".to_owned(), 1),
            Event::Woken(_) | Event::Other => continue,
        };
        *round.counts.entry(count).or_default() += by;
        if let Event::Switched(next) = event {
            spend(&mut round, running, time_ns);
            running = Some(next);
        }
    }
    spend(&mut round, running, end_ns);
    round
}

/// Role of each thread by its number. isolane's threads have one name. The ends' threads run at a real-time priority,
/// and the answering end was started first. The flood's threads have the ordinary priority.
fn names(events: &[(u64, Event<'_>, &str)]) -> BTreeMap<u32, String> {
    let mut threads: BTreeMap<u32, (&str, BTreeMap<u32, u64>)> = BTreeMap::new();
    for event in events {
        if let Some(thread) = running(event.1) {
            let known = threads.entry(thread.id).or_default();
            // A thread keeps its parent's name until it sets its own, and inherits priorities temporarily.
            known.0 = thread.name;
            *known.1.entry(thread.priority).or_default() += 1;
        }
    }
    let own = |times: &BTreeMap<u32, u64>| {
        let most = times.iter().max_by_key(|&(_, &times)| times);
        most.map_or(ORDINARY, |(&priority, _)| priority)
    };
    let ends = threads
        .iter()
        .filter(|(_, (name, times))| *name == OURS && own(times) < ORDINARY);
    let ends: Vec<u32> = ends.map(|(&id, _)| id).collect();
    let named = threads.iter().map(|(&id, &(name, _))| {
        let name = match ends.iter().position(|&end| end == id) {
            Some(0) => "pong".into(),
            Some(_) => "ping".into(),
            None if name == OURS => "flood".into(),
            None if name == "init" => "busy loop".into(),
            None => name.to_owned(),
        };
        (id, name)
    });
    named.collect()
}

/// Means over these round trips; threads come first, by descending time.
pub(super) fn shares(rounds: &[Round<'_>]) -> Vec<Share> {
    let mean = |sum: f64| sum / rounds.len().max(1) as f64;
    let sum = |of: fn(&Round<'_>) -> Vec<(String, f64)>| {
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        for (what, part) in rounds.iter().flat_map(of) {
            *sums.entry(what).or_default() += part;
        }
        let mut shares: Vec<Share> = sums
            .into_iter()
            .map(|(what, sum)| Share {
                what,
                mean: mean(sum),
            })
            .collect();
        shares.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        shares
    };
    let mut shares = vec![Share {
        what: "round trip".into(),
        mean: mean(rounds.iter().map(|round| round.took_ns as f64 / 1e3).sum()),
    }];
    shares.extend(sum(|round| {
        let of_threads = round.of_threads.iter();
        of_threads
            .map(|(name, &ns)| (name.clone(), ns as f64 / 1e3))
            .collect()
    }));
    shares.extend(sum(|round| {
        let counts = round.counts.iter();
        counts
            .map(|(name, &count)| (name.clone(), count as f64))
            .collect()
    }));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> Event<'_> {
        parse(line).unwrap().1
    }

    #[test]
    fn a_switch_names_who_runs_now() {
        let line = "  init-173     [000] d..2.    17.454285: sched_switch: prev_comm=init prev_pid=173 \
                    prev_prio=120 prev_state=R ==> next_comm=publisher next_pid=180 next_prio=29";
        let thread = Thread {
            name: "publisher",
            id: 180,
            priority: 29,
        };
        assert_eq!(parse(line), Some((17_454_285_000, Event::Switched(thread))));
    }

    #[test]
    fn a_stack_has_a_function_a_line() {
        assert_eq!(function(" => rt_spin_lock"), Some("rt_spin_lock"));
        assert_eq!(function("x-1 [000] d..21 1.000007: <stack trace>"), None);
    }

    #[test]
    fn receive_work_tells_its_frames() {
        let line = "irq/30-host-b-r-182     [000] ..s.2    17.454503: napi_poll: napi poll on napi struct \
                    0000000013ab7636 for device host-b work 3 budget 64";
        assert_eq!(event(line), Event::Polled(3));
    }

    #[test]
    fn other_events_have_a_time_and_what_is_no_event_has_none() {
        let waking = "init-1 [000] dNh3.  1.000007: sched_waking: comm=publisher pid=180 prio=29";
        assert_eq!(event(waking), Event::Woken("publisher"));
        assert_eq!(
            event("a-1 [000] d.h.3  1.000007: irq_handler_entry: irq=30"),
            Event::Interrupted
        );
        assert_eq!(
            event("a-1 [000] d.h.3  1.000007: something: new: x"),
            Event::Other
        );
        for line in [
            " => rt_spin_lock",
            "",
            "a-1 [000] d.. x: y: z",
            "a-1 [000] d.. 1.5: y: z",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    fn woken(time: &str) -> String {
        format!("x-1 [000] d..2. {time}: sched_waking: comm=publisher pid=9")
    }

    fn switch(time: &str, name: &str, id: u32, priority: u32) -> String {
        format!(
            "x-1 [000] d..2. {time}: sched_switch: ==> next_comm={name} next_pid={id} next_prio={priority}"
        )
    }

    #[test]
    fn a_round_trips_time_is_of_those_who_ran() {
        let lines = [
            // The publisher waits for the start.
            woken("0.000100"),
            switch("0.000200", "isolane", 8, 120),
            woken("1.000000"),
            switch("1.000010", "publisher", 9, 29),
            switch("1.000030", "isolane", 4, 29),
            switch("1.000080", "isolane", 8, 29),
            "x-1 [000] d..2. 1.000085: napi_poll: for device host-a work 2 budget 64".to_owned(),
            switch("1.000090", "isolane", 5, 29),
            woken("1.000200"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let rounds = rounds(&lines, &[100_000, 20_000]);
        assert_eq!(rounds.len(), 2);
        let us = |name: &str| rounds[0].of_threads[name] / 1_000;
        assert_eq!((us("publisher"), us("pong"), us("ping")), (20, 50, 10));
        // The flood's time before the first switch counts as well. An inherited priority does not change the thread's
        // role.
        assert_eq!(us("flood"), 20);
        assert_eq!(rounds[0].counts["frames received"], 2);
        assert_eq!(rounds[1].of_threads["ping"], 20_000);
        assert_eq!(rounds[0].lines().len(), 6);
    }

    #[test]
    fn shares_are_means_with_the_largest_first() {
        let lines = [
            switch("0.5", "nothing", 1, 1),
            switch("0.500000", "init", 1, 120),
            woken("1.000000"),
            woken("2.000000"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let shares = shares(&rounds(&lines, &[10_000, 30_000]));
        let of = |what: &str, mean| Share {
            what: what.into(),
            mean,
        };
        assert_eq!(shares, [of("round trip", 20.0), of("busy loop", 20.0)]);
    }
}
