//! `isolane tune plan`: planned changes with reasons and costs. Nothing is changed.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use isolane_tune::Plan;
use rustix::fs::OFlags;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{print, print_json};
use crate::settings::{PlanSource, TunePlanSettings};
use crate::values::Destination;

use super::source::planned_again;

/// Prints the plan, and writes it to a file if requested.
pub(super) fn run(settings: TunePlanSettings) -> Result<ExitCode, Failure> {
    let plan = planned_again(&settings.from, &settings.state)?;
    let destination = settings.file.map(Destination::File).or(settings.json);
    if let Some(destination) = &destination {
        print_json(&plan, destination)?;
    }
    if destination == Some(Destination::StandardOutput) {
        return Ok(ExitCode::Done);
    }
    match settings.diff {
        true => print(&plan.to_diff())?,
        false => print(&plan.to_text())?,
    };
    match destination {
        Some(Destination::File(path)) => {
            keep_from_others(&path).map_err(|error| {
                let what = format!("who may write to {} cannot be set", path.display());
                Failure::new(ExitCode::MachineForbids, what, error.to_string())
            })?;
            print(&written(&path, &settings.from, &plan))
        }
        _ => Ok(ExitCode::Done),
    }
}

/// Restricts write permission on a plan to its owner, as `apply` requires. Does not follow links, which another user
/// may have placed.
fn keep_from_others(path: &Path) -> io::Result<()> {
    if !path.symlink_metadata()?.is_file() {
        return Ok(());
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut plan = File::options();
    plan.read(true).custom_flags(flags.bits().cast_signed());
    let plan = plan.open(path)?;
    let metadata = plan.metadata()?;
    match metadata.is_file() && metadata.mode() & 0o022 != 0 {
        true => plan.set_permissions(Permissions::from_mode(metadata.mode() & 0o755)),
        false => Ok(()),
    }
}

/// Text on the plan's file and the next step.
fn written(path: &Path, from: &PlanSource, plan: &Plan) -> String {
    let path = path.display();
    let next = match (plan.steps.is_empty(), &from.facts) {
        (true, _) => String::from("there is nothing to apply"),
        (false, None) => format!("to carry it out: sudo isolane tune apply {path}"),
        (false, Some(_)) => {
            format!(
                "to carry it out, on {}: sudo isolane tune apply {path}",
                plan.machine.hostname
            )
        }
    };
    format!("\nThe plan is written to {path}; {next}\n")
}
