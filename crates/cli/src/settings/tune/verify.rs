//! The settings of `tune verify`: what is measured, and what is an answer of no.

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
    /// Which host of it the machine is.
    pub(crate) host: Option<String>,
    /// Empty: that of the described host, if there is one.
    pub(crate) cores: Vec<u16>,
    pub(crate) measure_for: Sourced<Duration>,
    pub(crate) priority: Sourced<u8>,
    /// `None`: any wake-up is good.
    pub(crate) at_most: Option<Duration>,
    /// Where datagrams are sent.
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
