//! Ntuple rules, which steer flows to queues, by ioctl: netlink lacks them.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::ioctl::Argument;
use crate::limits::MAX_STEERING_RULES;

/// Commands (linux/ethtool.h).
const COUNT: u32 = 0x2e;
const GET: u32 = 0x2f;
const LIST: u32 = 0x30;
const DELETE: u32 = 0x31;
const INSERT: u32 = 0x32;
/// Offsets in `struct ethtool_rxnfc`, and its size without the list that may follow.
const DATA: usize = 8;
const RULE: usize = 16;
const RULES: usize = 184;
const PLACES: usize = 188;
const BYTES: usize = 192;
/// Offsets in the rule (`struct ethtool_rx_flow_spec`): flow type, values, masks, queue, location.
const FLOW_TYPE: usize = RULE;
const VALUES: usize = RULE + 4;
const MORE_VALUES: usize = VALUES + 52;
const MASKS: usize = MORE_VALUES + 20;
const MORE_MASKS: usize = MASKS + 52;
const QUEUE: usize = RULE + 152;
const PLACE: usize = RULE + 160;
/// Offsets in values and masks of UDP over IPv4 (`struct ethtool_tcpip4_spec`).
const DESTINATION: usize = 4;
const DESTINATION_PORT: usize = 10;
/// Offset of the VLAN tag in `struct ethtool_flow_ext`.
const TAG: usize = 10;
/// UDP over IPv4 (UDP_V4_FLOW).
const UDP4: u32 = 2;
/// Any frame, with the extension: `ETHER_FLOW | FLOW_EXT`.
const TAGGED_FRAME: u32 = 0x12 | 1 << 31;
/// Priority bits of a tag (IEEE 802.1Q, 9.6).
const PRIORITY_MASK: u16 = 0xe000;
const PRIORITY_SHIFT: u32 = 13;
/// Flag in DATA of COUNT: the driver chooses locations itself. The other bits are the capacity.
const SPECIAL_PLACES: u64 = 1 << 31;

/// Ntuple rule, which steers received frames to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum FlowRule {
    /// UDP datagrams over IPv4.
    Port {
        /// Destination address; `None`: any.
        destination: Option<Ipv4Addr>,
        /// Destination port.
        destination_port: u16,
        /// Queue of these frames.
        queue: u32,
    },
    /// Frames with an IEEE 802.1Q tag of this priority (PCP), of any VLAN.
    Priority {
        /// Priority, 0 to 7.
        vlan_priority: u8,
        /// Queue of these frames.
        queue: u32,
    },
}

impl FlowRule {
    /// Queue of the frames that match.
    #[must_use]
    pub fn queue(&self) -> u32 {
        match self {
            Self::Port { queue, .. } | Self::Priority { queue, .. } => *queue,
        }
    }
}

/// Ntuple rules of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowRules {
    /// Capacity of the table; [`MAX_STEERING_RULES`] where the driver does not say.
    pub capacity: u32,
    /// Rules by location.
    pub rules: BTreeMap<u32, FlowRule>,
    /// Locations of rules that [`FlowRule`] cannot express.
    pub others: Vec<u32>,
}

/// Reads a device's rules.
///
/// # Errors
/// The system's error; `EOPNOTSUPP` where the driver has none.
pub fn rules(interface: &str) -> io::Result<FlowRules> {
    let mut count = Argument::new(COUNT, BYTES);
    // SAFETY: the fixed structure, and the command fills in no list.
    unsafe { count.exchange(interface) }?;
    let number = count.number(RULES).min(MAX_STEERING_RULES);
    let mut list = Argument::new(LIST, BYTES + 4 * number as usize);
    list.set(RULES, number.to_ne_bytes());
    // SAFETY: there is room for as many locations as the argument says.
    unsafe { list.exchange(interface) }?;
    let number = list.number(RULES).min(number) as usize;
    let mut places: Vec<u32> = (0..number)
        .map(|index| list.number(PLACES + 4 * index))
        .collect();
    places.sort_unstable();
    let mut found = FlowRules {
        capacity: capacity(&count, &list),
        ..FlowRules::default()
    };
    for place in places {
        let mut answer = Argument::new(GET, BYTES);
        answer.set(PLACE, place.to_ne_bytes());
        // SAFETY: the fixed structure, and the command fills in no list.
        match unsafe { answer.exchange(interface) } {
            Ok(()) => match parse(&answer) {
                Some(rule) => drop(found.rules.insert(place, rule)),
                None => found.others.push(place),
            },
            // The rule was deleted meanwhile.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Capacity of the table. Drivers report it with the number of rules (i40e, ice), or with their list alone (ixgbe,
/// mlx5, igb, igc). A driver that reports no capacity may have rules all the same: a failed insertion then shows that
/// the table is full.
fn capacity(count: &Argument, list: &Argument) -> u32 {
    let said = [count.long(DATA) & !SPECIAL_PLACES, list.long(DATA)];
    let said = said.into_iter().find(|capacity| *capacity > 0);
    let capacity = said.unwrap_or_else(|| u64::from(MAX_STEERING_RULES));
    u32::try_from(capacity).unwrap_or(u32::MAX)
}

/// Inserts a rule at a location, in place of the one there.
pub fn insert_rule(interface: &str, place: u32, rule: FlowRule) -> io::Result<()> {
    let mut argument = emit(place, rule);
    // SAFETY: the fixed structure, and the command reads no list.
    unsafe { argument.exchange(interface) }
}

/// Deletes the rule at a location.
///
/// # Errors
/// The system error; `ENOENT` if there is none.
pub fn delete_rule(interface: &str, place: u32) -> io::Result<()> {
    let mut argument = Argument::new(DELETE, BYTES);
    argument.set(PLACE, place.to_ne_bytes());
    // SAFETY: the fixed structure, and the command reads no list.
    unsafe { argument.exchange(interface) }
}

fn emit(place: u32, rule: FlowRule) -> Argument {
    let mut argument = Argument::new(INSERT, BYTES);
    match rule {
        FlowRule::Port {
            destination,
            destination_port,
            ..
        } => {
            argument.set(FLOW_TYPE, UDP4.to_ne_bytes());
            if let Some(destination) = destination {
                argument.set(VALUES + DESTINATION, destination.octets());
                argument.set(MASKS + DESTINATION, [0xff; 4]);
            }
            argument.set(VALUES + DESTINATION_PORT, destination_port.to_be_bytes());
            argument.set(MASKS + DESTINATION_PORT, [0xff; 2]);
        }
        FlowRule::Priority { vlan_priority, .. } => {
            argument.set(FLOW_TYPE, TAGGED_FRAME.to_ne_bytes());
            let tag = u16::from(vlan_priority & 7) << PRIORITY_SHIFT;
            argument.set(MORE_VALUES + TAG, tag.to_be_bytes());
            argument.set(MORE_MASKS + TAG, PRIORITY_MASK.to_be_bytes());
        }
    }
    argument.set(QUEUE, u64::from(rule.queue()).to_ne_bytes());
    argument.set(PLACE, place.to_ne_bytes());
    argument
}

/// Rule in an answer, if [`FlowRule`] expresses all of it.
fn parse(answer: &Argument) -> Option<FlowRule> {
    let queue = u32::try_from(answer.long(QUEUE)).unwrap_or(u32::MAX);
    let rule = match answer.number(FLOW_TYPE) {
        UDP4 => {
            let address: [u8; 4] = answer.get(MASKS + DESTINATION);
            FlowRule::Port {
                destination: (address == [0xff; 4])
                    .then(|| Ipv4Addr::from(answer.get::<4>(VALUES + DESTINATION))),
                destination_port: u16::from_be_bytes(answer.get(VALUES + DESTINATION_PORT)),
                queue,
            }
        }
        TAGGED_FRAME => {
            let tag = u16::from_be_bytes(answer.get(MORE_VALUES + TAG));
            FlowRule::Priority {
                vlan_priority: (tag >> PRIORITY_SHIFT) as u8,
                queue,
            }
        }
        _ => return None,
    };
    // All mask bits must match the encoding.
    let own = emit(answer.number(PLACE), rule);
    let is_same = |from: usize, to: usize| (from..to).all(|at| own.byte(at) == answer.byte(at));
    (is_same(MASKS, MORE_MASKS + 20) && is_same(QUEUE, PLACE)).then_some(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE_OF_TEST: FlowRule = FlowRule::Port {
        destination: Some(Ipv4Addr::new(10, 0, 0, 1)),
        destination_port: 7411,
        queue: 3,
    };
    const BY_PRIORITY: FlowRule = FlowRule::Priority {
        vlan_priority: 7,
        queue: 1,
    };

    /// Unproven on hardware: the structure as `linux/ethtool.h` lays it out on 64 bits.
    #[test]
    fn a_rule_has_the_bytes_of_the_kernels_header() {
        let argument = emit(9, RULE_OF_TEST);
        let mut expected = [0_u8; BYTES];
        expected[..4].copy_from_slice(&0x32_u32.to_ne_bytes());
        // fs.flow_type, fs.h_u.udp_ip4_spec.ip4dst and .pdst
        expected[16..20].copy_from_slice(&2_u32.to_ne_bytes());
        expected[24..28].copy_from_slice(&[10, 0, 0, 1]);
        expected[30..32].copy_from_slice(&[0x1c, 0xf3]);
        // fs.m_u, the same
        expected[96..100].copy_from_slice(&[0xff; 4]);
        expected[102..104].copy_from_slice(&[0xff; 2]);
        // fs.ring_cookie, fs.location
        expected[168..176].copy_from_slice(&3_u64.to_ne_bytes());
        expected[176..180].copy_from_slice(&9_u32.to_ne_bytes());
        let bytes: Vec<u8> = (0..BYTES).map(|at| argument.byte(at)).collect();
        assert_eq!(bytes, expected);
    }

    /// Unproven on hardware: as above, with the fields that `igb_add_ethtool_nfc_entry` of Linux 6.12 reads.
    #[test]
    fn a_rule_by_priority_has_the_bytes_of_the_kernels_header() {
        let argument = emit(0, BY_PRIORITY);
        let mut expected = [0_u8; BYTES];
        expected[..4].copy_from_slice(&0x32_u32.to_ne_bytes());
        // fs.flow_type
        expected[16..20].copy_from_slice(&0x8000_0012_u32.to_ne_bytes());
        // fs.h_ext.vlan_tci, fs.m_ext.vlan_tci: behind 52 bytes of union, two of padding, an address, a type
        expected[82..84].copy_from_slice(&[0xe0, 0]);
        expected[154..156].copy_from_slice(&[0xe0, 0]);
        // fs.ring_cookie
        expected[168..176].copy_from_slice(&1_u64.to_ne_bytes());
        let bytes: Vec<u8> = (0..BYTES).map(|at| argument.byte(at)).collect();
        assert_eq!(bytes, expected);
    }

    /// Unproven on hardware: the answers' bytes are what the drivers' sources fill in.
    #[test]
    fn the_tables_size_comes_with_the_number_of_rules_or_with_their_list() {
        // struct ethtool_rxnfc: cmd, flow_type, data, fs, rule_cnt.
        let answer = |command: u32, data: u64, rules: u32| {
            let mut bytes = [0_u8; BYTES];
            bytes[..4].copy_from_slice(&command.to_ne_bytes());
            bytes[8..16].copy_from_slice(&data.to_ne_bytes());
            bytes[184..188].copy_from_slice(&rules.to_ne_bytes());
            let mut answer = Argument::new(command, BYTES);
            answer.set(0, bytes);
            answer
        };
        let capacity =
            |count: u64, list: u64| capacity(&answer(COUNT, count, 2), &answer(LIST, list, 2));
        assert_eq!(capacity(512, 512), 512, "ice: with both");
        assert_eq!(capacity(0, 2_046), 2_046, "ixgbe: (1024 << 1) - 2");
        assert_eq!(capacity(0, 1_024), 1_024, "mlx5");
        assert_eq!(capacity(SPECIAL_PLACES | 256, 0), 256, "bnxt");
        assert_eq!(capacity(SPECIAL_PLACES, 64), 64);
        assert_eq!(capacity(0, 0), MAX_STEERING_RULES, "with neither");
        assert_eq!(capacity(u64::MAX, 0), u32::MAX);
    }

    #[test]
    fn a_rule_is_read_as_it_was_written_and_others_are_others() {
        let any = FlowRule::Port {
            destination: None,
            destination_port: 7411,
            queue: 3,
        };
        for rule in [RULE_OF_TEST, any, BY_PRIORITY] {
            assert_eq!(parse(&emit(1, rule)), Some(rule));
        }
        let mut with_source = emit(1, RULE_OF_TEST);
        with_source.set(MASKS, [0xff; 4]);
        assert_eq!(parse(&with_source), None);
        let mut tcp = emit(1, RULE_OF_TEST);
        tcp.set(FLOW_TYPE, 1_u32.to_ne_bytes());
        assert_eq!(parse(&tcp), None);
        let mut in_a_vlan = emit(1, BY_PRIORITY);
        in_a_vlan.set(MORE_MASKS + TAG, [0xef, 0xff]);
        assert_eq!(parse(&in_a_vlan), None);
        let mut dropped = emit(1, RULE_OF_TEST);
        dropped.set(QUEUE, u64::MAX.to_ne_bytes());
        assert_eq!(parse(&dropped), None);
    }
}
