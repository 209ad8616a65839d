//! `--watch`: reports settings changed by others.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use isolane_tune::Value;
use isolane_tune::apply::{SettingStatus, Status};

use super::applied;
use crate::commands::participant::Until;
use crate::failure::Failure;
use crate::output::{print, tell};
use crate::settings::TuneVerifySettings;

/// Polling interval.
const WATCH: Duration = Duration::from_secs(1);

/// Polls the settings and reports changes until a signal.
pub(super) fn watch(
    settings: &TuneVerifySettings,
    mut before: Option<Status>,
    until: &Until,
) -> Result<(), Failure> {
    tell("watching the settings, until Ctrl-C");
    while !until.flag().load(Ordering::Relaxed) {
        thread::sleep(WATCH);
        let now = applied(settings)?;
        for news in news(before.as_ref(), now.as_ref()) {
            print(&format!("{news}\n"))?;
        }
        before = now;
    }
    Ok(())
}

/// Sentences on changes between two states.
fn news(before: Option<&Status>, now: Option<&Status>) -> Vec<String> {
    let (before, now) = match (before, now) {
        (Some(before), Some(now)) => (before, now),
        (None, None) => return Vec::new(),
        (Some(_), None) => return vec![String::from("the plan was rolled back")],
        (None, Some(now)) => return vec![format!("a plan of profile {} was applied", now.profile)],
    };
    let changed = now.settings.iter().filter_map(|setting| {
        let same = |known: &&SettingStatus| known.setting == setting.setting;
        let before = before.settings.iter().find(same)?;
        if before.now == setting.now {
            return None;
        }
        Some(match (&setting.now, setting.stands) {
            // The device or thread of the setting is gone.
            (Some(Value::Absent), false) => format!(
                "{} is not there any more; it should be {}",
                setting.setting, setting.applied
            ),
            (Some(now), true) => format!("{} is {now} again, as it should be", setting.setting),
            (Some(now), false) => format!(
                "somebody set {} to {now}; it should be {}",
                setting.setting, setting.applied
            ),
            (None, _) => format!("{} cannot be read any more", setting.setting),
        })
    });
    changed.collect()
}
