//! Keeping other programs off the executor's core: by arguments of the kernel, or by systemd.
//!
//! Both take the core away from everybody else, so the profile `balanced` has neither.

use isolane_model::Isolation;

use crate::lists::list;

use super::arguments;
use super::carrier::Asked;
use super::draft::{Draft, Said};

/// What the kernel can keep a slice from, where all of it is of the second version.
const CONTROLLERS: &str = "/sys/fs/cgroup/cgroup.controllers";
const SLICE: &str = "/etc/systemd/system/isolane.slice";
/// What systemd has everything else in.
const OTHERS: [(&str, &str); 3] = [
    ("system.slice", "Slice"),
    ("user.slice", "Slice"),
    ("init.scope", "Scope"),
];

pub(super) fn plan(asked: &Asked<'_>, draft: &mut Draft) {
    let Some(core) = asked.core() else {
        return;
    };
    let others = asked.other_cores();
    if asked.tuning.isolation.value == Isolation::None {
        return;
    }
    if others.is_empty() {
        draft.refuse(
            "boot.isolation",
            "there is one core: the executor shares it with everything else",
            "use a machine with two cores or more",
        );
        return;
    }
    match asked.tuning.isolation.value {
        Isolation::Boot => arguments::plan(asked, core, &others, draft),
        _ => cpusets(asked, core, &others, draft),
    }
}

/// systemd keeps what it starts on the other cores; isolane's programs have a slice of their own.
fn cpusets(asked: &Asked<'_>, core: u16, others: &[u16], draft: &mut Draft) {
    let isolated = asked.facts.cores.isolated.as_deref().unwrap_or_default();
    if isolated.contains(&core) {
        return;
    }
    if asked.facts.boot.has_systemd != Some(true) {
        draft.refuse(
            "boot.cpusets",
            "systemd does not run here, or it cannot be seen: nobody to keep programs on the other cores",
            format!("isolation = \"boot\" in [tune]; or a cpuset of one's own for everything but core {core}"),
        );
        return;
    }
    if !has_cpusets(asked) {
        draft.refuse(
            "boot.cpusets",
            "control groups are of the first version here, or without cpusets: systemd cannot keep programs off a core",
            "isolation = \"boot\" in [tune]; or boot with systemd.unified_cgroup_hierarchy=1",
        );
        return;
    }
    let costs = format!(
        "programs have one core less: those that pin themselves to core {core} get EINVAL, unless they run in \
         isolane.slice (systemd-run --slice=isolane.slice PROGRAM); takes systemctl daemon-reload, or a boot"
    );
    for (unit, section) in OTHERS {
        draft.document(
            asked.facts,
            format!("boot.cpuset.{unit}"),
            &format!("/etc/systemd/system/{unit}.d/50-isolane.conf"),
            format!("[{section}]\nAllowedCPUs={}", list(others)),
            Said::of_all(
                format!(
                    "programs of {unit} run on core {core} too: milliseconds whenever one has work"
                ),
                costs.as_str(),
            ),
        );
    }
    draft.refuse(
        "boot.cpuset.guests",
        format!(
            "virtual machines (machine.slice) and Kubernetes (kubepods.slice) have slices of their own, and Docker with \
             its own driver of control groups none: they are not kept off core {core} by this"
        ),
        format!(
            "where they run: systemctl set-property machine.slice AllowedCPUs={}; reservedSystemCPUs of the kubelet; \
             docker run --cpuset-cpus",
            list(others)
        ),
    );
    draft.document(
        asked.facts,
        "boot.cpuset.isolane.slice",
        SLICE,
        format!("[Unit]\nDescription=Critical programs\n\n[Slice]\nAllowedCPUs={core}"),
        Said::of_all(
            format!("what may run on core {core}: systemd-run --slice=isolane.slice PROGRAM, or Slice=isolane.slice"),
            "none",
        ),
    );
}

/// Whether systemd can keep slices off a core, as far as it can be seen.
fn has_cpusets(asked: &Asked<'_>) -> bool {
    let line = asked
        .facts
        .kernel
        .command_line
        .as_deref()
        .unwrap_or_default();
    let is_first_version = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("systemd.unified_cgroup_hierarchy="))
        .any(|value| matches!(value, "0" | "no" | "false"));
    let controllers = asked.facts.attribute(CONTROLLERS);
    let is_there = |known: String| known.split_whitespace().any(|name| name == "cpuset");
    !is_first_version && controllers.is_none_or(is_there)
}
