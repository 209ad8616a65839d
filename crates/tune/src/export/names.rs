//! Commands that find interrupts and threads by name, because their numbers change with each boot.
//!
//! An interrupt's thread has the interrupt's name. A NAPI thread has only its instance's number, and no system tool
//! maps that to a queue. The order is stable: a driver creates its instances in the same order at each start, with
//! ascending numbers. So a NAPI thread is found by its position on its interface, provided the plan shows one instance
//! per receive queue, in their order. Interfaces of other network namespaces may have the same name: a gap in the
//! numbers means several interfaces, and then no thread is chosen.

use crate::machine::napi_instance;
use crate::plan::{Plan, Step, shell};
use crate::setting::{Setting, Value};

use super::Omission;

/// Prefixes of ids of interrupt steps; the interrupt's name follows, then the interface or core.
const INTERRUPTS: [&str; 2] = ["interface.interrupt-", Step::OTHER_DEVICE_PREFIX];

/// Shell function that finds an interrupt's number.
pub(super) const FUNCTION: &str = r#"# The number of an interrupt by its name: after a boot it is another one.
interrupt() {
    awk -v name="$1" '
        { gsub(/, /, ","); at = length($0) - length(name) }
        at > 0 && substr($0, at) == " " name { sub(/:.*/, ""); sub(/^ */, ""); print; exit }
    ' "${INTERRUPTS:-/proc/interrupts}"
}

"#;

/// Shell function that finds a NAPI thread's number.
pub(super) const NAPI_FUNCTION: &str = r#"# The NAPI thread of an interface's receive queue: they are made in the order of the queues, with ascending numbers.
napi() {
    pgrep -l "^napi/$1-[0-9]+\$" | awk '{ number = $2; sub(/.*-/, "", number); print number, $1 }' | sort -n |
        awk -v line=$(($2 + 1)) '
            NR > 1 && $1 != last + 1 { several = 1 }
            { last = $1 }
            NR == line { thread = $2 }
            END { if (!several) print thread }
        '
}

"#;

/// Command that sets a step's setting to `value`.
pub(super) fn line(plan: &Plan, step: &Step, value: &Value) -> Result<String, Omission> {
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
        (Setting::Thread { name }, Value::Thread(class)) => match napi_instance(name) {
            Some((interface, _)) => {
                let queue = queue_of(plan, step, interface).ok_or(Omission::NoName)?;
                let interface = shell::quoted(&shell::exactly(interface));
                Ok(shell::scheduled(
                    &format!("$(napi {interface} {queue})"),
                    class,
                ))
            }
            None => {
                // `irq/24-eth0-TxRx-1`
                let rest = name
                    .strip_prefix("irq/")
                    .and_then(|rest| rest.split_once('-'));
                let (_, rest) = rest.ok_or(Omission::NoName)?;
                let pattern = format!("irq/[0-9]+-{}", shell::exactly(rest));
                Ok(shell::thread(&pattern, class))
            }
        },
        _ => Ok(line),
    }
}

/// Receive queue of a step about a NAPI thread. `None` unless the plan numbers the interface's instances without gaps,
/// in the order of its queues from queue 0.
fn queue_of(plan: &Plan, step: &Step, interface: &str) -> Option<u32> {
    let of_step = |step: &Step| {
        let Setting::Thread { name } = &step.setting else {
            return None;
        };
        let (of, number) = napi_instance(name).filter(|(of, _)| *of == interface)?;
        let queue = step
            .id
            .strip_prefix("interface.thread-")?
            .strip_suffix(of)?;
        Some((number, queue.strip_suffix('.')?.parse::<u32>().ok()?))
    };
    let mut instances: Vec<(u32, u32)> = plan.steps.iter().filter_map(of_step).collect();
    instances.sort_unstable();
    let (first, _) = *instances.first()?;
    let is_in_order = (0_u32..)
        .zip(&instances)
        .all(|(place, known)| (first.checked_add(place), place) == (Some(known.0), known.1));
    is_in_order.then(|| of_step(step))?.map(|(_, queue)| queue)
}

/// Name of the interrupt that a step sets, if it has one.
fn name_of(step: &Step) -> Option<&str> {
    let mut starts = INTERRUPTS.iter();
    let (name, _) = starts
        .find_map(|start| step.id.strip_prefix(start))?
        .rsplit_once('.')?;
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    (!is_number).then_some(name)
}
