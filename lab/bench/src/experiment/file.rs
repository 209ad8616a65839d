//! Scenario files: what is measured, in which order, and what is compared.
//!
//! A file has blocks. The cells of a block are all combinations of its factors' levels, for each of its explicit cells
//! if it has any. A value is looked up in this order: level of a factor, explicit cell, `set` of the block, `set` of the
//! scenario, default of [`Cell`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{Cell, Load};
use crate::limits::MAX_SYSTEM_MESSAGE_BYTES;
use crate::report::{Expectations, Measure, Of, Place, unique, words};
use crate::scenario::{ConfigError, RttMessage, rtt};

/// Scenario, as its TOML file states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Title of the result.
    pub title: String,
    /// Sentence printed before the measurement.
    #[serde(default)]
    pub about: String,
    /// Advice on reading the numbers, printed after them.
    #[serde(default)]
    pub reading: String,
    /// Repetitions of all cells.
    #[serde(default = "one")]
    pub repetitions: u32,
    /// Order of the cells in a repetition.
    #[serde(default)]
    pub order: RunOrder,
    /// Seed of the random order.
    #[serde(default)]
    pub seed: u64,
    /// Form of the result on a terminal.
    #[serde(default)]
    pub show: Show,
    /// Systems under test, by their names in cells.
    #[serde(default, rename = "system")]
    pub systems: BTreeMap<String, System>,
    /// Values of all cells.
    #[serde(default)]
    pub set: Table,
    /// Blocks in their order.
    #[serde(rename = "block")]
    pub blocks: Vec<Block>,
}

fn one() -> u32 {
    1
}

/// System under test: a program with the command line of docs/reference/systems-under-test.md.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Path of the program, or a name that is searched in PATH.
    pub program: PathBuf,
    /// Arguments after those of the run.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Description of the settings that the arguments select.
    #[serde(default)]
    pub about: String,
}

/// Measurement of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Times of round trips at a fixed rate.
    #[default]
    RoundTrips,
    /// Samples per second of a writer that writes as fast as it can.
    Throughput,
}

/// Order of the cells in a repetition. Repetitions are the outer loop, so slow changes of the machine affect all cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunOrder {
    /// Order of the file: cells of a block follow each other, and the levels of its last factor are adjacent.
    #[default]
    Listed,
    /// Order of the file, but each repetition starts one level later in the last factor.
    Rotated,
    /// Random, from the seed.
    Random,
}

/// Form of the result on a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Show {
    /// A table of each block's runs and one of its ratios.
    #[default]
    Tables,
    /// Bars and a sentence for one screen.
    Bars,
}

/// Cells with a common heading, table and figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Word that selects the block on a command line.
    pub name: String,
    /// Heading.
    pub title: String,
    /// End of a clause of the concluding sentence, such as "under the flood".
    #[serde(default)]
    pub under: String,
    /// Explanation for first-time readers: what the rows are, and what they show.
    #[serde(default)]
    pub meaning: String,
    /// False for a block that is measured only on a machine without test hosts. The other blocks of such a scenario are
    /// measured only where there are test hosts.
    #[serde(default = "yes")]
    pub hosts: bool,
    /// Values of all cells of the block.
    #[serde(default)]
    pub set: Table,
    /// Factors; the levels of the last one are adjacent.
    #[serde(default, rename = "factor")]
    pub factors: Vec<Factor>,
    /// Explicit cells.
    #[serde(default, rename = "cell")]
    pub cells: Vec<Table>,
    /// Comparisons between the runs of the block.
    #[serde(default, rename = "compare")]
    pub comparisons: Vec<Comparison>,
    /// Counters that each run of the block must have.
    #[serde(default)]
    pub expect: Expectations,
}

fn yes() -> bool {
    true
}

/// Factor with its levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Name of a value of [`Cell`].
    pub name: String,
    /// Levels in their order.
    pub levels: Vec<Value>,
}

/// Comparison of runs that differ in one factor only, or of labelled runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Name of the factor; `label` compares labelled runs, whatever else they differ in.
    pub factor: String,
    /// Levels of dividend and divisor.
    pub pairs: Vec<[Value; 2]>,
    /// Pooled factors: one ratio covers all their levels, from pairs of runs with the same level.
    #[serde(default)]
    pub over: Vec<String>,
    /// Compared statistics; by default median and p99, or samples/s of streams.
    #[serde(default)]
    pub measures: Vec<Measure>,
    /// Compared parts of the round trip.
    #[serde(default = "whole")]
    pub of: Vec<Of>,
}

fn whole() -> Vec<Of> {
    vec![Of::Rtt]
}

/// Planned run.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Number of the run in its scenario, from 1.
    pub number: u32,
    /// Index of its block.
    pub block: usize,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Values of the run.
    pub cell: Cell,
    /// System under test, if it is not isolane's own ends.
    pub system: Option<System>,
}

impl Planned {
    /// Configuration of a round-trip run.
    pub fn round_trips(&self) -> rtt::Config {
        rtt::Config {
            repetition: self.repetition,
            system: self.system.clone(),
            ..self.cell.round_trips()
        }
    }

    /// Checks whether the run can be measured.
    pub fn check(&self) -> Result<(), ConfigError> {
        match (self.cell.measure, &self.system) {
            (What::RoundTrips, _) => self.round_trips().check(),
            (What::Throughput, None) => self.cell.throughput().check(),
            (What::Throughput, Some(_)) => {
                RttMessage::check_size(self.cell.payload_bytes, MAX_SYSTEM_MESSAGE_BYTES)
            }
        }
    }

    /// Name that distinguishes the run from the others: its label and the levels of its block's factors.
    pub fn title(&self, scenario: &Scenario) -> String {
        let block = &scenario.blocks[self.block];
        let level = |factor: &Factor| Some(words(&factor.name, &self.cell.value(&factor.name)?));
        let label = self.cell.label.clone().into_iter();
        let levels = label.chain(block.factors.iter().filter_map(level));
        let mut title = levels.collect::<Vec<String>>().join(", ");
        let is_moved = self.cell.place.is_some_and(|place| place != Place::Link);
        if is_moved && self.cell.disturbance == Load::None && self.cell.label.is_none() {
            title = format!(
                "{title}, {}",
                words(
                    "place",
                    &self.cell.value("place").unwrap_or_else(|| "".into())
                )
            );
        }
        match self.repetition {
            1 => title,
            repetition => format!("{title}, repetition {repetition}"),
        }
    }
}

/// Reasons why a scenario cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be parsed as a scenario.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// The values of a cell are wrong.
    #[error("block {block:?}: {why}")]
    Cell {
        /// Title of the block.
        block: String,
        /// Reason, with the name of the value.
        why: String,
    },
    /// A comparison names a level that no run has.
    #[error("block {block:?}: no run has {factor} = {level}, which a comparison names")]
    Level {
        /// Title of the block.
        block: String,
        /// Name of the factor.
        factor: String,
        /// The level.
        level: Value,
    },
    /// An option changes a value of explicit cells.
    #[error("block {block:?}: its cells set {name}, which no option changes")]
    Fixed {
        /// Title of the block.
        block: String,
        /// Name of the value.
        name: String,
    },
    /// The scenario has more runs than a result can number.
    #[error("the scenario has more than {} runs", u16::MAX)]
    TooMany,
    /// The scenario has no runs.
    #[error("the scenario has no runs")]
    Empty,
}

/// Levels that replace those of the file, by the name of the factor.
pub type Levels = BTreeMap<String, Vec<Value>>;

impl Scenario {
    /// Parses a file.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        Ok(toml::from_str(text)?)
    }

    /// Replaces the levels of factors. With another name, several levels become the block's first
    /// factor; a single level becomes a value of the block.
    ///
    /// # Errors
    /// [`ScenarioError::Fixed`] for a value that explicit cells set.
    pub fn vary(&mut self, levels: &Levels) -> Result<(), ScenarioError> {
        for block in &mut self.blocks {
            for (name, levels) in levels {
                if block.cells.iter().any(|cell| cell.contains_key(name)) {
                    return Err(ScenarioError::Fixed {
                        block: block.title.clone(),
                        name: name.clone(),
                    });
                }
                let known = block.factors.iter_mut().find(|factor| factor.name == *name);
                match (known, levels.as_slice()) {
                    (Some(factor), _) => factor.levels.clone_from(levels),
                    (None, [only]) => {
                        block.set.insert(name.clone(), only.clone());
                    }
                    (None, _) => block.factors.insert(
                        0,
                        Factor {
                            name: name.clone(),
                            levels: levels.clone(),
                        },
                    ),
                }
            }
        }
        Ok(())
    }

    /// Plans all runs in their order, for a machine with or without test hosts.
    pub fn plan(&self, has_hosts: bool) -> Result<Vec<Planned>, ScenarioError> {
        let mut runs = Vec::new();
        for repetition in 1..=self.repetitions {
            let mut of_repetition = Vec::new();
            for (block, of_block) in self.blocks.iter().enumerate() {
                if of_block.hosts != has_hosts && self.blocks.iter().any(|block| !block.hosts) {
                    continue;
                }
                let rotation = match self.order {
                    RunOrder::Rotated => repetition as usize - 1,
                    RunOrder::Listed | RunOrder::Random => 0,
                };
                for cell in of_block.cells_of(&self.set, rotation)? {
                    let system = cell.system.as_ref();
                    let system = system.map(|name| self.system(of_block, name)).transpose()?;
                    of_repetition.push(Planned {
                        number: 0,
                        block,
                        repetition,
                        cell,
                        system,
                    });
                }
            }
            if runs.len() + of_repetition.len() > usize::from(u16::MAX) {
                return Err(ScenarioError::TooMany);
            }
            if self.order == RunOrder::Random {
                shuffle(&mut of_repetition, self.seed ^ u64::from(repetition));
            }
            runs.extend(of_repetition);
        }
        for (number, run) in (1..).zip(&mut runs) {
            run.number = number;
        }
        match runs.is_empty() {
            true => Err(ScenarioError::Empty),
            false => Ok(runs),
        }
    }

    /// System with a name that a cell of the block has.
    fn system(&self, block: &Block, name: &str) -> Result<System, ScenarioError> {
        let system = self.systems.get(name).cloned();
        let why = || format!("there is no [system.{name}] in the scenario");
        system.ok_or_else(|| block.refused(why()))
    }
}

/// Removes equal runs of a repetition, and numbers the others again, after the machine has changed cells.
pub fn distinct(planned: Vec<Planned>) -> Vec<Planned> {
    let mut kept: Vec<Planned> = Vec::new();
    for mut run in planned {
        run.cell.complete();
        let is_same = |other: &Planned| {
            (other.block, other.repetition, &other.cell) == (run.block, run.repetition, &run.cell)
        };
        if !kept.iter().any(is_same) {
            run.number = kept.len() as u32 + 1;
            kept.push(run);
        }
    }
    kept
}

impl Block {
    /// Distinct cells in their order. The last factor starts at its level with the index `rotation`.
    fn cells_of(&self, set: &Table, rotation: usize) -> Result<Vec<Cell>, ScenarioError> {
        let explicit = match self.cells.is_empty() {
            true => vec![Table::new()],
            false => self.cells.clone(),
        };
        let mut tables: Vec<Table> = Vec::new();
        for cell in &explicit {
            let mut table = set.clone();
            table.extend(self.set.clone());
            table.extend(cell.clone());
            tables.push(table);
        }
        for (number, factor) in (1..).zip(&self.factors) {
            let mut levels = factor.levels.clone();
            if number == self.factors.len() && !levels.is_empty() {
                levels.rotate_left(rotation % factor.levels.len());
            }
            let crossed = tables.iter().flat_map(|table| {
                levels.iter().map(|level| {
                    let mut table = table.clone();
                    table.insert(factor.name.clone(), level.clone());
                    table
                })
            });
            tables = crossed.collect();
        }
        let parsed = tables.into_iter().map(|table| {
            let cell = Cell::deserialize(Value::Table(table));
            cell.map_err(|error| self.refused(error.to_string().trim().replace('\n', " ")))
        });
        let parsed: Vec<Cell> = parsed.collect::<Result<_, _>>()?;
        let places = unique(parsed.iter().filter_map(Cell::disturbed_place));
        let mut cells: Vec<Cell> = Vec::new();
        for cell in parsed {
            let placed: Vec<Cell> = match cell.is_placed_by_others() {
                true if !places.is_empty() => {
                    let at = |&place| Cell {
                        place: Some(place),
                        ..cell.clone()
                    };
                    places.iter().map(at).collect()
                }
                _ => vec![cell],
            };
            for mut cell in placed {
                cell.complete();
                let checked = match cell.measure {
                    What::Throughput if !self.expect.is_empty() => {
                        Err("only round trips have the counters of expect".to_owned())
                    }
                    _ if cell.system.is_some() && !self.expect.is_empty() => {
                        Err("a system under test has no counters of expect".to_owned())
                    }
                    _ => cell.check(),
                };
                checked.map_err(|why| self.refused(why))?;
                cells.push(cell);
            }
        }
        let cells = unique(cells);
        self.check_levels(&cells)?;
        Ok(cells)
    }

    /// Error for a wrong value of a cell.
    fn refused(&self, why: String) -> ScenarioError {
        ScenarioError::Cell {
            block: self.title.clone(),
            why,
        }
    }

    /// Checks that comparisons name levels of the cells.
    fn check_levels(&self, cells: &[Cell]) -> Result<(), ScenarioError> {
        for comparison in &self.comparisons {
            let factor = &comparison.factor;
            if self.factors.iter().any(|known| known.name == *factor) {
                // Levels that options left out are not compared.
                continue;
            }
            for level in comparison.pairs.iter().flatten() {
                let has = |cell: &Cell| cell.has(factor, level);
                if !cells.iter().any(has) {
                    return Err(ScenarioError::Level {
                        block: self.title.clone(),
                        factor: factor.clone(),
                        level: level.clone(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Shuffles in an order that depends only on the seed (Fisher and Yates).
fn shuffle<T>(values: &mut [T], seed: u64) {
    let mut state = seed;
    for last in (1..values.len()).rev() {
        state = crate::cable::mix(state.wrapping_add(1));
        values.swap(last, (state % (last as u64 + 1)) as usize);
    }
}
