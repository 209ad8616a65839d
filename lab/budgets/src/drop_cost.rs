//! `cargo xtask drop-cost`: the time that a dropped datagram takes, by the classifier and by a full socket.
//!
//! The example `drop_cost` of isolane-datapath-xdp makes and drops the frames in a new network namespace.

use std::num::NonZeroU32;
use std::process::Command;

use isolane_bench::report::{Environment, aligned};
use isolane_support::workspace::{Metadata, build_examples};
use isolane_support::{Result, command, json};
use serde::Deserialize;

const SCENARIO: &str = include_str!("../scenarios/drop-cost.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    title: String,
    about: String,
    /// Frames of a turn.
    frames: u32,
    rounds: NonZeroU32,
    #[serde(rename = "manner")]
    manners: Vec<Manner>,
}

/// Manner of dropping.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manner {
    name: String,
    title: String,
}

/// Runs the command. Always returns true: there is no limit.
pub fn run() -> Result<bool> {
    let scenario: Scenario = toml::from_str(SCENARIO)?;
    let metadata = Metadata::read()?;
    build_examples("isolane-datapath-xdp", &["drop_cost"])?;
    let began = Environment::probe();
    let program = metadata.target_directory.join("release/examples/drop_cost");
    let mut example = Command::new(program);
    example.args([scenario.frames, scenario.rounds.get()].map(|number| number.to_string()));
    example.args(scenario.manners.iter().map(|manner| &manner.name));
    let printed = String::from_utf8(command::output(&mut example)?)?;
    json::publish(
        (&scenario.title, &scenario.about),
        (&began, SCENARIO),
        &scenario.table(&printed)?,
        &(),
        None,
    )?;
    Ok(true)
}

impl Scenario {
    /// Table of the example's lines `NAME NANOSECONDS`, one for each turn.
    fn table(&self, printed: &str) -> Result<String> {
        let lines = || printed.lines().filter_map(|line| line.split_once(' '));
        let mut rows = vec![
            ["dropped by", "ns", "range", "ratio"]
                .map(str::to_owned)
                .to_vec(),
        ];
        // The first manner.
        let mut base = None;
        for manner in &self.manners {
            let turns = lines().filter(|(name, _)| *name == manner.name);
            let turns = turns.map(|(_, ns)| ns.parse::<f64>());
            let mut ns = turns.collect::<std::result::Result<Vec<f64>, _>>()?;
            if ns.len() != self.rounds.get() as usize {
                return Err(format!("too few turns of {} in: {printed}", manner.name).into());
            }
            ns.sort_by(f64::total_cmp);
            let [low, median, high] = [0, ns.len() / 2, ns.len() - 1].map(|index| ns[index]);
            let ratio = *base.get_or_insert(median) / median;
            rows.push(vec![
                manner.title.clone(),
                format!("{median:.0}"),
                format!("{low:.0} to {high:.0}"),
                format!("{ratio:.1}"),
            ]);
        }
        Ok(aligned(&rows, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_median_and_range_of_its_turns() {
        let scenario = r#"
            title = ""
            about = ""
            frames = 1
            rounds = 3
            manner = [{ name = "a", title = "A" }, { name = "b", title = "B" }]
        "#;
        let scenario: Scenario = toml::from_str(scenario).unwrap();
        let table = scenario
            .table("a 30\nb 5.1\na 10\nb 5\na 20\nb 4.9\n")
            .unwrap();
        let rows: Vec<String> = table
            .lines()
            .map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(rows[1..], ["A 20 10 to 30 1.0", "B 5 5 to 5 4.0"]);
        assert!(scenario.table("a 30\n").is_err());
    }

    #[test]
    fn the_example_knows_all_manners() {
        let example = include_str!("../../../crates/datapath-xdp/examples/drop_cost/main.rs");
        let scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        for manner in scenario.manners {
            assert!(
                example.contains(&format!("(\"{}\", ", manner.name)),
                "{}",
                manner.name
            );
        }
    }
}
