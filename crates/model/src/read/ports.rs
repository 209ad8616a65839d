//! Port conflicts of described participants: with other participants of the host, and with the ports of RTPS domains.

use core::ops::Range;

use crate::domain::Domain;
use crate::limits::SUGGESTED_PORTS;
use crate::participant::Participant;

use super::report::{Report, Wrong};
use super::values::shortened;

/// Returns true if the participant's ports conflict neither with those of the participants `before`, nor with those of
/// the domain. Reports a conflict.
pub(super) fn are_its_own(
    participant: &Participant,
    before: &[Participant],
    domain: Option<Domain>,
    place: Range<usize>,
    report: &mut Report,
) -> bool {
    let own = participant.ports();
    if let Some(other) = before.iter().find(|other| shares(participant, other, &own)) {
        report.error(place, shared(participant, other));
        return false;
    }
    let in_domain = domain.map(|domain| (domain, domain.ports()));
    let (from, to) = (u32::from(own.start), u32::from(own.end));
    let taken = in_domain.filter(|(_, taken)| from < taken.end && taken.start < to);
    if let Some((domain, taken)) = taken {
        let what = format!(
            "participant `{}` has ports that RTPS gives to participants of domain {domain}",
            shortened(&participant.name.value)
        );
        let label = format!(
            "this one has {} to {}, the domain {} to {}",
            own.start,
            own.end - 1,
            taken.start,
            taken.end - 1
        );
        let help = match free(participant, before) {
            Some(port) => format!("take one that no domain has: port = {port}"),
            None => format!("take one below {}", SUGGESTED_PORTS.end),
        };
        report.error(place, Wrong::new(what, label).help(help));
        return false;
    }
    true
}

/// Returns true if `other` has the same host or address, and uses any of `ports`.
fn shares(participant: &Participant, other: &Participant, ports: &Range<u16>) -> bool {
    let shares_address = other.host.value == participant.host.value
        || other.address.value == participant.address.value;
    let theirs = other.ports();
    shares_address && ports.start < theirs.end && theirs.start < ports.end
}

fn shared(participant: &Participant, other: &Participant) -> Wrong {
    let (own, theirs) = (participant.ports(), other.ports());
    let of = match other.host.value == participant.host.value {
        true => format!("host {}", shortened(&participant.host.value)),
        false => participant.address.value.to_string(),
    };
    let what = format!(
        "participants `{}` and `{}` share ports of {of}",
        shortened(&participant.name.value),
        shortened(&other.name.value)
    );
    let label = format!(
        "this one has {} to {}, the other {} to {}",
        own.start,
        own.end - 1,
        theirs.start,
        theirs.end - 1
    );
    let help =
        "each level has its own port, at all addresses of the host: leave eight between them";
    Wrong::new(what, label).help(help)
}

/// First suggested port that conflicts with no participant.
fn free(participant: &Participant, before: &[Participant]) -> Option<u16> {
    let mut ports = SUGGESTED_PORTS.step_by(usize::from(Participant::PORTS));
    ports.find(|&port| {
        let ports = port..port + Participant::PORTS;
        !before
            .iter()
            .any(|other| shares(participant, other, &ports))
    })
}
