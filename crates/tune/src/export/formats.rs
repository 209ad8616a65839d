//! Files of an exported plan: a shell script, a systemd unit with drop-ins, or a `TuneD` profile.

use std::fmt::Write as _;

use super::{
    ExportedFile, FUNCTION, NAPI_FUNCTION, Omission, applied_command, command, comment, head,
    needs_steering, reason,
};
use crate::apply::boot::device_unit;
use crate::limits::{BOOT_INTERFACE_TIMEOUT, BOOT_UNIT_TIMEOUT};
use crate::plan::{Plan, Step, shell};
use crate::setting::{Setting, Value};

/// Reason that an interrupt is not moved.
const STAYS: &str = "the kernel does not let it be moved, or it is not there";

pub(super) fn shell_script(plan: &Plan) -> ExportedFile {
    let steps: Vec<&Step> = plan.steps.iter().collect();
    script_of_steps(plan, &steps, "/usr/local/sbin/isolane-tune.sh")
}

pub(super) fn script_of_steps(plan: &Plan, steps: &[&Step], path: &str) -> ExportedFile {
    let mut text = String::from("#!/bin/sh\n");
    text.push_str(&head(
        plan,
        "Sets a machine up for its critical topics, and puts back what was there.",
    ));
    text.push_str(
        "# apply: every step in order, and stop at the first that fails; undo: all of them, in reverse.\n\
         # It changes nothing of itself: it knows what was there when the facts were read, and no journal.\n\
         set -u\n\nfailed=0\n\n\
         # A step that is not done here, and why.\n\
         left_out() {\n    echo \"$1 is left out, for $2\" >&2\n}\n\n",
    );
    let lines: Vec<Line<'_>> = steps
        .iter()
        .map(|step| (*step, applied_command(plan, step)))
        .collect();
    // Omitted steps need no undo.
    let done = lines.iter().rev().filter(|(_, line)| line.is_ok());
    let undone: Vec<Line<'_>> = done
        .map(|(step, _)| (*step, command(plan, step, &step.from)))
        .collect();
    for (call, function) in [("$(interrupt ", FUNCTION), ("$(napi ", NAPI_FUNCTION)] {
        let has_call =
            |line: &Result<String, Omission>| line.as_ref().is_ok_and(|line| line.contains(call));
        if lines.iter().any(|(_, line)| has_call(line)) {
            text.push_str(function);
        }
    }
    let first = format!("{}{}", wait(&mut text, &lines), relied_on(plan));
    function(&mut text, "apply", &first, &lines, " || exit 1");
    function(&mut text, "undo", "", &undone, " || failed=1");
    text.push_str(
        "case \"${1:-}\" in\n    apply | start) apply ;;\n    undo | stop) undo ;;\n    \
         *)\n        echo \"usage: $0 apply | undo\" >&2\n        exit 2\n        ;;\nesac\nexit \"$failed\"\n",
    );
    ExportedFile {
        path: String::from(path),
        text,
        is_executable: true,
    }
}

/// Commands for the plan's preconditions. They held at planning time, and may fail after a boot, so the script sets
/// them first.
fn relied_on(plan: &Plan) -> String {
    let lines = plan
        .preconditions
        .iter()
        .map(|it| (it, shell::line(&it.setting, &it.value)));
    let set = lines.filter_map(|(it, line)| {
        let what = comment(&it.setting.to_string());
        Some(format!(
            "    # relied on: {what}
    {{ {}; }} || exit 1
",
            line?
        ))
    });
    set.collect()
}

/// Step with its command, or the reason that it has none.
type Line<'a> = (&'a Step, Result<String, Omission>);

/// Writes the shell function that waits for an interface, and returns its calls. Queue interrupts and threads exist
/// only while the interface is up, and a network manager may bring it up later.
fn wait(text: &mut String, lines: &[Line<'_>]) -> String {
    let done = lines.iter().filter(|(_, line)| line.is_ok());
    let interfaces = interfaces(done.map(|(step, _)| *step));
    if interfaces.is_empty() {
        return String::new();
    }
    let _ = write!(
        text,
        "# Waits until an interface is up, which takes a network manager some seconds.\n\
         up() {{\n    tries={}\n    \
         while [ $(($(cat \"/sys/class/net/$1/flags\" 2>/dev/null || echo 0) & 1)) = 0 ]; do\n        \
         [ \"$tries\" -gt 0 ] || {{ echo \"$1 is not up\" >&2; return 1; }}\n        \
         tries=$((tries - 1))\n        sleep 1\n    done\n}}\n\n",
        BOOT_INTERFACE_TIMEOUT.as_secs()
    );
    let calls = interfaces
        .iter()
        .map(|name| format!("    up {} || exit 1\n", shell::quoted(name)));
    calls.collect()
}

fn function(text: &mut String, name: &str, first: &str, lines: &[Line<'_>], then: &str) {
    let _ = writeln!(text, "{name}() {{\n    :");
    text.push_str(first);
    for (step, line) in lines {
        let _ = write!(text, "    {}", reason(step));
        let otherwise = match step.is_of_other_device() {
            true => format!(
                " || left_out {} {}",
                shell::quoted(&comment(&step.id)),
                shell::quoted(STAYS)
            ),
            false => String::from(then),
        };
        let _ = match line {
            // A multi-line document is quoted verbatim, so its lines must not be indented.
            Ok(line) => writeln!(text, "    {{ {line}; }}{otherwise}"),
            Err(omission) => writeln!(
                text,
                "    left_out {} {}",
                shell::quoted(&comment(&step.id)),
                shell::quoted(omission.reason())
            ),
        };
        if line.is_ok()
            && matches!((&step.setting, &step.to), (Setting::Document { .. }, Value::Document(_)) if name == "apply")
        {
            let _ = writeln!(text, "    # in effect {}", when(step));
        }
    }
    text.push_str("}\n\n");
}

fn when(step: &Step) -> &'static str {
    match step.id.as_str() {
        "boot.arguments" => "after update-grub, and a boot",
        "boot.affinity" => "after systemctl daemon-reexec, for what is started then; or a boot",
        "rights.limits" => "from the next login on",
        _ => "after systemctl daemon-reload, and a restart of the service; or a boot",
    }
}

const SCRIPT: &str = "/usr/local/lib/isolane/tune.sh";
const UNIT: &str = "/etc/systemd/system/isolane-tune.service";

pub(super) fn systemd_files(plan: &Plan) -> Vec<ExportedFile> {
    let is_file = |step: &&Step| matches!(step.setting, Setting::Document { .. });
    let steps: Vec<&Step> = plan.steps.iter().filter(|step| !is_file(step)).collect();
    let mut files = vec![unit(plan), script_of_steps(plan, &steps, SCRIPT)];
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
        .map(device_unit)
        .collect();
    let mut text = head(
        plan,
        "Sets the machine up for its critical topics at each start.",
    );
    text.push_str("[Unit]\nDescription=Set-up for critical topics\n");
    if !devices.is_empty() {
        // `After=` alone: with `Wants=`, systemd would wait long for missing interfaces. The script waits a shorter
        // time.
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

const FOLDER: &str = "/etc/tuned/profiles/isolane";

pub(super) fn tuned_files(plan: &Plan) -> Vec<ExportedFile> {
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
            _ if applied_command(plan, step).is_err() => rest.push(step),
            // These steps need the steering first, and the priorities with them; the script sets both.
            _ if needs_steering(step) => rest.push(step),
            (Setting::Attribute { path }, Value::Text(value)) => {
                // The script writes files that are neither in the sysctl tree nor in sysfs.
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
        files.push(script_of_steps(plan, &rest, &format!("{FOLDER}/tune.sh")));
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
    files.extend(documents(plan).filter(|file| !is_boot(file)));
    files
}
