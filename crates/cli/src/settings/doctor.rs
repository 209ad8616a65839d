//! Settings of `doctor`: the machine to examine, and the description to compare it with.

use std::path::PathBuf;

use isolane_model::{Sourced, System};

use crate::arguments::DoctorArguments;
use crate::failure::Failure;
use crate::values::Destination;

use super::NetworkSettings;

#[derive(Debug)]
pub(crate) struct DoctorSettings {
    pub(crate) network: NetworkSettings,
    /// Description to compare the machine with.
    pub(crate) system: Option<Box<System>>,
    /// Path of the description.
    pub(crate) described_in: Option<Sourced<PathBuf>>,
    /// Host entry of the machine in the description.
    pub(crate) host: Option<String>,
    /// Recorded facts, instead of this machine's.
    pub(crate) from: Option<PathBuf>,
    /// Prints the facts instead of findings.
    pub(crate) facts: bool,
    /// Shows findings without a problem, too.
    pub(crate) all: bool,
    pub(crate) json: Option<Destination>,
}

impl DoctorSettings {
    pub(super) fn new(
        network: NetworkSettings,
        arguments: DoctorArguments,
        description: Option<(System, Sourced<PathBuf>)>,
    ) -> Result<Self, Failure> {
        if arguments.host.is_some() && description.is_none() {
            return Err(Failure::wrong_usage(
                "--host names a host of a description, and there is none",
                "neither --config nor ISOLANE_CONFIG names one, and there is no isolane.toml here",
            )
            .with_remedy("name a description with --config FILE"));
        }
        let (system, described_in) = description.unzip();
        Ok(Self {
            network,
            system: system.map(Box::new),
            described_in,
            host: arguments.host,
            from: arguments.from,
            facts: arguments.facts,
            all: arguments.all,
            json: arguments.json,
        })
    }
}
