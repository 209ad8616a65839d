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
    paper::SCENARIO,
    paper::IN_BRIEF,
    paper::ABLATED,
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

/// Lines of a result's faults. A published result must have none.
fn failed(faults: impl IntoIterator<Item: Display>) -> String {
    let faults = faults.into_iter();
    faults.map(|fault| format!("FAILED: {fault}\n")).collect()
}

/// Prints a scenario's faults. Returns true when there are none.
fn report_faults(faults: impl IntoIterator<Item: Display>) -> bool {
    let text = failed(faults);
    eprint!("{text}");
    text.is_empty()
}

/// Lowest and highest value as text; one number where they are printed alike, and a dash without values.
fn range(values: impl Iterator<Item = f64> + Clone, decimals: usize) -> String {
    let text = |value: Option<f64>| value.map(|value| format!("{value:.decimals$}"));
    let low = text(values.clone().reduce(f64::min));
    let high = text(values.reduce(f64::max));
    match (low, high) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (low, _) => low.unwrap_or_else(|| "-".to_owned()),
    }
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
    fn a_range_of_equal_numbers_is_one_number() {
        assert_eq!(range([1.26, 1.34].into_iter(), 1), "1.3");
        assert_eq!(range([2.0, 1.0, 3.0].into_iter(), 0), "1 to 3");
        assert_eq!(range([].into_iter(), 0), "-");
    }

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
