//! Coexistence: a pair of another implementation keeps running while isolane starts and stops on the same interfaces.
//!
//! The pair exchanges best-effort and reliable samples throughout. Meanwhile isolane attaches to both interfaces,
//! carries its own samples over its lanes, and is killed (SIGKILL), repeatedly. In the last round isolane is
//! interrupted instead, and reports what its lanes carried. Each sample of the pair has a number and the time at which
//! it was taken, so each loss can be attributed to an event. A loss at no event is the lane's fault, and fails the run.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use isolane_bench::clock::now_ns;
use isolane_bench::namespace::Host;
use isolane_support::Result;
use serde::Serialize;

use super::combination::{Axis, Loss, Reliability};
use super::network::Network;
use super::printed::{Carried, changes_written, has_begun};
use super::program::{Ending, LOOK, Program};
use super::side::{COLOR, TOPIC};

/// Number of times isolane starts; it is killed each time but the last.
const ROUNDS: usize = 5;
/// Time between two samples of the pair, in milliseconds.
const PAIR_PERIOD_MS: u32 = 1;
/// Longest run of the pair's programs, in seconds.
const LONGEST_PAIR: u32 = 60;
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

/// Result of the run.
#[derive(Serialize)]
pub(super) struct Coexistence {
    /// The best-effort and the reliable pair.
    pub(super) pairs: Vec<PairReport>,
    /// Number of times isolane attached; it was killed one time fewer.
    pub(super) attached: usize,
    /// Traffic of isolane's last subscriber, which was not killed.
    pub(super) lane: Carried,
}

/// Runs the test with the programs `peer` and `isolane`; their output stays in `folder`.
pub(super) fn run(peer: &Path, isolane: &Path, folder: &Path) -> Result<Coexistence> {
    fs::create_dir_all(folder)?;
    let network = Network::new(Loss::None)?;
    let mut pairs = Vec::new();
    for reliability in Reliability::ALL {
        pairs.push(Pair::start(*reliability, peer, folder, &network)?);
    }
    for pair in &pairs {
        until("the pair exchanges samples", || {
            Ok(lines(&pair.subscriber)? >= BEFORE)
        })?;
    }
    let mut events = Events::default();
    let mut lane = None;
    for round in 1..=ROUNDS {
        thread::sleep(CALM);
        let begin_ns = now_ns();
        let mut own = Own::start(isolane, folder, round, &network)?;
        until("isolane's publisher publishes", || {
            Ok(has_begun(&own.publisher.said()?))
        })?;
        thread::sleep(AFTERMATH);
        events.add(Kind::Attach, begin_ns, now_ns());
        until("isolane exchanges samples", || {
            Ok(lines(&own.subscriber)? >= OWN_SAMPLES)
        })?;
        thread::sleep(CALM);
        let begin_ns = now_ns();
        if round < ROUNDS {
            own.publisher.kill()?;
            own.subscriber.kill()?;
            thread::sleep(AFTERMATH);
            events.add(Kind::Kill, begin_ns, now_ns());
        } else {
            lane = Some(own.leave()?);
            thread::sleep(AFTERMATH);
            events.add(Kind::Leave, begin_ns, now_ns());
        }
    }
    thread::sleep(CALM);
    let pairs = pairs.into_iter().map(|pair| pair.finish(&events));
    let pairs = pairs.collect::<Result<_>>()?;
    network.finish()?;
    Ok(Coexistence {
        pairs,
        attached: ROUNDS,
        lane: lane.ok_or("the last round has not run")?,
    })
}

/// The other implementation's publisher on host A and subscriber on host B.
struct Pair {
    reliability: Reliability,
    publisher: Program,
    subscriber: Program,
}

impl Pair {
    fn start(
        reliability: Reliability,
        program: &Path,
        folder: &Path,
        network: &Network,
    ) -> Result<Self> {
        let start = |host, role: &str, more: &[&str]| {
            let mut command = Command::new(program);
            command.args([role, "--topic", topic(reliability)]);
            command.args(["--seconds", &LONGEST_PAIR.to_string()]);
            // KEEP_ALL: the reader's history replaces nothing, so a missing sample was lost by the network.
            command.args([&format!("--{}", reliability.word()), "--keep-all"]);
            command.args(more);
            let stem = folder.join(format!("pair-{}-{role}", reliability.word()));
            Program::start(network.command(host, command), &stem)
        };
        let period_ms = PAIR_PERIOD_MS.to_string();
        Ok(Self {
            reliability,
            subscriber: start(Host::B, "sub", &["--times"])?,
            publisher: start(Host::A, "pub", &["--period-ms", &period_ms])?,
        })
    }

    /// Stops the pair, and attributes its losses to events.
    fn finish(mut self, events: &Events) -> Result<PairReport> {
        self.publisher.interrupt()?;
        until("the pair's publisher has written all", || {
            Ok(changes_written(&self.publisher.said()?).is_some())
        })?;
        thread::sleep(AFTERMATH);
        let written = changes_written(&self.publisher.said()?).unwrap_or_default();
        for program in [&mut self.publisher, &mut self.subscriber] {
            let ending = program.stop()?;
            if ending != Ending::Exited(0) {
                return Err(
                    format!("a program of the pair {ending}\n{}", program.account()).into(),
                );
            }
        }
        let printed = self.subscriber.printed()?;
        let taken = samples(&printed, topic(self.reliability))?;
        Ok(PairReport::new(
            self.reliability.word(),
            PAIR_PERIOD_MS,
            written,
            &taken,
            events,
        )?)
    }
}

/// isolane's publisher on host A and subscriber on host B.
struct Own {
    publisher: Program,
    subscriber: Program,
}

impl Own {
    fn start(isolane: &Path, folder: &Path, round: usize, network: &Network) -> Result<Self> {
        let start = |host, role: &str, more: &[&str]| {
            let mut command = Command::new(isolane);
            command.args([role, TOPIC, "--datapath", "xdp", "--reliable"]);
            command.args(["--history", "all", "-vv"]);
            command.args(["--seconds", &LONGEST_PAIR.to_string()]);
            command.args(more);
            let stem = folder.join(format!("isolane-{round}-{role}"));
            Program::start(network.command(host, command), &stem)
        };
        Ok(Self {
            subscriber: start(Host::B, "sub", &[])?,
            publisher: start(Host::A, "pub", &["--color", COLOR, "--period", "5ms"])?,
        })
    }

    /// Interrupts both programs, and returns what the subscriber's lane carried.
    fn leave(mut self) -> Result<Carried> {
        self.publisher.stop()?;
        self.subscriber.stop()?;
        let said = self.subscriber.said()?;
        Carried::of(&said)
            .ok_or_else(|| format!("no account of lanes\n{}", self.subscriber.account()).into())
    }
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
fn until(what: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !is_so()? {
        if begin.elapsed() > LONGEST_WAIT {
            return Err(format!("in {} s not: {what}", LONGEST_WAIT.as_secs()).into());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

impl Coexistence {
    /// The result in words; an error when the pair lost more than it may.
    pub(super) fn judge(&self) -> std::result::Result<String, String> {
        for pair in &self.pairs {
            pair.judge()?;
        }
        let Carried {
            received,
            received_by_lane,
            ..
        } = self.lane;
        if received_by_lane * 2 <= received {
            return Err(format!(
                "isolane's lane carried only {received_by_lane} of {received} datagrams"
            ));
        }
        let pairs = self.pairs.iter().map(PairReport::to_string);
        let pairs = pairs.collect::<Vec<_>>().join("; ");
        Ok(format!(
            "{pairs}; isolane attached {} times, {received_by_lane} of {received} datagrams by the lane",
            self.attached
        ))
    }
}

/// Longest silence of a pair that does not yet count as an interruption. The number of samples written in this time
/// also bounds the best-effort loss at one event. Without that bound, an occasional sample would hide any loss.
const LONGEST_SILENCE_MS: u32 = 500;

/// Word for a pair that retransmits lost samples.
const RELIABLE: &str = "reliable";

/// A sample, and the time at which it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) number: u32,
    pub(super) at_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// isolane's programs attached to both interfaces.
    Attach,
    /// isolane's programs were killed.
    Kill,
    /// isolane's programs were interrupted and left.
    Leave,
}

/// Events with their intervals: from the cause to the end of its aftermath.
#[derive(Default)]
pub(super) struct Events(Vec<(Kind, [u64; 2])>);

impl Events {
    pub(super) fn add(&mut self, kind: Kind, from_ns: u64, to_ns: u64) {
        self.0.push((kind, [from_ns, to_ns]));
    }

    /// Index and kind of the first event that overlaps this interval.
    fn within(&self, [from_ns, to_ns]: [u64; 2]) -> Option<(usize, Kind)> {
        let overlaps = |[from, to]: [u64; 2]| from <= to_ns && from_ns <= to;
        let mut events = self.0.iter().enumerate();
        let first = events.find(|(_, event)| overlaps(event.1));
        first.map(|(place, event)| (place, event.0))
    }
}

/// Losses of one pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PairReport {
    pub(super) reliability: &'static str,
    /// Samples from the first one taken on. Earlier ones do not count: the subscriber may not have been matched.
    pub(super) written: u64,
    pub(super) received: u64,
    /// All lost samples; a reliable pair must have none.
    pub(super) lost: u64,
    pub(super) lost_at_attach: u64,
    pub(super) lost_at_kill: u64,
    pub(super) lost_at_leave: u64,
    pub(super) lost_elsewhere: u64,
    /// Loss at the worst event, and the bound for one event.
    pub(super) most_lost_at_event: u64,
    pub(super) most_lost_allowed: u64,
    /// The longest time without a sample around an event, and anywhere else.
    pub(super) longest_silence_at_event_ms: f64,
    pub(super) longest_silence_elsewhere_ms: f64,
}

impl PairReport {
    /// Report on a pair that writes a sample each period. An error when samples were duplicated or out of order.
    pub(super) fn new(
        reliability: &'static str,
        period_ms: u32,
        written: u32,
        taken: &[Taken],
        events: &Events,
    ) -> std::result::Result<Self, String> {
        let (Some(first), Some(last)) = (taken.first(), taken.last()) else {
            return Err(format!("{reliability}: no sample came"));
        };
        let mut report = Self {
            reliability,
            written: u64::from(written.saturating_sub(first.number)),
            received: taken.len() as u64,
            lost: 0,
            lost_at_attach: 0,
            lost_at_kill: 0,
            lost_at_leave: 0,
            lost_elsewhere: u64::from(written.saturating_sub(last.number + 1)),
            most_lost_at_event: 0,
            most_lost_allowed: match reliability {
                RELIABLE => 0,
                _ => u64::from(LONGEST_SILENCE_MS / period_ms),
            },
            longest_silence_at_event_ms: 0.0,
            longest_silence_elsewhere_ms: 0.0,
        };
        let mut lost_at_each = vec![0; events.0.len()];
        for pair in taken.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            if after.number <= before.number {
                return Err(format!(
                    "{reliability}: sample {} came after {}",
                    after.number, before.number
                ));
            }
            let event = events.within([before.at_ns, after.at_ns]);
            let silence_ms = after.at_ns.saturating_sub(before.at_ns) as f64 / 1e6;
            let longest = match event {
                Some(_) => &mut report.longest_silence_at_event_ms,
                None => &mut report.longest_silence_elsewhere_ms,
            };
            *longest = longest.max(silence_ms);
            let lost = u64::from(after.number - before.number - 1);
            if let Some((place, _)) = event {
                lost_at_each[place] += lost;
            }
            *match event.map(|(_, kind)| kind) {
                Some(Kind::Attach) => &mut report.lost_at_attach,
                Some(Kind::Kill) => &mut report.lost_at_kill,
                Some(Kind::Leave) => &mut report.lost_at_leave,
                None => &mut report.lost_elsewhere,
            } += lost;
        }
        report.most_lost_at_event = lost_at_each.into_iter().max().unwrap_or(0);
        report.lost = report.lost_at_attach
            + report.lost_at_kill
            + report.lost_at_leave
            + report.lost_elsewhere;
        Ok(report)
    }

    /// Checks the pair: a reliable one loses nothing, best effort loses a bounded number at each event and none
    /// elsewhere, and no gap is long.
    pub(super) fn judge(&self) -> std::result::Result<(), String> {
        let is_reliable = self.reliability == RELIABLE;
        if (is_reliable && self.lost > 0) || self.lost_elsewhere > 0 {
            return Err(format!("the pair lost what it must not: {self}"));
        }
        if self.most_lost_at_event > self.most_lost_allowed {
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
            self.reliability,
            self.received,
            self.written,
            self.lost_at_attach,
            self.lost_at_kill,
            self.lost_at_leave,
            self.lost_elsewhere,
            self.most_lost_at_event,
            self.most_lost_allowed,
            self.longest_silence_at_event_ms,
            self.longest_silence_elsewhere_ms
        )
    }
}

/// Parses the output of a subscriber with `--times`: `TOPIC COLOR x y [size] nanoseconds`. Lines about the instance's
/// state are skipped.
pub(super) fn samples(printed: &str, topic: &str) -> std::result::Result<Vec<Taken>, String> {
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

    fn events() -> Events {
        let mut events = Events::default();
        events.add(Kind::Attach, 20 * MS, 25 * MS);
        events.add(Kind::Kill, 60 * MS, 65 * MS);
        events
    }

    fn report(reliability: &'static str, missing: &[u32]) -> PairReport {
        PairReport::new(reliability, 1, 100, &taken(missing), &events()).unwrap()
    }

    #[test]
    fn missing_samples_are_counted_by_their_event() {
        let report = report("best-effort", &[21, 22, 64, 80]);
        assert_eq!((report.received, report.written), (96, 100));
        assert_eq!((report.lost_at_attach, report.lost_at_kill), (2, 1));
        assert_eq!((report.lost_elsewhere, report.lost), (1, 4));
        assert_eq!(report.longest_silence_at_event_ms, 3.0);
        assert!(report.judge().is_err());
    }

    #[test]
    fn only_best_effort_loses_and_only_around_events() {
        assert!(report("best-effort", &[21, 64]).judge().is_ok());
        assert!(report("reliable", &[21]).judge().is_err());
        assert!(report("reliable", &[]).judge().is_ok());
        // A missing last sample counts as lost, too.
        assert!(report("best-effort", &[99]).judge().is_err());
    }

    #[test]
    fn a_long_silence_is_an_interruption_though_nothing_is_lost() {
        // After the kill, and where nothing happened.
        for from in [61, 81] {
            let mut taken = taken(&[]);
            for sample in &mut taken[from..] {
                sample.at_ns += 600 * MS;
            }
            let report = PairReport::new("reliable", 1, 100, &taken, &events()).unwrap();
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
            let mut events = Events::default();
            events.add(Kind::Attach, 0, lasts_ms * MS);
            // Each event's loss counts alone.
            events.add(Kind::Kill, 1_900 * MS, 1_910 * MS);
            let taken = taken.collect::<Vec<_>>();
            let report = PairReport::new("best-effort", period_ms, 2_000, &taken, &events);
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
        assert!(PairReport::new("reliable", 1, 9, &repeated, &Events::default()).is_err());
    }
}
