//! Settings of `demo` and `bench`: the runs, and the destinations of results.

use std::path::PathBuf;
use std::time::Duration;

use isolane_model::{Reliability, Sourced, Word};

use crate::arguments::{BenchRttArguments, BenchThroughputArguments, DemoArguments};
use crate::failure::Failure;
use crate::values::{
    DemoPart, Destination, Disturbance, JobOrder, LinkArbiter, MeasuredDatapath, PayloadBytes,
};

use super::{list_or_default, or_default, seconds};

/// Common settings of runs, which are made for each datapath and payload.
#[derive(Debug)]
pub(crate) struct RunSettings {
    pub(crate) run_for: Sourced<Duration>,
    /// At least one datapath, without duplicates.
    pub(crate) datapaths: Sourced<Vec<MeasuredDatapath>>,
    /// At least one payload, without duplicates.
    pub(crate) payloads: Sourced<Vec<PayloadBytes>>,
    pub(crate) json: Option<Destination>,
    /// File of the HTML page, if any.
    pub(crate) page: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct DemoSettings {
    /// Common settings, except for the duration of runs with inside disturbances.
    pub(crate) runs: RunSettings,
    /// Duration of runs with a disturbance inside the participants.
    pub(crate) run_inside_for: Sourced<Duration>,
    /// At least one part, without duplicates.
    pub(crate) parts: Sourced<Vec<DemoPart>>,
}

#[derive(Debug)]
pub(crate) struct BenchRttSettings {
    pub(crate) runs: RunSettings,
    /// Pings per second.
    pub(crate) rate_hz: Sourced<u32>,
    /// At least one disturbance, without duplicates; runs are made for each.
    pub(crate) disturbances: Sourced<Vec<Disturbance>>,
    /// Arbiters; runs are made for each.
    pub(crate) arbiters: Sourced<Vec<LinkArbiter>>,
    /// Job orders; runs are made for each.
    pub(crate) orders: Sourced<Vec<JobOrder>>,
    /// Measures an ablation, instead of datapaths and orders.
    pub(crate) ablation: bool,
    pub(crate) repetitions: Sourced<u32>,
}

#[derive(Debug)]
pub(crate) struct BenchThroughputSettings {
    pub(crate) runs: RunSettings,
    pub(crate) reliability: Sourced<Reliability>,
    /// LATENCY_BUDGET; zero sends each sample at once.
    pub(crate) latency_budget: Sourced<Duration>,
}

impl DemoSettings {
    pub(super) fn new(demo: DemoArguments) -> Result<Self, Failure> {
        let parts = words("--rows", demo.rows, &DemoPart::ALL)?;
        Ok(Self {
            runs: RunSettings {
                run_for: run_for(demo.seconds, DEMO_SECONDS),
                datapaths: datapaths(demo.datapath)?,
                payloads: payloads(demo.payload, &PayloadBytes::OF_PAPER)?,
                json: demo.json,
                page: demo.page,
            },
            run_inside_for: run_for(demo.seconds, DEMO_INSIDE_SECONDS),
            parts,
        })
    }
}

impl BenchRttSettings {
    pub(super) fn new(rtt: BenchRttArguments) -> Result<Self, Failure> {
        let (disturbances, arbiters, sizes, repetitions, usual_seconds) = match rtt.ablation {
            true => (
                &Disturbance::OF_ABLATION[..],
                &LinkArbiter::ALL[..],
                &PayloadBytes::OF_PAPER[..],
                ABLATION_REPETITIONS,
                ABLATION_SECONDS,
            ),
            false => (
                &[Disturbance::None][..],
                &[LinkArbiter::Fifo][..],
                &BENCH_PAYLOADS[..],
                1,
                BENCH_SECONDS,
            ),
        };
        let disturbances = words("--disturbance", rtt.disturbance, disturbances)?;
        if rtt.ablation {
            only_from_outside(&disturbances.value)?;
        }
        Ok(Self {
            runs: RunSettings {
                run_for: run_for(rtt.runs.seconds, usual_seconds),
                datapaths: datapaths(rtt.datapath)?,
                payloads: payloads(rtt.payload, sizes)?,
                json: rtt.runs.json,
                page: rtt.page,
            },
            rate_hz: or_default(rtt.rate, "--rate", 2000),
            disturbances,
            arbiters: words("--arbiter", rtt.arbiter, arbiters)?,
            orders: words("--order", rtt.order, &[JobOrder::Priority])?,
            ablation: rtt.ablation,
            repetitions: or_default(rtt.repetitions, "--repetitions", repetitions),
        })
    }
}

impl BenchThroughputSettings {
    pub(super) fn new(throughput: BenchThroughputArguments) -> Result<Self, Failure> {
        let best_effort = throughput.best_effort.then_some(Reliability::BestEffort);
        Ok(Self {
            runs: RunSettings {
                run_for: run_for(throughput.runs.seconds, BENCH_SECONDS),
                datapaths: datapaths(throughput.datapath)?,
                payloads: payloads(throughput.payload, &BENCH_PAYLOADS)?,
                json: throughput.runs.json,
                page: None,
            },
            reliability: or_default(best_effort, "--best-effort", Reliability::Reliable),
            latency_budget: or_default(
                throughput.latency_budget,
                "--latency-budget",
                Duration::ZERO,
            ),
        })
    }
}

/// Default duration of a demo run in seconds; all rows take about two minutes.
const DEMO_SECONDS: u32 = 2;
/// Default duration of a run with an inside disturbance in seconds: at 2000 Hz a p99.9 takes 10,000 samples.
const DEMO_INSIDE_SECONDS: u32 = 5;
/// Default duration of a `bench` run in seconds.
const BENCH_SECONDS: u32 = 10;
/// Default duration of an ablation run in seconds. At 2000 Hz sixty samples lie beyond each p99. No run has a p99.9,
/// which stalls of the machine would dominate anyway.
const ABLATION_SECONDS: u32 = 3;
const ABLATION_REPETITIONS: u32 = 3;
const BENCH_PAYLOADS: [PayloadBytes; 2] = [PayloadBytes::SMALL, PayloadBytes::MEDIUM];

/// Refuses inside disturbances in an ablation, which measures remedies against outside ones.
fn only_from_outside(disturbances: &[Disturbance]) -> Result<(), Failure> {
    let is_in_process = |disturbance: &&Disturbance| {
        let in_report = disturbance.in_report();
        in_report.is_some_and(isolane_bench::report::Disturbance::is_in_process)
    };
    match disturbances.iter().find(is_in_process) {
        Some(disturbance) => Err(Failure::wrong_usage(
            format!("--ablation does not measure beside {}", disturbance.word()),
            "its rows differ in what receives frames: choose none, flood, read-flood or storm",
        )),
        None => Ok(()),
    }
}

fn run_for(given: Option<u32>, usual: u32) -> Sourced<Duration> {
    or_default(given, "--seconds", usual).map(seconds)
}

fn datapaths(given: Vec<MeasuredDatapath>) -> Result<Sourced<Vec<MeasuredDatapath>>, Failure> {
    words("--datapath", given, &[MeasuredDatapath::Udp])
}

/// Words of a list, without duplicates.
fn words<W: Word + PartialEq>(
    option: &'static str,
    given: Vec<W>,
    usual: &[W],
) -> Result<Sourced<Vec<W>>, Failure> {
    let words = list_or_default(given, option, usual);
    each_once(option, &words.value, |word| word.word().into())?;
    Ok(words)
}

fn payloads(
    given: Vec<PayloadBytes>,
    usual: &[PayloadBytes],
) -> Result<Sourced<Vec<PayloadBytes>>, Failure> {
    let payloads = list_or_default(given, "--payload", usual);
    each_once("--payload", &payloads.value, |payload| {
        payload.get().to_string()
    })?;
    Ok(payloads)
}

/// Refuses duplicates, which could not be distinguished in the results.
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
        )),
        None => Ok(()),
    }
}
