//! The settings of `tune plan` and `tune export`: which machine, which of the description's hosts it is, which profile.

use std::path::{Path, PathBuf};

use isolane_model::{ProfileName, Source, Sourced, System, Tuning, Word};

use crate::arguments::{TuneExportArguments, TunePlanArguments, TuneSourceArguments};
use crate::failure::Failure;
use crate::values::{Destination, ExportFormat};

use super::super::NetworkSettings;
use super::TuneState;

/// What a plan is made from.
#[derive(Debug)]
pub(crate) struct PlanSource {
    pub(crate) network: NetworkSettings,
    /// What the machine is to be set up for.
    pub(crate) system: Option<Box<System>>,
    /// Where that stands.
    pub(crate) described_in: Option<Sourced<PathBuf>>,
    /// Which host of it the machine is.
    pub(crate) host: Option<String>,
    /// What may be changed.
    pub(crate) tuning: Tuning,
    /// Facts recorded elsewhere, in place of this machine's.
    pub(crate) facts: Option<PathBuf>,
    /// What is known of where flows land.
    pub(crate) placement: Vec<PathBuf>,
}

/// `tune plan`.
#[derive(Debug)]
pub(crate) struct TunePlanSettings {
    pub(crate) from: PlanSource,
    /// What earlier plans set.
    pub(crate) state: TuneState,
    /// Where the plan is kept.
    pub(crate) file: Option<PathBuf>,
    /// Print the difference alone.
    pub(crate) diff: bool,
    pub(crate) json: Option<Destination>,
}

/// `tune export`.
#[derive(Debug)]
pub(crate) struct TuneExportSettings {
    pub(crate) from: PlanSource,
    pub(crate) format: ExportFormat,
    /// The folder its files are written below; `None`: they are printed.
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
    /// Each setting: its name, value and source.
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

/// The profile: a name counts before the description's, and leaves its single switches; a file counts before
/// all of them.
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
