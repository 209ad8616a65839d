//! `isolane tune plan`: what to change, why, and what it costs. Nothing is changed.

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{print, print_json};
use crate::settings::TunePlanSettings;
use crate::values::Destination;

use super::source::planned_again;

/// Prints the plan, and keeps it where it was asked for.
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
        true => print(&plan.to_diff()),
        false => print(&plan.to_text()),
    }
}
