//! `cargo xtask seeds`: a thousand simulated systems that crash, come back, are cut apart and lose what they
//! send, each of them made of one number (`lab/sim/tests/seeds`).
//!
//! `cargo test` runs the first three hundred. What all have gone through is summed up at the end; a seed that fails
//! prints the line that runs it again, which is also what `--seed` does.

use clap::Args;
use isolane_support::workspace::cargo;
use isolane_support::{Result, command};

/// The test that takes seeds; others of its program have their own.
const TEST: &str = "whatever_happens";

/// Arguments of `cargo xtask seeds`.
#[derive(Args)]
pub(crate) struct SeedsArguments {
    /// Number of seeds, from 0 on
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Run this one alone, and tell each datagram
    #[arg(long, value_name = "N", conflicts_with = "count")]
    seed: Option<u64>,
}

/// The command; an error where a seed fails.
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
