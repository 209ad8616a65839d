//! `isolane config`: the description complete, with the source of each value; or an example.

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output;
use crate::settings::ConfigSettings;

/// Prints it.
pub(crate) fn run(settings: ConfigSettings) -> Result<ExitCode, Failure> {
    match settings {
        ConfigSettings::Example => output::print(isolane_model::example()),
        ConfigSettings::System(system) => output::print(&system.to_toml_with_sources()),
    }
}
