//! systemd unit that applies a plan at boot, and drop-ins for its documents.

use crate::limits::BOOT_UNIT_TIMEOUT;
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
        // `After=` alone: `Wants=` would make systemd wait for missing interfaces; the script waits itself, for a
        // shorter time.
        text.push_str(&format!("After={}\n", devices.join(" ")));
    }
    // After network managers and other tuning services; before services that need the final network.
    text.push_str(
        "After=network.target systemd-sysctl.service irqbalance.service tuned.service\n\
         Before=network-online.target\n\n",
    );
    text.push_str(&format!(
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutSec={}\n\
         ExecStart={SCRIPT} apply\nExecStop={SCRIPT} undo\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        BOOT_UNIT_TIMEOUT.as_secs()
    ));
    ExportedFile {
        path: String::from(UNIT),
        text,
        is_executable: false,
    }
}
