//! Kernel arguments that keep other work off the executor's core: isolcpus, `nohz_full`, `rcu_nocbs`, irqaffinity.
//!
//! The kernel takes one list of each. So the current command line is checked first: a sufficient argument needs no
//! step, and a contradicting one is the user's and must be edited by hand.

use crate::facts::Loader;
use crate::probe::files::number_list;
use crate::setting::{BEFORE_ARGUMENTS, CoreList, Document};

use super::builder::{PlanBuilder, Rationale};
use super::target::PlanInput;

const INTERRUPTS: &str = "irqaffinity=";

pub(super) fn plan(input: &PlanInput<'_>, core: u16, others: &[u16], builder: &mut PlanBuilder) {
    let line = input
        .facts
        .kernel
        .command_line
        .as_deref()
        .unwrap_or_default();
    if is_in_effect(input, core) || CoreList::ALL.iter().all(|it| covers(line, it.name(), core)) {
        // In effect, however it was installed.
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
    // Arguments other than isolane's, which the step replaces.
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
        return refuse_contradicting(input, core, (name, word), builder);
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
            "the kernel's arguments are installed, and not in effect yet",
            "update-grub, and boot",
        );
        return;
    }
    if input.facts.boot.loader != Some(Loader::Grub) {
        builder.not_planned(
            "boot.arguments",
            "what gives the kernel its arguments here is not known to take them from a file of ours \
             (/etc/default/grub.d)",
            format!("add to them: {wanted}"),
        );
        return;
    }
    builder.document(
        input.facts,
        "boot.arguments",
        document,
        Rationale::of_all(
            format!(
                "on core {core} other programs run for milliseconds, and the kernel's tick and callbacks for 1 to 10 \
                 us, up to 1,000 times a second; these arguments keep them off"
            ),
            format!(
                "nothing is put on core {core} by itself, so it is idle unless isolane runs there; takes update-grub \
                 and a boot, and again after it is undone"
            ),
        ),
    );
}

/// Returns whether the kernel reports the core as isolated and tickless; the tick is not required of kernels without
/// NO_HZ_FULL.
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

/// Refuses because the user's list leaves the core out.
fn refuse_contradicting(
    input: &PlanInput<'_>,
    core: u16,
    (name, word): (&str, &str),
    builder: &mut PlanBuilder,
) {
    let place = match input.facts.boot.loader {
        Some(Loader::Grub) => {
            "in /etc/default/grub (GRUB_CMDLINE_LINUX or GRUB_CMDLINE_LINUX_DEFAULT), then update-grub, and boot"
        }
        _ => "where the kernel's arguments are kept, and boot",
    };
    builder.not_planned(
        "boot.arguments",
        format!(
            "the kernel was started with {word}, which leaves core {core} out; it takes one list: a second {name} \
             beside it would not add to it"
        ),
        format!("put {word},{core} in its place {place}; or give the executor one of those cores: core = N in [host.NAME]"),
    );
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
