//! A pair of another implementation on the hosts and interfaces on which isolane comes and goes.
//!
//! The pair exchanges samples all the time, best effort and reliable, while isolane attaches to both
//! interfaces, has samples of its own carried by its lanes, and is killed (SIGKILL), again and again; at
//! last it is told to leave, and says what its lanes carried. Each sample of the pair has a number and
//! the time at which it was taken, so what is missing is known, and beside which event it was lost. Lost
//! near none of them would be nobody's fault but the lane's own: it shall be nothing.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::clock::now_ns;
use isolane_bench::namespace::Host;
use serde::Serialize;

use super::cell::{Axis, Loss, Reliability};
use super::network::Network;
use super::printed::{Carried, changes_written, has_begun};
use super::program::{Ending, LOOK, Program};
use super::side::{COLOR, TOPIC};
use super::timeline::{Events, Kind, PairReport, samples};
use isolane_support::Result;

/// How often isolane comes; it is killed each time but the last.
const ROUNDS: usize = 5;
/// Between two samples of the pair, in milliseconds.
const PAIR_PERIOD_MS: u32 = 1;
/// What the pair's programs may take at most, in seconds.
const LONGEST_PAIR: u32 = 60;
/// How long anything is waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Samples of the pair before isolane comes first.
const BEFORE: usize = 500;
/// Samples of isolane's own in each round.
const OWN_SAMPLES: usize = 100;
/// How long each state lasts in which nothing happens.
const CALM: Duration = Duration::from_millis(700);
/// How long after an event it is not over: the kernel lets go of rings and programs of a process that
/// died some 60 ms later.
const AFTERMATH: Duration = Duration::from_millis(200);

/// What came of it.
#[derive(Serialize)]
pub(super) struct Coexistence {
    /// Of the pair with best effort, and of the reliable one.
    pub(super) pairs: Vec<PairReport>,
    /// How often isolane attached; as often but once it was killed.
    pub(super) attached: usize,
    /// What the subscriber that was not killed received.
    pub(super) lane: Carried,
}

/// Runs it. `peer` and `isolane` are programs; what they print is kept in `folder`.
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
            // A reader's history is to replace nothing: what is missing was lost by the network.
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

    /// Ends the exchange, and says what was lost when.
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

    /// Ends it as a person would; what the subscriber's lane carried.
    fn leave(mut self) -> Result<Carried> {
        self.publisher.stop()?;
        self.subscriber.stop()?;
        let said = self.subscriber.said()?;
        Carried::of(&said)
            .ok_or_else(|| format!("no account of lanes\n{}", self.subscriber.account()).into())
    }
}

/// A topic for each pair, and none for isolane.
fn topic(reliability: Reliability) -> &'static str {
    match reliability {
        Reliability::BestEffort => "Circle",
        Reliability::Reliable => "Triangle",
    }
}

fn lines(program: &Program) -> Result<usize> {
    Ok(program.printed()?.lines().count())
}

/// Waits until it is so; an error when it does not become so.
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
    /// What came of it in words; an error when the pair suffered more than it may.
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
