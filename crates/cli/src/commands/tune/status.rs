//! `isolane tune status`: the applied settings, and whether they are still in effect.

use isolane_tune::apply::{SettingStatus, Status, status};
use isolane_tune::{ThisMachine, here};
use serde::Serialize;

use super::failure::failure;
use super::{check_damaged, check_state, damaged};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{count_of, print, print_json};
use crate::settings::TuneState;
use crate::values::Destination;

/// JSON form (`--json`).
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    applied: Option<&'a Status>,
    /// Paths of damaged journals that earlier rollbacks kept.
    damaged_journals: Vec<String>,
}

pub(super) fn run(state: &TuneState, json: Option<&Destination>) -> Result<ExitCode, Failure> {
    check_state(state)?;
    let folder = &state.0.value;
    let status = status(&mut ThisMachine::new(), &here(), folder)
        .map_err(|error| failure("what is applied cannot be told", &error))?;
    let damaged = damaged(state)?;
    if let Some(destination) = json {
        let report = Report {
            schema: "isolane/tune-status/1",
            applied: status.as_ref(),
            damaged_journals: damaged
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
        };
        print_json(&report, destination)?;
    }
    if json != Some(&Destination::StandardOutput) {
        print(&text(status.as_ref()))?;
    }
    check_damaged(&damaged)?;
    let stands = status.as_ref().is_none_or(|status| {
        status.is_complete && status.settings.iter().all(|setting| setting.stands)
    });
    Ok(match stands {
        true => ExitCode::Done,
        false => ExitCode::AnswerIsNo,
    })
}

fn text(status: Option<&Status>) -> String {
    let Some(status) = status else {
        return String::from("no plan is applied\n");
    };
    let mut text = format!("profile {}\n", status.profile);
    if !status.is_complete {
        text.push_str("it was not carried out to its end: isolane tune rollback undoes it\n");
    } else if !status.is_of_this_boot {
        text.push_str("it was carried out before the last boot, and not since\n");
    }
    for setting in &status.settings {
        text.push_str(&line(setting));
    }
    let undone = status.settings.iter().filter(|setting| !setting.stands);
    let (undone, ended): (Vec<&SettingStatus>, Vec<&SettingStatus>) =
        undone.partition(|setting| setting.is_of_this_boot);
    let ended = match ended.len() {
        0 => String::new(),
        count => format!(", {count} ended with a boot: plan again, with what is measured now"),
    };
    text.push_str(&format!(
        "{} applied, {} undone since{ended}\n",
        count_of(status.settings.len() as u64, "setting"),
        undone.len()
    ));
    text
}

fn line(standing: &SettingStatus) -> String {
    let SettingStatus {
        id,
        setting,
        before,
        applied,
        now,
        stands,
        ..
    } = standing;
    if !stands && !standing.is_of_this_boot {
        return format!(
            "  ENDED   {id}: {setting}: {applied} until the last boot, and not set again\n"
        );
    }
    match (stands, now) {
        (true, _) => format!("  ok      {id}: {setting}: {applied} (was {before})\n"),
        (false, Some(now)) => format!("  UNDONE  {id}: {setting}: {now}, and not {applied}\n"),
        (false, None) => format!("  UNDONE  {id}: {setting}: it cannot be read\n"),
    }
}
