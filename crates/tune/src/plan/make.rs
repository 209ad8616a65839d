//! Planning from facts, needs, a profile and placements: a pure function, one file per subject.

use isolane_model::Tuning;

use crate::facts::Facts;
use crate::needs::Needs;

use super::carrier::Asked;
use super::draft::Draft;
use super::{
    Identity, Placement, Plan, below, boot, cores, interrupts, kernel, memory, moderation, napi,
    offloads, other_interrupts, queues, rings, scheduler, services, sockets, steering, transmit,
};

/// Plans the changes that give the description's topics the machine that the profile asks for.
///
/// [`from`](super::Step::from) of every step is the value in the facts, before any step. Steps that reset other
/// settings come first: a new number of queues resets table, interrupts and queueing disciplines, so queues precede
/// these, and rings precede interrupts.
pub fn plan(facts: &Facts, needs: &Needs, tuning: &Tuning, placement: &Placement) -> Plan {
    let mut draft = Draft::default();
    let unknown = Placement::default();
    let placement = match placement.is_of_another_boot(facts.boot_id.as_deref()) {
        true => {
            draft.refuse(
                "placements",
                "what is known of where datagrams land is of another boot, and does not hold any more",
                "learn and measure again: isolane tune learn, isolane tune ports",
            );
            &unknown
        }
        false => placement,
    };
    let asked = Asked {
        facts,
        needs,
        tuning,
        placement,
    };
    kernel::plan(&asked, &mut draft);
    carrier(&asked, &mut draft);
    // Interrupts leave an SMT sibling before it goes offline, and return after it is online again.
    other_interrupts::plan(&asked, &mut draft);
    cores::plan(&asked, &mut draft);
    scheduler::plan(&asked, &mut draft);
    memory::plan(&asked, &mut draft);
    sockets::plan(&asked, &mut draft);
    services::plan(&asked, &mut draft);
    boot::plan(&asked, &mut draft);
    Plan {
        schema: String::from(super::SCHEMA),
        machine: Identity {
            hostname: facts.hostname.clone(),
            machine_id: facts.machine_id.clone(),
        },
        origin: facts.origin.clone(),
        profile: tuning.name(),
        boot_id: facts.boot_id.clone(),
        steps: draft.steps,
        refusals: draft.refusals,
        relies_on: draft.relies_on,
    }
}

fn carrier(asked: &Asked<'_>, draft: &mut Draft) {
    let Some(name) = &asked.needs.interface else {
        let why = match (asked.needs.hosts.as_slice(), &asked.needs.host) {
            ([], _) | (_, Some(_)) => {
                "there is no description that names an interface: none is set up"
            }
            _ => {
                "it is not known which host of the description this machine is: no interface is set up"
            }
        };
        let remedy = match asked.needs.hosts.as_slice() {
            [] => String::from("describe the system: isolane config --example > isolane.toml"),
            hosts => format!("name it: --host {}", hosts.join(" | ")),
        };
        return draft.refuse("description.host", why, remedy);
    };
    let facts = asked.facts;
    let described = facts.interfaces.iter().find(|known| known.name == *name);
    let interface = described.map(|it| below::of_vlan(&facts.interfaces, it));
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
        return draft.refuse(format!("interface.device.{name}"), why, remedy);
    };
    if let Some((why, remedy)) = below::hindrance(facts, interface) {
        return draft.refuse(format!("interface.kind.{name}"), why, remedy);
    }
    if let Some(described) = described {
        below::tell(described, interface, draft);
    }
    if interface.is_wireless {
        draft.refuse(
            format!("interface.wireless.{name}"),
            format!("{name} is wireless: others decide when it may send, and nothing that is set here bounds it"),
            "use a cable for critical topics",
        );
    }
    let carrier = queues::plan(asked, interface, device, draft);
    offloads::plan(asked, &carrier, draft);
    rings::plan(asked, &carrier, draft);
    moderation::plan(asked, &carrier, draft);
    steering::plan(asked, &carrier, draft);
    transmit::plan(asked, &carrier, draft);
    interrupts::plan(asked, &carrier, draft);
    napi::plan(asked, &carrier, draft);
}
