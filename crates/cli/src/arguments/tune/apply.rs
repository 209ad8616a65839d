//! Options of `tune apply`, `rollback` and `status`: which plan, and where its journal is.

use std::path::PathBuf;

use clap::Args;

use crate::values::Destination;

#[derive(Debug, Args)]
pub(crate) struct TuneStateArguments {
    /// The folder of the journal, which holds what was found before anything was changed [default:
    /// /var/lib/isolane]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TuneApplyArguments {
    /// The plan, as JSON
    #[arg(
        value_name = "PLAN",
        required_unless_present = "boot",
        conflicts_with = "boot"
    )]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) state: TuneStateArguments,
    /// Only until the next boot: save nothing, and install no unit of systemd
    #[arg(long, conflicts_with = "boot")]
    pub(crate) no_boot: bool,
    /// Carry out the saved plan: what the unit does after each boot, once the plan's interfaces are up
    #[arg(long)]
    pub(crate) boot: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TuneStatusArguments {
    #[command(flatten)]
    pub(crate) state: TuneStateArguments,
    /// Write it as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}
