//! Findings about described participants of this host: whether their address and ports are reachable for peers.

use super::Findings;
use crate::facts::Facts;
use crate::needs::{DescribedPlace, Needs};

pub(super) fn examine(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    for place in &needs.participants {
        address(facts, needs, place, findings);
        ports(facts, place, findings);
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
        "it cannot start, and its peers send to nobody",
        format!("give {at} the address, or describe the participant where it is, on all hosts"),
    );
}

fn ports(facts: &Facts, place: &DescribedPlace, findings: &mut Findings) {
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
            format!("the kernel gives away none of the ports {from} to {to}"),
        );
        return;
    }
    findings.warn(
        &id,
        format!(
            "ports {from} to {to} of participant {} are among those the kernel gives away ({first} to {last})",
            place.name
        ),
        "no latency; now and then it finds a port taken by a stranger, and cannot start",
        format!("describe it below {first}, or: sysctl -w net.ipv4.ip_local_reserved_ports={from}-{to}"),
    );
}

#[cfg(test)]
mod tests {
    use isolane_datapath_xdp::xdp::XdpKind;
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
        let system = System::from_toml(FILE, "isolane.toml", &[&XdpKind]).unwrap();
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
        examine(&facts, &needs, &mut findings);
        let severities: Vec<Severity> = findings.0.iter().map(|it| it.severity).collect();
        severities.try_into().expect("one of each")
    }

    #[test]
    fn a_participant_is_described_where_the_host_is_and_at_ports_that_nobody_is_given() {
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
