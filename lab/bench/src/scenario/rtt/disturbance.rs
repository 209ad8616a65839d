//! Disturbances of a round-trip run in separate processes.

use std::thread;
use std::time::Duration;

use super::run::Config;
use crate::background_load::{self, BackgroundLoad};
use crate::child::{ChildError, Program, Role, Running};
use crate::multicast_load::{self, MulticastLoad};
use crate::namespace::{Host, Testbed};
use crate::process::Note;
use crate::report::Disturbance;
use crate::scenario::{ScenarioError, Site, in_process_load};

/// Lead time of a load before the first ping, in which queues reach a steady state.
const SETTLES: Duration = Duration::from_millis(300);

pub(super) enum RunningDisturbance {
    /// No process: undisturbed, or the ends create the load themselves.
    None,
    Background(Box<BackgroundLoad>),
    Multicast(Box<MulticastLoad>),
    Joining(Running),
}

/// Reports of a disturbance.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Achieved {
    pub(super) flood: Option<background_load::Report>,
    pub(super) storm: Option<multicast_load::Report>,
    pub(super) joining: Option<in_process_load::JoiningReport>,
}

impl RunningDisturbance {
    /// Starts the disturbance and returns once it is active.
    pub(super) fn start(
        testbed: &Testbed,
        program: &Program,
        config: &Config,
    ) -> Result<RunningDisturbance, ScenarioError> {
        let Some(disturbance) = config.scenario.disturbance else {
            return Ok(RunningDisturbance::None);
        };
        let start = || -> Result<RunningDisturbance, ChildError> {
            Ok(match disturbance {
                Disturbance::Flood => {
                    let load = BackgroundLoad::start(testbed, program, &config.flood())?;
                    thread::sleep(SETTLES);
                    RunningDisturbance::Background(Box::new(load))
                }
                Disturbance::Storm => {
                    let load = MulticastLoad::start(testbed, program, &config.storm())?;
                    thread::sleep(SETTLES);
                    RunningDisturbance::Multicast(Box::new(load))
                }
                Disturbance::Joining => {
                    let role = Role::Joining(in_process_load::JoiningConfig {
                        site: Site::Host(Host::B),
                        core: Some(config.cores().cable),
                    });
                    let mut joining = Running::start(testbed, Host::B, program, &role)?;
                    joining.go()?;
                    RunningDisturbance::Joining(joining)
                }
                Disturbance::Bulk | Disturbance::Repair | Disturbance::Large => {
                    RunningDisturbance::None
                }
            })
        };
        start().map_err(ScenarioError::of(disturbance.word()))
    }

    pub(super) fn notes(&self) -> &[Note] {
        match self {
            RunningDisturbance::Joining(joining) => joining.notes(),
            // A load returns its notes with its report.
            _ => &[],
        }
    }

    pub(super) fn finish(self) -> Result<Achieved, ScenarioError> {
        let mut achieved = Achieved::default();
        match self {
            RunningDisturbance::None => {}
            RunningDisturbance::Background(load) => {
                let report = load.finish().map_err(ScenarioError::of("flood"))?;
                achieved.flood = Some(report);
            }
            RunningDisturbance::Multicast(load) => {
                let report = load.finish().map_err(ScenarioError::of("storm"))?;
                achieved.storm = Some(report);
            }
            RunningDisturbance::Joining(joining) => {
                let report = joining.finish().map_err(ScenarioError::of("joining"))?;
                achieved.joining = Some(report);
            }
        }
        Ok(achieved)
    }
}
