//! Sources of a plan: facts, description, placements.

use std::path::Path;

use isolane_model::read_regular_text;
use isolane_tune::apply::{SettingStatus, status};
use isolane_tune::{Facts, FlowQueues, Plan, ThisMachine, here, probe, replan};
use serde::de::DeserializeOwned;

use crate::commands::needs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::RECORDED_BYTES;
use crate::output::tell;
use crate::settings::{PlanSource, TuneState};

pub(super) fn planned(from: &PlanSource) -> Result<Plan, Failure> {
    planned_behind(from, &[])
}

/// Plan that also restores settings of earlier plans that are no longer needed.
pub(super) fn planned_again(from: &PlanSource, state: &TuneState) -> Result<Plan, Failure> {
    // The journal of a machine with recorded facts is not available here.
    if from.facts.is_some() {
        return planned(from);
    }
    match status(&mut ThisMachine::new(), &here(), &state.0.value) {
        Ok(status) => planned_behind(from, &status.map_or_else(Vec::new, |it| it.settings)),
        Err(error) => {
            tell(format!(
                "note: what earlier plans set cannot be told ({error}): nothing of it is put back"
            ));
            planned(from)
        }
    }
}

fn planned_behind(from: &PlanSource, standing: &[SettingStatus]) -> Result<Plan, Failure> {
    let facts: Facts = match &from.facts {
        Some(path) => recorded(path, "facts", "isolane doctor --facts --json FILE")?,
        None => probe(),
    };
    let mut placement = FlowQueues::default();
    for path in &from.placement {
        let form = "isolane tune learn --json FILE, isolane tune ports --json FILE";
        let more: FlowQueues = recorded(path, "placements", form)?;
        if more.is_of_other_boot(facts.boot_id.as_deref()) {
            return Err(outdated(path));
        }
        placement.flows.extend(more.flows);
    }
    let domain = from.network.domain.value.get();
    let needs = needs::of(
        from.system.as_deref(),
        domain,
        from.host.as_deref(),
        &facts.hostname,
    )?;
    let plan = |facts: &Facts| isolane_tune::plan(facts, &needs, &from.tuning, &placement);
    Ok(replan(&facts, standing, &plan))
}

/// Failure for placements of another boot.
fn outdated(path: &Path) -> Failure {
    Failure::new(
        ExitCode::AnswerIsNo,
        format!(
            "the placements in {} are of another boot than the facts",
            path.display()
        ),
        "devices take another key for their receive hash at each boot: the same datagrams may come to other \
         queues now",
    )
    .with_remedy(
        "learn and measure again: isolane tune learn PEER -i NAME --json FILE, isolane tune ports PEER -i NAME \
         --json FILE",
    )
}

/// Reads recorded JSON.
fn recorded<T: DeserializeOwned>(path: &Path, what: &str, form: &str) -> Result<T, Failure> {
    let failed = |why: String| {
        Failure::wrong_usage(format!("cannot read the {what} in {}", path.display()), why)
            .with_remedy(format!("they are written by {form}"))
    };
    let text =
        read_regular_text(path, RECORDED_BYTES).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
}
