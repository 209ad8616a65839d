//! CPU affinity of interrupts, and receive packet steering (RPS). Interrupts of devices that carry no topics (disks,
//! USB, graphics, other interfaces) are kept off the executor's core as far as the kernel allows.

use super::builder::{PlanBuilder, Rationale};
use super::host::IRQBALANCE;
use super::input::{PlanInput, TopicInterface, vlan_parent};
use super::isolation::keeps_managed_interrupts_off;
use super::rules;
use super::steering::require_current_steering;
use crate::facts::{Facts, Interrupt};
use crate::kernel_lists::{cores_of_mask, list, mask_like};
use crate::needs::Needs;

const COSTS: &str = "the other cores handle its receive work";
/// Reason that some interrupts are not moved.
pub(super) const PLACED: &str = "the kernel has placed these interrupts, and they cannot be moved";

pub(super) fn plan_topic_interface<'a>(target: &TopicInterface<'a>, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    if !input.tuning.irq_affinity.value {
        return;
    }
    let Some(core) = input.core() else {
        return;
    };
    let others = input.other_cores();
    let name = target.name();
    let id = target.id("interrupts");
    if others.is_empty() {
        builder.not_planned(
            id,
            format!(
                "the executor shares its core with the interrupts of {name}, because there is no other core"
            ),
            "use a machine with two cores or more",
        );
        return;
    }
    plan_rps(target, core, builder);
    if target.is_remade {
        builder.not_planned(
            id,
            format!(
                "the plan changes the number of queues of {name}, and the interrupts of the new queues do not exist yet"
            ),
            "apply this plan, then plan again",
        );
        return;
    }
    if target.device.interrupts.is_empty() {
        builder.not_planned(
            id,
            format!("no interrupts of {name} are visible"),
            match target.interface.kind.as_deref() {
                Some("veth") => "on veth, receive threads or rps_cpus determine the core",
                _ => "run as root, with sysfs mounted for this network namespace",
            },
        );
        return;
    }
    let is_alone = target.verified().is_ok() && !builder.changes_steering(name);
    let move_of = |interrupt: &'a Interrupt| {
        let is_pinned = is_alone && target.is_on_critical_path(interrupt);
        let cores = match is_pinned {
            true => vec![core],
            false => remaining_cores(interrupt, core, &others),
        };
        (cores != interrupt.cores).then_some(Move {
            interrupt,
            cores,
            is_pinned,
        })
    };
    let moves = target.device.interrupts.iter().filter_map(move_of);
    let (fixed, moves): (Vec<Move<'_>>, Vec<Move<'_>>) =
        moves.partition(|it| it.interrupt.is_managed);
    if input.facts.runs(IRQBALANCE) {
        leave_to_irqbalance(target, core, &moves, builder);
    } else {
        for it in &moves {
            place(target, core, it, builder);
        }
    }
    if !fixed.is_empty() {
        builder.not_planned(
            target.id("interrupts-managed"),
            format!(
                "{PLACED}: {}",
                list_interrupts(fixed.iter().map(|it| it.interrupt))
            ),
            format!(
                "boot with isolcpus=managed_irq,domain,{core}: the kernel then keeps these interrupts off core {core}"
            ),
        );
    }
}

struct Move<'a> {
    interrupt: &'a Interrupt,
    cores: Vec<u16>,
    /// True if the interrupt is moved to the executor's core, because it serves only critical datagrams.
    is_pinned: bool,
}

fn place(target: &TopicInterface<'_>, core: u16, it: &Move<'_>, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    let Interrupt { number, name, .. } = it.interrupt;
    let (why, costs) = match it.is_pinned {
        true => (
            format!(
                "according to the measurement, {name} serves only critical datagrams: core {core} receives them, \
                 where the executor uses them"
            ),
            "none: no other traffic arrives on this queue",
        ),
        false => (
            format!(
                "{name} would take core {core} from the executor: some microseconds each time, milliseconds in a \
                 flood"
            ),
            match it.interrupt.only_transmits() {
                true => "the other cores handle its transmit completions",
                false => COSTS,
            },
        ),
    };
    let first = builder.steps.len();
    builder.attribute(
        target.id(&format!(
            "interrupt-{}",
            step_subject(&target.device.interrupts, it.interrupt)
        )),
        &format!("/proc/irq/{number}/smp_affinity_list"),
        list(&it.cores),
        Rationale::of(&input.critical_topics(None), why, costs),
    );
    if it.is_pinned {
        require_current_steering(target, builder);
        if !rules::rules_steer_all(target) {
            builder.limit_to_this_boot(first);
        }
    }
}

/// Formats interrupts as numbers with names.
pub(crate) fn list_interrupts<'a>(interrupts: impl Iterator<Item = &'a Interrupt>) -> String {
    let list_interrupts =
        interrupts.map(|Interrupt { number, name, .. }| format!("{number} ({name})"));
    list_interrupts.collect::<Vec<_>>().join(", ")
}

/// Name of an interrupt in the id of a step: its own name, because numbers change with each boot; its number if the
/// name is not unique.
pub(super) fn step_subject(all: &[Interrupt], interrupt: &Interrupt) -> String {
    let of_that_name = all
        .iter()
        .filter(|other| other.name == interrupt.name)
        .count();
    match of_that_name == 1 && !interrupt.name.is_empty() {
        true => interrupt.name.clone(),
        false => interrupt.number.to_string(),
    }
}

/// Reports that interrupts are not planned while irqbalance runs. It moves any interrupt again within ten seconds, and
/// moves interrupts away from cores that it is banned from.
fn leave_to_irqbalance(
    target: &TopicInterface<'_>,
    core: u16,
    moves: &[Move<'_>],
    builder: &mut PlanBuilder<'_>,
) {
    if moves.is_empty() {
        return;
    }
    let numbers = |moves: &mut dyn Iterator<Item = &Move<'_>>| -> Vec<String> {
        moves.map(|it| it.interrupt.number.to_string()).collect()
    };
    let pinned = numbers(&mut moves.iter().filter(|it| it.is_pinned));
    let file = "in /etc/default/irqbalance (or /etc/sysconfig/irqbalance)";
    let other_way = match pinned.first() {
        None => {
            format!(
                "or exclude core {core} from irqbalance, {file}: IRQBALANCE_BANNED_CPULIST={core}"
            )
        }
        Some(number) => format!(
            "or exclude interrupt {number} from irqbalance, {file}: IRQBALANCE_ARGS=\"--banirq={number}\"; then \
             systemctl restart irqbalance, and echo {core} > /proc/irq/{number}/smp_affinity_list"
        ),
    };
    builder.not_planned(
        target.id("interrupts"),
        format!(
            "irqbalance runs, and would move interrupts again within ten seconds, so the plan does not move \
             interrupts {} of {}",
            numbers(&mut moves.iter()).join(", "),
            target.name()
        ),
        format!("systemctl mask --now irqbalance, and plan again; {other_way}"),
    );
}

/// Affinity of the interrupt without the executor's core; `others` if no core is left.
pub(super) fn remaining_cores(interrupt: &Interrupt, core: u16, others: &[u16]) -> Vec<u16> {
    if interrupt.cores.is_empty() {
        return others.to_vec();
    }
    let remaining_cores = interrupt.cores.iter().copied();
    let remaining_cores: Vec<u16> = remaining_cores
        .filter(|it| *it != core && others.contains(it))
        .collect();
    if remaining_cores.is_empty() {
        others.to_vec()
    } else {
        remaining_cores
    }
}

/// Removes the executor's core from receive packet steering (RPS).
fn plan_rps(target: &TopicInterface<'_>, core: u16, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    for queue in 0..target.receive_queues {
        let path = format!(
            "/sys/class/net/{}/queues/rx-{queue}/rps_cpus",
            target.name()
        );
        let Some(mask) = input.facts.attribute(&path) else {
            continue;
        };
        let Some(cores) = cores_of_mask(&mask).filter(|cores| cores.contains(&core)) else {
            continue;
        };
        let rest: Vec<u16> = cores.into_iter().filter(|it| *it != core).collect();
        builder.attribute(
            target.id(&format!("receive-cores-{queue}")),
            &path,
            mask_like(&mask, &rest),
            Rationale::of(
                &input.critical_topics(None),
                format!("the kernel sends receive work of queue {queue} to core {core}, where the executor runs"),
                COSTS,
            ),
        );
    }
}

pub(super) fn plan_other_devices(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    let Some(core) = input
        .core()
        .filter(|_| input.tuning.other_irq_affinity.value)
    else {
        return;
    };
    let others = input.other_cores();
    if others.is_empty() {
        return;
    }
    let there = interrupts_that_may_reach(input.facts, input.needs, core, &others);
    let (fixed, movable): (Vec<&Interrupt>, Vec<&Interrupt>) =
        there.into_iter().partition(|it| it.is_managed);
    match input.facts.runs(IRQBALANCE) {
        true => leave_others_to_irqbalance(core, &movable, builder),
        false => {
            for interrupt in movable {
                move_away(input, core, &others, interrupt, builder);
            }
        }
    }
    report_managed(input, core, &fixed, builder);
}

/// Interrupts of other devices that may arrive at the executor's core: those whose affinity has this core, and those
/// whose affinity has none of `others`. If all cores of its affinity are offline, an interrupt goes to any core.
pub(crate) fn interrupts_that_may_reach<'a>(
    facts: &'a Facts,
    needs: &Needs,
    core: u16,
    others: &[u16],
) -> Vec<&'a Interrupt> {
    let name = needs.interface.as_deref();
    let mut interfaces = facts.interfaces.iter();
    let target = interfaces
        .find(|known| Some(known.name.as_str()) == name)
        .and_then(|known| facts.device(&vlan_parent(&facts.interfaces, known).name));
    let own = target.map_or(&[][..], |device| &device.interrupts);
    let is_own = |it: &Interrupt| own.iter().any(|own| own.number == it.number);
    let comes = |it: &Interrupt| {
        let is_elsewhere = it.cores.iter().any(|core| others.contains(core));
        it.cores.contains(&core) || !(it.cores.is_empty() || is_elsewhere)
    };
    let all = facts.interrupts.iter();
    all.filter(|it| comes(it) && !is_own(it)).collect()
}

fn move_away(
    input: &PlanInput<'_>,
    core: u16,
    others: &[u16],
    interrupt: &Interrupt,
    builder: &mut PlanBuilder<'_>,
) {
    let Interrupt { number, name, .. } = interrupt;
    let step_subject = step_subject(&input.facts.interrupts, interrupt);
    builder.attribute(
        format!("cores.interrupt-{step_subject}.{core}"),
        &format!("/proc/irq/{number}/smp_affinity_list"),
        list(&remaining_cores(interrupt, core, others)),
        Rationale::of_all(
            format!(
                "{name} may arrive on core {core} at any time: some microseconds each"
            ),
            "the other cores handle the interrupt; if the kernel refuses the move, apply reports that and leaves the \
             interrupt where it is",
        ),
    );
}

fn leave_others_to_irqbalance(core: u16, movable: &[&Interrupt], builder: &mut PlanBuilder<'_>) {
    if movable.is_empty() {
        return;
    }
    builder.not_planned(
        "cores.interrupts",
        format!(
            "irqbalance runs, and would move interrupts of other devices again within ten seconds, so the plan does \
             not move interrupts {}",
            list_interrupts(movable.iter().copied())
        ),
        format!(
            "exclude core {core} from irqbalance: IRQBALANCE_BANNED_CPULIST={core}; or systemctl mask --now \
             irqbalance, and plan again"
        ),
    );
}

/// Reports interrupts that the kernel manages: a disk queue per core, a timer.
fn report_managed(
    input: &PlanInput<'_>,
    core: u16,
    fixed: &[&Interrupt],
    builder: &mut PlanBuilder<'_>,
) {
    let keeps_off = keeps_managed_interrupts_off(input.facts.kernel.arguments(), core);
    // With `keeps_off`, the kernel prefers an interrupt's other cores. An interrupt without other cores serves a queue
    // of this core alone.
    let there = fixed.iter().filter(|it| !(keeps_off && it.cores.len() > 1));
    let there: Vec<&Interrupt> = there.copied().collect();
    if there.is_empty() {
        return;
    }
    let remedy = match keeps_off {
        true => format!("run no program on core {core} that reads or writes files"),
        false => format!(
            "run no program on core {core} that reads or writes files; and boot with \
             isolcpus=managed_irq,domain,{core}, which moves interrupts that have another core"
        ),
    };
    builder.not_planned(
        "cores.interrupts-managed",
        format!(
            "{PLACED}: {}; the interrupt of a disk queue of one core occurs only after a program on that core reads \
             or writes",
            list_interrupts(there.iter().copied())
        ),
        remedy,
    );
}
