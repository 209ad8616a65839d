//! `cargo xtask seeds`: a thousand simulated systems with crashes, restarts, partitions and losses, each generated from
//! one number (`lab/sim/tests/seeds`).
//!
//! `cargo test` runs the first three hundred. The last lines summarize the injected faults. For a seed that fails, the
//! command that runs it again (`--seed`) is printed.

use clap::Args;
use isolane_support::workspace::cargo;
use isolane_support::{Result, command};

/// Name of the test that takes seeds. The other tests of the program have fixed seeds.
const TEST: &str = "whatever_happens";

/// Arguments of `cargo xtask seeds`.
#[derive(Args)]
pub(crate) struct SeedsArguments {
    /// Number of seeds, from 0 on
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Run this seed alone, and print each datagram
    #[arg(long, value_name = "N", conflicts_with = "count")]
    seed: Option<u64>,
}

/// Runs the seeds. Returns an error if a seed fails.
pub(crate) fn run(arguments: &SeedsArguments) -> Result<bool> {
    let mut test = cargo();
    test.args(["test", "--package", "isolane-sim", "--test", "seeds", TEST])
        .args(["--", "--nocapture"])
        .env_remove("ISOLANE_SEED_FACTOR");
    match arguments.seed {
        Some(seed) => test
            .env("ISOLANE_SEED", seed.to_string())
            .env("ISOLANE_TRACE", "1"),
        None => test
            .env("ISOLANE_SEED_COUNT", arguments.count.to_string())
            .env_remove("ISOLANE_SEED"),
    };
    command::run(&mut test)?;
    Ok(true)
}
