//! A unit of systemd that applies a plan when the machine starts, and drop-ins for the rest.

use crate::limits::BOOT_TIMEOUT;
use crate::plan::{Plan, Step};
use crate::setting::{Setting, Value};
use crate::systemd::device_of;

use super::{ExportedFile, head, script};

const SCRIPT: &str = "/usr/local/lib/isolane/tune.sh";
const UNIT: &str = "/etc/systemd/system/isolane-tune.service";

pub(super) fn files(plan: &Plan) -> Vec<ExportedFile> {
    let is_file = |step: &&Step| matches!(step.setting, Setting::Document { .. });
    let steps: Vec<&Step> = plan.steps.iter().filter(|step| !is_file(step)).collect();
    let mut files = vec![unit(plan), script::of_steps(plan, &steps, SCRIPT)];
    files.extend(documents(plan));
    files
}

/// The files that steps write.
pub(super) fn documents(plan: &Plan) -> impl Iterator<Item = ExportedFile> {
    plan.steps
        .iter()
        .filter_map(|step| match (&step.setting, &step.to) {
            (Setting::Document { path }, Value::Document(document)) => Some(ExportedFile {
                path: path.clone(),
                text: document.text(),
                is_executable: false,
            }),
            _ => None,
        })
}

/// The interfaces that steps are about.
pub(super) fn interfaces<'a>(steps: impl Iterator<Item = &'a Step>) -> Vec<&'a str> {
    let mut names: Vec<&str> = steps
        .filter(|step| step.id.starts_with("interface."))
        .filter_map(|step| step.id.rsplit_once('.').map(|(_, name)| name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn unit(plan: &Plan) -> ExportedFile {
    let devices: Vec<String> = interfaces(plan.steps.iter())
        .into_iter()
        .map(device_of)
        .collect();
    let mut text = head(
        plan,
        "Sets the machine up for its critical topics at each start.",
    );
    text.push_str("[Unit]\nDescription=Set-up for critical topics\n");
    if !devices.is_empty() {
        // To want them would have systemd wait for missing ones; the script waits itself, and not as long.
        text.push_str(&format!("After={}\n", devices.join(" ")));
    }
    // After those who switch interfaces on and set such things; and before whoever needs the network as it will stay.
    text.push_str(
        "After=network.target systemd-sysctl.service irqbalance.service tuned.service\n\
         Before=network-online.target\n\n",
    );
    text.push_str(&format!(
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutSec={}\n\
         ExecStart={SCRIPT} apply\nExecStop={SCRIPT} undo\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        BOOT_TIMEOUT.as_secs()
    ));
    ExportedFile {
        path: String::from(UNIT),
        text,
        is_executable: false,
    }
}
