//! `isolane demo`: what isolane is for, shown on this machine.

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::DemoSettings;

/// Declared, without a body.
pub(crate) fn run(_settings: DemoSettings) -> Result<ExitCode, Failure> {
    Err(Failure::not_built_yet("demo"))
}
