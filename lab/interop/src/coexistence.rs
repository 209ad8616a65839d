//! Coexistence: a pair of another implementation keeps running while isolane starts and stops on the same interfaces.
//!
//! The pair exchanges best-effort and reliable samples throughout. Meanwhile isolane attaches to both interfaces,
//! carries its own samples over its lanes, and is killed (SIGKILL), repeatedly. In the last round isolane is
//! interrupted instead, and reports what its lanes carried. Each sample of the pair has a number and the time at which
//! it was taken, so each loss can be attributed to an event. A loss at no event is the lane's fault, and fails the run.

use std::path::Path;
use std::time::Duration;
use std::{fmt, thread};

use isolane_bench::clock::now_ns;
use isolane_support::Result;

use super::combination::{Axis, Loss, Reliability, Role};
use super::exchange::Exchange;
use super::network::Network;
use super::printed::has_begun;
use super::program::{Program, wait_until};
use super::side::{INTERRUPTED, Programs, TOPIC, plain_command};

/// Number of times isolane starts; it is killed each time but the last.
const ROUNDS: usize = 5;
/// Time between two samples of the pair, in milliseconds.
const PAIR_PERIOD_MS: u32 = 1;
/// Time between two samples of isolane, in milliseconds.
const OWN_PERIOD_MS: u32 = 5;
/// Timeout of every wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Number of samples that the pair exchanges before isolane first starts.
const BEFORE: usize = 500;
/// Samples that isolane's own pair exchanges in each round.
const OWN_SAMPLES: usize = 100;
/// Time between two events, in which no loss is allowed.
const CALM: Duration = Duration::from_millis(700);
/// Time after an event during which losses are still attributed to it. The kernel releases rings and programs of a dead
/// process some 60 ms later.
const AFTERMATH: Duration = Duration::from_millis(200);

/// Runs the test; the programs' output stays in `folder`. An error when the pair lost more than it may, or isolane's
/// lane carried little.
pub(super) fn run(programs: Programs<'_>, folder: &Path) -> Result<String> {
    let network = Network::new(Loss::None)?;
    let mut pairs = Vec::new();
    for &reliability in Reliability::ALL {
        let pair = start_pair(reliability, programs, folder, &network)?;
        pairs.push((reliability, pair));
    }
    for (_, pair) in &pairs {
        until("the pair has not exchanged its first samples", || {
            Ok(lines(&pair.subscriber)? >= BEFORE)
        })?;
    }
    let mut events = Vec::new();
    let mut lane = None;
    for round in 1..=ROUNDS {
        thread::sleep(CALM);
        let begin_ns = now_ns();
        let mut own = start_own(programs, folder, round, &network)?;
        until("isolane's publisher has not published", || {
            Ok(has_begun(&own.publisher.said()?))
        })?;
        thread::sleep(AFTERMATH);
        events.push((Kind::Attach, [begin_ns, now_ns()]));
        until("isolane has not exchanged its samples", || {
            Ok(lines(&own.subscriber)? >= OWN_SAMPLES)
        })?;
        thread::sleep(CALM);
        let begin_ns = now_ns();
        let kind = if round < ROUNDS {
            own.publisher.kill()?;
            own.subscriber.kill()?;
            Kind::Kill
        } else {
            own.stop([INTERRUPTED; 2])?;
            lane = Some(own.carried()?);
            Kind::Leave
        };
        thread::sleep(AFTERMATH);
        events.push((kind, [begin_ns, now_ns()]));
    }
    thread::sleep(CALM);
    let pairs = pairs.into_iter();
    let reports = pairs.map(|(reliability, pair)| finish_pair(reliability, pair, &events));
    let reports = reports.collect::<Result<Vec<_>>>()?;
    network.finish(false)?;
    let mut texts = Vec::new();
    for report in reports {
        report.judge()?;
        texts.push(report.to_string());
    }
    let lane = lane.ok_or("no lane counts: the last round did not run")?;
    let (by_lane, received) = (lane.received_by_lane, lane.received);
    let by_lane = format!("{by_lane} of {received} datagrams");
    if lane.received_by_lane * 2 <= received {
        return Err(format!("isolane's lane carried only {by_lane}").into());
    }
    let pairs = texts.join("; ");
    Ok(format!(
        "{pairs}; isolane attached {ROUNDS} times, {by_lane} by the lane"
    ))
}

/// Starts the other implementation's publisher and subscriber.
fn start_pair(
    reliability: Reliability,
    programs: Programs<'_>,
    folder: &Path,
    network: &Network,
) -> Result<Exchange> {
    let side = |role| {
        let mut command = plain_command(programs, true, role, topic(reliability), PAIR_PERIOD_MS);
        // KEEP_ALL: the reader's history replaces nothing, so a missing sample was lost by the network.
        command.args([&format!("--{}", reliability.word()), "--keep-all"]);
        command
    };
    let mut subscriber = side(Role::Subscriber);
    subscriber.arg("--times");
    let name = format!("pair-{}", reliability.word());
    Exchange::start(network, folder, &name, side(Role::Publisher), subscriber)
}

/// Stops the pair, and attributes its losses to events.
fn finish_pair(
    reliability: Reliability,
    mut pair: Exchange,
    events: &[Event],
) -> Result<PairReport> {
    let written = pair.publisher.end_writing(LONGEST_WAIT)?;
    thread::sleep(AFTERMATH);
    pair.stop([0, 0])?;
    let taken = samples(&pair.subscriber.printed()?, topic(reliability))?;
    Ok(PairReport::new(
        reliability,
        PAIR_PERIOD_MS,
        written,
        &taken,
        events,
    )?)
}

/// Starts isolane's publisher and subscriber.
fn start_own(
    programs: Programs<'_>,
    folder: &Path,
    round: usize,
    network: &Network,
) -> Result<Exchange> {
    let side = |role| {
        let mut command = plain_command(programs, false, role, TOPIC, OWN_PERIOD_MS);
        command.args(["--datapath", "xdp", "--reliable", "--history", "all", "-vv"]);
        command
    };
    let (publisher, subscriber) = (side(Role::Publisher), side(Role::Subscriber));
    let name = format!("isolane-{round}");
    Exchange::start(network, folder, &name, publisher, subscriber)
}

/// Returns the topic of a pair; isolane's own pair uses another one.
fn topic(reliability: Reliability) -> &'static str {
    match reliability {
        Reliability::BestEffort => "Circle",
        Reliability::Reliable => "Triangle",
    }
}

fn lines(program: &Program) -> Result<usize> {
    Ok(program.printed()?.lines().count())
}

/// Waits until the condition holds; an error at the timeout.
fn until(what: &str, is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    match wait_until(LONGEST_WAIT, is_so)? {
        true => Ok(()),
        false => Err(format!("timeout after {} s: {what}", LONGEST_WAIT.as_secs()).into()),
    }
}

/// Longest silence of a pair that does not yet count as an interruption. The number of samples written in this time
/// also bounds the best-effort loss at one event. Without that bound, an occasional sample would hide any loss.
const LONGEST_SILENCE_MS: u32 = 500;

/// A sample, and the time at which it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Taken {
    number: u32,
    at_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// isolane's programs attached to both interfaces.
    Attach,
    /// isolane's programs were killed.
    Kill,
    /// isolane's programs were interrupted and left.
    Leave,
}

/// Event with its interval in nanoseconds: from the cause to the end of its aftermath.
type Event = (Kind, [u64; 2]);

/// Index of the first event that overlaps this interval.
fn event_within(events: &[Event], [from_ns, to_ns]: [u64; 2]) -> Option<usize> {
    let overlaps = |[from, to]: [u64; 2]| from <= to_ns && from_ns <= to;
    events.iter().position(|(_, event)| overlaps(*event))
}

/// Losses of one pair.
#[derive(Clone, Debug, PartialEq)]
struct PairReport {
    reliability: Reliability,
    /// Samples from the first one taken on. Earlier ones do not count: the subscriber may not have been matched.
    written: u64,
    received: u64,
    /// Samples lost at each event.
    lost_at_events: Vec<(Kind, u64)>,
    lost_elsewhere: u64,
    /// Bound of the loss at one event.
    most_lost_allowed: u64,
    /// The longest time without a sample around an event, and anywhere else.
    longest_silence_at_event_ms: f64,
    longest_silence_elsewhere_ms: f64,
}

impl PairReport {
    /// Report on a pair that writes a sample each period. An error when samples were duplicated or out of order.
    fn new(
        reliability: Reliability,
        period_ms: u32,
        written: u32,
        taken: &[Taken],
        events: &[Event],
    ) -> std::result::Result<Self, String> {
        let (Some(first), Some(last)) = (taken.first(), taken.last()) else {
            return Err(format!("{}: no sample arrived", reliability.word()));
        };
        let mut report = Self {
            reliability,
            written: u64::from(written.saturating_sub(first.number)),
            received: taken.len() as u64,
            lost_at_events: events.iter().map(|(kind, _)| (*kind, 0)).collect(),
            lost_elsewhere: u64::from(written.saturating_sub(last.number + 1)),
            most_lost_allowed: match reliability {
                Reliability::Reliable => 0,
                Reliability::BestEffort => u64::from(LONGEST_SILENCE_MS / period_ms),
            },
            longest_silence_at_event_ms: 0.0,
            longest_silence_elsewhere_ms: 0.0,
        };
        for pair in taken.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            if after.number <= before.number {
                return Err(format!(
                    "{}: sample {} came after {}",
                    reliability.word(),
                    after.number,
                    before.number
                ));
            }
            let (lost, longest_silence_ms) = match event_within(events, [before.at_ns, after.at_ns])
            {
                Some(event) => (
                    &mut report.lost_at_events[event].1,
                    &mut report.longest_silence_at_event_ms,
                ),
                None => (
                    &mut report.lost_elsewhere,
                    &mut report.longest_silence_elsewhere_ms,
                ),
            };
            *lost += u64::from(after.number - before.number - 1);
            let silence_ms = after.at_ns.saturating_sub(before.at_ns) as f64 / 1e6;
            *longest_silence_ms = longest_silence_ms.max(silence_ms);
        }
        Ok(report)
    }

    /// Samples lost at all events of this kind.
    fn lost_at(&self, kind: Kind) -> u64 {
        let events = self.lost_at_events.iter();
        events
            .filter(|(it, _)| *it == kind)
            .map(|(_, lost)| lost)
            .sum()
    }

    /// Loss at the worst event.
    fn most_lost_at_event(&self) -> u64 {
        let lost = self.lost_at_events.iter().map(|(_, lost)| *lost);
        lost.max().unwrap_or(0)
    }

    /// Checks the pair: a reliable one loses nothing, best effort loses a bounded number at each event and none
    /// elsewhere, and no gap is long.
    fn judge(&self) -> std::result::Result<(), String> {
        let most_lost = self.most_lost_at_event();
        let is_reliable = self.reliability == Reliability::Reliable;
        if (is_reliable && most_lost > 0) || self.lost_elsewhere > 0 {
            return Err(format!("the pair lost what it must not: {self}"));
        }
        if most_lost > self.most_lost_allowed {
            return Err(format!("the pair lost too much at one event: {self}"));
        }
        let silence_ms = self
            .longest_silence_at_event_ms
            .max(self.longest_silence_elsewhere_ms);
        if silence_ms > f64::from(LONGEST_SILENCE_MS) {
            return Err(format!("the pair was interrupted: {self}"));
        }
        Ok(())
    }
}

impl fmt::Display for PairReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} pair: {} of {} samples, lost at attach {}, at kill {}, at leave {}, elsewhere {}, \
             at most {} at one event (allowed: {}), silent for at most {:.1} ms at events, {:.1} ms \
             elsewhere (allowed: {LONGEST_SILENCE_MS})",
            self.reliability.word(),
            self.received,
            self.written,
            self.lost_at(Kind::Attach),
            self.lost_at(Kind::Kill),
            self.lost_at(Kind::Leave),
            self.lost_elsewhere,
            self.most_lost_at_event(),
            self.most_lost_allowed,
            self.longest_silence_at_event_ms,
            self.longest_silence_elsewhere_ms
        )
    }
}

/// Parses the output of a subscriber with `--times`: `TOPIC COLOR x y [size] nanoseconds`. Lines about the instance's
/// state are skipped.
fn samples(printed: &str, topic: &str) -> std::result::Result<Vec<Taken>, String> {
    let mut samples = Vec::new();
    for line in printed.lines() {
        let words = line.split_whitespace().collect::<Vec<_>>();
        match words[..] {
            [of, _, x, _, _, at] if of == topic => match (x.parse(), at.parse()) {
                (Ok(number), Ok(at_ns)) => samples.push(Taken { number, at_ns }),
                _ => return Err(format!("no sample with its time: {line:?}")),
            },
            [of, _, _] if of == topic => {}
            _ => return Err(format!("no sample with its time: {line:?}")),
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A sample each millisecond, without the missing ones.
    fn taken(missing: &[u32]) -> Vec<Taken> {
        let numbers = (0..100).filter(|number| !missing.contains(number));
        let taken = numbers.map(|number| Taken {
            number,
            at_ns: u64::from(number) * MS,
        });
        taken.collect()
    }

    const EVENTS: [Event; 2] = [
        (Kind::Attach, [20 * MS, 25 * MS]),
        (Kind::Kill, [60 * MS, 65 * MS]),
    ];

    fn report(reliability: Reliability, missing: &[u32]) -> PairReport {
        PairReport::new(reliability, 1, 100, &taken(missing), &EVENTS).unwrap()
    }

    #[test]
    fn missing_samples_are_counted_by_their_event() {
        let report = report(Reliability::BestEffort, &[21, 22, 64, 80]);
        assert_eq!((report.received, report.written), (96, 100));
        assert_eq!(report.lost_at_events, [(Kind::Attach, 2), (Kind::Kill, 1)]);
        assert_eq!((report.lost_at(Kind::Kill), report.lost_elsewhere), (1, 1));
        assert_eq!(report.longest_silence_at_event_ms, 3.0);
        assert!(report.judge().is_err());
    }

    #[test]
    fn only_best_effort_loses_and_only_around_events() {
        assert!(report(Reliability::BestEffort, &[21, 64]).judge().is_ok());
        assert!(report(Reliability::Reliable, &[21]).judge().is_err());
        assert!(report(Reliability::Reliable, &[]).judge().is_ok());
        // A missing last sample counts as lost, too.
        assert!(report(Reliability::BestEffort, &[99]).judge().is_err());
    }

    #[test]
    fn a_long_silence_is_an_interruption_though_nothing_is_lost() {
        // After the kill, and where nothing happened.
        for from in [61, 81] {
            let mut taken = taken(&[]);
            for sample in &mut taken[from..] {
                sample.at_ns += 600 * MS;
            }
            let report = PairReport::new(Reliability::Reliable, 1, 100, &taken, &EVENTS).unwrap();
            assert!(
                report.judge().unwrap_err().contains("interrupted"),
                "{from}"
            );
        }
    }

    #[test]
    fn an_event_costs_best_effort_no_more_than_the_longest_silence_does() {
        // One sample in ten is taken during the event, so no gap is long.
        let judged = |period_ms: u32, lasts_ms: u64| {
            let is_kill = |number: &u32| (1_901..1_909).contains(number);
            let is_over = |number: &u32| u64::from(*number) >= lasts_ms && !is_kill(number);
            let is_taken = |number: &u32| is_over(number) || number.is_multiple_of(10);
            let taken = (0..2_000).filter(is_taken).map(|number| Taken {
                number,
                at_ns: u64::from(number) * MS,
            });
            // Each event's loss counts alone.
            let events = [
                (Kind::Attach, [0, lasts_ms * MS]),
                (Kind::Kill, [1_900 * MS, 1_910 * MS]),
            ];
            let taken = taken.collect::<Vec<_>>();
            let report =
                PairReport::new(Reliability::BestEffort, period_ms, 2_000, &taken, &events);
            report.unwrap().judge()
        };
        assert_eq!(judged(1, 550), Ok(()));
        let refused = judged(1, 570).unwrap_err();
        assert!(
            refused.contains("at most 513 at one event (allowed: 500"),
            "{refused}"
        );
        assert!(judged(2, 550).is_err());
    }

    #[test]
    fn samples_are_read_with_their_times() {
        let printed = "Pair       BLUE       007 007 [20] 12\n\
                       Pair       BLUE       NOT_ALIVE_NO_WRITERS_INSTANCE_STATE\n";
        let taken = Taken {
            number: 7,
            at_ns: 12,
        };
        assert_eq!(samples(printed, "Pair"), Ok(vec![taken]));
        assert!(samples("Pair BLUE 007 007 [20]\n", "Pair").is_err());
        let repeated = [taken, taken];
        assert!(PairReport::new(Reliability::Reliable, 1, 9, &repeated, &[]).is_err());
    }
}
