//! Scenarios: the guests' tasks, and the judgement of their results. Each has a part outside, which starts guests, and
//! one inside, which a guest's first process calls.

mod boot;
mod facts;
mod pair;
mod paper;
mod tune;

use std::fmt::Display;

use isolane_support::Result;
use serde_json::Value;

use super::Bench;

#[derive(Clone, Copy)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// Description in one line.
    pub(super) shows: &'static str,
    /// Part outside: prints the table, and returns true on success.
    pub(super) run: fn(&Bench) -> Result<bool>,
    /// Part inside a guest, with its arguments.
    inside: fn(&[String]) -> Result<Value>,
}

pub(super) const ALL: &[Scenario] = &[
    boot::SCENARIO,
    facts::SCENARIO,
    pair::SCENARIO,
    paper::SCENARIOS[0],
    paper::SCENARIOS[1],
    paper::SCENARIOS[2],
    tune::SCENARIO,
];

pub(super) fn named(name: &str) -> Result<&'static Scenario> {
    let found = ALL.iter().find(|scenario| scenario.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|scenario| scenario.name).collect();
        format!(
            "there is no scenario `{name}`: there are {}",
            names.join(", ")
        )
        .into()
    })
}

/// Prints a scenario's faults. Returns true when there are none.
fn report_faults(faults: impl IntoIterator<Item: Display>) -> bool {
    let mut has_faults = false;
    for fault in faults {
        eprintln!("FAILED: {fault}");
        has_faults = true;
    }
    !has_faults
}

/// Runs a guest's task.
pub(super) fn inside(task: &[String]) -> Result<Value> {
    let (name, rest) = task.split_first().ok_or("a guest without a task")?;
    (named(name)?.inside)(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_found_by_its_name_and_others_are_named_with_the_error() {
        for scenario in ALL {
            assert_eq!(named(scenario.name).unwrap().shows, scenario.shows);
        }
        let Err(error) = named("none") else {
            panic!("there is no such scenario")
        };
        assert!(error.to_string().contains("boot"));
        assert!(inside(&[]).is_err());
    }
}
