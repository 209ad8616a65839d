//! Scenarios: measurements as data.
//!
//! ```text
//!   TOML file --> Scenario --> plan: cells, repeated and ordered --> runs --> tables, bars, page, JSON
//! ```
//!
//! [`shipped`] has the scenarios of `isolane demo` and `isolane bench`. docs/reference/scenarios.md describes the files.

use sha2::{Digest, Sha256};

mod cell;
mod file;
mod folder;

pub use cell::{Cell, Datapath, Load};
pub use file::{
    Block, Comparison, Factor, Levels, Planned, RunOrder, Scenario, ScenarioError, Show, System,
    What, distinct,
};
pub use folder::Folder;

/// Names and texts of the scenarios that are part of the program.
pub const SHIPPED: &[(&str, &str)] = &[
    ("demo", include_str!("../../scenarios/demo.toml")),
    ("demo-full", include_str!("../../scenarios/demo-full.toml")),
    ("rtt", include_str!("../../scenarios/rtt.toml")),
    ("ablation", include_str!("../../scenarios/ablation.toml")),
    ("isolation", include_str!("../../scenarios/isolation.toml")),
    (
        "throughput",
        include_str!("../../scenarios/throughput.toml"),
    ),
];

/// Text of a shipped scenario.
pub fn shipped(name: &str) -> Option<&'static str> {
    let mut all = SHIPPED.iter();
    all.find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// SHA-256 of a scenario file in hexadecimal digits.
pub fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
