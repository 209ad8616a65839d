//! Ports and multicast groups of all datapaths (RTPS 2.5 §9.6.2; isolane's numbers for levels).

use crate::contract::OpenError;
use crate::lane::Lane;
use crate::limits::{MAX_DOMAIN, MAX_PARTICIPANT_ID};
use crate::network::{MIN_SAMPLE_PORT, SAMPLE_PORTS};

/// PB, the port base of RTPS 2.5 §9.6.2.3.
const PORT_BASE: u32 = 7_400;
/// DG, the domain gain.
const DOMAIN_GAIN: u32 = 250;
/// PG, the participant gain.
const PARTICIPANT_GAIN: u32 = 2;
/// d1, the offset of metatraffic unicast ports.
const METATRAFFIC_UNICAST_OFFSET: u32 = 10;
/// Port offset of the levels' groups, which differ only by address.
const LEVEL_OFFSET: u32 = 1;
/// Third byte of level 0's group: 239.255.16.(domain).
const LEVEL_GROUP_BASE: u8 = 16;

/// SPDP multicast group (RTPS 2.5 §9.6.2.4.1).
const SPDP_GROUP: [u8; 4] = [239, 255, 0, 1];

fn port(domain: u32, offset: u32) -> Result<u16, OpenError> {
    let error = OpenError::Domain { domain };
    if domain > MAX_DOMAIN {
        return Err(error);
    }
    u16::try_from(PORT_BASE + DOMAIN_GAIN * domain + offset).map_err(|_| error)
}

/// Metatraffic unicast port of a participant: 7410 + 250 · domain + 2 · id.
///
/// # Errors
/// [`OpenError::Domain`] or [`OpenError::ParticipantId`].
pub fn metatraffic_unicast(domain: u32, participant_id: u32) -> Result<u16, OpenError> {
    let limit = last_participant_id(domain)?;
    if participant_id > limit {
        return Err(OpenError::ParticipantId {
            participant_id,
            domain,
            limit,
        });
    }
    let offset = METATRAFFIC_UNICAST_OFFSET + PARTICIPANT_GAIN * participant_id;
    port(domain, offset)
}

/// Last participant id of a domain that has a port.
///
/// # Errors
/// [`OpenError::Domain`].
pub fn last_participant_id(domain: u32) -> Result<u32, OpenError> {
    let first = port(domain, METATRAFFIC_UNICAST_OFFSET)?;
    let room = u32::from(u16::MAX - first) / PARTICIPANT_GAIN;
    Ok(room.min(MAX_PARTICIPANT_ID))
}

/// Checks the first of [`SAMPLE_PORTS`] fixed ports for samples: none may be privileged, or a well-known port of the domain.
///
/// # Errors
/// [`OpenError::SamplePorts`].
pub fn check_sample_ports(base: u16, domain: u32) -> Result<(), OpenError> {
    let first = PORT_BASE + DOMAIN_GAIN * domain;
    let discovery = first..first + DOMAIN_GAIN;
    let ports = u32::from(base)..u32::from(base) + u32::from(SAMPLE_PORTS);
    let overlaps = ports.start < discovery.end && discovery.start < ports.end;
    match base < MIN_SAMPLE_PORT || ports.end > u32::from(u16::MAX) + 1 || overlaps {
        true => Err(OpenError::SamplePorts {
            base,
            domain,
            discovery,
        }),
        false => Ok(()),
    }
}

/// Group and port of a lane: 239.255.0.1:7400 + 250 · domain for discovery,
/// 239.255.(16 + level).(domain):7401 + 250 · domain for a level.
///
/// # Errors
/// [`OpenError::Domain`].
pub fn group(domain: u32, lane: Lane) -> Result<([u8; 4], u16), OpenError> {
    match lane {
        Lane::Discovery => Ok((SPDP_GROUP, port(domain, 0)?)),
        Lane::Level(level) => {
            let port = port(domain, LEVEL_OFFSET)?;
            let third = LEVEL_GROUP_BASE + level.get();
            // Cannot truncate: domains with ports are below 233.
            Ok(([239, 255, third, domain as u8], port))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_those_of_the_standard() {
        assert_eq!(
            group(0, Lane::Discovery).unwrap(),
            ([239, 255, 0, 1], 7_400)
        );
        assert_eq!(group(3, Lane::Discovery).unwrap().1, 8_150);
        assert_eq!(metatraffic_unicast(0, 0).unwrap(), 7_410);
        assert_eq!(metatraffic_unicast(1, 2).unwrap(), 7_664);
    }

    #[test]
    fn each_level_has_its_own_group() {
        let level = |index: usize| Lane::ALL[index + 1];
        assert_eq!(group(5, level(0)).unwrap(), ([239, 255, 16, 5], 8_651));
        assert_eq!(group(5, level(7)).unwrap(), ([239, 255, 23, 5], 8_651));
    }

    #[test]
    fn numbers_without_a_port_are_refused() {
        assert!(metatraffic_unicast(0, 119).is_ok());
        assert!(metatraffic_unicast(0, 120).is_err());
        assert_eq!(last_participant_id(232).unwrap(), 62);
        assert!(group(233, Lane::Discovery).is_err());
        assert!(group(u32::MAX, Lane::Discovery).is_err());
    }
}
