//! `isolane tune status` and `isolane tune rollback`: show the applied settings and whether they are still in effect,
//! and restore the earlier settings.

use clap::Args;
use isolane_tune::apply::{Links, SettingStatus, Status, rollback as roll_back};
use isolane_tune::{ThisMachine, here};
use serde::Serialize;

use super::failure::{CLOSE_IT, failure, left, unclosed_text};
use super::verify::applied;
use super::{StateArguments, await_links, check_damaged, check_state, damaged};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{count_of, print, print_json_or};
use crate::values::Destination;

#[derive(Debug, Args)]
pub(crate) struct ShowStatus {
    #[command(flatten)]
    state: StateArguments,
    /// Write the status as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

/// JSON form of the status (`--json`).
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    applied: Option<&'a Status>,
    /// Paths of damaged journals, which earlier rollbacks set aside.
    damaged_journals: Vec<String>,
}

impl ShowStatus {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        check_state(&self.state)?;
        let status = applied(&self.state)?;
        let damaged = damaged(&self.state)?;
        let paths = damaged.iter().map(|path| path.display().to_string());
        let report = Report {
            schema: "isolane/tune-status/2",
            applied: status.as_ref(),
            damaged_journals: paths.collect(),
        };
        print_json_or(&report, self.json.as_ref(), |report| text(report.applied))?;
        check_damaged(&damaged)?;
        let in_force = status.as_ref().is_none_or(|status| {
            status.is_complete && status.settings.iter().all(|setting| setting.in_force)
        });
        Ok(match in_force {
            true => ExitCode::Done,
            false => ExitCode::AnswerIsNo,
        })
    }
}

fn text(status: Option<&Status>) -> String {
    let Some(status) = status else {
        return String::from("no plan is applied\n");
    };
    let mut text = format!("profile {}\n", status.profile);
    if !status.is_complete {
        text.push_str("the plan was not applied completely: isolane tune rollback undoes it\n");
    } else if !status.is_of_this_boot {
        text.push_str("the plan was applied before the last boot, and not since then\n");
    }
    for setting in &status.settings {
        text.push_str(&line(setting));
    }
    let undone = status.settings.iter().filter(|setting| !setting.in_force);
    let (undone, ended): (Vec<&SettingStatus>, Vec<&SettingStatus>) =
        undone.partition(|setting| setting.is_of_this_boot);
    let ended = match ended.len() {
        0 => String::new(),
        count => format!(
            ", {count} ended with the last boot: measure the receive queues again if the plan used a \
                          measurement, then plan again"
        ),
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
        in_force,
        ..
    } = standing;
    if !in_force && !standing.is_of_this_boot {
        return format!(
            "  ENDED   {id}: {setting}: {applied} until the last boot, not set again since\n"
        );
    }
    match (in_force, now) {
        (true, _) => format!("  ok      {id}: {setting}: {applied} (was {before})\n"),
        (false, Some(now)) => format!("  UNDONE  {id}: {setting}: {now}, should be {applied}\n"),
        (false, None) => format!("  UNDONE  {id}: {setting}: cannot be read\n"),
    }
}

/// Restores the settings found before the first plan.
pub(super) fn rollback(state: &StateArguments) -> Result<ExitCode, Failure> {
    check_state(state)?;
    let folder = &state.state;
    let links = Links::now();
    let done = roll_back(&mut ThisMachine::new(), &here(), folder);
    // The rollback is complete: Ctrl-C may end the process during this wait.
    await_links(&links, &|| false);
    let done = done.map_err(|error| failure("nothing was rolled back", &error))?;
    let Some(restored) = done.restored else {
        check_damaged(&damaged(state)?)?;
        let folder = folder.display();
        return print(&format!(
            "nothing to undo: no journal is in {folder}, so no plan was applied, or it was undone\n"
        ));
    };
    let mut text = String::new();
    for setting in &restored.restored {
        text.push_str(&format!("  {setting}\n"));
    }
    for setting in &restored.gone {
        text.push_str(&format!("  {setting}: no longer exists\n"));
    }
    text.push_str(&format!(
        "{} restored\n",
        count_of(restored.restored.len() as u64, "setting")
    ));
    print(&text)?;
    if !restored.left.is_empty() {
        return Err(Failure::forbidden(
            "not all settings could be restored",
            format!("the journal is kept for{}", left(&restored.left)),
        )
        .with_remedy("remove the cause, and run isolane tune rollback again"));
    }
    let journal_not_closed = done.journal_not_closed.as_ref().map(unclosed_text);
    match (done.broken, journal_not_closed) {
        (None, None) => check_damaged(&damaged(state)?).map(|()| ExitCode::Done),
        (None, Some(journal_not_closed)) => Err(Failure::forbidden(
            "all settings were restored, but the journal could not be removed",
            journal_not_closed,
        )
        .with_remedy(CLOSE_IT)),
        (Some((error, kept)), journal_not_closed) => Err(Failure::new(
            ExitCode::AnswerIsNo,
            "all settings in readable journal entries were restored, but the journal is damaged",
            match journal_not_closed {
                None => error.to_string(),
                Some(journal_not_closed) => format!("{error}, and the journal could not be set aside: \
                                                     {journal_not_closed}"),
            },
        )
        .with_remedy(format!(
            "check {}: settings in unreadable or missing lines may still have the values that the plan set; a reboot \
             resets all of them except files",
            kept.display()
        ))),
    }
}
