//! Parent's part of a round-trip measurement.

use std::thread;
use std::time::{Duration, Instant};

use super::outcome::{Outcome, Parts, outcome};
use super::{EndConfig, PingReport, PongReport};
use crate::background_load::BackgroundLoad;
use crate::cable::{self, Cable, Observe};
use crate::child::{ChildError, Program, Role, Running};
use crate::experiment::{Cell, System};
use crate::multicast_load::MulticastLoad;
use crate::namespace::{Host, TestHosts, TestHostsConfig};
use crate::process::{HOST_PRIORITY, Note};
use crate::report::{
    Disturbance, Order, Place, ReceiveWork, RunCores, RunSettings, SystemActivity, Took,
};
use crate::scenario::in_process_load::{self, BulkKind, MAX_MESSAGE_WITH_REPAIR_BYTES};
use crate::scenario::program::RoundsProgram;
use crate::scenario::throughput::Reliability;
use crate::scenario::transport::{BulkReader, Policing, Transport};
use crate::scenario::{ConfigError, ScenarioError, Site};
use crate::traffic_source::Target;
use crate::{background_load, multicast_load};

/// Time in seconds after the run when a flood or storm ends by itself, if the parent does not stop it.
pub(crate) const OUTLASTS_SECONDS: u32 = 60;

/// Configuration of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Cell of the run.
    pub cell: Cell,
    /// Settings, as recorded in the result.
    pub settings: RunSettings,
    /// Seed of the nonces, unique per run.
    pub seed: u64,
    /// Link between the hosts; the run sets its `observe`.
    pub cable: cable::Config,
    /// Flood, if any; the run sets its duration and base rate.
    pub flood: background_load::Config,
    /// Storm, if any; the run sets its duration.
    pub storm: multicast_load::Config,
    /// Number of the repetition of this run, from 1.
    pub repetition: u32,
    /// Transport at both ends.
    pub transport: Transport,
    /// Policing of the receivers at both ends.
    pub policing: Policing,
    /// Reader of the flood's or storm's traffic to the bulk level.
    pub bulk_reader: Option<BulkReader>,
    /// Reliability of both topics.
    pub reliability: Reliability,
    /// System under test, if it is not isolane's own ends.
    pub system: Option<System>,
}

impl Config {
    /// Number of scheduled pings.
    pub fn samples(&self) -> u64 {
        u64::from(self.cell.seconds) * u64::from(self.settings.rate_hz)
    }

    /// Checks whether the run can be measured.
    pub fn check(&self) -> Result<(), ConfigError> {
        let bytes = self.settings.payload_bytes;
        let most = MAX_MESSAGE_WITH_REPAIR_BYTES;
        if self.settings.disturbance == Some(Disturbance::Repair) && bytes > most {
            return Err(ConfigError::PayloadWithRepair { bytes, most });
        }
        if let (Some(_), Some(disturbance)) = (&self.system, self.settings.disturbance)
            && (disturbance.is_in_process() || self.bulk_reader.is_some())
        {
            return Err(ConfigError::DisturbanceNeedsIsolane(disturbance.word()));
        }
        self.ping_end(Site::loopback()).check()
    }

    /// Checks whether the run can be measured without hosts.
    pub(super) fn check_without_hosts(&self) -> Result<(), ConfigError> {
        if let Some(disturbance) = self.settings.disturbance {
            let disturbance = disturbance.word();
            return Err(ConfigError::DisturbanceNeedsHosts(disturbance));
        }
        self.check()
    }

    /// Returns whether the run uses AF_XDP: lanes at the ends, or a steering link.
    pub fn takes_lanes(&self) -> bool {
        let is_steered = self.settings.receive_work != ReceiveWork::Softirq;
        is_steered || matches!(self.transport, Transport::Xdp(_))
    }

    pub(super) fn cores(&self) -> RunCores {
        let cores = self.flood.cores;
        RunCores {
            ping: cores.hosts,
            pong: match self.cell.cores() {
                1 => cores.hosts,
                _ => cores.cable,
            },
            cable: cores.cable,
            receive_work: cores.hosts,
        }
    }

    pub(super) fn ping_end(&self, site: Site) -> EndConfig {
        self.end(site, self.cores().ping)
    }

    fn pong_end(&self, site: Site) -> EndConfig {
        self.end(site, self.cores().pong)
    }

    fn end(&self, site: Site, core: usize) -> EndConfig {
        EndConfig {
            site,
            publisher: self.settings.publisher,
            order: self.settings.order,
            payload_bytes: self.settings.payload_bytes,
            rate_hz: self.settings.rate_hz,
            // `check` refuses larger numbers of samples.
            samples: u32::try_from(self.samples()).unwrap_or(u32::MAX),
            seed: self.seed,
            core: Some(core),
            bulk: match (self.settings.disturbance, self.bulk_reader) {
                (Some(Disturbance::Large), _) => Some(BulkKind::Large),
                (Some(Disturbance::Bulk | Disturbance::Repair), _)
                | (_, Some(BulkReader::Keeps)) => Some(BulkKind::Small),
                _ => None,
            },
            transport: self.transport,
            policing: self.policing,
            bulk_reader: self.bulk_reader,
            reliability: self.reliability,
            max_samples: self.cell.max_samples,
            waiting: self.cell.waiting,
            content: self.cell.content,
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
            steer: self.settings.receive_work != ReceiveWork::Softirq,
            ..self.cable.clone()
        }
    }

    pub(crate) fn flood(&self) -> background_load::Config {
        background_load::Config {
            cable_bits_per_s: self.cable.bits_per_s,
            seconds: self.cell.seconds + OUTLASTS_SECONDS,
            target: self.target(self.flood.target),
            ..self.flood.clone()
        }
    }

    /// Effective target of bulk: in FIFO order all levels share the lane of the lowest one.
    fn target(&self, target: Target) -> Target {
        match (target, self.settings.order) {
            (Target::Level(_), Order::Fifo) => Target::Level(0),
            (target, _) => target,
        }
    }

    pub(crate) fn storm(&self) -> multicast_load::Config {
        multicast_load::Config {
            seconds: self.cell.seconds + OUTLASTS_SECONDS,
            target: self.target(self.storm.target),
            ..self.storm.clone()
        }
    }
}

/// Measures between two hosts: the hosts of a testbed through its cable, or hosts made for the run.
pub fn run_between_hosts(
    testbed: &TestHosts,
    program: &Program,
    config: &Config,
) -> Result<Outcome, ScenarioError> {
    run_between_prepared_hosts(testbed, program, config, || Ok(()))
}

/// Measures between two hosts, and calls `set_up` when the ends exist and before the measurement. Some drivers
/// re-create a device, its interrupts and threads when a lane is attached.
pub fn run_between_prepared_hosts(
    testbed: &TestHosts,
    program: &Program,
    config: &Config,
    set_up: impl FnOnce() -> Result<(), String>,
) -> Result<Outcome, ScenarioError> {
    config.check()?;
    let mut watch = Watch::start();
    let wanted = TestHostsConfig {
        queues: match config.cell.has_one_queue() {
            true => 1,
            false => testbed.config().queues,
        },
        ..testbed.config().clone()
    };
    let place = config.cell.place();
    let of_run = match place {
        Place::Pair => Some(TestHosts::without_cable(&wanted)?),
        Place::Link | Place::FastLink if wanted != *testbed.config() => {
            Some(TestHosts::new(&wanted)?)
        }
        Place::Link | Place::FastLink | Place::Devices => None,
    };
    let testbed = of_run.as_ref().unwrap_or(testbed);
    let ping_end = config.ping_end(Site::Host(Host::A));
    // The threads exist before anything attaches to the hosts' devices, and until the run is over.
    let _threads = match config.settings.receive_work {
        ReceiveWork::Softirq | ReceiveWork::Steered => None,
        ReceiveWork::Threads => Some(testbed.thread_receive_work(HOST_PRIORITY)?),
    };
    let of_cable = || ScenarioError::of("the cable");
    let start = || Cable::start(testbed, program, &config.cable(&ping_end)).map_err(of_cable());
    let has_cable = matches!(place, Place::Link | Place::FastLink);
    let cable = has_cable.then(start).transpose()?;
    let spawn = |host, role: Role| Running::spawn(testbed, host, program, &role).map(End::Child);
    let pong_end = config.pong_end(Site::Host(Host::B));
    let [pong, ping] = match &config.system {
        None => [
            spawn(Host::B, Role::RttPong(pong_end)),
            spawn(Host::A, Role::RttPing(ping_end)),
        ],
        Some(system) => [
            RoundsProgram::spawn(testbed, Host::B, system, "pong", &pong_end).map(End::Program),
            RoundsProgram::spawn(testbed, Host::A, system, "ping", &ping_end).map(End::Program),
        ],
    };
    let ends = Ends::ready(ping, pong)?;
    set_up().map_err(ScenarioError::SetUp)?;
    let set_up = watch.lap_s();

    let of_disturbance = || {
        let disturbance = config.settings.disturbance;
        ScenarioError::of(disturbance.map_or("undisturbed", Disturbance::word))
    };
    let disturbance = RunningDisturbance::start(testbed, program, config);
    let disturbance = disturbance.map_err(of_disturbance())?;
    let notes = [
        testbed.notes(),
        ends.pong.notes(),
        ends.ping.notes(),
        disturbance.notes(),
    ]
    .concat();
    let settle = watch.lap_s();
    let (ping, system) = measure(config, ends.ping)?;
    let measure = watch.lap_s();
    // Senders end before receivers, and the cable last.
    let achieved = disturbance.finish().map_err(of_disturbance())?;
    let pong = ends.pong.pong_report();
    let pong = pong.map_err(ScenarioError::of("the pong end"))?;
    let cable = cable.map(|cable| cable.finish().map_err(of_cable()));
    let mut cable = cable.transpose()?;
    let parts = Parts {
        passages: cable.as_mut().and_then(|cable| cable.passages.take()),
        cable,
        achieved,
        cores: Some(config.cores()),
        system: Some(system),
        notes,
        took: Some(Took {
            set_up,
            settle,
            measure,
            finish: watch.lap_s(),
        }),
        ..Parts::of_ends(ping, pong)
    };
    outcome(config, parts)
}

/// Stopwatch for the parts of a run.
struct Watch(Instant);

impl Watch {
    fn start() -> Watch {
        Watch(Instant::now())
    }

    /// Seconds since the previous call.
    fn lap_s(&mut self) -> f64 {
        let before = std::mem::replace(&mut self.0, Instant::now());
        (self.0 - before).as_secs_f64()
    }
}

/// Measures between two processes of this machine, by unicast on 127.0.0.1, where no link can be disturbed.
pub fn run_over_loopback(program: &Program, config: &Config) -> Result<Outcome, ScenarioError> {
    config.check_without_hosts()?;
    let site = Site::loopback();
    let spawn = |role: Role| Running::spawn_here(program, &role).map(End::Child);
    let pong = spawn(Role::RttPong(config.pong_end(site)));
    let ping = spawn(Role::RttPing(config.ping_end(site)));
    let ends = Ends::ready(ping, pong)?;
    let notes = [ends.pong.notes(), ends.ping.notes()].concat();
    let (ping, system) = measure(config, ends.ping)?;
    let pong = ends.pong.pong_report();
    let pong = pong.map_err(ScenarioError::of("the pong end"))?;
    let parts = Parts {
        cores: Some(config.cores()),
        system: Some(system),
        notes,
        ..Parts::of_ends(ping, pong)
    };
    outcome(config, parts)
}

/// Starts the round trips, waits until they are over, and compares the system's state before and after.
fn measure(config: &Config, mut ping: End) -> Result<(PingReport, SystemActivity), ScenarioError> {
    let of_ping = || ScenarioError::of("the ping end");
    let cores = config.cores();
    // The ping end waits for `go`, and has ended when its report is here.
    let before = SystemActivity::since_boot(cores);
    ping.go().map_err(of_ping())?;
    let report = ping.ping_report(config.cell.seconds).map_err(of_ping())?;
    let system = SystemActivity::since_boot(cores).since(&before);
    Ok((report, system))
}

/// End of a round trip as a process. Dropping it kills the process.
enum End {
    /// isolane's own end.
    Child(Running),
    /// Program of a system under test.
    Program(RoundsProgram),
}

impl End {
    fn wait_until_ready(&mut self) -> Result<(), ChildError> {
        match self {
            End::Child(child) => child.wait_until_ready(),
            End::Program(program) => program.wait_until_ready(),
        }
    }

    fn notes(&self) -> &[Note] {
        match self {
            End::Child(child) => child.notes(),
            End::Program(_) => &[],
        }
    }

    fn go(&mut self) -> Result<(), ChildError> {
        match self {
            End::Child(child) => child.go(),
            End::Program(program) => program.go(),
        }
    }

    /// Report of a ping end, which ends by itself after `seconds`.
    fn ping_report(self, seconds: u32) -> Result<PingReport, ChildError> {
        match self {
            End::Child(child) => child.wait(seconds.into()),
            End::Program(program) => program.ping_report(seconds),
        }
    }

    /// Stops a pong end and returns its report.
    fn pong_report(self) -> Result<PongReport, ChildError> {
        match self {
            End::Child(child) => child.finish(),
            End::Program(program) => program.pong_report(),
        }
    }
}

/// Both ends.
struct Ends {
    ping: End,
    pong: End,
}

impl Ends {
    /// Waits until both started ends have discovered each other.
    fn ready(
        ping: Result<End, ChildError>,
        pong: Result<End, ChildError>,
    ) -> Result<Ends, ScenarioError> {
        let (of_ping, of_pong) = (
            || ScenarioError::of("the ping end"),
            || ScenarioError::of("the pong end"),
        );
        let (mut ping, mut pong) = (ping.map_err(of_ping())?, pong.map_err(of_pong())?);
        pong.wait_until_ready().map_err(of_pong())?;
        ping.wait_until_ready().map_err(of_ping())?;
        Ok(Ends { ping, pong })
    }
}

/// Lead time of a load before the first ping, in which queues reach a steady state.
const SETTLES: Duration = Duration::from_millis(300);

/// Processes of a disturbance: none if the run is undisturbed, or if the ends create the load themselves.
#[derive(Default)]
struct RunningDisturbance {
    flood: Option<BackgroundLoad>,
    storm: Option<MulticastLoad>,
    joining: Option<Running>,
}

/// Reports of a disturbance.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Achieved {
    pub(super) flood: Option<background_load::Report>,
    pub(super) storm: Option<multicast_load::Report>,
    pub(super) joining: Option<in_process_load::JoiningReport>,
}

impl RunningDisturbance {
    /// Starts the disturbance and returns once it is active.
    fn start(
        testbed: &TestHosts,
        program: &Program,
        config: &Config,
    ) -> Result<RunningDisturbance, ChildError> {
        let mut running = RunningDisturbance::default();
        match config.settings.disturbance {
            Some(Disturbance::Flood) => {
                let load = BackgroundLoad::start(testbed, program, &config.flood())?;
                running.flood = Some(load);
                thread::sleep(SETTLES);
            }
            Some(Disturbance::Storm) => {
                let load = MulticastLoad::start(testbed, program, &config.storm())?;
                running.storm = Some(load);
                thread::sleep(SETTLES);
            }
            Some(Disturbance::Joining) => {
                let role = Role::Joining(in_process_load::JoiningConfig {
                    site: Site::Host(Host::B),
                    core: Some(config.cores().cable),
                });
                let mut joining = Running::start(testbed, Host::B, program, &role)?;
                joining.go()?;
                running.joining = Some(joining);
            }
            Some(Disturbance::Bulk | Disturbance::Repair | Disturbance::Large) | None => {}
        }
        Ok(running)
    }

    /// Notes of the start. A load returns its notes with its report.
    fn notes(&self) -> &[Note] {
        self.joining.as_ref().map_or(&[], Running::notes)
    }

    fn finish(self) -> Result<Achieved, ChildError> {
        Ok(Achieved {
            flood: self.flood.map(BackgroundLoad::finish).transpose()?,
            storm: self.storm.map(MulticastLoad::finish).transpose()?,
            joining: self.joining.map(Running::finish).transpose()?,
        })
    }
}
