//! Settings of `tune verify`: the measurements and their limits.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use isolane_model::{Source, Sourced, System, format_duration};
use isolane_tune::APPLICATION_PRIORITY;

use super::TuneState;
use crate::arguments::TuneVerifyArguments;
use crate::settings::{NetworkSettings, or_default, seconds};
use crate::values::Destination;

#[derive(Debug)]
pub(crate) struct TuneVerifySettings {
    pub(crate) network: NetworkSettings,
    pub(crate) state: TuneState,
    pub(crate) system: Option<Box<System>>,
    /// Host entry of the machine in the description.
    pub(crate) host: Option<String>,
    /// Cores; empty: that of the described host, if any.
    pub(crate) cores: Vec<u16>,
    pub(crate) measure_for: Sourced<Duration>,
    pub(crate) priority: Sourced<u8>,
    /// Maximum wake-up latency; `None`: unlimited.
    pub(crate) at_most: Option<Duration>,
    /// Destination of the datagrams.
    pub(crate) peer: Option<Ipv4Addr>,
    pub(crate) watch: bool,
    pub(crate) json: Option<Destination>,
}

impl TuneVerifySettings {
    pub(super) fn new(
        network: NetworkSettings,
        arguments: TuneVerifyArguments,
        description: Option<(System, Sourced<PathBuf>)>,
    ) -> Self {
        Self {
            network,
            state: arguments.state.into(),
            system: description.map(|(system, _)| Box::new(system)),
            host: arguments.host,
            cores: arguments.core,
            measure_for: or_default(arguments.seconds, "--seconds", 10).map(seconds),
            priority: or_default(arguments.priority, "--priority", APPLICATION_PRIORITY),
            at_most: arguments.at_most,
            peer: arguments.peer,
            watch: arguments.watch,
            json: arguments.json,
        }
    }

    pub(super) fn describe(&self, line: &mut dyn FnMut(&str, String, &Source)) {
        self.state.describe(line);
        let measure_for = format_duration(self.measure_for.value);
        line("measure_for", measure_for, &self.measure_for.source);
        let priority = self.priority.value.to_string();
        line("priority", priority, &self.priority.source);
    }
}
