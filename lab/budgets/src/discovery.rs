//! `cargo xtask discovery`: the cost of discovery as the number of endpoints and of participants grows.
//!
//! - Instructions to announce, receive and match an endpoint, of both sides together. callgrind counts them inside the
//!   example `discovery_cost` of isolane-rtps. Their number for an endpoint may grow little with that of endpoints.
//! - Datagrams until each participant knows all others. The simulator's example `participants` counts them. Their number
//!   for each ordered pair of participants has a limit.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use isolane_bench::report::{Environment, aligned};
use isolane_support::workspace::{Metadata, build_examples};
use isolane_support::{Result, command, json};
use serde::{Deserialize, Serialize};

use crate::tools::{instructions_inside, number};

const SCENARIO: &str = include_str!("../scenarios/discovery.toml");

/// Schema of the JSON.
const SCHEMA: &str = "isolane/discovery/2";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    title: String,
    about: String,
    /// Numbers of endpoints, of both sides together.
    endpoints: Vec<u32>,
    /// Maximum ratio of the instructions per endpoint with the most endpoints to those with the fewest.
    max_growth: f64,
    /// Numbers of participants.
    participants: Vec<u32>,
    /// Aim for the seconds from the last start until all participants know each other.
    aim_s: f64,
    /// Maximum average number of datagrams that a participant receives from another.
    max_datagrams_a_pair: f64,
}

/// Arguments of `cargo xtask discovery`.
#[derive(Args)]
pub struct Arguments {
    /// Write the results to this file as `isolane/discovery/2`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    endpoints: Vec<EndpointsReport>,
    participants: Vec<ParticipantsReport>,
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
    /// Time from the last start until all know each other, to the next half second.
    took_s: f64,
    datagrams: u64,
    datagrams_a_pair: f64,
}

/// Runs the command. Returns true when both limits hold; the aim may be missed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let scenario = Scenario::parse(SCENARIO)?;
    let metadata = Metadata::read()?;
    let began = Environment::probe();
    build_examples("isolane-rtps", &["discovery_cost"])?;
    build_examples("isolane-sim", &["participants"])?;
    let examples = metadata.target_directory.join("release/examples");
    let mut endpoints = Vec::new();
    for &count in &scenario.endpoints {
        eprintln!("{count} endpoints ...");
        let mut example = Command::new(examples.join("discovery_cost"));
        example.arg(count.to_string());
        let instructions = instructions_inside("*::measured_discovery", &example)?;
        endpoints.push(EndpointsReport {
            endpoints: count,
            instructions,
            instructions_an_endpoint: instructions as f64 / f64::from(count),
        });
    }
    let mut participants = Vec::new();
    for &count in &scenario.participants {
        eprintln!("{count} participants ...");
        let mut simulation = Command::new(examples.join("participants"));
        simulation.arg(count.to_string());
        let printed = String::from_utf8(command::output(&mut simulation)?)?;
        let datagrams = number(&printed, "datagrams")?;
        participants.push(ParticipantsReport {
            participants: count,
            took_s: number::<f64>(&printed, "took_ms")? / 1e3,
            datagrams,
            datagrams_a_pair: datagrams as f64 / f64::from(count) / f64::from(count - 1),
        });
    }
    let report = Report {
        schema: SCHEMA,
        endpoints,
        participants,
    };
    json::publish(
        (&scenario.title, &scenario.about),
        (&began, SCENARIO),
        &report.table(&scenario),
        &report,
        arguments.json.as_ref(),
    )?;
    Ok(report.holds(&scenario))
}

impl Scenario {
    /// Parses the file. Fewer than two numbers of endpoints, or none of at least two participants, would check nothing.
    fn parse(text: &str) -> Result<Scenario> {
        let scenario: Scenario = toml::from_str(text)?;
        let has_pairs = scenario.participants.iter().all(|&count| count >= 2);
        match scenario.endpoints.len() >= 2 && !scenario.participants.is_empty() && has_pairs {
            true => Ok(scenario),
            false => Err("discovery needs two numbers of endpoints, and participants".into()),
        }
    }
}

impl Report {
    /// Ratio of the instructions per endpoint with the most endpoints to those with the fewest.
    fn growth(&self) -> f64 {
        let most = self.endpoints.iter().max_by_key(|row| row.endpoints);
        let fewest = self.endpoints.iter().min_by_key(|row| row.endpoints);
        let [most, fewest] =
            [most, fewest].map(|row| row.map_or(f64::NAN, |row| row.instructions_an_endpoint));
        most / fewest
    }

    /// Most datagrams for a pair of participants.
    fn datagrams_a_pair(&self) -> f64 {
        let of_pairs = self.participants.iter().map(|row| row.datagrams_a_pair);
        of_pairs.fold(0.0, f64::max)
    }

    fn holds(&self, scenario: &Scenario) -> bool {
        self.growth() <= scenario.max_growth
            && self.datagrams_a_pair() <= scenario.max_datagrams_a_pair
    }

    fn table(&self, scenario: &Scenario) -> String {
        let head = |names: &[&str]| names.iter().copied().map(String::from).collect::<Vec<_>>();
        let mut endpoints = vec![head(&["endpoints", "instructions", "an endpoint"])];
        endpoints.extend(self.endpoints.iter().map(|row| {
            vec![
                row.endpoints.to_string(),
                row.instructions.to_string(),
                format!("{:.0}", row.instructions_an_endpoint),
            ]
        }));
        let mut participants = vec![head(&["participants", "seconds", "datagrams", "a pair"])];
        participants.extend(self.participants.iter().map(|row| {
            vec![
                row.participants.to_string(),
                format!("{:.1}", row.took_s),
                row.datagrams.to_string(),
                format!("{:.0}", row.datagrams_a_pair),
            ]
        }));
        let kept = |value: f64, most: f64| match value <= most {
            true => format!("at most {most}: met"),
            false => format!("at most {most}: FAILED: {value}"),
        };
        let (growth, a_pair) = (self.growth(), self.datagrams_a_pair());
        let times = self.participants.iter().map(|row| row.took_s);
        let took_s = times.fold(0.0, f64::max);
        let aim = if took_s <= scenario.aim_s {
            "met"
        } else {
            "missed"
        };
        format!(
            "{}growth {growth:.2}, {}\n\n{}seconds {took_s:.1}, aim {}: {aim}\na pair {a_pair:.0}, {}\n",
            aligned(&endpoints, 0),
            kept(growth, scenario.max_growth),
            aligned(&participants, 0),
            scenario.aim_s,
            kept(a_pair, scenario.max_datagrams_a_pair)
        )
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
            participants: vec![ParticipantsReport {
                participants: 500,
                took_s: 6.5,
                datagrams: 0,
                datagrams_a_pair,
            }],
        }
    }

    #[test]
    fn it_holds_where_neither_grows_beyond_its_limit() {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        assert!(report(1_500.0, 200.0).holds(&scenario));
        assert!(!report(1_501.0, 200.0).holds(&scenario));
        assert!(!report(1_000.0, 200.1).holds(&scenario));
        let table = report(1_501.0, 1.0).table(&scenario);
        assert!(
            table.contains("growth 1.50, at most 1.5: FAILED: 1.501"),
            "{table}"
        );
        assert!(table.contains("seconds 6.5, aim 5: missed"), "{table}");
        let one = SCENARIO.replace("[100, 1_000, 10_000]", "[100]");
        assert!(Scenario::parse(&one).is_err());
    }

    #[test]
    fn a_number_stands_behind_its_name() {
        let datagrams = |printed: &str| number::<u64>(printed, "datagrams");
        assert_eq!(datagrams("participants 500\ndatagrams 12\n").unwrap(), 12);
        assert!(datagrams("datagrams many").is_err());
        assert!(datagrams("").is_err());
    }
}
