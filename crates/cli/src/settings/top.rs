//! The settings of `top`.

use std::time::Duration;

use isolane_model::{Source, Sourced};

use crate::arguments::TopArguments;
use crate::values::Destination;

use super::{NetworkSettings, or_default, seconds};

#[derive(Debug)]
pub(crate) struct TopSettings {
    /// Only participants of this domain; `None`: of all.
    pub(crate) domain: Option<u32>,
    /// Where the domain comes from.
    pub(crate) domain_source: Source,
    /// One sample, and no more.
    pub(crate) once: bool,
    /// How long to look; `None`: until stopped.
    pub(crate) run_for: Sourced<Option<Duration>>,
    pub(crate) json: Option<Destination>,
}

impl TopSettings {
    pub(super) fn new(network: NetworkSettings, arguments: TopArguments) -> Self {
        // Without a word of anybody all domains are shown: it looks at processes, not at one domain.
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
