//! `cargo xtask discovery`: the cost of discovery as the number of endpoints and of participants grows.
//!
//! - Instructions to announce, receive and match an endpoint, of both sides together. callgrind counts them inside the
//!   example `discovery_cost` of isolane-rtps. Their number for an endpoint must not grow with that of endpoints.
//! - Datagrams until each participant knows all others. The simulator's example `participants` counts them. For each
//!   ordered pair of participants, there must be fewer than `DATAGRAMS_A_PAIR`.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use isolane_support::workspace::{Metadata, build_examples};
use isolane_support::{Result, command, json};
use serde::Serialize;

use crate::tools::{collected_instructions, number};

/// Schema of the JSON.
const SCHEMA: &str = "isolane/discovery/1";

/// Numbers of endpoints, of both sides together.
const ENDPOINTS: [u32; 3] = [100, 1_000, 10_000];
/// Maximum ratio of the instructions per endpoint with the most endpoints to those with the fewest.
const MAX_GROWTH: f64 = 1.5;

/// Number of participants of the simulated system.
const PARTICIPANTS: u32 = 500;
/// Maximum average number of datagrams that a participant receives from another. All participants start within five
/// seconds, and counting ends five seconds after the last start. Most datagrams are HEARTBEATs of SEDP: until a new
/// participant answers, one is multicast at most every 20 ms. Measured: 79 with 50 participants, 106 with 100, 130
/// with 200.
const DATAGRAMS_A_PAIR: f64 = 200.0;

/// Arguments of `cargo xtask discovery`.
#[derive(Args)]
pub struct Arguments {
    /// Write the results to this file as `isolane/discovery/1`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    endpoints: Vec<EndpointsReport>,
    participants: ParticipantsReport,
}

#[derive(Debug, Serialize)]
struct EndpointsReport {
    endpoints: u32,
    instructions: u64,
    instructions_an_endpoint: f64,
}

#[derive(Debug, Serialize)]
struct ParticipantsReport {
    participants: u32,
    datagrams: u64,
    datagrams_a_pair: f64,
    ceiling_a_pair: f64,
}

/// Runs the command. Returns true when both bounds hold.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let metadata = Metadata::read()?;
    build_examples("isolane-rtps", &["discovery_cost"])?;
    build_examples("isolane-sim", &["participants"])?;
    let examples = metadata.target_directory.join("release/examples");
    let mut endpoints = Vec::new();
    for count in ENDPOINTS {
        eprintln!("{count} endpoints ...");
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg("--toggle-collect=*::measured_discovery")
            .arg(examples.join("discovery_cost"))
            .arg(count.to_string());
        let instructions = collected_instructions(&mut valgrind)?;
        endpoints.push(EndpointsReport {
            endpoints: count,
            instructions,
            instructions_an_endpoint: instructions as f64 / f64::from(count),
        });
    }
    eprintln!("{PARTICIPANTS} participants ...");
    let mut simulation = Command::new(examples.join("participants"));
    simulation.arg(PARTICIPANTS.to_string());
    let printed = String::from_utf8(command::output(&mut simulation)?)?;
    let datagrams = number(&printed, "datagrams")?;
    let report = Report {
        schema: SCHEMA,
        endpoints,
        participants: ParticipantsReport {
            participants: PARTICIPANTS,
            datagrams,
            datagrams_a_pair: datagrams as f64 / f64::from(PARTICIPANTS).powi(2),
            ceiling_a_pair: DATAGRAMS_A_PAIR,
        },
    };
    eprint!("{}", report.table());
    if let Some(file) = &arguments.json {
        json::write(&report, file)?;
    }
    Ok(report.holds())
}

impl Report {
    /// Ratio of the instructions per endpoint with the most endpoints to those with the fewest.
    fn growth(&self) -> f64 {
        match (self.endpoints.first(), self.endpoints.last()) {
            (Some(fewest), Some(most)) => {
                most.instructions_an_endpoint / fewest.instructions_an_endpoint
            }
            _ => 1.0,
        }
    }

    fn holds(&self) -> bool {
        self.growth() <= MAX_GROWTH && self.participants.datagrams_a_pair <= DATAGRAMS_A_PAIR
    }

    fn table(&self) -> String {
        let mut text = format!(
            "{:>9}  {:>14}  {:>11}\n",
            "endpoints", "instructions", "an endpoint"
        );
        for row in &self.endpoints {
            text += &format!(
                "{:>9}  {:>14}  {:>11.0}\n",
                row.endpoints, row.instructions, row.instructions_an_endpoint
            );
        }
        text += &format!("growth {:.2}, at most {MAX_GROWTH}\n", self.growth());
        let of = &self.participants;
        text += &format!(
            "{} participants: {} datagrams, {:.1} n², at most {} n²\n",
            of.participants, of.datagrams, of.datagrams_a_pair, of.ceiling_a_pair
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(of_most: f64, datagrams_a_pair: f64) -> Report {
        let row = |endpoints, instructions_an_endpoint| EndpointsReport {
            endpoints,
            instructions: 0,
            instructions_an_endpoint,
        };
        Report {
            schema: SCHEMA,
            endpoints: vec![row(100, 1_000.0), row(10_000, of_most)],
            participants: ParticipantsReport {
                participants: 500,
                datagrams: 0,
                datagrams_a_pair,
                ceiling_a_pair: DATAGRAMS_A_PAIR,
            },
        }
    }

    #[test]
    fn it_holds_where_neither_grows_beyond_its_ceiling() {
        assert!(report(1_500.0, DATAGRAMS_A_PAIR).holds());
        assert!(!report(1_501.0, DATAGRAMS_A_PAIR).holds());
        assert!(!report(1_000.0, DATAGRAMS_A_PAIR + 0.1).holds());
    }

    #[test]
    fn a_number_stands_behind_its_name() {
        let datagrams = |printed: &str| number::<u64>(printed, "datagrams");
        assert_eq!(datagrams("participants 500\ndatagrams 12\n").unwrap(), 12);
        assert!(datagrams("datagrams many").is_err());
        assert!(datagrams("").is_err());
    }
}
