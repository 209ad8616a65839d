//! Reasons from this host's packet filters.

use isolane::EndpointKind;
use isolane_tune::{Direction, Verdict as Filtered};

use super::facts::Facts;
use super::facts::{Reason, Verdict};

/// Offsets of ports from the first port of a domain (RTPS 2.5 §9.6.2.3): discovery multicast, user multicast, and
/// discovery unicast of the first participant.
const OFFSETS: [u32; 3] = [0, 1, 10];

/// Reasons from the packet filters. If `is_explained`, another reason was found, and unreadable filters are not
/// reported.
pub(super) fn reasons(facts: &Facts, is_explained: bool) -> Vec<Reason> {
    let domain = facts.here.domain;
    let mut reasons = dropping(facts);
    let unreadable = facts.filters.unreadable.as_ref();
    if let Some(why) = unreadable.filter(|_| !is_explained && reasons.is_empty()) {
        reasons.push(Reason::new(
            "firewall-unreadable",
            Verdict::Perhaps,
            domain,
            format!("it is unknown whether this host's packet filter drops the datagrams: {why}"),
            "install `nft` (nftables), and run this command as root; check the other hosts too",
        ));
    }
    reasons
}

/// Reasons from packet-filter rules that could be read, at most one for each direction.
fn dropping(facts: &Facts) -> Vec<Reason> {
    let domain = facts.here.domain;
    let mut reasons = Vec::new();
    for (direction, words) in [(Direction::Receive, "to"), (Direction::Transmit, "from")] {
        let mut perhaps = None;
        for port in ports(facts, direction) {
            let (verdict, rule) = match facts.filters.verdict(direction, port) {
                Filtered::Passes => continue,
                Filtered::Dropped(rule) => (Verdict::No, rule),
                Filtered::Perhaps(rule) => (Verdict::Perhaps, rule),
            };
            let drops = match verdict {
                Verdict::No => "drops",
                _ => "may drop",
            };
            let reason = Reason::new(
                "firewall",
                verdict,
                domain,
                format!(
                    "the packet filter of this host {drops} datagrams {words} it by UDP port {port} ({rule})"
                ),
                format!(
                    "accept in both directions: UDP from port {} on, the group 239.255.0.0/16, and IGMP",
                    base(domain)
                ),
            );
            if verdict == Verdict::No {
                perhaps = Some(reason);
                break;
            }
            perhaps = perhaps.or(Some(reason));
        }
        reasons.extend(perhaps);
    }
    reasons
}

/// First port of a domain (RTPS 2.5 §9.6.2.3).
fn base(domain: u32) -> u32 {
    7_400 + 250 * domain
}

/// Destination ports of the topic's datagrams and of discovery. Outgoing datagrams have the ports of all readers,
/// incoming datagrams those of this host's readers.
fn ports(facts: &Facts, direction: Direction) -> Vec<u16> {
    let of_domain = OFFSETS
        .iter()
        .map(|offset| base(facts.here.domain) + offset);
    let mut ports: Vec<u16> = of_domain
        .filter_map(|port| u16::try_from(port).ok())
        .collect();
    let is_here = |address: &[u8; 4]| facts.networks.iter().any(|net| net.address == *address);
    for reader in facts.here.of_topic(&facts.topic, EndpointKind::Reader) {
        let is_meant = match direction {
            Direction::Receive => facts.here.addresses(reader).iter().any(is_here),
            Direction::Transmit => true,
        };
        let all = reader.data.unicast.iter().chain(&reader.data.multicast);
        let own = all.filter(|_| is_meant);
        ports.extend(own.filter_map(|locator| u16::try_from(locator.port).ok()));
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}
