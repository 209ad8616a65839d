//! `isolane tune rollback`: restores the settings found before the first plan.

use isolane_tune::apply::{Links, rollback};
use isolane_tune::{ThisMachine, here};

use super::failure::{CLOSE_IT, failure, left, told};
use super::{await_links, check_damaged, check_state, damaged};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{count_of, print};
use crate::settings::TuneState;

pub(super) fn run(state: &TuneState) -> Result<ExitCode, Failure> {
    check_state(state)?;
    let folder = &state.0.value;
    let links = Links::now();
    let done = rollback(&mut ThisMachine::new(), &here(), folder);
    // The rollback is complete; Ctrl-C ends only the wait.
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
        text.push_str(&format!("  {setting}: it is not there any more\n"));
    }
    text.push_str(&format!(
        "{} restored\n",
        count_of(restored.restored.len() as u64, "setting")
    ));
    print(&text)?;
    if !restored.left.is_empty() {
        return Err(Failure::new(
            ExitCode::MachineForbids,
            "not all could be restored",
            format!("the journal is kept for{}", left(&restored.left)),
        )
        .with_remedy("remove what is in the way, and call it again"));
    }
    let journal_not_closed = done.journal_not_closed.as_ref().map(told);
    match (done.broken, journal_not_closed) {
        (None, None) => check_damaged(&damaged(state)?).map(|()| ExitCode::Done),
        (None, Some(journal_not_closed)) => Err(Failure::new(
            ExitCode::MachineForbids,
            "all was restored, but the journal could not be taken away",
            journal_not_closed,
        )
        .with_remedy(CLOSE_IT)),
        (Some((error, kept)), journal_not_closed) => Err(Failure::new(
            ExitCode::AnswerIsNo,
            "all that the journal still tells was restored, but it is damaged",
            match journal_not_closed {
                None => error.to_string(),
                Some(journal_not_closed) => format!("{error}, and could not be set aside: {journal_not_closed}"),
            },
        )
        .with_remedy(format!(
            "look into {}: settings of lines that cannot be read or are missing may still be changed; a reboot resets \
             all but files",
            kept.display()
        ))),
    }
}
