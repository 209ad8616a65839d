//! The settings of `demo` and `bench`: which runs are made, and where the results go.

use std::time::Duration;

use isolane_model::{Datapath, Reliability, Sourced, Word};

use crate::arguments::{BenchRttArguments, BenchThroughputArguments, DemoArguments, RunArguments};
use crate::failure::Failure;
use crate::values::{Destination, Disturbance, PayloadBytes};

use super::{NetworkSettings, list_or_default, or_default, seconds};

/// Runs are made for each datapath and each payload.
#[derive(Debug)]
pub(crate) struct RunSettings {
    pub(crate) network: NetworkSettings,
    /// How long each run lasts.
    pub(crate) run_for: Sourced<Duration>,
    /// At least one, each once.
    pub(crate) datapaths: Sourced<Vec<Datapath>>,
    /// At least one, each once.
    pub(crate) payloads: Sourced<Vec<PayloadBytes>>,
    pub(crate) json: Option<Destination>,
}

#[derive(Debug)]
pub(crate) struct DemoSettings {
    pub(crate) runs: RunSettings,
}

#[derive(Debug)]
pub(crate) struct BenchRttSettings {
    pub(crate) runs: RunSettings,
    /// Pings a second.
    pub(crate) rate_hz: Sourced<u32>,
    /// Runs are made for each of them too. At least one, each once.
    pub(crate) disturbances: Sourced<Vec<Disturbance>>,
}

#[derive(Debug)]
pub(crate) struct BenchThroughputSettings {
    pub(crate) runs: RunSettings,
    pub(crate) reliability: Sourced<Reliability>,
}

impl DemoSettings {
    pub(super) fn new(network: NetworkSettings, demo: DemoArguments) -> Result<Self, Failure> {
        let DemoArguments {
            seconds,
            datapath,
            payload,
            json,
        } = demo;
        let arguments = RunArguments {
            seconds,
            datapath,
            payload,
            json,
        };
        let runs = RunSettings::new(network, arguments, 5, &PayloadBytes::OF_PAPER)?;
        Ok(Self { runs })
    }
}

impl BenchRttSettings {
    pub(super) fn new(network: NetworkSettings, rtt: BenchRttArguments) -> Result<Self, Failure> {
        let disturbances = list_or_default(rtt.disturbance, "--disturbance", &[Disturbance::None]);
        each_once("--disturbance", &disturbances.value, |disturbance| {
            disturbance.word().into()
        })?;
        let runs = RunSettings::for_bench(network, rtt.runs)?;
        Ok(Self {
            runs,
            rate_hz: or_default(rtt.rate, "--rate", 2000),
            disturbances,
        })
    }
}

impl BenchThroughputSettings {
    pub(super) fn new(
        network: NetworkSettings,
        throughput: BenchThroughputArguments,
    ) -> Result<Self, Failure> {
        let best_effort = throughput.best_effort.then_some(Reliability::BestEffort);
        Ok(Self {
            runs: RunSettings::for_bench(network, throughput.runs)?,
            reliability: or_default(best_effort, "--best-effort", Reliability::Reliable),
        })
    }
}

impl RunSettings {
    fn for_bench(network: NetworkSettings, arguments: RunArguments) -> Result<Self, Failure> {
        Self::new(
            network,
            arguments,
            10,
            &[PayloadBytes::SMALL, PayloadBytes::MEDIUM],
        )
    }

    fn new(
        network: NetworkSettings,
        arguments: RunArguments,
        usual_seconds: u32,
        usual_payloads: &[PayloadBytes],
    ) -> Result<Self, Failure> {
        let datapaths = list_or_default(arguments.datapath, "--datapath", &[Datapath::Udp]);
        let payloads = list_or_default(arguments.payload, "--payload", usual_payloads);
        each_once("--datapath", &datapaths.value, |datapath| {
            datapath.word().into()
        })?;
        each_once("--payload", &payloads.value, |payload| {
            payload.get().to_string()
        })?;
        Ok(Self {
            network,
            run_for: or_default(arguments.seconds, "--seconds", usual_seconds).map(seconds),
            datapaths,
            payloads,
            json: arguments.json,
        })
    }
}

/// A run that is made twice under one name cannot be told from the other in the results.
fn each_once<T: PartialEq>(
    option: &str,
    values: &[T],
    name: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let again = values
        .iter()
        .enumerate()
        .find(|(index, value)| values[..*index].contains(value));
    match again {
        Some((_, value)) => Err(Failure::wrong_usage(
            format!("{option} names {} twice", name(value)),
            "the results could not be told apart",
            "name it once",
        )),
        None => Ok(()),
    }
}
