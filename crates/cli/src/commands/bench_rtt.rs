//! `isolane bench rtt`: the round-trip time of small samples at a fixed rate.

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::BenchRttSettings;

/// Declared, without a body.
pub(crate) fn run(_settings: BenchRttSettings) -> Result<ExitCode, Failure> {
    Err(Failure::not_built_yet("bench rtt"))
}
