//! Verdict on the observations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use isolane_support::steps::Check;
use serde::{Deserialize, Serialize};

use super::PERIOD;
use super::watch::{Arrival, Seen};

/// Schema of the JSON.
const SCHEMA: &str = "isolane/hostile/1";

/// Minimum share of the critical samples written during the attack that arrive. Reliable samples are sent again, except
/// those that a KEEP_LAST 1 history has replaced.
const LEAST_SHARE: f64 = 0.95;
/// Maximum gap between critical samples. Virtual machines stall, and other programs run for some milliseconds. If the
/// attack kept the victim busy, the gaps would be far longer.
const LONGEST_GAP: Duration = Duration::from_secs(1);
/// Maximum growth of the victim's memory in the second half of the attack, by linear regression. It allows for the
/// allocator's variation, and for pages of frames that are used for the first time.
const MOST_GROWTH_BYTES: f64 = 512.0 * 1024.0;
/// Maximum number of log lines in any second of the attack. The victim logs one line for each reason and, with `-v -v`,
/// one for each match.
const MOST_LINES: usize = 50;
/// Minimum share of the hostile datagrams that some counter has. They are received or dropped in the victim's counters,
/// or dropped at the kernel's receive backlog, before the victim's sockets.
const LEAST_ACCOUNTED: f64 = 0.99;
/// Names of counters that must be above zero at the victim.
const NAMED: [&str; 3] = [
    "malformed messages",
    "malformed submessages",
    "participants displaced",
];

/// Sender's report.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) seconds: f64,
    pub(super) datagrams: u64,
    pub(super) bytes: u64,
    /// Datagrams that the kernel rejected.
    pub(super) refused: u64,
    pub(super) kinds: BTreeMap<String, u64>,
    /// Destinations: unicast addresses and multicast groups.
    pub(super) to: Vec<String>,
}

/// The verdict.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    schema: &'static str,
    sent: Sent,
    /// Number of critical samples written during the attack; `critical_arrived` of them arrived.
    critical_written: u64,
    critical_arrived: u64,
    longest_gap_ms: f64,
    resident_first_bytes: Option<u64>,
    resident_last_bytes: Option<u64>,
    /// Growth of the resident memory in the second half of the attack.
    resident_growth_bytes: Option<f64>,
    /// Number of datagrams in the victim's counters, including critical ones, and of those dropped at the backlog.
    datagrams_accounted: u64,
    log_lines: usize,
    most_log_lines_a_second: usize,
    /// Victim's counters, as its log has them.
    counted: Vec<String>,
    pub(super) checks: Vec<Check>,
}

/// Judges the observations between the first and the last hostile datagram.
pub(super) fn judge(seen: &Seen, sent: &Sent, begin: Instant, end: Instant) -> Report {
    let (written, arrived) = critical(seen, begin, end);
    let (longest_gap, numbers_passed) = longest_gap(seen, begin, end);
    let growth = growth(&seen.resident);
    let lines: Vec<Instant> = seen
        .log
        .iter()
        .map(|(at, _)| *at)
        .filter(|at| (begin..end).contains(at))
        .collect();
    let most_lines = most_in_a_second(&lines);
    let counted = counted(seen);
    let mut checks = Vec::new();
    let mut check = |holds, what| checks.push(Check { what, holds });

    let share = arrived as f64 / written.max(1) as f64;
    check(
        written > 0 && share >= LEAST_SHARE,
        format!(
            "{arrived} of {written} critical samples arrived ({:.1} %, at least {:.0} %)",
            100.0 * share,
            100.0 * LEAST_SHARE
        ),
    );
    check(
        longest_gap <= LONGEST_GAP,
        format!(
            "{:.0} ms without a critical sample at the longest, in which {} were written (at most {} \
             ms; period {} ms)",
            longest_gap.as_secs_f64() * 1e3,
            numbers_passed,
            LONGEST_GAP.as_millis(),
            PERIOD.as_millis()
        ),
    );
    check(
        growth.is_some_and(|growth| growth <= MOST_GROWTH_BYTES),
        match growth {
            Some(growth) => format!(
                "memory grew by {:.0} KiB in the second half (at most {:.0} KiB)",
                growth / 1024.0,
                MOST_GROWTH_BYTES / 1024.0
            ),
            None => "the victim's memory was not seen".into(),
        },
    );
    check(
        most_lines <= MOST_LINES,
        format!("{most_lines} lines of log in a second at most (at most {MOST_LINES})"),
    );
    let backlog = seen.backlog_drops;
    let accounted = datagrams(seen) + backlog;
    check(
        accounted as f64 >= LEAST_ACCOUNTED * sent.datagrams as f64,
        format!(
            "{accounted} datagrams in the victim's ledger or, {backlog} of them, at the kernel's backlog, of {} hostile ones \
             (at least {:.0} %)",
            sent.datagrams,
            100.0 * LEAST_ACCOUNTED
        ),
    );
    let unnamed: Vec<&str> = NAMED
        .into_iter()
        .filter(|name| !counted.iter().any(|line| line.ends_with(name)))
        .collect();
    check(
        unnamed.is_empty(),
        match unnamed.is_empty() {
            true => format!("counted by name: {}", counted.join(", ")),
            false => format!("not counted by name: {}", unnamed.join(", ")),
        },
    );
    Report {
        schema: SCHEMA,
        sent: Sent {
            kinds: sent.kinds.clone(),
            to: sent.to.clone(),
            ..*sent
        },
        critical_written: written,
        critical_arrived: arrived,
        longest_gap_ms: longest_gap.as_secs_f64() * 1e3,
        resident_first_bytes: seen.resident.first().map(|(_, bytes)| *bytes),
        resident_last_bytes: seen.resident.last().map(|(_, bytes)| *bytes),
        resident_growth_bytes: growth,
        datagrams_accounted: accounted,
        log_lines: lines.len(),
        most_log_lines_a_second: most_lines,
        counted,
        checks,
    }
}

/// Returns how many samples the legitimate publisher has written, by their sequence numbers, and how many have arrived.
/// The legitimate publisher is the writer of the first sample.
fn critical(seen: &Seen, begin: Instant, end: Instant) -> (u64, u64) {
    let Some(publisher) = seen.samples.first().map(|first| &first.writer) else {
        return (0, 0);
    };
    let of_publisher = || {
        let samples = seen.samples.iter();
        samples.filter(|sample| sample.writer == *publisher)
    };
    let before = of_publisher().filter(|sample| sample.at < begin);
    let last_before = before.map(|sample| sample.sequence).max().unwrap_or(0);
    let numbers: BTreeSet<i64> = of_publisher()
        .filter(|sample| sample.sequence > last_before)
        // Samples written during the attack may arrive a little later.
        .filter(|sample| sample.at < end + Duration::from_secs(1))
        .map(|sample| sample.sequence)
        .collect();
    let written = numbers.last().map_or(0, |last| last - last_before);
    (written as u64, numbers.len() as u64)
}

/// Returns the longest time without a sample of the publisher, and the increase of its sequence numbers in that time. A
/// small increase means that the publisher itself was not scheduled.
fn longest_gap(seen: &Seen, begin: Instant, end: Instant) -> (Duration, i64) {
    let Some(publisher) = seen.samples.first().map(|first| &first.writer) else {
        return (end - begin, 0);
    };
    let of_publisher = |sample: &&Arrival| sample.writer == *publisher;
    let is_before = |sample: &&Arrival| of_publisher(sample) && sample.at < begin;
    let last = seen.samples.iter().rfind(is_before);
    let mut previous = (begin, last.map_or(0, |sample| sample.sequence));
    let mut longest = (Duration::ZERO, 0);
    let during = seen
        .samples
        .iter()
        .filter(of_publisher)
        .map(|sample| (sample.at, sample.sequence))
        .filter(|(at, _)| (begin..end).contains(at));
    for (at, sequence) in during {
        longest = longest.max((at - previous.0, sequence - previous.1));
        previous = (at, sequence);
    }
    longest.max((end - previous.0, 0))
}

/// Returns the rise in bytes of the regression line over the second half of the attack.
fn growth(looks: &[(Instant, u64)]) -> Option<f64> {
    let (first, last) = (looks.first()?.0, looks.last()?.0);
    let middle = first + (last - first) / 2;
    let half: Vec<(f64, f64)> = looks
        .iter()
        .filter(|(at, _)| *at >= middle)
        .map(|(at, bytes)| ((*at - middle).as_secs_f64(), *bytes as f64))
        .collect();
    if half.len() < 3 {
        return None;
    }
    let count = half.len() as f64;
    let mean_time = half.iter().map(|(time, _)| time).sum::<f64>() / count;
    let mean_bytes = half.iter().map(|(_, bytes)| bytes).sum::<f64>() / count;
    let spread: f64 = half
        .iter()
        .map(|(time, _)| (time - mean_time).powi(2))
        .sum();
    let product = |(time, bytes): &(f64, f64)| (time - mean_time) * (bytes - mean_bytes);
    let slope = half.iter().map(product).sum::<f64>() / spread;
    Some(slope * (last - middle).as_secs_f64())
}

/// Returns the largest number of these times that are within one second.
fn most_in_a_second(moments: &[Instant]) -> usize {
    let within = |(place, first): (usize, &Instant)| {
        let later = &moments[place..];
        later.partition_point(|at| *at - *first < Duration::from_secs(1))
    };
    moments.iter().enumerate().map(within).max().unwrap_or(0)
}

/// Returns the number of datagrams in the counters of all of the victim's lanes, from the last lines of its log:
/// `level 7: received 12 of 14, 2 kernel_overflow; ...`.
fn datagrams(seen: &Seen) -> u64 {
    let of_lane = |line: &str| -> Option<u64> {
        let (_, counts) = line.split_once(": received ")?;
        let (_, arrived) = counts.split_once(" of ")?;
        let digits = arrived
            .split(|letter: char| !letter.is_ascii_digit())
            .next()?;
        digits.parse().ok()
    };
    seen.log.iter().filter_map(|(_, line)| of_lane(line)).sum()
}

/// Returns the victim's counters, from the last log line that has them.
fn counted(seen: &Seen) -> Vec<String> {
    let lines = seen.log.iter().rev();
    let mut counts = lines.filter_map(|(_, line)| Some(line.split_once("protocol: ")?.1));
    let counts = counts.next().into_iter();
    let counts = counts.flat_map(|counts| counts.split(", "));
    counts.map(str::to_owned).collect()
}

impl Report {
    pub(super) fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} hostile datagrams in {:.0} s ({:.0} a second, {:.0} Mbit/s), to {}:",
            self.sent.datagrams,
            self.sent.seconds,
            self.sent.datagrams as f64 / self.sent.seconds,
            self.sent.bytes as f64 * 8e-6 / self.sent.seconds,
            self.sent.to.join(", ")
        )?;
        self.checks
            .iter()
            .try_for_each(|check| writeln!(f, "{check}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(bytes: impl Fn(u64) -> u64) -> Vec<(Instant, u64)> {
        let begin = Instant::now();
        let second = |second| (begin + Duration::from_secs(second), bytes(second));
        (0..60).map(second).collect()
    }

    #[test]
    fn memory_that_goes_on_growing_is_seen_and_growth_of_the_first_half_is_not() {
        let only_first = growth(&looks(|second| 1_000_000 * second.min(20)));
        let going_on = growth(&looks(|second| 100_000 * second));
        for (growth, expected, tolerance) in [(only_first, 0.0, 1.0), (going_on, 2_950_000.0, 1e4)]
        {
            let is_right = growth.is_some_and(|growth| (growth - expected).abs() < tolerance);
            assert!(is_right, "{growth:?} instead of {expected}");
        }
    }

    #[test]
    fn the_datagrams_of_all_lanes_are_added() {
        let line = |text: &str| (Instant::now(), text.to_owned());
        let seen = Seen {
            log: vec![
                line("datagrams:"),
                line(
                    "discovery: received 143 of 152, 9 kernel_overflow; sent 5 of 6, 1 unreachable",
                ),
                line("level 7: received 38 of 38; sent 2 of 2"),
                line("5 samples printed: 5 delivered"),
            ],
            ..Seen::default()
        };
        assert_eq!(datagrams(&seen), 190);
    }

    #[test]
    fn uncounted_hostile_datagrams_are_missed() {
        let (mut seen, begin, end) = sound();
        let missed = failing(&seen, 100, begin, end);
        assert!(
            missed.len() == 1 && missed[0].starts_with("0 datagrams"),
            "{missed:?}"
        );
        seen.backlog_drops = 99;
        assert_eq!(failing(&seen, 100, begin, end), [""; 0]);
    }

    #[test]
    fn two_looks_in_the_second_half_are_no_line() {
        assert_eq!(growth(&looks(|_| 1)[..4]), None);
    }

    /// Observations of a healthy victim. It gets a sample of writer "p" every 5 ms. The first 20 arrive before the
    /// attack, which lasts a second.
    fn sound() -> (Seen, Instant, Instant) {
        let begin = Instant::now() + Duration::from_secs(1);
        let sample = |number: i64| Arrival {
            at: begin + Duration::from_millis(5 * number as u64) - Duration::from_millis(101),
            writer: "p".into(),
            sequence: number,
        };
        let look = |quarter: u64| (begin + Duration::from_millis(250 * quarter), 5_000_000);
        let log = format!("protocol: 7 {}, 2 {}, 1 {}", NAMED[0], NAMED[1], NAMED[2]);
        let seen = Seen {
            samples: (1..=220).map(sample).collect(),
            log: vec![(begin, log)],
            resident: (0..=8).map(look).collect(),
            backlog_drops: 0,
        };
        (seen, begin, begin + Duration::from_secs(1))
    }

    /// The checks that fail, with this number of hostile datagrams.
    fn failing(seen: &Seen, datagrams: u64, begin: Instant, end: Instant) -> Vec<String> {
        let sent = Sent {
            datagrams,
            ..Sent::default()
        };
        let checks = judge(seen, &sent, begin, end).checks;
        let failing = checks.into_iter().filter(|check| !check.holds);
        failing.map(|check| check.what).collect()
    }

    #[test]
    fn a_victim_that_goes_on_as_before_passes() {
        let (seen, begin, end) = sound();
        assert_eq!(failing(&seen, 0, begin, end), [""; 0]);
        assert_eq!(critical(&seen, begin, end), (200, 200));
    }

    #[test]
    fn everything_that_must_hold_fails_when_it_does_not() {
        let with = |change: &dyn Fn(&mut Seen, Instant)| {
            let (mut seen, begin, end) = sound();
            change(&mut seen, begin);
            failing(&seen, 0, begin, end).join("; ")
        };
        let few = with(&|seen, begin| {
            let mut number = 0;
            seen.samples.retain(|sample| {
                number += 1;
                sample.at < begin || number % 10 != 0
            });
        });
        assert!(few.contains("180 of 199 critical samples"), "{few}");
        let none = with(&|seen, begin| seen.samples.retain(|sample| sample.at < begin));
        assert!(none.contains("0 of 0 critical samples"), "{none}");
        let grows = with(&|seen, _| {
            for (looks, (_, bytes)) in seen.resident.iter_mut().enumerate() {
                *bytes += 1_000_000 * looks as u64;
            }
        });
        assert!(grows.starts_with("memory grew by"), "{grows}");
        let unseen = with(&|seen, _| seen.resident.clear());
        assert_eq!(unseen, "the victim's memory was not seen");
        let chatty = with(&|seen, begin| {
            let line = (begin, String::from("malformed"));
            seen.log.splice(0..0, vec![line; MOST_LINES]);
        });
        let lines = format!("{} lines of log", MOST_LINES + 1);
        assert!(chatty.starts_with(&lines), "{chatty}");
        let silent = with(&|seen, _| seen.log.clear());
        assert!(silent.starts_with("not counted by name"), "{silent}");
    }

    #[test]
    fn samples_of_somebody_else_do_not_stand_in_for_the_publishers() {
        let (mut seen, begin, end) = sound();
        for sample in &mut seen.samples {
            if sample.at >= begin {
                sample.writer = "forged".into();
            }
        }
        assert_eq!(critical(&seen, begin, end), (0, 0));
        assert_eq!(longest_gap(&seen, begin, end).0, end - begin);
    }

    #[test]
    fn the_longest_gap_reaches_to_the_ends_of_the_attack() {
        let (mut seen, begin, end) = sound();
        let middle = begin + Duration::from_millis(500);
        seen.samples.retain(|sample| sample.at < middle);
        let (gap, _) = longest_gap(&seen, begin, end);
        assert!(gap >= Duration::from_millis(500), "{gap:?}");
    }

    #[test]
    fn lines_are_counted_in_the_densest_second() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let moments = [at(0), at(900), at(1100), at(1200), at(5000)];
        assert_eq!(most_in_a_second(&moments), 3);
        assert_eq!(most_in_a_second(&[]), 0);
    }
}
