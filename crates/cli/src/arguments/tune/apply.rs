//! Options of `tune apply`, `rollback` and `status`: the plan, and the folder of its journal.

use std::path::PathBuf;

use clap::Args;

use crate::values::Destination;

#[derive(Debug, Args)]
pub(crate) struct TuneStateArguments {
    /// Use this folder for the journal, which holds the settings found before any change [default: /var/lib/isolane]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TuneApplyArguments {
    /// Plan file, as JSON
    #[arg(
        value_name = "PLAN",
        required_unless_present = "boot",
        conflicts_with = "boot"
    )]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) state: TuneStateArguments,
    /// Apply only until the next boot: save no plan, and install no systemd unit
    #[arg(long, conflicts_with = "boot")]
    pub(crate) no_boot: bool,
    /// Apply the saved plan, as the unit does after each boot, once the plan's interfaces are up
    #[arg(long)]
    pub(crate) boot: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TuneStatusArguments {
    #[command(flatten)]
    pub(crate) state: TuneStateArguments,
    /// Write the status as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}
