//! Isolation by systemd: its units are restricted to the other cores, and isolane's programs get a slice of their own.
//!
//! With cgroup v2, no process can leave its slice's cores. With cgroup v1, or without cpusets, there is only the CPU
//! affinity inherited from systemd, which a process may change.

use crate::facts::Facts;
use crate::lists::list;
use crate::probe::files::number_list;
use crate::setting::{Document, Unit};

use super::builder::{PlanBuilder, Rationale};
use super::target::PlanInput;

/// File that lists the controllers of a pure cgroup v2 hierarchy.
const CONTROLLERS: &str = "/sys/fs/cgroup/cgroup.controllers";
/// File that exists only with cgroup v1.
const FIRST_VERSION: &str = "/sys/fs/cgroup/cpuset/cpuset.cpus";
/// Mount point of cgroup v2, with the groups that systemd creates.
const GROUPS: &str = "/sys/fs/cgroup";
pub(super) fn plan(input: &PlanInput<'_>, core: u16, others: &[u16], builder: &mut PlanBuilder) {
    let isolated = input.facts.cores.isolated.as_deref().unwrap_or_default();
    if isolated.contains(&core) {
        return;
    }
    if input.facts.boot.has_systemd != Some(true) {
        builder.not_planned(
            "boot.cpusets",
            "systemd does not run here, or it cannot be seen: nobody to keep programs on the other cores",
            format!("isolation = \"boot\" in [tune]; or a cpuset of one's own for everything but core {core}"),
        );
        return;
    }
    match has_cpusets(input) {
        true => cpusets(input, core, others, builder),
        false => affinity(input, core, others, builder),
    }
}

fn cpusets(input: &PlanInput<'_>, core: u16, others: &[u16], builder: &mut PlanBuilder) {
    let costs = format!(
        "programs have one core less: those that pin themselves to core {core} get EINVAL, unless they run in \
         isolane.slice (systemd-run --slice=isolane.slice PROGRAM); takes systemctl daemon-reload, or a boot"
    );
    // A drop-in has no effect until its slice exists.
    for of in Unit::ALL {
        let unit = of.name();
        let id = format!("boot.cpuset.{unit}");
        if let Some(cores) = bound_by_others(input, of) {
            if cores.contains(&core) {
                builder.not_planned(
                    id,
                    format!(
                        "somebody has bound {unit} to cores {}, core {core} among them: lists of several files are added \
                         to each other, and what his is for is not known here",
                        list(&cores)
                    ),
                    format!(
                        "leave core {core} out there (AllowedCPUs= in what systemctl cat {unit} shows, \
                         or systemctl set-property {unit} AllowedCPUs=LIST), and plan again"
                    ),
                );
            }
            continue;
        }
        builder.document(
            input.facts,
            id,
            Document::UnitCores {
                unit: of,
                cores: others.to_vec(),
            },
            Rationale::of_all(
                format!(
                    "programs of {unit} run on core {core} too: milliseconds whenever one has work"
                ),
                costs.as_str(),
            ),
        );
    }
    builder.not_planned(
        "boot.cpuset.guests",
        format!(
            "Kubernetes (kubepods.slice) has a slice that it makes anew, and Docker with its own driver of control groups \
             has none: they are not kept off core {core} by this"
        ),
        format!(
            "where they run: reservedSystemCPUs={core} of the kubelet; docker run --cpuset-cpus={}",
            list(others)
        ),
    );
    builder.document(
        input.facts,
        "boot.cpuset.isolane.slice",
        Document::CriticalSlice { core },
        Rationale::of_all(
            format!("what may run on core {core}: systemd-run --slice=isolane.slice PROGRAM, or Slice=isolane.slice"),
            "none",
        ),
    );
}

fn bound_of(unit: Unit) -> String {
    format!("{GROUPS}/{}/cpuset.cpus", unit.name())
}

/// Cores to which another program has restricted a unit. `None` if isolane's document exists: planning never adds it to
/// a restriction by others.
fn bound_by_others(input: &PlanInput<'_>, unit: Unit) -> Option<Vec<u16>> {
    if input.facts.documents.contains_key(&unit.path()) {
        return None;
    }
    let cores = number_list(&input.facts.attribute(&bound_of(unit))?);
    (!cores.is_empty()).then_some(cores)
}

/// Files with the units' cores, for probing.
pub(crate) fn bounds() -> impl Iterator<Item = String> {
    Unit::ALL.into_iter().map(bound_of)
}

/// Removes from the facts the effect of a document of isolane's that was removed.
pub(super) fn forget(facts: &mut Facts, document: &str) {
    for unit in Unit::ALL {
        if document == unit.path() {
            facts.attributes.remove(&bound_of(unit));
        }
    }
    if document == Document::MANAGER {
        facts.boot.systemd_cores = None;
    }
}

/// Cores to which another program has restricted systemd, if it excludes an ordinary core.
fn kept_by_others(input: &PlanInput<'_>) -> Option<Vec<u16>> {
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
fn affinity(input: &PlanInput<'_>, core: u16, others: &[u16], builder: &mut PlanBuilder) {
    if let Some(cores) = kept_by_others(input) {
        if cores.contains(&core) {
            builder.not_planned(
                "boot.affinity",
                format!(
                    "somebody keeps systemd to cores {}, core {core} among them: what that is for is not known here",
                    list(&cores)
                ),
                format!(
                    "leave core {core} out there (CPUAffinity= in what systemd-analyze cat-config systemd/system.conf \
                     shows), and plan again behind systemctl daemon-reexec, or a boot"
                ),
            );
        }
        return;
    }
    builder.document(
        input.facts,
        "boot.affinity",
        Document::ManagerCores {
            cores: others.to_vec(),
        },
        Rationale::of_all(
            format!("programs run on core {core} too: milliseconds whenever one has work"),
            format!(
                "programs have one core less; they are kept off core {core} by what they inherit, not by a bound: control \
                 groups are of the first version here, or without cpusets, so that virtual machines, containers and \
                 whoever chooses his cores come there all the same; critical programs choose it so as well (taskset \
                 -c {core} PROGRAM, or CPUAffinity={core} of their service); takes systemctl daemon-reexec for what \
                 is started then, or a boot"
            ),
        ),
    );
}

/// Returns whether systemd can restrict slices to cores, as far as the facts show.
fn has_cpusets(input: &PlanInput<'_>) -> bool {
    let line = input
        .facts
        .kernel
        .command_line
        .as_deref()
        .unwrap_or_default();
    let is_first_version = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("systemd.unified_cgroup_hierarchy="))
        .any(|value| matches!(value, "0" | "no" | "false"));
    let has_first = is_first_version || input.facts.attribute(FIRST_VERSION).is_some();
    let controllers = input.facts.attribute(CONTROLLERS);
    let is_there = |known: String| known.split_whitespace().any(|name| name == "cpuset");
    !has_first && controllers.is_none_or(is_there)
}
