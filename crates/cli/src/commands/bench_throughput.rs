//! `isolane bench throughput`: samples a second, counted at the reader.

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::BenchThroughputSettings;

/// Declared, without a body.
pub(crate) fn run(_settings: BenchThroughputSettings) -> Result<ExitCode, Failure> {
    Err(Failure::not_built_yet("bench throughput"))
}
