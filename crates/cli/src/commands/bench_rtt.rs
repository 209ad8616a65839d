//! `isolane bench rtt`: round-trip times of small samples at a fixed rate.

use isolane_bench::report::{self, Place, Publisher, Step};
use isolane_bench::scenario::ablation::{Ablation, Condition};
use isolane_bench::scenario::{plan, rtt};

use super::laboratory::{self, Laboratory};
use super::round_trips::{self, Shown};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::BenchRttSettings;
use crate::values::Disturbance;

/// Measures each datapath, payload and disturbance, and prints the results.
pub(crate) fn run(settings: BenchRttSettings) -> Result<ExitCode, Failure> {
    let laboratory = Laboratory::set_up()?;
    if let Some(explanation) = laboratory.without_hosts() {
        tell(explanation);
    }
    let mut rows = match settings.ablation {
        true => ablation(&settings, &laboratory)?,
        false => rows(&settings, &laboratory)?,
    };
    let left_out = laboratory.leave_out_lanes(&mut rows);
    let what = match &laboratory.hosts {
        Ok(_) => "round trips between two hosts in network namespaces",
        Err(_) => round_trips::WITHOUT_HOSTS,
    };
    let shown = match settings.ablation {
        true => Shown::Steps,
        false => Shown::EachRun,
    };
    let plan = round_trips::Plan { rows, left_out };
    round_trips::run(laboratory, what, plan, "", &settings.runs, shown)
}

fn ablation(
    settings: &BenchRttSettings,
    laboratory: &Laboratory,
) -> Result<Vec<rtt::Config>, Failure> {
    if laboratory.hosts.is_err() {
        return Err(Failure::new(
            ExitCode::MachineForbids,
            "there is no ablation without test hosts",
            "its rows differ in how hosts receive what comes through the cable",
        )
        .with_remedy("run as root"));
    }
    let ablation = Ablation {
        steps: Step::ALL.to_vec(),
        conditions: settings
            .disturbances
            .value
            .iter()
            .map(|disturbance| Condition {
                disturbance: disturbance.in_report(),
                is_read: disturbance.is_read(),
            })
            .collect(),
        arbiters: settings
            .arbiters
            .value
            .iter()
            .map(|arbiter| arbiter.in_cable())
            .collect(),
        payloads: settings
            .runs
            .payloads
            .value
            .iter()
            .map(|payload| payload.get())
            .collect(),
        repetitions: settings.repetitions.value,
        rate_hz: settings.rate_hz.value,
        seconds: settings.runs.run_for.value.as_secs() as u32,
    };
    let rows = ablation.rows();
    rows.iter().try_for_each(laboratory::check)?;
    Ok(rows)
}

/// Runs in order, with runs to be compared adjacent.
fn rows(settings: &BenchRttSettings, laboratory: &Laboratory) -> Result<Vec<rtt::Config>, Failure> {
    let mut rows: Vec<rtt::Config> = Vec::new();
    for &datapath in &settings.runs.datapaths.value {
        let datapath = laboratory.name_of(datapath)?;
        for payload in &settings.runs.payloads.value {
            for &disturbance in &settings.disturbances.value {
                reaches(datapath, disturbance)?;
                for place in places(disturbance, &settings.disturbances.value) {
                    let of_place = variants(settings, datapath, payload.get(), disturbance, place);
                    rows.extend(of_place);
                }
            }
        }
    }
    rows.iter().try_for_each(laboratory::check)?;
    let repetitions = 1..=settings.repetitions.value;
    let repeated = repetitions.flat_map(|repetition| {
        rows.iter().map(move |row| rtt::Config {
            repetition,
            ..row.clone()
        })
    });
    Ok(repeated.collect())
}

/// Places of a disturbance's runs. Undisturbed runs are made in the place of each disturbance they are compared with.
fn places(disturbance: Disturbance, all: &[Disturbance]) -> Vec<Place> {
    let place = |disturbance: Disturbance| {
        let disturbance = disturbance.in_report();
        disturbance.map(report::Disturbance::place)
    };
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

/// Runs for each arbiter and job order.
fn variants(
    settings: &BenchRttSettings,
    datapath: &str,
    payload_bytes: u32,
    disturbance: Disturbance,
    place: Place,
) -> Vec<rtt::Config> {
    let seconds = settings.runs.run_for.value.as_secs() as u32;
    // The memory datapath has no second thread to publish from. With inside disturbances, pings are the executor's own
    // work.
    let publisher = match datapath {
        "memory" => Publisher::Job,
        _ if place != Place::Link => Publisher::Job,
        _ => Publisher::Thread,
    };
    let mut rows = Vec::new();
    for order in &settings.orders.value {
        for arbiter in &settings.arbiters.value {
            let is_read = disturbance.is_read();
            let disturbance = disturbance.in_report();
            let mut scenario = plan::scenario(datapath, publisher, payload_bytes, disturbance);
            scenario.rate_hz = settings.rate_hz.value;
            let scenario = scenario.in_order(order.in_report());
            let config = plan::in_place(place, scenario, seconds);
            let config = match is_read {
                true => config.read_as_bulk(),
                false => config,
            };
            rows.push(config.through(arbiter.in_cable()));
            // Without a link the arbiter is irrelevant.
            if !has_link(datapath) || place == Place::Pair {
                break;
            }
        }
    }
    rows
}

/// Returns whether a datapath's runs are made between two hosts.
fn has_link(datapath: &str) -> bool {
    matches!(datapath, "udp" | "xdp")
}

/// Checks that a disturbance is possible on a datapath.
fn reaches(datapath: &str, disturbance: Disturbance) -> Result<(), Failure> {
    let (Some(disturbance), false) = (disturbance.in_report(), has_link(datapath)) else {
        return Ok(());
    };
    let reason = match disturbance.is_in_process() {
        true => "it takes two hosts in namespaces and the cable between them",
        false => "it goes through the cable, between hosts in namespaces",
    };
    let what = disturbance.word();
    Err(Failure::new(
        ExitCode::MachineForbids,
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
        use Disturbance::{Bulk, Flood, Large, None};
        use Place::{FastLink, Link, Pair};
        assert_eq!(places(None, &[None]), [Link]);
        assert_eq!(places(None, &[None, Flood]), [Link]);
        assert_eq!(places(None, &[None, Bulk]), [FastLink]);
        assert_eq!(places(None, &[None, Large]), [Pair]);
        assert_eq!(
            places(None, &[Large, None, Flood, Bulk]),
            [Link, FastLink, Pair]
        );
        assert_eq!(places(Bulk, &[Flood, Bulk]), [FastLink]);
        assert_eq!(places(Flood, &[Flood, Bulk]), [Link]);
    }
}
