//! Settings of `tune plan` and `tune export`: the machine, its host entry and the profile.

use std::path::{Path, PathBuf};

use isolane_model::{ProfileName, Source, Sourced, System, Tuning, Word};

use crate::arguments::{TuneExportArguments, TunePlanArguments, TuneSourceArguments};
use crate::failure::Failure;
use crate::values::{Destination, ExportFormat};

use super::super::NetworkSettings;
use super::TuneState;

#[derive(Debug)]
pub(crate) struct PlanSource {
    pub(crate) network: NetworkSettings,
    /// Description to tune the machine for.
    pub(crate) system: Option<Box<System>>,
    /// Path of the description.
    pub(crate) described_in: Option<Sourced<PathBuf>>,
    /// Host entry of the machine in the description.
    pub(crate) host: Option<String>,
    /// Permitted changes.
    pub(crate) tuning: Tuning,
    /// Recorded facts, instead of this machine's.
    pub(crate) facts: Option<PathBuf>,
    /// Files with receive-queue measurements.
    pub(crate) placement: Vec<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct TunePlanSettings {
    pub(crate) from: PlanSource,
    /// Journal folder of earlier plans.
    pub(crate) state: TuneState,
    pub(crate) file: Option<PathBuf>,
    /// Prints only the difference.
    pub(crate) diff: bool,
    pub(crate) json: Option<Destination>,
}

#[derive(Debug)]
pub(crate) struct TuneExportSettings {
    pub(crate) from: PlanSource,
    pub(crate) format: ExportFormat,
    /// Folder for the files; `None`: print them.
    pub(crate) to: Option<PathBuf>,
}

impl TunePlanSettings {
    pub(in crate::settings) fn new(
        network: NetworkSettings,
        arguments: TunePlanArguments,
        description: Option<(System, Sourced<PathBuf>)>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            from: PlanSource::new(network, arguments.from, description)?,
            state: arguments.state.into(),
            file: arguments.file,
            diff: arguments.diff,
            json: arguments.json,
        })
    }
}

impl TuneExportSettings {
    pub(in crate::settings) fn new(
        network: NetworkSettings,
        arguments: TuneExportArguments,
        description: Option<(System, Sourced<PathBuf>)>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            from: PlanSource::new(network, arguments.from, description)?,
            format: arguments.format,
            to: arguments.to,
        })
    }
}

impl PlanSource {
    /// Reports each setting with name, value and source.
    pub(super) fn describe(&self, line: &mut dyn FnMut(&str, String, &Source)) {
        let domain = &self.network.domain;
        line("domain", domain.value.to_string(), &domain.source);
        match &self.described_in {
            Some(path) => line(
                "description",
                path.value.display().to_string(),
                &path.source,
            ),
            None => line("description", String::from("none"), &Source::Default),
        }
        for (switch, value, source) in self.tuning.entries() {
            line(switch, value.to_string(), source);
        }
    }

    fn new(
        network: NetworkSettings,
        arguments: TuneSourceArguments,
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
        let described = system.as_ref().map(|system| system.tuning().clone());
        Ok(Self {
            network,
            tuning: tuning(arguments.profile, described.unwrap_or_default())?,
            system: system.map(Box::new),
            described_in,
            host: arguments.host,
            facts: arguments.facts,
            placement: arguments.placement,
        })
    }
}

/// Profile in effect: a named one replaces the description's profile and keeps its single switches; a file replaces
/// both.
fn tuning(profile: Option<String>, described: Tuning) -> Result<Tuning, Failure> {
    let Some(profile) = profile else {
        return Ok(described);
    };
    if let Some(name) = ProfileName::from_word(&profile) {
        return Ok(described.over(Sourced::new(name, Source::CommandLine("--profile"))));
    }
    if !profile.contains('/') && !profile.ends_with(".toml") && !Path::new(&profile).exists() {
        let names: Vec<&str> = ProfileName::WORDS.iter().map(|(word, _)| *word).collect();
        return Err(Failure::wrong_usage(
            format!("there is no profile \"{}\"", profile.escape_debug()),
            format!("profiles are {}; and there is no such file", names.join(", ")),
        )
        .with_remedy("name one of these, or a file with switches as [tune] has them: isolane config prints them"));
    }
    Tuning::load(&profile).map_err(Failure::Description)
}
