//! Settings of `tune apply`, `rollback` and `status`: the plan, and the folder of its journal.

use std::path::PathBuf;

use isolane_model::{Source, Sourced};
use isolane_tune::apply::STATE_FOLDER;

use crate::arguments::{TuneApplyArguments, TuneStateArguments};
use crate::settings::or_default;

/// Folder of the journal.
#[derive(Debug)]
pub(crate) struct TuneState(pub(crate) Sourced<PathBuf>);

#[derive(Debug)]
pub(crate) struct TuneApplySettings {
    pub(crate) plan: TunePlan,
    pub(crate) state: TuneState,
}

#[derive(Debug)]
pub(crate) enum TunePlan {
    /// Plan in a file, applied now and, if kept, after each boot.
    File {
        path: PathBuf,
        is_kept: bool,
    },
    Kept,
}

impl TuneState {
    pub(super) fn describe(&self, line: &mut dyn FnMut(&str, String, &Source)) {
        line("state", self.0.value.display().to_string(), &self.0.source);
    }
}

impl From<TuneStateArguments> for TuneState {
    fn from(arguments: TuneStateArguments) -> Self {
        Self(or_default(
            arguments.state,
            "--state",
            PathBuf::from(STATE_FOLDER),
        ))
    }
}

impl From<TuneApplyArguments> for TuneApplySettings {
    fn from(arguments: TuneApplyArguments) -> Self {
        Self {
            // The grammar requires a file or `--boot`.
            plan: match arguments.plan {
                Some(path) => TunePlan::File {
                    path,
                    is_kept: !arguments.no_boot,
                },
                None => TunePlan::Kept,
            },
            state: arguments.state.into(),
        }
    }
}
