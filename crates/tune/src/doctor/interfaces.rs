//! Findings about the interfaces that would carry topics.

use super::{Findings, devices};
use crate::facts::{Facts, Interface};
use crate::needs::Needs;

/// MTU of ordinary Ethernet in bytes; isolane's default sample fits it.
const USUAL_MTU: u32 = 1500;

pub(super) fn examine(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    if needs.host.is_none() && needs.hosts.len() > 1 {
        findings.warn(
            "description.host",
            "it is unknown which described host this machine is",
            "interface, core and topics of the description cannot be compared with this machine",
            format!("name it: --host {}", needs.hosts.join(" | ")),
        );
    }
    let usable = |interface: &&Interface| {
        interface.is_up && interface.has_carrier && !interface.addresses.is_empty()
    };
    match &needs.interface {
        Some(name) => described(facts, name, needs, findings),
        None => {
            let chosen: Vec<&Interface> = facts
                .interfaces
                .iter()
                .filter(usable)
                .filter(|interface| !interface.is_loopback)
                .collect();
            let has_loopback = facts
                .interfaces
                .iter()
                .filter(usable)
                .any(|it| it.is_loopback);
            any(&chosen, has_loopback, findings);
            bridges(&chosen, findings);
            for interface in chosen
                .iter()
                .filter(|interface| !is_of_containers(interface))
            {
                one(facts, interface, needs, findings);
            }
        }
    }
}

fn described(facts: &Facts, name: &str, needs: &Needs, findings: &mut Findings) {
    let Some(interface) = facts.interfaces.iter().find(|known| known.name == name) else {
        let there: Vec<&str> = facts
            .interfaces
            .iter()
            .map(|interface| interface.name.as_str())
            .collect();
        return findings.error(
            &format!("interface.described.{name}"),
            format!("the description names the interface {name}, which does not exist"),
            "no topic of this host flows",
            format!(
                "set `interface` of the host to one of: {}",
                there.join(", ")
            ),
        );
    };
    let id = format!("interface.up.{name}");
    if !interface.is_up {
        findings.error(
            &id,
            format!("{name} is down"),
            "no topic of this host flows",
            format!("ip link set {name} up"),
        );
    } else if !interface.has_carrier {
        findings.error(
            &id,
            format!("{name} has no carrier"),
            "no topic of this host flows",
            format!("plug in the cable, or look: ethtool {name}"),
        );
    } else {
        findings.ok(&id, format!("{name} is up"));
    }
    if interface.addresses.is_empty() {
        findings.error(
            &format!("interface.address.{name}"),
            format!("{name} has no IPv4 address"),
            "no topic of this host flows over UDP",
            format!("ip address add 192.0.2.1/24 dev {name}, with an address of your network"),
        );
    }
    one(facts, interface, needs, findings);
}

/// Checks that an interface exists, or at least loopback, which carries topics within this machine.
fn any(chosen: &[&Interface], has_loopback: bool, findings: &mut Findings) {
    if chosen.is_empty() && has_loopback {
        findings.warn(
            "interface.any",
            "loopback is the only interface that is up with an IPv4 address",
            "topics flow only between programs of this machine (--interface lo --peer 127.0.0.1)",
            "for other machines: ip link set NAME up, then ip address add ADDRESS/BITS dev NAME",
        );
        return;
    }
    if chosen.is_empty() {
        findings.error(
            "interface.any",
            "no interface, not even loopback, is up with a carrier and an IPv4 address",
            "no topic flows, not even between programs of this machine",
            "ip link set NAME up, then ip address add ADDRESS/BITS dev NAME; for one machine alone: ip link set lo up, \
             and --interface lo --peer 127.0.0.1",
        );
        return;
    }
    let names: Vec<&str> = chosen
        .iter()
        .map(|interface| interface.name.as_str())
        .collect();
    findings.ok(
        "interface.any",
        format!("topics flow over {}", names.join(", ")),
    );
}

fn is_of_containers(interface: &Interface) -> bool {
    interface.kind.as_deref() == Some("bridge")
        || ["docker", "br-", "virbr", "veth", "cni", "lxc"]
            .iter()
            .any(|start| interface.name.starts_with(start))
}

/// Warns of bridges of containers and virtual machines, to which discovery would multicast too.
fn bridges(chosen: &[&Interface], findings: &mut Findings) {
    let bridges: Vec<&str> = chosen
        .iter()
        .filter(|interface| is_of_containers(interface) && interface.is_multicast)
        .map(|interface| interface.name.as_str())
        .collect();
    if bridges.is_empty() {
        return;
    }
    findings.warn(
        "interface.bridges",
        format!(
            "discovery also sends multicast to containers or virtual machines: {}",
            bridges.join(", ")
        ),
        "each multicast sample is sent once on each of these interfaces: some microseconds of the writer's time, and \
         copies in the kernel",
        "name the interfaces to use: --interface NAME, or `interface` in isolane.toml",
    );
}

fn one(facts: &Facts, interface: &Interface, needs: &Needs, findings: &mut Findings) {
    let name = interface.name.as_str();
    multicast(interface, findings);
    if let Some(mtu) = interface.mtu.filter(|mtu| *mtu < USUAL_MTU) {
        findings.info(
            &format!("interface.mtu.{name}"),
            format!("packets on {name} have at most {mtu} B"),
            "longer samples are cut into IP fragments: each fragment waits in every queue, and if one fragment is \
             lost, the sample is lost",
            format!("ip link set {name} mtu {USUAL_MTU}, if the whole network allows it"),
        );
    }
    if interface.is_wireless {
        findings.warn(
            &format!("interface.wireless.{name}"),
            format!("{name} is wireless"),
            "milliseconds of delay, which other stations cause; multicast is sent slowly, and lost multicast frames \
             are not repeated",
            "use a cable for critical topics; on this interface, name peers for unicast (--peer)",
        );
    }
    queues(facts, interface, findings);
    if let Some(device) = facts.device(name) {
        devices::examine(facts, device, needs, findings);
    }
    if interface.has_xdp_program {
        findings.info(
            &format!("interface.xdp.{name}"),
            format!("another program's XDP program is attached to {name}"),
            "less than a microsecond for each frame, unless the program drops or redirects frames of topics",
            format!("find its owner: ip link show {name}; bpftool net"),
        );
    }
    if let Some(dropped @ 1..) = interface.rx_dropped {
        findings.info(
            &format!("interface.dropped.{name}"),
            format!("{name} has dropped {dropped} received frames since it was created"),
            "samples in these frames are lost, or arrived one round trip later",
            format!("find the reason: ethtool -S {name} | grep -i drop; ip -s -s link show {name}"),
        );
    }
}

fn multicast(interface: &Interface, findings: &mut Findings) {
    let name = interface.name.as_str();
    let id = format!("interface.multicast.{name}");
    if interface.is_multicast {
        findings.ok(&id, format!("multicast is enabled on {name}"));
    } else {
        findings.warn(
            &id,
            format!("multicast is disabled on {name}"),
            "no latency; participants discover each other on this interface only if peers are named",
            format!("ip link set {name} multicast on; or name peers: --peer ADDRESS"),
        );
    }
}

fn queues(facts: &Facts, interface: &Interface, findings: &mut Findings) {
    let name = interface.name.as_str();
    let driver = match (&interface.driver, &interface.kind) {
        (Some(driver), _) => format!("driver {driver}"),
        (None, Some(kind)) => format!("of kind {kind}"),
        (None, None) => String::from("driver unknown"),
    };
    let speed = match interface.speed_mbps {
        Some(speed) => format!(", {speed} Mbit/s"),
        None => String::new(),
    };
    let qdisc = interface.qdisc.as_deref().unwrap_or("unknown");
    let id = format!("interface.queues.{name}");
    match (interface.rx_queues, interface.tx_queues) {
        (Some(1), _) if interface.driver.is_some() && facts.cores.online.len() > 1 => findings.warn(
            &id,
            format!("{name} has one receive queue ({driver}{speed}, qdisc {qdisc})"),
            "a critical frame waits behind every bulk frame that arrived before it, in the queue and in the kernel's \
             receive work: some microseconds for each bulk frame",
            "use an interface with several queues, or keep bulk traffic on another interface",
        ),
        (Some(receive), Some(send)) => findings.ok(
            &id,
            format!("{name}: {receive} receive and {send} transmit queues, {driver}{speed}, qdisc {qdisc}"),
        ),
        _ => {}
    }
}
