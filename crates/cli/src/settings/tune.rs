//! Settings of `tune` and its subcommands.

mod apply;
mod landing;
mod plan;
mod verify;

use std::path::PathBuf;

use isolane_model::{Source, Sourced, System};

use super::NetworkSettings;
use crate::arguments::Tune;
use crate::failure::Failure;
use crate::values::Destination;

pub(crate) use self::apply::{TuneApplySettings, TunePlan, TuneState};
pub(crate) use self::landing::{AnswerSettings, LearnSettings, PortsSettings};
pub(crate) use self::plan::{PlanSource, TuneExportSettings, TunePlanSettings};
pub(crate) use self::verify::TuneVerifySettings;

#[derive(Debug)]
pub(crate) enum TuneSettings {
    Plan(Box<TunePlanSettings>),
    Apply(TuneApplySettings),
    Status(TuneState, Option<Destination>),
    Verify(Box<TuneVerifySettings>),
    Ports(PortsSettings),
    Learn(Box<LearnSettings>),
    Answer(AnswerSettings),
    Export(Box<TuneExportSettings>),
    Rollback(TuneState),
}

impl TuneSettings {
    pub(super) fn new(
        arguments: Tune,
        network: NetworkSettings,
        description: Option<(System, Sourced<PathBuf>)>,
    ) -> Result<Self, Failure> {
        Ok(match arguments {
            Tune::Plan(plan) => {
                Self::Plan(Box::new(TunePlanSettings::new(network, plan, description)?))
            }
            Tune::Apply(apply) => Self::Apply(apply.into()),
            Tune::Status(status) => Self::Status(status.state.into(), status.json),
            Tune::Verify(verify) => {
                let verify = TuneVerifySettings::new(network, verify, description);
                Self::Verify(Box::new(verify))
            }
            Tune::Ports(ports) => Self::Ports(PortsSettings::new(&network, ports)?),
            Tune::Learn(learn) => {
                let learn = LearnSettings::new(&network, learn, description)?;
                Self::Learn(Box::new(learn))
            }
            Tune::Answer(answer) => {
                Self::Answer(AnswerSettings::new(&network, answer, description)?)
            }
            Tune::Export(export) => {
                let export = TuneExportSettings::new(network, export, description)?;
                Self::Export(Box::new(export))
            }
            Tune::Rollback(state) => Self::Rollback(state.into()),
        })
    }

    /// Reports each setting with name, value and source.
    pub(super) fn describe(&self, line: &mut dyn FnMut(&str, String, &Source)) {
        match self {
            Self::Plan(plan) => plan.from.describe(line),
            Self::Apply(apply) => apply.state.describe(line),
            Self::Status(state, _) | Self::Rollback(state) => state.describe(line),
            Self::Verify(verify) => verify.describe(line),
            Self::Ports(ports) => ports.describe(line),
            Self::Learn(learn) => learn.describe(line),
            Self::Answer(answer) => answer.describe(line),
            Self::Export(export) => export.from.describe(line),
        }
    }

    pub(super) fn json(&self) -> Option<&Destination> {
        match self {
            Self::Plan(plan) => plan.json.as_ref(),
            Self::Status(_, json) => json.as_ref(),
            Self::Verify(verify) => verify.json.as_ref(),
            Self::Ports(ports) => ports.json.as_ref(),
            Self::Learn(learn) => learn.json.as_ref(),
            Self::Apply(_) | Self::Answer(_) | Self::Export(_) | Self::Rollback(_) => None,
        }
    }
}
