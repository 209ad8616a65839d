//! `isolane datapaths`: datapaths of this program, and their options.

use std::fmt::Write as _;

use clap::Args;
use isolane_datapath::kind::{OptionDefault, OptionSpec};
use serde::Serialize;

use crate::datapaths::kinds;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{print, print_json};
use crate::values::Destination;

/// JSON form (`--json`).
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    datapaths: Vec<Datapath>,
}

#[derive(Serialize)]
struct Datapath {
    name: &'static str,
    summary: &'static str,
    options: Vec<DatapathOption>,
}

#[derive(Serialize)]
struct DatapathOption {
    key: &'static str,
    /// Valid values, for people.
    values: String,
    /// Default as a TOML value; `None` if the option is unset by default.
    default: Option<String>,
    help: &'static str,
}

impl DatapathOption {
    fn new(spec: &OptionSpec) -> Self {
        Self {
            key: spec.key,
            values: spec.kind.to_string(),
            default: match spec.default {
                OptionDefault::Value(value) => Some(value.to_string()),
                OptionDefault::Unset(_) => None,
            },
            help: spec.help,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Datapaths {
    /// Write the list as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

impl Datapaths {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        match &self.json {
            Some(destination) => print_json(&report(), destination),
            None => print(&text()),
        }
    }
}

fn report() -> Report {
    let datapaths = kinds().iter().map(|kind| Datapath {
        name: kind.name(),
        summary: kind.summary(),
        options: kind.options().iter().map(DatapathOption::new).collect(),
    });
    Report {
        schema: "isolane/datapaths/1",
        datapaths: datapaths.collect(),
    }
}

fn text() -> String {
    let mut text = String::new();
    for kind in kinds() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {}", kind.name(), kind.summary());
        for spec in kind.options() {
            let default = match spec.default {
                OptionDefault::Value(value) => value.to_string(),
                OptionDefault::Unset(effect) => effect.to_owned(),
            };
            let _ = writeln!(text, "  {} ({default}): {}", spec.key, spec.help);
            let _ = writeln!(text, "      {}", spec.kind);
        }
    }
    text.push_str("auto: the first of these whose requirements this machine meets\n");
    text
}
