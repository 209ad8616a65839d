//! Failures of `tune`, explained to the user.

use std::fmt::Write as _;

use isolane_model::visible_line;
use isolane_tune::apply::{
    ApplyError, JournalNotClosed, StateError, StepError, Undone, Unrestored,
};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::count_of;

/// Converts an error of applying or undoing a plan to a failure. `what` describes the failed action.
pub(super) fn failure(what: &str, error: &ApplyError) -> Failure {
    match error {
        ApplyError::Foreign { plan, here } => Failure::wrong_usage(
            format!("{what}: it is for another machine, and nothing was changed"),
            format!(
                "it is for {} ({}), and this is {} ({})",
                plan.hostname,
                plan.machine_id.as_deref().unwrap_or("no machine-id"),
                here.hostname,
                here.machine_id.as_deref().unwrap_or("no machine-id"),
            ),
        )
        .with_remedy("plan on this machine"),
        ApplyError::OtherBoot { .. } => Failure::new(
            ExitCode::AnswerIsNo,
            format!("{what}: {error}, and nothing was changed"),
            "devices have another RSS hash key after each boot: the same datagrams may arrive on other queues now",
        )
        .with_remedy(
            "measure the receive queues again (isolane tune learn, isolane tune ports), and plan with them: \
             isolane tune plan --receive-queues FILE",
        ),
        ApplyError::Refused(obstacles) => {
            let mut why = format!(
                "{} cannot be done",
                count_of(obstacles.len() as u64, "step")
            );
            for obstacle in obstacles {
                // Writing to a string cannot fail.
                let _ = write!(why, "\n           {}: {}: ", obstacle.id, obstacle.setting);
                let _ = match &obstacle.why {
                    StepError::Stale { found } => {
                        write!(why, "planned from {}, found {found}", obstacle.planned)
                    }
                    other => write!(why, "{other}"),
                };
            }
            Failure::new(
                ExitCode::AnswerIsNo,
                format!(
                    "{what}: the machine is not in the state that the plan was made for, and nothing was changed"
                ),
                why,
            )
            .with_remedy("plan again, and check what has changed since")
        }
        ApplyError::Undone(undone) => undone_half_way(what, undone),
        ApplyError::Form(error) => Failure::wrong_usage(
            format!("{what}: it has the format of another version, and nothing was changed"),
            error.to_string(),
        )
        .with_remedy(OF_ANOTHER_VERSION),
        ApplyError::Unplanned(steps) => {
            let mut why = format!(
                "isolane tune plan cannot have made {} of the plan",
                count_of(steps.len() as u64, "step")
            );
            for step in steps.iter().take(SHOWN_STEPS) {
                why.push_str(&format!("\n           {}", visible_line(step)));
            }
            if let Some(more @ 1..) = steps.len().checked_sub(SHOWN_STEPS) {
                why.push_str(&format!("\n           and {more} more"));
            }
            let what = format!("{what}: it is not a plan that isolane writes, and nothing was changed");
            Failure::wrong_usage(what, why).with_remedy("plan again: isolane tune plan FILE")
        }
        ApplyError::State(error) => state(what, error),
        ApplyError::Journal(error) => Failure::new(
            ExitCode::AnswerIsNo,
            format!("{what}: the journal is damaged, and nothing was changed"),
            error.to_string(),
        )
        .with_remedy(
            "isolane tune rollback restores the readable entries, and keeps the damaged journal under another name",
        ),
    }
}

fn undone_half_way(what: &str, undone: &Undone) -> Failure {
    let code = match undone.why {
        StepError::Stopped => ExitCode::Interrupted,
        _ => ExitCode::MachineForbids,
    };
    let mut why = match &undone.step {
        Some((id, setting)) => format!("{id}: {setting}: {}", undone.why),
        None => undone.why.to_string(),
    };
    if let Some(journal_not_closed) = &undone.journal_not_closed {
        why.push_str(&format!(
            "\n           {}",
            unclosed_text(journal_not_closed)
        ));
        return Failure::new(
            code,
            format!("{what}: all changes were undone, but the journal still lists them"),
            why,
        )
        .with_remedy(CLOSE_IT);
    }
    if undone.left.is_empty() {
        return Failure::new(code, format!("{what}: all changes were undone"), why);
    }
    why.push_str(&left(&undone.left));
    Failure::new(
        code,
        format!("{what}: not all changes could be undone"),
        why,
    )
    .with_remedy("isolane tune rollback tries again; the journal is kept")
}

/// Maximum number of unplanned steps to list. `isolane tune plan` never makes such steps.
const SHOWN_STEPS: usize = 10;

/// Remedy for a plan or journal in the format of another version.
pub(super) const OF_ANOTHER_VERSION: &str =
    "use the version of isolane that wrote it, or plan again with this version";

/// Remedy for a journal that still lists settings although they were restored.
pub(super) const CLOSE_IT: &str = "run isolane tune rollback as soon as the journal can be written to: until then, a \
                                   rollback would also undo later changes of these settings by others";

pub(super) fn unclosed_text(journal_not_closed: &JournalNotClosed) -> String {
    format!(
        "{}: {}",
        journal_not_closed.path.display(),
        journal_not_closed.why
    )
}

/// A line for each setting that was not restored.
pub(super) fn left(left: &[Unrestored]) -> String {
    let line = |left: &Unrestored| {
        format!(
            "\n           {} was not restored to {}: {}",
            left.what, left.found, left.why
        )
    };
    left.iter().map(line).collect()
}

fn state(what: &str, error: &StateError) -> Failure {
    let path = error.path.display();
    if error.is_busy() {
        return Failure::new(
            ExitCode::MachineForbids,
            format!("{what}: another `isolane tune` is running"),
            format!("it holds {path}"),
        )
        .with_remedy("wait until it is done");
    }
    let failure = Failure::new(
        ExitCode::MachineForbids,
        format!("{what}: {path} cannot be used"),
        error.error.to_string(),
    );
    match error.error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            failure.with_remedy("run it as root, or name another folder: --state DIR")
        }
        std::io::ErrorKind::InvalidInput => failure.with_remedy(
            "check who has written there; then give it to root alone (chown root, chmod go-w), or name another folder: \
             --state DIR",
        ),
        std::io::ErrorKind::FileTooLarge => {
            failure.with_remedy("isolane tune rollback starts a new journal; then apply the plan again")
        }
        _ => failure.with_remedy("name a folder that can be written to: --state DIR"),
    }
}
