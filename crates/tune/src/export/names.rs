//! Lines with names where a plan has numbers that hold until the next boot: those of interrupts, and of their threads.

use crate::plan::{Step, shell};
use crate::setting::{Setting, Value};

use super::Omission;

/// What steps about interrupts are called; the interrupt's name follows, and the interface's.
const INTERRUPT: &str = "interface.interrupt-";

/// The function of a script that finds an interrupt's number.
pub(super) const FUNCTION: &str = r#"# The number of an interrupt by its name: after a boot it is another one.
interrupt() {
    awk -v name="$1" '
        { at = length($0) - length(name) }
        at > 0 && substr($0, at) == " " name { sub(/:.*/, ""); sub(/^ */, ""); print; exit }
    ' "${INTERRUPTS:-/proc/interrupts}"
}

"#;

/// The line that gives a step's setting this value.
pub(super) fn line(step: &Step, value: &Value) -> Result<String, Omission> {
    let line = shell::line(&step.setting, value).ok_or(Omission::NoTool)?;
    match (&step.setting, value) {
        (Setting::Attribute { path }, Value::Text(cores))
            if path.ends_with("/smp_affinity_list") =>
        {
            let name = name_of(step).ok_or(Omission::NoName)?;
            Ok(format!(
                "echo {} > \"/proc/irq/$(interrupt {})/smp_affinity_list\"",
                shell::quoted(cores),
                shell::quoted(name)
            ))
        }
        (Setting::Thread { name }, Value::Thread(class)) => {
            // `irq/24-eth0-TxRx-1`; of `napi/eth0-8193` no part tells the queue.
            let rest = name
                .strip_prefix("irq/")
                .and_then(|rest| rest.split_once('-'));
            let (_, rest) = rest.ok_or(Omission::NoName)?;
            let pattern = format!("irq/[0-9]+-{}", shell::exactly(rest));
            Ok(shell::thread(&pattern, class))
        }
        (Setting::Thread { .. }, _) if name_is_of_napi(step) => Err(Omission::NoName),
        _ => Ok(line),
    }
}

fn name_is_of_napi(step: &Step) -> bool {
    matches!(&step.setting, Setting::Thread { name } if name.starts_with("napi/"))
}

/// The name of the interrupt that a step is about, where it has one of its own.
fn name_of(step: &Step) -> Option<&str> {
    let (name, _) = step.id.strip_prefix(INTERRUPT)?.rsplit_once('.')?;
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    (!is_number).then_some(name)
}
