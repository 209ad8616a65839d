//! Planning from facts, needs, a profile and placements: a pure function, one file per subject.

use isolane_model::Tuning;

use crate::facts::Facts;
use crate::needs::Needs;

use super::builder::PlanBuilder;
use super::target::PlanInput;
use super::{
    FlowQueues, Identity, Plan, below, boot, cores, interrupts, kernel, memory, moderation, napi,
    offloads, other_interrupts, queues, rings, scheduler, services, sockets, steering, transmit,
};

/// Plans the changes that give the description's topics the machine that the profile asks for.
///
/// [`from`](super::Step::from) of every step is the value in the facts, before any step. Steps that reset other
/// settings come first: a new number of queues resets table, interrupts and queueing disciplines, so queues precede
/// these, and rings precede interrupts.
pub fn plan(facts: &Facts, needs: &Needs, tuning: &Tuning, placement: &FlowQueues) -> Plan {
    let mut builder = PlanBuilder::default();
    let unknown = FlowQueues::default();
    let placement = match placement.is_of_other_boot(facts.boot_id.as_deref()) {
        true => {
            builder.not_planned(
                "placements",
                "what is known of where datagrams land is of another boot, and does not hold any more",
                "learn and measure again: isolane tune learn, isolane tune ports",
            );
            &unknown
        }
        false => placement,
    };
    let input = PlanInput {
        facts,
        needs,
        tuning,
        placement,
    };
    kernel::plan(&input, &mut builder);
    target(&input, &mut builder);
    // Interrupts leave an SMT sibling before it goes offline, and return after it is online again.
    other_interrupts::plan(&input, &mut builder);
    cores::plan(&input, &mut builder);
    scheduler::plan(&input, &mut builder);
    memory::plan(&input, &mut builder);
    sockets::plan(&input, &mut builder);
    services::plan(&input, &mut builder);
    boot::plan(&input, &mut builder);
    Plan {
        schema: String::from(super::SCHEMA),
        machine: Identity {
            hostname: facts.hostname.clone(),
            machine_id: facts.machine_id.clone(),
        },
        origin: facts.origin.clone(),
        profile: tuning.name(),
        boot_id: facts.boot_id.clone(),
        steps: builder.steps,
        refusals: builder.refusals,
        relies_on: builder.relies_on,
    }
}

fn target(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    let Some(name) = &input.needs.interface else {
        let why = match (input.needs.hosts.as_slice(), &input.needs.host) {
            ([], _) | (_, Some(_)) => {
                "there is no description that names an interface: none is set up"
            }
            _ => {
                "it is not known which host of the description this machine is: no interface is set up"
            }
        };
        let remedy = match input.needs.hosts.as_slice() {
            [] => String::from("describe the system: isolane config --example > isolane.toml"),
            hosts => format!("name it: --host {}", hosts.join(" | ")),
        };
        return builder.not_planned("description.host", why, remedy);
    };
    let facts = input.facts;
    let described = facts.interfaces.iter().find(|known| known.name == *name);
    let interface = described.map(|it| below::vlan_parent(&facts.interfaces, it));
    let name = interface.map_or(name, |interface| &interface.name);
    let (Some(interface), Some(device)) = (interface, facts.device(name)) else {
        let (why, remedy) = match interface {
            Some(_) => (
                format!("{name} does not tell what it can do"),
                format!("probe as root; or use an interface of a device: ethtool -i {name}"),
            ),
            None => (
                format!("the description names the interface {name}; there is none"),
                String::from("correct `interface` of the host"),
            ),
        };
        return builder.not_planned(format!("interface.device.{name}"), why, remedy);
    };
    if let Some((why, remedy)) = below::hindrance(facts, interface) {
        return builder.not_planned(format!("interface.kind.{name}"), why, remedy);
    }
    if let Some(described) = described {
        below::tell(described, interface, builder);
    }
    if interface.is_wireless {
        builder.not_planned(
            format!("interface.wireless.{name}"),
            format!("{name} is wireless: others decide when it may send, and nothing that is set here bounds it"),
            "use a cable for critical topics",
        );
    }
    let target = queues::plan(input, interface, device, builder);
    offloads::plan(input, &target, builder);
    rings::plan(input, &target, builder);
    moderation::plan(input, &target, builder);
    steering::plan(input, &target, builder);
    transmit::plan(input, &target, builder);
    interrupts::plan(input, &target, builder);
    napi::plan(input, &target, builder);
}
