//! Disturbances of a round-trip run in separate processes.

use std::thread;
use std::time::Duration;

use super::run::Config;
use crate::child::{ChildError, Program, Role, Running};
use crate::flood::{self, Flood};
use crate::namespace::{Host, Testbed};
use crate::process::Note;
use crate::report::Disturbance;
use crate::scenario::inside::joining;
use crate::scenario::{ScenarioError, Site};
use crate::storm::{self, Storm};

/// Lead time of a flood or storm before the first ping, in which queues reach a steady state.
const SETTLES: Duration = Duration::from_millis(300);

pub(super) enum Beside {
    Nothing,
    Flood(Box<Flood>),
    Storm(Box<Storm>),
    Joining(Running),
}

/// Reports of a disturbance.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Achieved {
    pub(super) flood: Option<flood::Report>,
    pub(super) storm: Option<storm::Report>,
    pub(super) joining: Option<joining::Report>,
}

impl Beside {
    /// Starts the disturbance and returns once it is active.
    pub(super) fn start(
        testbed: &Testbed,
        program: &Program,
        config: &Config,
    ) -> Result<Beside, ScenarioError> {
        match config.scenario.disturbance {
            Some(Disturbance::Flood) => {
                let flood = Flood::start(testbed, program, &config.flood());
                let flood = flood.map_err(ScenarioError::of("the flood"))?;
                thread::sleep(SETTLES);
                Ok(Beside::Flood(Box::new(flood)))
            }
            Some(Disturbance::Storm) => {
                let storm = Storm::start(testbed, program, &config.storm());
                let storm = storm.map_err(ScenarioError::of("the storm"))?;
                thread::sleep(SETTLES);
                Ok(Beside::Storm(Box::new(storm)))
            }
            Some(Disturbance::Joining) => {
                let role = Role::Joining(joining::Config {
                    site: Site::Host(Host::B),
                    core: Some(config.cores().cable),
                });
                let start = || -> Result<Running, ChildError> {
                    let mut joining = Running::start(testbed, Host::B, program, &role)?;
                    joining.go()?;
                    Ok(joining)
                };
                let joining = start().map_err(ScenarioError::of("who joins and leaves"))?;
                Ok(Beside::Joining(joining))
            }
            // The ends create these themselves.
            None | Some(Disturbance::Bulk | Disturbance::Repair | Disturbance::Large) => {
                Ok(Beside::Nothing)
            }
        }
    }

    pub(super) fn notes(&self) -> &[Note] {
        match self {
            Beside::Joining(joining) => joining.notes(),
            // A flood or storm returns its notes with its report.
            Beside::Flood(_) | Beside::Storm(_) | Beside::Nothing => &[],
        }
    }

    pub(super) fn finish(self) -> Result<Achieved, ScenarioError> {
        let mut achieved = Achieved::default();
        match self {
            Beside::Nothing => {}
            Beside::Flood(flood) => {
                let report = flood.finish().map_err(ScenarioError::of("the flood"))?;
                achieved.flood = Some(report);
            }
            Beside::Storm(storm) => {
                let report = storm.finish().map_err(ScenarioError::of("the storm"))?;
                achieved.storm = Some(report);
            }
            Beside::Joining(joining) => {
                let report = joining.finish();
                let report = report.map_err(ScenarioError::of("who joins and leaves"))?;
                achieved.joining = Some(report);
            }
        }
        Ok(achieved)
    }
}
