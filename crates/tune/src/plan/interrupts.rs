//! CPU affinity of the device's interrupts, and of receive packet steering.

use crate::facts::Interrupt;
use crate::lists::{cores_of_mask, list, mask_like};

use super::builder::{PlanBuilder, Rationale};
use super::services::IRQBALANCE;
use super::target::{PlanInput, TopicInterface};
use super::{precondition, rules};

const COSTS: &str = "the other cores take its receive work";
/// Reason that some interrupts are not moved.
pub(super) const PLACED: &str = "the kernel has placed these interrupts, and lets nobody move them";

pub(super) fn plan<'a>(
    input: &PlanInput<'a>,
    target: &TopicInterface<'a>,
    builder: &mut PlanBuilder,
) {
    if !input.tuning.interrupts.value {
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
                "the executor shares its core with the interrupts of {name}: there is no other core"
            ),
            "use a machine with two cores or more",
        );
        return;
    }
    handing_on(input, target, core, builder);
    if target.is_remade {
        builder.not_planned(
            id,
            format!(
                "{name} gets another number of queues, and with them interrupts that have no numbers yet"
            ),
            "apply, and plan again",
        );
        return;
    }
    if target.device.interrupts.is_empty() {
        builder.not_planned(
            id,
            format!("{name} has no interrupts that can be seen: where it receives is where its frames come from"),
            match target.interface.kind.as_deref() {
                Some("veth") => "on veth: receive threads, or rps_cpus, decide about the core",
                _ => "probe as root, with sysfs mounted for this network namespace",
            },
        );
        return;
    }
    let is_alone = target.verified(input).is_ok() && !builder.changes_steering(name);
    let move_of = |interrupt: &'a Interrupt| {
        let is_pinned = is_alone && target.is_on_critical_path(input, interrupt);
        let cores = match is_pinned {
            true => vec![core],
            false => kept(interrupt, core, &others),
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
    if input.runs(IRQBALANCE) {
        leave_to_irqbalance(target, core, &moves, builder);
    } else {
        for it in &moves {
            place(input, target, core, it, builder);
        }
    }
    if !fixed.is_empty() {
        builder.not_planned(
            target.id("interrupts-managed"),
            format!("{PLACED}: {}", named(fixed.iter().map(|it| it.interrupt))),
            format!(
                "boot with isolcpus=managed_irq,domain,{core}: then it keeps them off core {core}"
            ),
        );
    }
}

struct Move<'a> {
    interrupt: &'a Interrupt,
    cores: Vec<u16>,
    /// True if it is moved to the executor's core, because it serves critical datagrams alone.
    is_pinned: bool,
}

fn place(
    input: &PlanInput<'_>,
    target: &TopicInterface<'_>,
    core: u16,
    it: &Move<'_>,
    builder: &mut PlanBuilder,
) {
    let Interrupt { number, name, .. } = it.interrupt;
    let (why, costs) = match it.is_pinned {
        true => (
            format!(
                "{name} serves only critical datagrams, as was measured: they are received where they are used, on \
                 core {core}"
            ),
            "none: nothing else comes to this queue",
        ),
        false => (
            format!(
                "{name} would take core {core} from the executor: some microseconds each time, milliseconds in a \
                 flood"
            ),
            match it.interrupt.only_transmits() {
                true => "the other cores look after what it has sent",
                false => COSTS,
            },
        ),
    };
    let first = builder.steps.len();
    builder.attribute(
        input.facts,
        target.id(&format!(
            "interrupt-{}",
            called(&target.device.interrupts, it.interrupt)
        )),
        &format!("/proc/irq/{number}/smp_affinity_list"),
        list(&it.cores),
        Rationale::of(&input.critical_topics(None), why, costs),
    );
    if it.is_pinned {
        precondition::require_current_steering(target, builder);
        if !rules::rules_steer_all(input, target) {
            builder.limit_to_this_boot(first);
        }
    }
}

/// Formats interrupts as numbers with names.
pub(crate) fn named<'a>(interrupts: impl Iterator<Item = &'a Interrupt>) -> String {
    let named = interrupts.map(|Interrupt { number, name, .. }| format!("{number} ({name})"));
    named.collect::<Vec<_>>().join(", ")
}

/// Name of an interrupt in the id of a step: its own name, because numbers change with each boot; its number if the
/// name is not unique.
pub(super) fn called(all: &[Interrupt], interrupt: &Interrupt) -> String {
    let of_that_name = all
        .iter()
        .filter(|other| other.name == interrupt.name)
        .count();
    match of_that_name == 1 && !interrupt.name.is_empty() {
        true => interrupt.name.clone(),
        false => interrupt.number.to_string(),
    }
}

/// Refuses, because irqbalance moves any interrupt again within ten seconds, and moves interrupts away from cores it is
/// banned from.
fn leave_to_irqbalance(
    target: &TopicInterface<'_>,
    core: u16,
    moves: &[Move<'_>],
    builder: &mut PlanBuilder,
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
            format!("or have it leave core {core} alone, {file}: IRQBALANCE_BANNED_CPULIST={core}")
        }
        Some(number) => format!(
            "or have it leave interrupt {number} alone, {file}: IRQBALANCE_ARGS=\"--banirq={number}\"; then \
             systemctl restart irqbalance, and echo {core} > /proc/irq/{number}/smp_affinity_list"
        ),
    };
    builder.not_planned(
        target.id("interrupts"),
        format!(
            "irqbalance runs, and moves interrupts within ten seconds, whoever has placed them: {} of {} are left \
             to it",
            numbers(&mut moves.iter()).join(", "),
            target.name()
        ),
        format!("systemctl mask --now irqbalance, and plan again; {other_way}"),
    );
}

/// Affinity of the interrupt without the executor's core; all other cores if none is left.
pub(super) fn kept(interrupt: &Interrupt, core: u16, others: &[u16]) -> Vec<u16> {
    if interrupt.cores.is_empty() {
        return others.to_vec();
    }
    let kept = interrupt.cores.iter().copied();
    let kept: Vec<u16> = kept
        .filter(|it| *it != core && others.contains(it))
        .collect();
    if kept.is_empty() {
        others.to_vec()
    } else {
        kept
    }
}

/// Removes the executor's core from receive packet steering (RPS).
fn handing_on(
    input: &PlanInput<'_>,
    target: &TopicInterface<'_>,
    core: u16,
    builder: &mut PlanBuilder,
) {
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
            input.facts,
            target.id(&format!("receive-cores-{queue}")),
            &path,
            mask_like(&mask, &rest),
            Rationale::of(
                &input.critical_topics(None),
                format!("receive work of queue {queue} is handed to core {core}, where the executor runs"),
                COSTS,
            ),
        );
    }
}
