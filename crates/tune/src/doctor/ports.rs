//! Findings about the domain's UDP ports and packet filters.

use super::Findings;
use crate::facts::Facts;
use crate::needs::Needs;

/// Port mapping parameters of RTPS 2.5 §9.6.2.3: PB, DG, d1, PG.
const PORT_BASE: u32 = 7400;
const DOMAIN_GAIN: u32 = 250;
const METATRAFFIC_OFFSET: u32 = 10;
const PARTICIPANT_GAIN: u32 = 2;
/// Participants per domain that have ports.
const PARTICIPANTS: u32 = 120;

pub(super) fn examine(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    let domain = needs.domain;
    let base = PORT_BASE + DOMAIN_GAIN * domain;
    taken(facts, domain, base, findings);
    given_away(facts, domain, base, findings);
    firewall(facts, base, findings);
}

fn taken(facts: &Facts, domain: u32, base: u32, findings: &mut Findings) {
    let Some(ports) = &facts.network.udp_ports else {
        return findings.info(
            "ports.taken",
            "which UDP ports are taken cannot be seen",
            "a participant finds out when it starts, and says so",
            "ss -uln shows it",
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
            format!("all {used} participants' ports of domain {domain} are taken"),
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
                "domain {domain} is in use on this host: {used} of {} participants' ports are taken",
                own.len()
            ),
            "none: participants share the domain; they see each other's topics",
            "for topics of one's own take another domain: --domain",
        );
    } else {
        findings.ok(
            "ports.taken",
            format!("no other participant of domain {domain} is on this host"),
        );
    }
}

/// Checks whether the domain's ports are in the ephemeral range, from which the kernel gives ports to any socket.
fn given_away(facts: &Facts, domain: u32, base: u32, findings: &mut Findings) {
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
                "ports {base} to {end} of domain {domain} are among those the kernel gives away \
                 ({first} to {last})"
            ),
            "no latency; now and then a participant finds its port taken by a stranger, and takes \
             another, where named peers do not look for it",
            format!(
                "use a domain up to {last_free}, or: sysctl -w \
                 net.ipv4.ip_local_reserved_ports={base}-{end}"
            ),
        );
    } else {
        findings.ok(
            "ports.ephemeral",
            format!("the kernel gives away no port of domain {domain}"),
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
        findings.ok("ports.firewall", "no packet filter is to be seen");
        return;
    }
    findings.info(
        "ports.firewall",
        format!("a packet filter may be at work: {}", seen.join(", ")),
        "a rule costs below a microsecond a datagram; one that drops UDP keeps participants from \
         finding each other",
        format!(
            "look: nft list ruleset; let in UDP from {base} on, the group 239.255.0.0/16, and IGMP"
        ),
    );
}
