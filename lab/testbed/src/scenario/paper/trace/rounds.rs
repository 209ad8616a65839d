//! A trace cut into round trips, and whose time was spent in them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::line::{Event, Thread, function, parse};

/// The thread that begins a round trip (`PublisherThread` of the benchmark): a trip begins when it is woken.
const BEGINS: &str = "publisher";
/// The kernel's number of the ordinary priority.
const ORDINARY: u32 = 120;
/// What our own processes' threads are called.
const OURS: &str = "isolane";

/// One round trip.
#[derive(Debug)]
pub(super) struct Round<'a> {
    pub(super) took_ns: u64,
    /// Who ran for how long.
    of_threads: BTreeMap<String, u64>,
    /// Times that something else got the processor, frames that were received, interrupts, locks waited for.
    counts: BTreeMap<String, u64>,
    lines: Vec<&'a str>,
}

/// Whose time, or what, on average in a round trip.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) what: String,
    /// Microseconds of a thread; how often, of what happens.
    pub(crate) mean: f64,
}

impl<'a> Round<'a> {
    pub(super) fn lines(&self) -> Vec<&'a str> {
        self.lines.clone()
    }
}

/// The round trips that took so long, in the order in which they began: the last ones of the trace.
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
    // Whoever waits for the word to go, or for the end, is woken too.
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

/// The function that wants a lock, in the stack that follows: the first that is not the lock's own or tracing's.
fn waits_in<'a>(lines: &[&'a str]) -> Option<&'a str> {
    // The stack's own head is the first line.
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

/// What each thread is, by its number. Ours have one name: both ends run at a real-time priority, and the one
/// that answers was started first; a flood's threads do not.
fn names(events: &[(u64, Event<'_>, &str)]) -> BTreeMap<u32, String> {
    let mut threads: BTreeMap<u32, (&str, BTreeMap<u32, u64>)> = BTreeMap::new();
    for event in events {
        if let Some(thread) = running(event.1) {
            let known = threads.entry(thread.id).or_default();
            // A thread has another's name until it has one of its own, and priorities that are lent to it.
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

/// The means over these, threads by their time first.
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
            // It waits for the word to go.
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
        // Before the first switch as well; a lent priority makes no end of it.
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
