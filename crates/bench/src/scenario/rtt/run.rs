//! What the parent of a round-trip measurement does.

use std::thread;
use std::time::Duration;

use super::{EndConfig, PING_TOPIC, PONG_TOPIC, PingReport, PongReport};
use crate::cable::{self, Cable, Observe, RoundPassages};
use crate::child::{Program, Role, Running};
use crate::flood::{self, Flood};
use crate::namespace::{Host, Testbed};
use crate::process::Note;
use crate::record::Rounds;
use crate::report::{Disturbance, FloodAsked, Run, Scenario};
use crate::scenario::flow::{CableFlow, Flow};
use crate::scenario::{ConfigError, ScenarioError, Site};

/// How long the flood runs before the first ping: the cable's queue has found its level.
const FLOOD_SETTLES: Duration = Duration::from_millis(300);
/// The flood's own end, if the parent's word never comes: this long after the run's.
const FLOOD_OUTLASTS_SECONDS: u32 = 60;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What is measured.
    pub scenario: Scenario,
    /// How long pings are published.
    pub seconds: u32,
    /// What nonces are made from. A run of its own has one of its own.
    pub seed: u64,
    /// The link between the hosts. What it observes is set by the run.
    pub cable: cable::Config,
    /// The flood, where the scenario has one. Its length, and the rate it is a multiple of, are set
    /// by the run.
    pub flood: flood::Config,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// For the report.
    pub run: Run,
    /// Every round trip that came back, in nanoseconds, for a histogram.
    pub rtt_ns: Vec<u64>,
}

impl Config {
    /// Pings scheduled.
    pub fn samples(&self) -> u64 {
        u64::from(self.seconds) * u64::from(self.scenario.rate_hz)
    }

    /// Whether this can be measured.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.end(Site::loopback()).check()
    }

    pub(super) fn end(&self, site: Site) -> EndConfig {
        EndConfig {
            site,
            publisher: self.scenario.publisher,
            order: self.scenario.order,
            payload_bytes: self.scenario.payload_bytes,
            rate_hz: self.scenario.rate_hz,
            // More than there may be is refused by the check.
            samples: u32::try_from(self.samples()).unwrap_or(u32::MAX),
            seed: self.seed,
            core: Some(self.flood.cores.hosts),
        }
    }

    fn cable(&self, end: &EndConfig) -> cable::Config {
        cable::Config {
            observe: Some(Observe {
                payload_bytes: end.payload_bytes,
                samples: end.samples,
                seed: end.seed,
            }),
            core: Some(self.flood.cores.cable),
            ..self.cable.clone()
        }
    }

    fn flood(&self) -> flood::Config {
        flood::Config {
            cable_bits_per_s: self.cable.bits_per_s,
            seconds: self.seconds + FLOOD_OUTLASTS_SECONDS,
            ..self.flood.clone()
        }
    }
}

/// Measures between the two hosts of a testbed, through the cable.
pub fn run_between_hosts(
    testbed: &Testbed,
    program: &Program,
    config: &Config,
) -> Result<Outcome, ScenarioError> {
    let end = config.end(Site::Host(Host::A));
    end.check()?;
    let of_cable = ScenarioError::of("the cable");
    let cable = Cable::start(testbed, program, &config.cable(&end)).map_err(of_cable)?;
    let spawn = |host, role: Role| Running::spawn(testbed, host, program, &role);
    let pong_role = Role::RttPong(config.end(Site::Host(Host::B)));
    let pong = spawn(Host::B, pong_role).map_err(ScenarioError::of("the pong end"))?;
    let ping = spawn(Host::A, Role::RttPing(end)).map_err(ScenarioError::of("the ping end"))?;
    let mut ends = Ends { ping, pong };
    ends.wait_until_ready()?;

    let flood = match config.scenario.disturbance {
        Some(Disturbance::Flood) => Some(
            Flood::start(testbed, program, &config.flood())
                .map_err(ScenarioError::of("the flood"))?,
        ),
        _ => None,
    };
    if flood.is_some() {
        thread::sleep(FLOOD_SETTLES);
    }
    let notes = [testbed.notes(), ends.pong.notes(), ends.ping.notes()].concat();
    ends.ping.go().map_err(ScenarioError::of("the ping end"))?;
    let ping = ends.ping.wait(config.seconds.into());
    let ping: PingReport = ping.map_err(ScenarioError::of("the ping end"))?;
    // What sends ends before what receives, and the cable last.
    let flood = flood.map(Flood::finish).transpose();
    let flood = flood.map_err(ScenarioError::of("the flood"))?;
    let pong = ends.pong.finish();
    let pong: PongReport = pong.map_err(ScenarioError::of("the pong end"))?;
    let mut cable = cable.finish().map_err(ScenarioError::of("the cable"))?;
    let passages = cable.passages.take();
    outcome(config, (ping, pong), passages, Some((cable, flood)), notes)
}

/// Measures between two processes of this machine, by unicast on 127.0.0.1. Nothing can disturb
/// these runs on a link, because there is none.
pub fn run_over_loopback(program: &Program, config: &Config) -> Result<Outcome, ScenarioError> {
    let end = config.end(Site::loopback());
    end.check()?;
    let spawn = |role: Role| Running::spawn_here(program, &role);
    let pong = spawn(Role::RttPong(end.clone())).map_err(ScenarioError::of("the pong end"))?;
    let ping = spawn(Role::RttPing(end)).map_err(ScenarioError::of("the ping end"))?;
    let mut ends = Ends { ping, pong };
    ends.wait_until_ready()?;
    let notes = [ends.pong.notes(), ends.ping.notes()].concat();
    ends.ping.go().map_err(ScenarioError::of("the ping end"))?;
    let ping = ends.ping.wait(config.seconds.into());
    let ping: PingReport = ping.map_err(ScenarioError::of("the ping end"))?;
    let pong = ends.pong.finish();
    let pong: PongReport = pong.map_err(ScenarioError::of("the pong end"))?;
    outcome(config, (ping, pong), None, None, notes)
}

/// Both ends as processes. Dropped early, they are killed.
struct Ends {
    ping: Running,
    pong: Running,
}

impl Ends {
    /// Neither is ready before it has found the other.
    fn wait_until_ready(&mut self) -> Result<(), ScenarioError> {
        let pong = self.pong.wait_until_ready();
        pong.map_err(ScenarioError::of("the pong end"))?;
        let ping = self.ping.wait_until_ready();
        ping.map_err(ScenarioError::of("the ping end"))
    }
}

/// Merges the stamps, balances the ledgers, and summarises.
pub(super) fn outcome(
    config: &Config,
    (ping, pong): (PingReport, PongReport),
    passages: Option<RoundPassages>,
    link: Option<(cable::Report, Option<flood::Report>)>,
    notes: Vec<Note>,
) -> Result<Outcome, ScenarioError> {
    let flows = flows(&ping, &pong, passages.as_ref());
    let faults = [ping.counts.faults, pong.counts.faults].concat();
    let period_ns = config.scenario.period_ns();
    let rounds = Rounds::merge(ping.recorder, pong.recorder, passages, period_ns)?;
    let (cable, flood) = link.unzip();
    let flood = flood.flatten();
    let mut run = Run::new(&config.scenario, &rounds, cable.as_ref(), flood);
    run.invalid = run
        .invalid
        .or_else(|| faults.into_iter().next())
        .or_else(|| flows.iter().find_map(|flow| flow.check().err()));
    run.flows = flows.to_vec();
    run.flood = (config.scenario.disturbance == Some(Disturbance::Flood)).then_some(FloodAsked {
        factor: config.flood.factor,
        payload_bytes: config.flood.payload_bytes,
    });
    // Every child says what it was refused, several times the same.
    for note in notes {
        if !run.notes.contains(&note) {
            run.notes.push(note);
        }
    }
    Ok(Outcome {
        run,
        rtt_ns: rounds.rtt_ns(),
    })
}

/// The pings' way and the pongs'.
fn flows(ping: &PingReport, pong: &PongReport, passages: Option<&RoundPassages>) -> [Flow; 2] {
    let a_to_b = passages.map(|passages| CableFlow::of(&passages.a_to_b));
    let b_to_a = passages.map(|passages| CableFlow::of(&passages.b_to_a));
    let (pings, pongs) = ((ping.offered, ping.refused), (pong.offered, pong.refused));
    [
        Flow::between(PING_TOPIC, pings, &ping.counts, &pong.counts, a_to_b),
        Flow::between(PONG_TOPIC, pongs, &pong.counts, &ping.counts, b_to_a),
    ]
}
