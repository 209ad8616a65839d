//! Findings about UDP ports, packet filters, described participants, and socket buffers.

use super::Findings;
use crate::facts::Facts;
use crate::limits::{BUFFER_PERCENT, KERNEL_BYTES_PER_DATAGRAM, STALL_US};
use crate::needs::{DescribedPlace, Needs};

/// Port mapping parameters of RTPS 2.5 §9.6.2.3: PB, DG, d1, PG.
const PORT_BASE: u32 = 7400;
const DOMAIN_GAIN: u32 = 250;
const METATRAFFIC_OFFSET: u32 = 10;
const PARTICIPANT_GAIN: u32 = 2;
/// Number of participants whose ports fit into a domain's range.
const PARTICIPANTS: u32 = 120;

pub(super) fn examine_ports(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    let domain = needs.domain;
    let base = PORT_BASE + DOMAIN_GAIN * domain;
    taken(facts, domain, base, findings);
    ephemeral(facts, domain, base, findings);
    firewall(facts, base, findings);
}

fn taken(facts: &Facts, domain: u32, base: u32, findings: &mut Findings) {
    let Some(ports) = &facts.network.udp_ports else {
        return findings.info(
            "ports.taken",
            "cannot read which UDP ports are in use",
            "a participant that finds its ports taken reports this when it starts",
            "ss -uln shows the ports",
        );
    };
    let is_taken = |port: &u32| u16::try_from(*port).is_ok_and(|port| ports.contains(&port));
    let own: Vec<u32> = (0..PARTICIPANTS)
        .map(|participant| base + METATRAFFIC_OFFSET + PARTICIPANT_GAIN * participant)
        .filter(|port| *port <= u32::from(u16::MAX))
        .collect();
    let used = own.iter().filter(|port| is_taken(port)).count();
    if used == own.len() {
        findings.error(
            "ports.taken",
            format!("all {used} participant ports of domain {domain} are taken"),
            "no participant of this domain can start",
            format!(
                "end programs of this domain (ss -ulpn 'sport >= :{base}'), or use another domain: \
                 --domain"
            ),
        );
    } else if used > 0 || is_taken(&base) {
        findings.info(
            "ports.taken",
            format!(
                "domain {domain} is in use on this host: {used} of {} participant ports are taken",
                own.len()
            ),
            "none: participants of a domain see each other's topics",
            "to separate topics, use another domain: --domain",
        );
    } else {
        findings.ok(
            "ports.taken",
            format!("no other participant of domain {domain} is on this host"),
        );
    }
}

/// Checks whether the domain's ports are in the ephemeral range, from which the kernel gives ports to any socket.
fn ephemeral(facts: &Facts, domain: u32, base: u32, findings: &mut Findings) {
    let Some((first, last)) = facts.network.local_ports else {
        return;
    };
    let end = (base + DOMAIN_GAIN - 1).min(u32::from(u16::MAX));
    let overlaps = base <= u32::from(last) && u32::from(first) <= end;
    let reserved = facts
        .network
        .reserved_ports
        .iter()
        .any(|(from, to)| u32::from(*from) <= base && end <= u32::from(*to));
    if overlaps && !reserved {
        let last_free =
            (u32::from(first).saturating_sub(PORT_BASE) / DOMAIN_GAIN).saturating_sub(1);
        findings.warn(
            "ports.ephemeral",
            format!(
                "ports {base} to {end} of domain {domain} are in the kernel's ephemeral range \
                 ({first} to {last})"
            ),
            "no latency; now and then a participant finds its port taken by another program and takes another port, \
             where programs that name this host (--peer) do not look for it",
            format!(
                "use a domain up to {last_free}, or: sysctl -w \
                 net.ipv4.ip_local_reserved_ports={base}-{end}"
            ),
        );
    } else {
        findings.ok(
            "ports.ephemeral",
            format!("the kernel assigns no port of domain {domain} to other sockets"),
        );
    }
}

fn firewall(facts: &Facts, base: u32, findings: &mut Findings) {
    let firewall = &facts.network.firewall;
    let mut seen: Vec<String> = Vec::new();
    if firewall.nf_tables_in_use == Some(true) {
        seen.push(String::from("nftables"));
    }
    if !firewall.ip_tables.is_empty() {
        seen.push(format!("iptables ({})", firewall.ip_tables.join(", ")));
    }
    if seen.is_empty() {
        findings.ok("ports.firewall", "no packet filter is visible");
        return;
    }
    findings.info(
        "ports.firewall",
        format!("a packet filter may be active: {}", seen.join(", ")),
        "a rule costs less than a microsecond for each datagram; participants do not discover each other if a rule \
         drops UDP",
        format!(
            "show the rules: nft list ruleset; accept UDP from port {base} on, the group 239.255.0.0/16, and IGMP"
        ),
    );
}

pub(super) fn examine_participants(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    for place in &needs.participants {
        address(facts, needs, place, findings);
        participant_ports(facts, place, findings);
    }
}

fn address(facts: &Facts, needs: &Needs, place: &DescribedPlace, findings: &mut Findings) {
    let (name, address) = (&place.name, place.address);
    let is_meant = |of: &str| needs.interface.as_deref().is_none_or(|wanted| wanted == of);
    let mut addresses = facts
        .interfaces
        .iter()
        .filter(|interface| is_meant(&interface.name))
        .flat_map(|interface| &interface.addresses);
    let id = format!("participant.address.{name}");
    if addresses.any(|(own, _)| *own == address) {
        findings.ok(&id, format!("participant {name} is reached at {address}"));
        return;
    }
    let at = needs.interface.as_deref().unwrap_or("this host");
    findings.error(
        &id,
        format!("participant {name} is described at {address}, which {at} does not have"),
        "it cannot start, and its peers' datagrams are lost",
        format!("give {at} the address, or correct the participant's address in the description, on all hosts"),
    );
}

fn participant_ports(facts: &Facts, place: &DescribedPlace, findings: &mut Findings) {
    let Some((first, last)) = facts.network.local_ports else {
        return;
    };
    let (from, to) = (place.ports.start, place.ports.end - 1);
    let id = format!("participant.ports.{}", place.name);
    let mut reserved = facts.network.reserved_ports.iter();
    let is_reserved = reserved.any(|(begin, end)| *begin <= from && to <= *end);
    if from > last || first > to || is_reserved {
        findings.ok(
            &id,
            format!("the kernel assigns none of the ports {from} to {to} to other sockets"),
        );
        return;
    }
    findings.warn(
        &id,
        format!(
            "ports {from} to {to} of participant {} are in the kernel's ephemeral range ({first} to {last})",
            place.name
        ),
        "no latency; now and then the participant finds a port taken by another program, and cannot start",
        format!("describe the participant with a port below {first}, or: sysctl -w \
                 net.ipv4.ip_local_reserved_ports={from}-{to}"),
    );
}

pub(super) fn examine_sockets(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    receive_buffer(facts, needs, findings);
    lost(facts, findings);
    backlog(facts, findings);
    busy_read(facts, findings);
}

/// Checks that a receive buffer holds all datagrams that arrive during a stall.
fn receive_buffer(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    let Some(has) = facts.network.rmem_default_bytes else {
        return;
    };
    let holds = has / KERNEL_BYTES_PER_DATAGRAM;
    let stall_ms = STALL_US / 1000;
    let id = "sockets.receive-buffer";
    match needs.waiting_datagrams {
        Some((level, datagrams)) if datagrams * 100 > holds * BUFFER_PERCENT => {
            let wanted = (datagrams * KERNEL_BYTES_PER_DATAGRAM * 100 / BUFFER_PERCENT)
                .next_multiple_of(4096);
            findings.warn(
                id,
                format!(
                    "a socket's buffer of {has} B holds {holds} datagrams; at level {level}, up to {datagrams} arrive \
                     within {stall_ms} ms"
                ),
                "the kernel drops datagrams that do not fit while the executor cannot read: their samples are lost, \
                 or repaired one round trip later",
                format!("sysctl -w net.core.rmem_default={wanted} net.core.rmem_max={wanted}"),
            );
        }
        Some((level, datagrams)) => findings.ok(
            id,
            format!(
                "a socket's buffer holds {holds} datagrams; at level {level}, which receives the most, up to \
                 {datagrams} arrive within {stall_ms} ms"
            ),
        ),
        None => findings.ok(
            id,
            format!("a socket's buffer of {has} B holds about {holds} datagrams"),
        ),
    }
}

fn lost(facts: &Facts, findings: &mut Findings) {
    match facts.network.udp_receive_buffer_errors {
        Some(0) => findings.ok(
            "sockets.lost",
            "no datagram has been lost to a full buffer",
        ),
        Some(lost) => findings.info(
            "sockets.lost",
            format!("{lost} datagrams of all programs were lost to full buffers since boot"),
            "best-effort samples among them are lost; reliable samples arrived one round trip later",
            "the ledgers show isolane's own losses (pub, sub: -v -v); if many datagrams are lost, raise \
             net.core.rmem_default",
        ),
        None => {}
    }
}

fn backlog(facts: &Facts, findings: &mut Findings) {
    const USUAL: u64 = 1000;
    match facts.network.netdev_max_backlog {
        Some(frames) if frames < USUAL => findings.warn(
            "sockets.backlog",
            format!("a core queues up to {frames} frames between interface and stack"),
            "longer bursts are dropped before a socket sees them",
            format!("sysctl -w net.core.netdev_max_backlog={USUAL}"),
        ),
        Some(frames) => findings.ok(
            "sockets.backlog",
            format!("a core queues up to {frames} frames between interface and stack"),
        ),
        None => {}
    }
}

fn busy_read(facts: &Facts, findings: &mut Findings) {
    if let Some(microseconds @ 1..) = facts.network.busy_read_us {
        findings.info(
            "sockets.busy-read",
            format!("each read of a socket first polls the interface for {microseconds} us"),
            "saves an interrupt on quiet links; on a shared core, it takes time from other jobs",
            "sysctl -w net.core.busy_read=0, unless it is meant",
        );
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use isolane_model::System;

    use super::*;
    use crate::doctor::Severity;
    use crate::facts::Interface;

    const FILE: &str = "[host.here]\ninterface = \"eth0\"\n\
        [topic.T]\ntype = \"T\"\nmax_bytes = 64\nfrom = [\"here\"]\nto = [\"here\"]\n\
        [participant.part]\nhost = \"here\"\naddress = \"10.0.0.1\"\nport = 7000\nwrites = [\"T\"]\n";

    /// Severities of the address finding and of the ports finding.
    fn found(address: [u8; 4], local_ports: (u16, u16), reserved: &[(u16, u16)]) -> [Severity; 2] {
        let system =
            System::from_toml(FILE, "isolane.toml", &[&isolane_datapath_xdp::xdp::XdpKind])
                .unwrap();
        let needs = Needs::of_system(&system, Some("here"), "").unwrap();
        let mut facts = Facts::default();
        facts.interfaces.push(Interface {
            name: String::from("eth0"),
            addresses: vec![(Ipv4Addr::from(address), 24)],
            ..Interface::default()
        });
        facts.network.local_ports = Some(local_ports);
        facts.network.reserved_ports = reserved.to_vec();
        let mut findings = Findings::default();
        examine_participants(&facts, &needs, &mut findings);
        let severities: Vec<Severity> = findings.0.iter().map(|it| it.severity).collect();
        severities.try_into().expect("one of each")
    }

    #[test]
    fn a_participant_is_described_where_the_host_is_and_at_ports_outside_the_ephemeral_range() {
        let usual = (32_768, 60_999);
        assert_eq!(found([10, 0, 0, 1], usual, &[]), [Severity::Ok; 2]);
        let elsewhere = [Severity::Error, Severity::Ok];
        assert_eq!(found([10, 0, 0, 2], usual, &[]), elsewhere);
        let given_away = [Severity::Ok, Severity::Warn];
        assert_eq!(found([10, 0, 0, 1], (7_007, 9_000), &[]), given_away);
        assert_eq!(found([10, 0, 0, 1], (7_008, 9_000), &[]), [Severity::Ok; 2]);
        let reserved = [(7_000, 7_007)];
        assert_eq!(
            found([10, 0, 0, 1], (7_000, 9_000), &reserved),
            [Severity::Ok; 2]
        );
    }
}
