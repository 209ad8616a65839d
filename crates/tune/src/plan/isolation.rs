//! Isolation of the executor's core from other programs, by kernel arguments or by systemd. Both deny the core to all
//! other programs, so the profile `balanced` uses neither.
//!
//! The kernel takes one list per argument (isolcpus, `nohz_full`, `rcu_nocbs`, irqaffinity). So the current command
//! line is checked first: a sufficient argument needs no step, and the user must edit a contradicting one.
//!
//! systemd restricts its units to the other cores, and isolane's programs get a slice. With cgroup v2, no process can
//! leave its slice's cores. With cgroup v1, or without cpusets, there is only the CPU affinity inherited from systemd,
//! which a process may change.

use isolane_model::Isolation;

use super::builder::{PlanBuilder, Rationale};
use super::input::PlanInput;
use crate::facts::{Facts, Loader};
use crate::kernel_lists::{list, number_list};
use crate::setting::{BEFORE_ARGUMENTS, CoreList, Document, Unit};

pub(super) fn plan_isolation(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    let Some(core) = input.core() else {
        return;
    };
    let others = input.other_cores();
    if input.tuning.isolation.value == Isolation::None {
        return;
    }
    if others.is_empty() {
        builder.not_planned(
            "boot.isolation",
            "this machine has one core: the executor shares it with everything else",
            "use a machine with two cores or more",
        );
        return;
    }
    match input.tuning.isolation.value {
        Isolation::Boot => plan_kernel_arguments(input, core, &others, builder),
        _ => plan_systemd_slices(input, core, &others, builder),
    }
}

const INTERRUPTS: &str = "irqaffinity=";

pub(super) fn plan_kernel_arguments(
    input: &PlanInput<'_>,
    core: u16,
    others: &[u16],
    builder: &mut PlanBuilder<'_>,
) {
    let line = input.facts.kernel.arguments();
    if is_in_effect(input, core) || CoreList::ALL.iter().all(|it| covers(line, it.name(), core)) {
        // The isolation is in effect, whoever configured it.
        return;
    }
    let installed = input
        .facts
        .documents
        .get(Document::ARGUMENTS)
        .map_or("", |text| text.trim_end());
    let own: Vec<&str> = installed
        .strip_prefix(BEFORE_ARGUMENTS)
        .map_or("", |rest| rest.trim_end_matches('"'))
        .split_whitespace()
        .collect();
    // Arguments that isolane did not set; the step replaces isolane's own.
    let foreign: Vec<&str> = line
        .split_whitespace()
        .filter(|word| !own.contains(word))
        .collect();
    let given = |name: &str| foreign.iter().find(|word| word.starts_with(name));
    let contradicting = CoreList::ALL.into_iter().find_map(|it| {
        let word = given(it.name())?;
        (!covers(word, it.name(), core)).then_some((it.name(), *word))
    });
    if let Some((name, word)) = contradicting {
        return report_contradicting_argument(input, core, (name, word), builder);
    }
    let lists = CoreList::ALL.into_iter();
    let document = Document::KernelArguments {
        core,
        lists: lists.filter(|it| given(it.name()).is_none()).collect(),
        interrupts: match given(INTERRUPTS) {
            None => others.to_vec(),
            Some(_) => Vec::new(),
        },
    };
    let wanted = document.kernel_arguments();
    if installed == document.text().trim_end() {
        builder.not_planned(
            "boot.arguments-waiting",
            "the kernel's arguments are installed, but not yet in effect",
            "update-grub, and boot",
        );
        return;
    }
    if input.facts.boot.loader != Some(Loader::Grub) {
        builder.not_planned(
            "boot.arguments",
            "isolane found no boot loader that reads kernel arguments from files in /etc/default/grub.d",
            format!("add to the kernel's arguments: {wanted}"),
        );
        return;
    }
    builder.document(
        "boot.arguments",
        document,
        Rationale::of_all(
            format!(
                "on core {core}, other programs run for milliseconds, and the kernel's tick and callbacks for 1 to 10 \
                 us, up to 1,000 times a second; these arguments keep them off"
            ),
            format!(
                "the scheduler puts no program on core {core}, which is idle unless isolane runs there; the step, and \
                 its undo, take effect after update-grub and a boot"
            ),
        ),
    );
}

/// Returns whether the kernel reports the core as isolated and, if it has NO_HZ_FULL, as tickless.
fn is_in_effect(input: &PlanInput<'_>, core: u16) -> bool {
    let cores = &input.facts.cores;
    let has =
        |cores: &Option<Vec<u16>>| cores.as_deref().is_some_and(|cores| cores.contains(&core));
    has(&cores.isolated) && (cores.nohz_full.is_none() || has(&cores.nohz_full))
}

/// Returns whether isolcpus keeps managed interrupts off the core, as far as they have other cores.
pub(super) fn keeps_managed_interrupts_off(line: &str, core: u16) -> bool {
    let words = line.split_whitespace();
    let mut given = words.filter_map(|word| word.strip_prefix("isolcpus="));
    given.any(|value| {
        let is_for_them = value.split(',').any(|part| part == "managed_irq");
        is_for_them && cores_of(value).contains(&core)
    })
}

/// Returns whether an argument of the command line lists the core.
fn covers(line: &str, name: &str, core: u16) -> bool {
    let mut words = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(name));
    words.any(|value| value == "all" || cores_of(value).contains(&core))
}

/// Cores of a list that may start with flags (`managed_irq,domain,2-3`).
fn cores_of(value: &str) -> Vec<u16> {
    let parts = value.split(',');
    let numbers = parts.filter(|part| part.starts_with(|first: char| first.is_ascii_digit()));
    number_list(&numbers.collect::<Vec<_>>().join(","))
}

/// Reports that isolation is not planned, because an argument set by the user lists other cores.
fn report_contradicting_argument(
    input: &PlanInput<'_>,
    core: u16,
    (name, word): (&str, &str),
    builder: &mut PlanBuilder<'_>,
) {
    let place = match input.facts.boot.loader {
        Some(Loader::Grub) => {
            "in /etc/default/grub (GRUB_CMDLINE_LINUX or GRUB_CMDLINE_LINUX_DEFAULT), then update-grub, and boot"
        }
        _ => "in the configuration of the boot loader, and boot",
    };
    builder.not_planned(
        "boot.arguments",
        format!(
            "the kernel was started with {word}, which does not contain core {core}; the kernel uses one list, and a \
             second {name} would not add to it"
        ),
        format!("replace it by {word},{core} {place}; or put the executor on a core of that list: core = N in \
                 [host.NAME]"),
    );
}

/// File that lists the controllers of a pure cgroup v2 hierarchy.
const CONTROLLERS: &str = "/sys/fs/cgroup/cgroup.controllers";
/// File that exists only with cgroup v1.
const FIRST_VERSION: &str = "/sys/fs/cgroup/cpuset/cpuset.cpus";
/// Mount point of cgroup v2, with the groups that systemd creates.
const GROUPS: &str = "/sys/fs/cgroup";
pub(super) fn plan_systemd_slices(
    input: &PlanInput<'_>,
    core: u16,
    others: &[u16],
    builder: &mut PlanBuilder<'_>,
) {
    let isolated = input.facts.cores.isolated.as_deref().unwrap_or_default();
    if isolated.contains(&core) {
        return;
    }
    if input.facts.boot.has_systemd != Some(true) {
        builder.not_planned(
            "boot.cpusets",
            "systemd does not run here, or cannot be seen, so isolane cannot keep programs on the other cores",
            format!("isolation = \"boot\" in [tune]; or create a cpuset with all cores except {core} for all other \
                     programs"),
        );
        return;
    }
    match has_cpusets(input) {
        true => cpusets(input, core, others, builder),
        false => affinity(input, core, others, builder),
    }
}

fn cpusets(input: &PlanInput<'_>, core: u16, others: &[u16], builder: &mut PlanBuilder<'_>) {
    let costs = format!(
        "programs have one core less: those that pin themselves to core {core} get EINVAL, unless they run in \
         isolane.slice (systemd-run --slice=isolane.slice PROGRAM); the step takes effect after systemctl \
         daemon-reload, or a boot"
    );
    // A drop-in has no effect until its slice exists.
    for of in Unit::ALL {
        let unit = of.name();
        let id = format!("boot.cpuset.{unit}");
        if let Some(cores) = cores_set_by_others(input, of) {
            if cores.contains(&core) {
                builder.not_planned(
                    id,
                    format!(
                        "another configuration restricts {unit} to cores {}, which include core {core}; its purpose \
                         is unknown, and systemd adds the lists of several files",
                        list(&cores)
                    ),
                    format!(
                        "remove core {core} from that list (AllowedCPUs= in the output of systemctl cat {unit}, or \
                         systemctl set-property {unit} AllowedCPUs=LIST), and plan again"
                    ),
                );
            }
            continue;
        }
        builder.document(
            id,
            Document::UnitCores {
                unit: of,
                cores: others.to_vec(),
            },
            Rationale::of_all(
                format!(
                    "programs of {unit} also run on core {core}, for milliseconds whenever one has work"
                ),
                costs.as_str(),
            ),
        );
    }
    builder.not_planned(
        "boot.cpuset.guests",
        format!(
            "Kubernetes recreates its slice (kubepods.slice), and Docker with the cgroup driver cgroupfs uses no \
             slice, so this plan does not keep their containers off core {core}"
        ),
        format!(
            "for Kubernetes: reservedSystemCPUs={core} of the kubelet; for Docker: docker run --cpuset-cpus={}",
            list(others)
        ),
    );
    builder.document(
        "boot.cpuset.isolane.slice",
        Document::CriticalSlice { core },
        Rationale::of_all(
            format!("programs that may run on core {core}: systemd-run --slice=isolane.slice PROGRAM, or \
                     Slice=isolane.slice"),
            "none",
        ),
    );
}

fn unit_cores_file(unit: Unit) -> String {
    format!("{GROUPS}/{}/cpuset.cpus", unit.name())
}

/// Cores to which another program has restricted a unit. `None` if isolane's document exists: planning adds none to a
/// unit that others restrict.
fn cores_set_by_others(input: &PlanInput<'_>, unit: Unit) -> Option<Vec<u16>> {
    if input.facts.documents.contains_key(&unit.path()) {
        return None;
    }
    let cores = number_list(&input.facts.attribute(&unit_cores_file(unit))?);
    (!cores.is_empty()).then_some(cores)
}

/// Files with the units' cores, for probing.
pub(crate) fn unit_core_files() -> impl Iterator<Item = String> {
    Unit::ALL.into_iter().map(unit_cores_file)
}

/// Removes from the facts the effect of an isolane document that is removed.
pub(super) fn forget_document(facts: &mut Facts, document: &str) {
    for unit in Unit::ALL {
        if document == unit.path() {
            facts.attributes.remove(&unit_cores_file(unit));
        }
    }
    if document == Document::MANAGER {
        facts.boot.systemd_cores = None;
    }
}

/// Cores to which another program has restricted systemd. `None` unless it excludes a core that is not isolated.
fn manager_cores_set_by_others(input: &PlanInput<'_>) -> Option<Vec<u16>> {
    let facts = input.facts;
    if facts.documents.contains_key(Document::MANAGER) {
        return None;
    }
    let cores = facts.boot.systemd_cores.as_ref()?;
    let isolated = facts.cores.isolated.as_deref().unwrap_or_default();
    let mut ordinary = facts.cores.online.iter();
    let is_bound = ordinary.any(|core| !isolated.contains(core) && !cores.contains(core));
    is_bound.then(|| cores.clone())
}

/// Plans the CPU affinity of systemd, which its services inherit unless they set their own.
fn affinity(input: &PlanInput<'_>, core: u16, others: &[u16], builder: &mut PlanBuilder<'_>) {
    if let Some(cores) = manager_cores_set_by_others(input) {
        if cores.contains(&core) {
            builder.not_planned(
                "boot.affinity",
                format!(
                    "another configuration restricts systemd to cores {}, which include core {core}; its purpose is \
                     unknown",
                    list(&cores)
                ),
                format!(
                    "remove core {core} from that list (CPUAffinity= in the output of systemd-analyze cat-config \
                     systemd/system.conf), then systemctl daemon-reexec or boot, and plan again"
                ),
            );
        }
        return;
    }
    builder.document(
        "boot.affinity",
        Document::ManagerCores {
            cores: others.to_vec(),
        },
        Rationale::of_all(
            format!("programs also run on core {core}, for milliseconds whenever one has work"),
            format!(
                "programs have one core less; they inherit an affinity without core {core}, but virtual machines, \
                 containers and processes that set their own affinity can still run there, because this machine has \
                 control groups of version 1, or without cpusets; critical programs must set their affinity (taskset \
                 -c {core} PROGRAM, or CPUAffinity={core} of their service); after systemctl daemon-reexec the step \
                 applies to programs started later, after a boot to all"
            ),
        ),
    );
}

/// Returns whether systemd can restrict slices to cores, as far as the facts show.
fn has_cpusets(input: &PlanInput<'_>) -> bool {
    let line = input.facts.kernel.arguments();
    let is_first_version = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("systemd.unified_cgroup_hierarchy="))
        .any(|value| matches!(value, "0" | "no" | "false"));
    let has_first = is_first_version || input.facts.attribute(FIRST_VERSION).is_some();
    let controllers = input.facts.attribute(CONTROLLERS);
    let is_there = |known: String| known.split_whitespace().any(|name| name == "cpuset");
    !has_first && controllers.is_none_or(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_found_behind_words_and_in_ranges() {
        let line = "quiet isolcpus=managed_irq,domain,2-3,7 nohz_full=all";
        assert!(covers(line, "isolcpus=", 3) && covers(line, "isolcpus=", 7));
        assert!(!covers(line, "isolcpus=", 4));
        assert!(covers(line, "nohz_full=", 4));
        assert!(!covers(line, "rcu_nocbs=", 3));
    }
}
