//! Interrupts of devices that carry no topics: disks, USB, graphics, other interfaces. They are kept off the executor's
//! core as far as the kernel allows.

use crate::facts::{Facts, Interrupt};
use crate::lists::list;
use crate::needs::Needs;

use super::arguments::keeps_managed_interrupts_off;
use super::below;
use super::builder::{PlanBuilder, Rationale};
use super::interrupts::{PLACED, called, kept, named};
use super::services::IRQBALANCE;
use super::target::PlanInput;

pub(super) fn plan(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    let Some(core) = input.core().filter(|_| input.tuning.other_interrupts.value) else {
        return;
    };
    let others = input.other_cores();
    if others.is_empty() {
        return;
    }
    let there = may_come(input.facts, input.needs, core, &others);
    let (fixed, movable): (Vec<&Interrupt>, Vec<&Interrupt>) =
        there.into_iter().partition(|it| it.is_managed);
    match input.runs(IRQBALANCE) {
        true => leave_to_irqbalance(core, &movable, builder),
        false => {
            for interrupt in movable {
                place(input, core, &others, interrupt, builder);
            }
        }
    }
    refuse_fixed(input, core, &fixed, builder);
}

/// Interrupts of other devices that may arrive at the executor's core: those bound to it, and those bound to none of
/// `others`. The kernel sends an interrupt to any core if all of its own are offline.
pub(crate) fn may_come<'a>(
    facts: &'a Facts,
    needs: &Needs,
    core: u16,
    others: &[u16],
) -> Vec<&'a Interrupt> {
    let name = needs.interface.as_deref();
    let mut interfaces = facts.interfaces.iter();
    let target = interfaces
        .find(|known| Some(known.name.as_str()) == name)
        .and_then(|known| facts.device(&below::vlan_parent(&facts.interfaces, known).name));
    let own = target.map_or(&[][..], |device| &device.interrupts);
    let is_own = |it: &Interrupt| own.iter().any(|own| own.number == it.number);
    let comes = |it: &Interrupt| {
        let is_elsewhere = it.cores.iter().any(|core| others.contains(core));
        it.cores.contains(&core) || !(it.cores.is_empty() || is_elsewhere)
    };
    let all = facts.interrupts.iter();
    all.filter(|it| comes(it) && !is_own(it)).collect()
}

fn place(
    input: &PlanInput<'_>,
    core: u16,
    others: &[u16],
    interrupt: &Interrupt,
    builder: &mut PlanBuilder,
) {
    let Interrupt { number, name, .. } = interrupt;
    let called = called(&input.facts.interrupts, interrupt);
    builder.attribute(
        input.facts,
        format!("cores.interrupt-{called}.{core}"),
        &format!("/proc/irq/{number}/smp_affinity_list"),
        list(&kept(interrupt, core, others)),
        Rationale::of_all(
            format!(
                "{name} may come to core {core}, whenever its device has something to tell: some microseconds each \
                 time"
            ),
            "the other cores take it; where the kernel refuses it, it stays as it is, and apply says so",
        ),
    );
}

fn leave_to_irqbalance(core: u16, movable: &[&Interrupt], builder: &mut PlanBuilder) {
    if movable.is_empty() {
        return;
    }
    builder.not_planned(
        "cores.interrupts",
        format!(
            "irqbalance runs, and moves interrupts of other devices within ten seconds, whoever has placed them: {} \
             are left to it",
            named(movable.iter().copied())
        ),
        format!(
            "have it leave core {core} alone: IRQBALANCE_BANNED_CPULIST={core}; or systemctl mask --now irqbalance, and \
             plan again"
        ),
    );
}

/// Reports interrupts that the kernel manages: a disk queue per core, a timer.
fn refuse_fixed(input: &PlanInput<'_>, core: u16, fixed: &[&Interrupt], builder: &mut PlanBuilder) {
    let line = input.facts.kernel.command_line.as_deref();
    let keeps_off = line.is_some_and(|line| keeps_managed_interrupts_off(line, core));
    // The kernel then prefers an interrupt's other cores; an interrupt without others serves a queue of this core
    // alone.
    let there = fixed.iter().filter(|it| !(keeps_off && it.cores.len() > 1));
    let there: Vec<&Interrupt> = there.copied().collect();
    if there.is_empty() {
        return;
    }
    let remedy = match keeps_off {
        true => format!("have nothing on core {core} read or write files"),
        false => format!(
            "have nothing on core {core} read or write files; and boot with isolcpus=managed_irq,domain,{core}: those \
             that may go elsewhere do"
        ),
    };
    builder.not_planned(
        "cores.interrupts-managed",
        format!(
            "{PLACED}: {}; that of a disk's queue for one \
             core comes only for what programs on that core read and write",
            named(there.iter().copied())
        ),
        remedy,
    );
}
