//! `TuneD` profile: its plugins where they can do a step, a script for the other steps.

use std::fmt::Write as _;

use crate::plan::{Plan, Step};
use crate::setting::{Setting, Value};

use super::omission::needs_steering;
use super::{ExportedFile, head, line, script, systemd};

const FOLDER: &str = "/etc/tuned/profiles/isolane";

pub(super) fn files(plan: &Plan) -> Vec<ExportedFile> {
    let (arguments, steps): (Vec<&Step>, Vec<&Step>) = plan
        .steps
        .iter()
        .partition(|step| step.id == "boot.arguments");
    let mut rest: Vec<&Step> = Vec::new();
    let mut sysctl = String::new();
    let mut sysfs = String::new();
    for step in steps {
        match (&step.setting, &step.to) {
            // The script reports the omission.
            _ if line(plan, step).is_err() => rest.push(step),
            // These must follow the steering and accompany the priorities, which the script sets.
            _ if needs_steering(step) => rest.push(step),
            (Setting::Attribute { path }, Value::Text(value)) => {
                // A file outside the sysctl tree is written as a file, in order.
                match (path.strip_prefix("/proc/sys/"), path.starts_with("/sys/")) {
                    (Some(name), _) => {
                        let name = name.replace('/', ".");
                        let _ = writeln!(sysctl, "{name}={value}");
                    }
                    (None, true) => {
                        let _ = writeln!(sysfs, "{path}={value}");
                    }
                    (None, false) => rest.push(step),
                }
            }
            (Setting::Document { .. }, _) => {}
            _ => rest.push(step),
        }
    }
    let mut text = head(plan, "A profile of TuneD: tuned-adm profile isolane");
    text.push_str("[main]\nsummary=Set-up for critical topics\n");
    for (name, lines) in [("sysctl", &sysctl), ("sysfs", &sysfs)] {
        if !lines.is_empty() {
            let _ = write!(text, "\n[{name}]\n{lines}");
        }
    }
    if let Some(Value::Document(document)) = arguments.first().map(|step| &step.to) {
        let arguments = document.kernel_arguments();
        let _ = write!(text, "\n[bootloader]\ncmdline_isolane=+{arguments}\n");
    }
    let mut files = Vec::new();
    if !rest.is_empty() {
        text.push_str("\n[script]\npriority=10\nscript=${i:PROFILE_DIR}/tune.sh\n");
        files.push(script::of_steps(plan, &rest, &format!("{FOLDER}/tune.sh")));
    }
    files.insert(
        0,
        ExportedFile {
            path: format!("{FOLDER}/tuned.conf"),
            text,
            is_executable: false,
        },
    );
    let is_boot = |file: &ExportedFile| file.path.starts_with("/etc/default/grub.d/");
    files.extend(systemd::documents(plan).filter(|file| !is_boot(file)));
    files
}
