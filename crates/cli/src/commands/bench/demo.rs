//! `isolane demo`: a demonstration on this machine.
//!
//! A critical topic makes round trips between two hosts over a link. In some runs a flood fills the link; in others the
//! hosts or participants do other work. By default it measures the scenario `demo` and prints bars; with
//! `--full` it measures `demo-full`.

use std::time::Duration;

use clap::Args;
use isolane_bench::experiment::{Block, Factor};

use super::environment::BenchEnvironment;
use super::measure::{self, Loaded, Outputs, levels};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::values::{MeasuredDatapath, payload_of_round_trip, seconds, word};

/// Names of the blocks of `demo-full` that `--rows` selects.
const ROWS: [&str; 4] = ["link", "arbiter", "lane", "executor"];

#[derive(Debug, Args)]
pub(crate) struct Demo {
    #[command(flatten)]
    outputs: Outputs,
    /// Measure all rows and print all tables, in about two minutes
    #[arg(long)]
    full: bool,
    /// Set the duration of each run in seconds [default: 3; with --full: 2, and 5 for the row `executor`]
    #[arg(long, value_name = "N", value_parser = seconds())]
    seconds: Option<Duration>,
    /// Measure these rows with --full, separated by commas: link (flood on a FIFO link), arbiter (flood on that link and
    /// on one that sends the most urgent class first), lane (receive load on the hosts; each run adds a mechanism),
    /// executor (load inside the participants, with jobs in FIFO order and by priority) [default: all]
    #[arg(
        long,
        value_name = "LIST",
        value_parser = ROWS,
        requires = "full",
        default_value = "link,arbiter,lane,executor",
        hide_default_value = true
    )]
    rows: Vec<String>,
    /// Set payload sizes in bytes of the rows link and arbiter with --full, 12 to 1400, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_parser = payload_of_round_trip,
        requires = "full",
        default_value = "64,512,1024"
    )]
    payload: Vec<u32>,
    /// Measure over these datapaths, separated by commas: udp, xdp or memory
    ///
    /// The rows are measured over udp. Over xdp and memory, `demo --full` measures undisturbed round trips only.
    #[arg(
        long,
        value_name = "LIST",
        value_parser = word::<MeasuredDatapath>(),
        default_value = "udp"
    )]
    datapath: Vec<MeasuredDatapath>,
}

impl Demo {
    /// Measures the runs, and prints the bars, or all rows with their explanations.
    pub(crate) fn run(self, settings: &Settings) -> Result<ExitCode, Failure> {
        settings.refuse_duplicates()?;
        if !self.full && self.datapath != [MeasuredDatapath::Udp] {
            return Err(Failure::wrong_usage(
                "--datapath needs --full",
                "the short demo has fixed runs: add --full",
            ));
        }
        settings.begin()?;
        let hosts = BenchEnvironment::set_up()?;
        let mut loaded = Loaded::shipped(if self.full { "demo-full" } else { "demo" })?;
        let scenario = &mut loaded.scenario;
        if self.full {
            let is_over_udp = self.datapath.contains(&MeasuredDatapath::Udp);
            let is_chosen = |block: &Block| !block.hosts || self.rows.contains(&block.name);
            scenario
                .blocks
                .retain(|block| is_over_udp && is_chosen(block));
            let payload_bytes = levels(self.payload.clone());
            for block in &mut scenario.blocks {
                let factors = block.factors.iter_mut();
                for factor in factors.filter(|factor| factor.name == "payload_bytes") {
                    factor.levels.clone_from(&payload_bytes);
                }
            }
            let others = [MeasuredDatapath::Xdp, MeasuredDatapath::Memory];
            for datapath in others.into_iter().filter(|it| self.datapath.contains(it)) {
                scenario.blocks.push(undisturbed(
                    measure::datapath_word(datapath),
                    &payload_bytes,
                ));
            }
        }
        let seconds = self.seconds.map(|time| time.as_secs() as i64);
        for block in &mut scenario.blocks {
            block
                .set
                .extend(seconds.map(|seconds| ("seconds".to_owned(), seconds.into())));
        }
        let outputs = Outputs {
            is_demo: true,
            ..self.outputs
        };
        measure::run(hosts, loaded, outputs, None)
    }
}

/// Undisturbed round trips over a datapath.
fn undisturbed(word: &str, payload_bytes: &[toml::Value]) -> Block {
    Block {
        name: word.to_owned(),
        title: format!("Undisturbed round trips over {word}"),
        hosts: true,
        set: [("datapath", word), ("publisher", "job")]
            .map(|(name, word)| (name.to_owned(), word.into()))
            .into_iter()
            .collect(),
        factors: vec![Factor {
            name: "payload_bytes".to_owned(),
            levels: payload_bytes.to_vec(),
        }],
        ..Block::default()
    }
}
