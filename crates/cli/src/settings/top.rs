//! Settings of `top`.

use std::time::Duration;

use isolane_model::{Source, Sourced};

use crate::arguments::TopArguments;
use crate::values::Destination;

use super::{NetworkSettings, or_default, seconds};

#[derive(Debug)]
pub(crate) struct TopSettings {
    /// Domain of the shown participants; `None`: all.
    pub(crate) domain: Option<u32>,
    pub(crate) domain_source: Source,
    /// Shows a single sample.
    pub(crate) once: bool,
    /// Run time; `None`: until stopped.
    pub(crate) run_for: Sourced<Option<Duration>>,
    pub(crate) json: Option<Destination>,
}

impl TopSettings {
    pub(super) fn new(network: NetworkSettings, arguments: TopArguments) -> Self {
        // All domains are shown by default, because the command observes processes.
        let domain = network.domain;
        let asked = domain.source != Source::Default;
        Self {
            domain: asked.then(|| domain.value.get()),
            domain_source: domain.source,
            once: arguments.once,
            run_for: or_default(
                arguments.seconds.map(|n| Some(seconds(n))),
                "--seconds",
                None,
            ),
            json: arguments.json,
        }
    }
}
