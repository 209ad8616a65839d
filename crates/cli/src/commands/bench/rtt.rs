//! `isolane bench rtt`: round-trip times of small samples at a fixed rate.

use std::time::Duration;

use clap::Args;
use isolane_bench::cable::Arbiter;
use isolane_bench::report::{Disturbance, Order, Place, Publisher, Shown, Step};
use isolane_bench::scenario::ablation::{Ablation, Condition};
use isolane_bench::scenario::{plan, rtt};

use super::environment::{self, BenchEnvironment};
use super::round_trips::{self, RoundTripArguments};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::{MAX_RATE_HZ, MAX_REPETITIONS};
use crate::output::tell;
use crate::settings::Settings;
use crate::values::{one_of, payload_of_round_trip, seconds};

const DISTURBANCES: &[(&str, Condition)] = &[
    ("none", Condition::foreign(None)),
    ("flood", Condition::foreign(Some(Disturbance::Flood))),
    ("read-flood", Condition::READ_FLOOD),
    ("storm", Condition::foreign(Some(Disturbance::Storm))),
    ("joining", Condition::foreign(Some(Disturbance::Joining))),
    ("bulk", Condition::foreign(Some(Disturbance::Bulk))),
    ("repair", Condition::foreign(Some(Disturbance::Repair))),
    ("large", Condition::foreign(Some(Disturbance::Large))),
];
const ARBITERS: &[(&str, Arbiter)] = &[("fifo", Arbiter::Fifo), ("strict", Arbiter::Strict)];
const ORDERS: &[(&str, Order)] = &[("priority", Order::Priority), ("fifo", Order::Fifo)];

// Runs of `--ablation` last 3 s by default, so at 2000 Hz each p99 has 60 samples beyond it. That is too few for a
// p99.9, which stalls of the machine would dominate anyway.
#[derive(Debug, Args)]
pub(crate) struct Rtt {
    #[command(flatten)]
    round_trips: RoundTripArguments,
    /// Set the duration of each run in seconds [default: 10; 3 with --ablation]
    #[arg(
        long,
        value_name = "N",
        value_parser = seconds(),
        default_value_if("ablation", "true", "3"),
        default_value = "10",
        hide_default_value = true
    )]
    seconds: Duration,
    /// Set payload sizes in bytes, 12 to 1400, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_parser = payload_of_round_trip,
        default_value_if("ablation", "true", "64,512,1024"),
        default_value = "64,1024"
    )]
    payload: Vec<u32>,
    /// Send this many pings per second, 1 to 100000
    #[arg(
        long,
        value_name = "HZ",
        value_parser = clap::value_parser!(u32).range(1..=MAX_RATE_HZ),
        default_value = "2000"
    )]
    rate: u32,
    /// Select disturbances, separated by commas: none, flood (of the link), read-flood (a flood that a bulk reader of
    /// the participants receives), storm (multicast to many sockets of the hosts), joining (endpoints come and go),
    /// bulk (a reliable topic of the participants), repair (bulk with losses), large (bulk with samples of 1 MiB)
    ///
    /// joining, bulk and repair run on a faster link, large on a veth pair. repair takes payloads up to 960 B. In JSON,
    /// read-flood is flood with `bulk_reader`.
    #[arg(
        long,
        value_name = "LIST",
        value_parser = one_of(DISTURBANCES),
        default_value_if("ablation", "true", "none,flood,storm,read-flood"),
        default_value = "none"
    )]
    disturbance: Vec<Condition>,
    /// Select orders in which the link sends frames: fifo, strict (most urgent class first)
    #[arg(
        long,
        value_name = "LIST",
        value_parser = one_of(ARBITERS),
        default_value_if("ablation", "true", "fifo,strict"),
        default_value = "fifo"
    )]
    arbiter: Vec<Arbiter>,
    /// Select orders in which participants run jobs: priority (most urgent first), fifo
    ///
    /// fifo is the order of readiness, with one socket for all levels.
    #[arg(long, value_name = "LIST", value_parser = one_of(ORDERS), default_value = "priority")]
    order: Vec<Order>,
    /// Measure seven configurations, each of which adds one mechanism (as root, about 35 minutes)
    ///
    /// The configurations are: one socket for all levels, a socket per level, steering, NAPI priorities, AF_XDP, a lane
    /// per level, budgets. Each runs with payloads 64,512,1024, disturbances none,flood,storm,read-flood and arbiters
    /// fifo,strict, unless other options select fewer.
    #[arg(long, conflicts_with_all = ["datapath", "order"])]
    ablation: bool,
    /// Repeat the whole measurement this many times, 1 to 100 [default: 1; 3 with --ablation]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=MAX_REPETITIONS),
        default_value_if("ablation", "true", "3"),
        default_value = "1",
        hide_default_value = true
    )]
    repetitions: u32,
}

impl Rtt {
    /// Measures every combination of datapath, payload and disturbance, or the ablation, and prints the results.
    pub(super) fn run(self, settings: &Settings) -> Result<ExitCode, Failure> {
        if self.ablation {
            self.check_outside()?;
        }
        settings.begin()?;
        let hosts = BenchEnvironment::set_up()?;
        if let Some(explanation) = hosts.without_hosts() {
            tell(explanation);
        }
        let (mut rows, shown) = match self.ablation {
            true => (self.ablation(&hosts)?, Shown::Steps),
            false => (self.rows(&hosts)?, Shown::EachRun),
        };
        let left_out = hosts.leave_out_lanes(&mut rows);
        let what = match &hosts.hosts {
            Ok(_) => "round trips between two hosts in network namespaces",
            Err(_) => round_trips::WITHOUT_HOSTS,
        };
        let plan = round_trips::Plan { rows, left_out };
        round_trips::run(hosts, what, plan, "", &self.round_trips, shown)
    }

    /// Refuses disturbances inside the participants. An ablation measures remedies against disturbances from outside.
    fn check_outside(&self) -> Result<(), Failure> {
        let is_in_process =
            |it: &&Condition| it.disturbance.is_some_and(Disturbance::is_in_process);
        match self.disturbance.iter().find(is_in_process) {
            Some(disturbance) => Err(Failure::wrong_usage(
                format!(
                    "--ablation does not measure under {}",
                    word_of(*disturbance)
                ),
                "the steps of an ablation differ in how hosts receive frames: choose none, flood, read-flood or storm",
            )),
            None => Ok(()),
        }
    }

    fn ablation(&self, hosts: &BenchEnvironment) -> Result<Vec<rtt::Config>, Failure> {
        if hosts.hosts.is_err() {
            return Err(Failure::forbidden(
                "there is no ablation without test hosts",
                "the steps of an ablation differ in how test hosts receive frames from the cable",
            )
            .with_remedy("run as root"));
        }
        let ablation = Ablation {
            steps: Step::ALL.to_vec(),
            conditions: self.disturbance.clone(),
            arbiters: self.arbiter.clone(),
            payloads: self.payload.clone(),
            repetitions: self.repetitions,
            rate_hz: self.rate,
            seconds: self.seconds.as_secs() as u32,
        };
        let rows = ablation.rows();
        rows.iter().try_for_each(environment::check)?;
        Ok(rows)
    }

    /// Planned runs in order. Runs whose results are compared follow each other.
    fn rows(&self, hosts: &BenchEnvironment) -> Result<Vec<rtt::Config>, Failure> {
        let mut rows: Vec<rtt::Config> = Vec::new();
        for &datapath in &self.round_trips.measured.datapath {
            let datapath = hosts.name_of(datapath)?;
            for &payload in &self.payload {
                for &disturbance in &self.disturbance {
                    reaches(datapath, disturbance)?;
                    for place in places(disturbance, &self.disturbance) {
                        rows.extend(self.variants(datapath, payload, disturbance, place));
                    }
                }
            }
        }
        rows.iter().try_for_each(environment::check)?;
        let repeated = (1..=self.repetitions).flat_map(|repetition| {
            rows.iter().map(move |row| rtt::Config {
                repetition,
                ..row.clone()
            })
        });
        Ok(repeated.collect())
    }

    /// Runs for each selected arbiter and job order.
    fn variants(
        &self,
        datapath: &str,
        payload_bytes: u32,
        disturbance: Condition,
        place: Place,
    ) -> Vec<rtt::Config> {
        let seconds = self.seconds.as_secs() as u32;
        // The memory datapath has no second thread that could publish. If the participants' own work disturbs, pings
        // must compete with that work as jobs of the executor.
        let publisher = match datapath {
            "memory" => Publisher::Job,
            _ if place != Place::Link => Publisher::Job,
            _ => Publisher::Thread,
        };
        let mut rows = Vec::new();
        for order in &self.order {
            for arbiter in &self.arbiter {
                let of = disturbance.disturbance;
                let mut scenario = plan::scenario(datapath, publisher, payload_bytes, of);
                scenario.rate_hz = self.rate;
                let config = plan::in_place(place, scenario.in_order(*order), seconds);
                let config = match disturbance.is_read {
                    true => config.read_as_bulk(),
                    false => config,
                };
                rows.push(config.through(*arbiter));
                // Without a link there is no arbiter: one run for each job order is enough.
                if !has_link(datapath) || place == Place::Pair {
                    break;
                }
            }
        }
        rows
    }
}

/// Word of a disturbance on the command line.
fn word_of(disturbance: Condition) -> &'static str {
    let known = DISTURBANCES.iter().find(|(_, known)| *known == disturbance);
    known.map_or("none", |(word, _)| word)
}

/// Connections for the runs with a disturbance. Undisturbed runs are repeated over the connection of every selected
/// disturbance, for comparison.
fn places(disturbance: Condition, all: &[Condition]) -> Vec<Place> {
    let place = |it: Condition| it.disturbance.map(Disturbance::place);
    if let Some(place) = place(disturbance) {
        return vec![place];
    }
    let is_disturbed = |of: &Place| all.iter().any(|&other| place(other) == Some(*of));
    let mut places = vec![Place::Link, Place::FastLink, Place::Pair];
    places.retain(is_disturbed);
    match places.is_empty() {
        true => vec![Place::Link],
        false => places,
    }
}

/// Returns whether runs on this datapath are made between two hosts, over a link.
fn has_link(datapath: &str) -> bool {
    matches!(datapath, "udp" | "xdp")
}

/// Checks that a disturbance is possible on a datapath.
fn reaches(datapath: &str, disturbance: Condition) -> Result<(), Failure> {
    let (Some(kind), false) = (disturbance.disturbance, has_link(datapath)) else {
        return Ok(());
    };
    let reason = match kind.is_in_process() {
        true => "this disturbance needs two test hosts and the cable between them",
        false => "this disturbance goes through the cable between two test hosts",
    };
    let what = word_of(disturbance);
    Err(Failure::forbidden(
        format!("nothing was measured with `{what}` over `{datapath}`"),
        reason,
    )
    .with_remedy("run as root, with --datapath udp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undisturbed_runs_are_made_where_the_others_are() {
        use Place::{FastLink, Link, Pair};
        const fn of(disturbance: Disturbance) -> Condition {
            Condition::foreign(Some(disturbance))
        }
        let (bulk, flood) = (of(Disturbance::Bulk), of(Disturbance::Flood));
        let (large, none) = (of(Disturbance::Large), Condition::foreign(None));
        assert_eq!(places(none, &[none]), [Link]);
        assert_eq!(places(none, &[none, flood]), [Link]);
        assert_eq!(places(none, &[none, bulk]), [FastLink]);
        assert_eq!(places(none, &[none, large]), [Pair]);
        assert_eq!(
            places(none, &[large, none, flood, bulk]),
            [Link, FastLink, Pair]
        );
        assert_eq!(places(bulk, &[flood, bulk]), [FastLink]);
        assert_eq!(places(flood, &[flood, bulk]), [Link]);
    }
}
