//! RSS: fields and key of the receive hash, and the indirection table that maps hash values to queues. Uses ioctls,
//! which every kernel has.

use std::io;

use serde::{Deserialize, Serialize};

use super::ioctl::Argument;
use crate::limits::{MAX_HASH_ENTRIES, MAX_HASH_KEY_BYTES};

/// Commands (linux/ethtool.h).
const GET_FIELDS: u32 = 0x29;
const SET_FIELDS: u32 = 0x2a;
const GET_QUEUES: u32 = 0x2d;
const GET: u32 = 0x46;
const SET: u32 = 0x47;
/// Offsets in `struct ethtool_rxfh`; table and key start at REST.
const TABLE_ENTRIES: usize = 8;
const KEY_BYTES: usize = 12;
const FUNCTION: usize = 16;
/// `input_xfrm` (Linux 6.8; before that zero, and no other value is accepted).
const TRANSFORM: usize = 17;
const REST: usize = 24;
/// Offsets in `struct ethtool_rxnfc`.
const FLOW_TYPE: usize = 4;
const DATA: usize = 8;
const RULE_BYTES: usize = 192;
/// UDP over IPv4 (UDP_V4_FLOW).
const UDP4: u32 = 2;
/// RXH_IP_SRC and RXH_IP_DST.
const HASHES_ADDRESSES: u64 = 1 << 4 | 1 << 5;
/// RXH_L4_B_0_1 and RXH_L4_B_2_3: the ports.
const HASHES_PORTS: u64 = 1 << 6 | 1 << 7;

/// Receive hash of a device (RSS).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReceiveHash {
    /// Hash function: `toeplitz`, `xor`, `crc32`; `None`: not reported.
    pub function: Option<String>,
    /// Key; `None` if it cannot be read.
    pub key: Option<Vec<u8>>,
    /// Indirection table: the queue of each entry.
    pub table: Vec<u32>,
    /// Symmetric hashing: both directions of a flow hash alike, so function and key alone do not determine the queue.
    pub symmetric: bool,
    /// UDP over IPv4 is hashed over addresses and ports, or over addresses alone; `None`: not reported, or neither.
    pub udp4_hashes_ports: Option<bool>,
}

/// Reads a device's receive hash.
///
/// # Errors
/// The system error; `EOPNOTSUPP` if the driver has none.
pub fn receive_hash(interface: &str) -> io::Result<ReceiveHash> {
    let (hash, _) = read(interface)?;
    Ok(ReceiveHash {
        udp4_hashes_ports: udp4_hashes_ports(interface).ok(),
        ..hash
    })
}

/// Reads a device's indirection table; empty if the device does not distribute frames.
///
/// # Errors
/// The system's error; `EOPNOTSUPP` where the driver has none.
pub fn table(interface: &str) -> io::Result<Vec<u32>> {
    read(interface).map(|(hash, _)| hash.table)
}

/// Reads all but `udp4_hashes_ports`, and the transformation of the fields.
fn read(interface: &str) -> io::Result<(ReceiveHash, u8)> {
    let mut sizes = Argument::new(GET, REST);
    // SAFETY: with room for no entries and no key nothing follows the fixed part.
    unsafe { sizes.exchange(interface) }?;
    let (entries, key_bytes) = (sizes.number(TABLE_ENTRIES), sizes.number(KEY_BYTES));
    if entries > MAX_HASH_ENTRIES || key_bytes > MAX_HASH_KEY_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let key_at = REST + 4 * entries as usize;
    let mut hash = Argument::new(GET, key_at + key_bytes as usize);
    hash.set(TABLE_ENTRIES, entries.to_ne_bytes());
    hash.set(KEY_BYTES, key_bytes.to_ne_bytes());
    // SAFETY: there is room for as many entries and key bytes as the argument says.
    unsafe { hash.exchange(interface) }?;
    let function = match hash.byte(FUNCTION) {
        1 => Some("toeplitz"),
        2 => Some("xor"),
        4 => Some("crc32"),
        _ => None,
    };
    let key = (0..key_bytes as usize).map(|index| hash.byte(key_at + index));
    let key: Vec<u8> = key.collect();
    let transform = hash.byte(TRANSFORM);
    let entry = |entry| hash.number(REST + 4 * entry);
    let hash = ReceiveHash {
        function: function.map(String::from),
        // A key of zeros hashes nothing: such a driver does not report its key.
        key: Some(key).filter(|key| key.iter().any(|byte| *byte != 0)),
        table: (0..entries as usize).map(entry).collect(),
        symmetric: transform != 0,
        udp4_hashes_ports: None,
    };
    Ok((hash, transform))
}

/// Sets the indirection table. The kernel's default, all queues in turn, is set by a reset. After a reset the table
/// follows the number of queues; a table that was set does not.
///
/// # Errors
/// The system error; `EINVAL` for a table of another length.
pub fn set_table(interface: &str, table: &[u32]) -> io::Result<()> {
    if table.is_empty() || table.len() > MAX_HASH_ENTRIES as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let (standing, transform) = read(interface)?;
    if standing.table.len() != table.len() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let is_own = queues(interface).is_ok_and(|queues| is_in_turn(table, queues));
    let mut hash = match is_own {
        true => request(&[], transform),
        false => request(table, transform),
    };
    // SAFETY: there are as many entries as the argument says, and no key; without entries the kernel reads none, and
    // makes its default.
    unsafe { hash.exchange(interface) }
}

/// Request that sets a table. Key and function stay unchanged if omitted; the transformation must be repeated.
fn request(table: &[u32], transform: u8) -> Argument {
    let entries = table.len() as u32;
    let mut hash = Argument::new(SET, REST + 4 * table.len());
    hash.set(TABLE_ENTRIES, entries.to_ne_bytes());
    hash.set(TRANSFORM, [transform]);
    for (index, queue) in table.iter().enumerate() {
        hash.set(REST + 4 * index, queue.to_ne_bytes());
    }
    hash
}

/// Returns whether a table is the kernel's default: queues in turn.
fn is_in_turn(table: &[u32], queues: u32) -> bool {
    queues > 0
        && (0..)
            .zip(table)
            .all(|(entry, queue)| entry % queues == *queue)
}

/// Number of queues over which the hash distributes frames.
fn queues(interface: &str) -> io::Result<u32> {
    let mut answer = Argument::new(GET_QUEUES, RULE_BYTES);
    // SAFETY: the fixed structure, and the command fills in no list.
    unsafe { answer.exchange(interface) }?;
    Ok(u32::try_from(answer.long(DATA)).unwrap_or(0))
}

/// Returns whether UDP over IPv4 is hashed over addresses and ports; otherwise over addresses alone.
///
/// # Errors
/// The system error; `EOPNOTSUPP` if the driver does not report it; [`io::ErrorKind::Unsupported`] if other fields are
/// hashed, which [`set_udp4_hashes_ports`] could not restore.
pub fn udp4_hashes_ports(interface: &str) -> io::Result<bool> {
    let mut fields = Argument::new(GET_FIELDS, RULE_BYTES);
    fields.set(FLOW_TYPE, UDP4.to_ne_bytes());
    // SAFETY: the fixed structure, and the command fills in no list.
    unsafe { fields.exchange(interface) }?;
    hashes_ports(fields.long(DATA)).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::Unsupported,
            "other fields of UDP are hashed than addresses and ports, as somebody has set it",
        )
    })
}

/// Parses the fields: true for addresses and ports, false for addresses alone, `None` for others.
fn hashes_ports(fields: u64) -> Option<bool> {
    const WITH_PORTS: u64 = HASHES_ADDRESSES | HASHES_PORTS;
    match fields {
        WITH_PORTS => Some(true),
        HASHES_ADDRESSES => Some(false),
        _ => None,
    }
}

/// Hashes UDP over IPv4 over addresses and ports if `is_on`, otherwise over addresses alone.
///
/// # Errors
/// The system error; `EOPNOTSUPP` or `EINVAL` if the driver has no choice.
pub fn set_udp4_hashes_ports(interface: &str, is_on: bool) -> io::Result<()> {
    let ports = if is_on { HASHES_PORTS } else { 0 };
    let mut fields = Argument::new(SET_FIELDS, RULE_BYTES);
    fields.set(FLOW_TYPE, UDP4.to_ne_bytes());
    fields.set(DATA, (HASHES_ADDRESSES | ports).to_ne_bytes());
    // SAFETY: the fixed structure, and the command reads no list.
    unsafe { fields.exchange(interface) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_table_is_known() {
        assert!(is_in_turn(&[0, 1, 2, 0, 1, 2, 0], 3));
        assert!(!is_in_turn(&[0, 1, 0, 1], 3));
        assert!(!is_in_turn(&[0, 0], 0));
    }

    #[test]
    fn a_table_is_set_in_the_kernels_bytes_and_says_the_transformation_again() {
        // struct ethtool_rxfh: cmd, rss_context, indir_size, key_size, hfunc, input_xfrm, rsvd8[2], rsvd32
        let mut expected = Vec::new();
        for field in [0x47_u32, 0, 2, 0] {
            expected.extend(field.to_ne_bytes());
        }
        expected.extend([0, 1, 0, 0, 0, 0, 0, 0]);
        expected.extend([3_u32, 1].iter().flat_map(|queue| queue.to_ne_bytes()));
        let request = request(&[3, 1], 1);
        assert_eq!(request.get::<32>(0).as_slice(), expected);
    }

    #[test]
    fn only_addresses_with_or_without_ports_are_known_fields() {
        // linux/ethtool.h: RXH_L2DA 2, RXH_VLAN 4, RXH_L3_PROTO 8, RXH_IP_SRC 0x10, RXH_IP_DST 0x20, RXH_L4_B_0_1 0x40,
        // RXH_L4_B_2_3 0x80, RXH_DISCARD 0x80000000
        assert_eq!(hashes_ports(0xf0), Some(true));
        assert_eq!(hashes_ports(0x30), Some(false));
        for other in [0, 0x10, 0x70, 0xf8, 0xc0, 0x34, 0x8000_0000] {
            assert_eq!(hashes_ports(other), None, "{other:#x}");
        }
    }
}
