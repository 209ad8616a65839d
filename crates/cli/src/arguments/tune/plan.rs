//! Options of `tune plan` and `tune export`.

use std::path::PathBuf;

use clap::Args;

use super::super::value::word;
use super::apply::TuneStateArguments;
use crate::values::{Destination, ExportFormat};

/// What a plan is made from.
#[derive(Debug, Args)]
pub(crate) struct TuneSourceArguments {
    /// The profile: latency, balanced, or a file with switches of one's own (as [tune] has them)
    /// [default: the description's, else balanced]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) profile: Option<String>,
    /// Which host of the description this machine is [default: the one with this machine's name,
    /// else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Plan for facts that were recorded (isolane doctor --facts), on another machine perhaps
    #[arg(long, value_name = "FILE")]
    pub(crate) facts: Option<PathBuf>,
    /// What is known of where flows land: what `tune learn` and `tune ports` wrote with --json; without it no
    /// thread of receive work gets a priority. May be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) placement: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TunePlanArguments {
    /// Keep the plan in this file, as JSON
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) from: TuneSourceArguments,
    #[command(flatten)]
    pub(crate) state: TuneStateArguments,
    /// Print only what would change, as a difference
    #[arg(long)]
    pub(crate) diff: bool,
    /// Write the plan as JSON; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct TuneExportArguments {
    /// The form: tuned, systemd, sh
    #[arg(long, value_name = "FORM", value_parser = word::<ExportFormat>(), hide_possible_values = true)]
    pub(crate) format: ExportFormat,
    #[command(flatten)]
    pub(crate) from: TuneSourceArguments,
    /// Write the files below this folder, each where it belongs on the machine [default: print them]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
}
