//! `isolane bench rtt`: the round-trip time of small samples at a fixed rate.

use isolane_bench::report::{self, Publisher};
use isolane_bench::scenario::{plan, rtt};

use super::laboratory::{self, Laboratory};
use super::round_trips;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::BenchRttSettings;
use crate::values::Disturbance;

/// Measures each datapath, payload and disturbance, and prints what came of it.
pub(crate) fn run(settings: BenchRttSettings) -> Result<ExitCode, Failure> {
    let laboratory = Laboratory::set_up()?;
    if let Some(explanation) = laboratory.without_hosts() {
        tell(explanation);
    }
    let rows = rows(&settings, &laboratory)?;
    let what = match &laboratory.hosts {
        Ok(_) => "round trips between two hosts in network namespaces",
        Err(_) => round_trips::WITHOUT_HOSTS,
    };
    round_trips::run(laboratory, what, rows, "", settings.runs.json.as_ref())
}

/// The runs, in their order: those that are compared stand side by side.
fn rows(settings: &BenchRttSettings, laboratory: &Laboratory) -> Result<Vec<rtt::Config>, Failure> {
    let seconds = settings.runs.run_for.value.as_secs() as u32;
    let mut rows = Vec::new();
    for &datapath in &settings.runs.datapaths.value {
        let datapath = laboratory.name_of(datapath)?;
        // On the one thread of the memory datapath there is no other to publish from.
        let publisher = match datapath {
            "memory" => Publisher::Job,
            _ => Publisher::Thread,
        };
        for payload in &settings.runs.payloads.value {
            for &disturbance in &settings.disturbances.value {
                let disturbance = offered(datapath, disturbance)?;
                let mut scenario = plan::scenario(datapath, publisher, payload.get(), disturbance);
                scenario.rate_hz = settings.rate_hz.value;
                rows.push(plan::config(scenario, seconds));
            }
        }
    }
    rows.iter().try_for_each(laboratory::check)?;
    Ok(rows)
}

/// A disturbance this version has, on a datapath it reaches.
fn offered(
    datapath: &str,
    disturbance: Disturbance,
) -> Result<Option<report::Disturbance>, Failure> {
    match (disturbance, datapath) {
        (Disturbance::None, _) => Ok(None),
        (Disturbance::Flood, "udp") => Ok(Some(report::Disturbance::Flood)),
        (Disturbance::Flood, _) => Err(Failure::new(
            ExitCode::MachineForbids,
            format!("nothing was measured with a flood over `{datapath}`"),
            "a flood goes through the cable, between hosts in namespaces",
        )
        .with_remedy("run as root, with --datapath udp")),
    }
}
