//! Export of a plan in formats of other tools, for machines that do not run isolane.
//!
//! System tools apply an exported plan at boot. Steps that these tools cannot carry out (single RSS table entries), and
//! steps based on measurements of this boot, are left out. Every format lists them ([`Exported::missing`]).

mod formats;

use crate::machine::napi_instance;
use crate::plan::{Plan, Step, When, shell, steered_interface};
use crate::setting::{Setting, Value};

/// Export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `TuneD` profile.
    Tuned,
    /// systemd unit with a script, and drop-ins.
    Systemd,
    /// Shell script that applies and undoes the plan.
    Shell,
}

/// Exported plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Files of the export.
    pub files: Vec<ExportedFile>,
    /// Ids of omitted steps, with the reason.
    pub missing: Vec<(String, Omission)>,
}

/// File of an exported plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// Path on the machine.
    pub path: String,
    /// Content of the file.
    pub text: String,
    /// True if the file is executable.
    pub is_executable: bool,
}

/// Exports a plan.
pub fn export(plan: &Plan, format: Format) -> Exported {
    let files = match format {
        Format::Shell => vec![formats::shell_script(plan)],
        Format::Systemd => formats::systemd_files(plan),
        Format::Tuned => formats::tuned_files(plan),
    };
    let missing = plan.steps.iter().filter_map(|step| {
        let omission = applied_command(plan, step).err()?;
        Some((step.id.clone(), omission))
    });
    Exported {
        files,
        missing: missing.collect(),
    }
}

/// Comment at the top of every file: content and origin.
fn head(plan: &Plan, what: &str) -> String {
    format!(
        "# {what}\n# Made by isolane tune export for {}, profile {}.\n# Facts: {}\n",
        comment(&plan.machine.hostname),
        comment(&plan.profile),
        comment(&plan.origin)
    )
}

/// Text made safe for a one-line comment.
fn comment(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

fn reason(step: &Step) -> String {
    format!("# {}: {}\n", comment(&step.id), comment(&step.why))
}

/// Reason that a step is omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Omission {
    /// No system tool can carry out the step: single RSS table entries.
    NoTool,
    /// The step uses receive-queue measurements of this boot, and an export is applied at other boots.
    ThisBoot,
    /// The step does harm if critical datagrams arrive on another queue, and no system tool steers them.
    NoSteering,
    /// The setting has a number that changes with each boot, and no stable name.
    NoName,
}

impl Omission {
    /// Text that completes a sentence starting with "left out, for".
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NoTool => "no tool of the system does it",
            Self::ThisBoot => "it rests on this boot's measurement",
            Self::NoSteering => {
                "it does harm where critical datagrams come to another queue, and no tool steers them"
            }
            Self::NoName => "its number is another one after a boot, and no name tells which it is",
        }
    }
}

/// Command of a step, or the reason that there is none.
pub(super) fn applied_command(plan: &Plan, step: &Step) -> Result<String, Omission> {
    if step.when == When::ThisBoot {
        return Err(Omission::ThisBoot);
    }
    let line = command(plan, step, &step.to)?;
    match needs_steering(step) && !is_whole(plan) {
        true => Err(Omission::NoSteering),
        false => Ok(line),
    }
}

/// Returns whether system tools can steer critical datagrams to their queue, and set all priorities that depend on it.
fn is_whole(plan: &Plan) -> bool {
    let steps = plan.steps.iter().map(|step| (&step.setting, &step.to));
    let preconditions = plan.preconditions.iter().map(|it| (&it.setting, &it.value));
    let mut steering = steps
        .chain(preconditions)
        .filter(|(setting, _)| steered_interface(setting).is_some());
    let mut rest = plan.steps.iter().filter(|step| needs_steering(step));
    steering.all(|(setting, value)| shell::line(setting, value).is_some())
        && rest.all(|step| command(plan, step, &step.to).is_ok())
}

/// Returns whether a step does harm if a critical flow arrives on a bulk queue. Such steps set priorities of receive
/// threads, or pin an interrupt to one core.
pub(super) fn needs_steering(step: &Step) -> bool {
    match (&step.setting, &step.to) {
        (Setting::Thread { .. }, _) => true,
        (Setting::Attribute { path }, Value::Text(cores)) => {
            // Interrupts of other devices are only kept off a core.
            let is_alone = !cores.contains([',', '-']) && !step.is_of_other_device();
            path.ends_with("/threaded") || (path.ends_with("/smp_affinity_list") && is_alone)
        }
        _ => false,
    }
}

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
pub(super) fn command(plan: &Plan, step: &Step, value: &Value) -> Result<String, Omission> {
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
                let interface = shell::quoted(&shell::exact_pattern(interface));
                Ok(shell::scheduling_command(
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
                let pattern = format!("irq/[0-9]+-{}", shell::exact_pattern(rest));
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

/// Name of the interrupt in a step's id, if the interrupt has one.
fn name_of(step: &Step) -> Option<&str> {
    let mut starts = INTERRUPTS.iter();
    let (name, _) = starts
        .find_map(|start| step.id.strip_prefix(start))?
        .rsplit_once('.')?;
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    (!is_number).then_some(name)
}
