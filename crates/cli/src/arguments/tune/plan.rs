//! Options of `tune plan` and `tune export`.

use std::path::PathBuf;

use clap::Args;

use super::super::value::word;
use super::apply::TuneStateArguments;
use crate::values::{Destination, ExportFormat};

/// Sources of a plan.
#[derive(Debug, Args)]
pub(crate) struct TuneSourceArguments {
    /// Use this profile: latency, balanced, or a file with switches (as in [tune]) [default: the description's, else
    /// balanced]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) profile: Option<String>,
    /// Name this machine's host entry in the description [default: the one with this machine's name, else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Plan for recorded facts (isolane doctor --facts), possibly of another machine
    #[arg(long, value_name = "FILE")]
    pub(crate) facts: Option<PathBuf>,
    /// Read receive-queue measurements that `tune learn` and `tune ports` wrote with --json; without them no receive
    /// thread gets a priority. May be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) placement: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TunePlanArguments {
    /// Write the plan to this file, as JSON
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) from: TuneSourceArguments,
    #[command(flatten)]
    pub(crate) state: TuneStateArguments,
    /// Print only the changes, as a difference
    #[arg(long)]
    pub(crate) diff: bool,
    /// Write the plan as JSON; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct TuneExportArguments {
    /// Select the format: tuned, systemd, sh
    #[arg(long, value_name = "FORM", value_parser = word::<ExportFormat>(), hide_possible_values = true)]
    pub(crate) format: ExportFormat,
    #[command(flatten)]
    pub(crate) from: TuneSourceArguments,
    /// Write the files below this folder, at their paths on the machine [default: print them]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
}
