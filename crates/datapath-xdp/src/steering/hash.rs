//! The receive hash: over which fields of a frame, with which key, and which queue each part of its
//! values goes to.

use std::io;

use super::Argument;
use crate::limits::{MAX_HASH_ENTRIES, MAX_HASH_KEY_BYTES};

/// Commands (linux/ethtool.h).
const GET_FIELDS: u32 = 0x29;
const SET_FIELDS: u32 = 0x2a;
const GET_QUEUES: u32 = 0x2d;
const GET: u32 = 0x46;
const SET: u32 = 0x47;
/// `struct ethtool_rxfh`: where its fields stand, and where the table and the key begin.
const TABLE_ENTRIES: usize = 8;
const KEY_BYTES: usize = 12;
const FUNCTION: usize = 16;
const REST: usize = 24;
/// `struct ethtool_rxnfc`, as far as it is read and written for these.
const FLOW_TYPE: usize = 4;
const DATA: usize = 8;
const RULE_BYTES: usize = 192;
/// UDP of IPv4.
const UDP4: u32 = 2;
/// Both addresses.
const HASHES_ADDRESSES: u64 = 1 << 4 | 1 << 5;
/// The four bytes behind IP's header: the ports.
const HASHES_PORTS: u64 = 1 << 6 | 1 << 7;

/// How a device spreads received frames over its queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiveHash {
    /// The function: 1 Toeplitz, 2 XOR, 4 CRC-32; 0: not said.
    pub function: u8,
    /// The key; empty: it cannot be read.
    pub key: Vec<u8>,
    /// The queue of each entry.
    pub table: Vec<u32>,
}

/// Reads a device's.
///
/// # Errors
/// What the system said; `EOPNOTSUPP` where the driver has none.
pub fn receive_hash(interface: &str) -> io::Result<ReceiveHash> {
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
    // SAFETY: there is room for as many entries and bytes of a key as it says.
    unsafe { hash.exchange(interface) }?;
    let key: Vec<u8> = (0..key_bytes as usize)
        .map(|index| hash.byte(key_at + index))
        .collect();
    Ok(ReceiveHash {
        function: hash.byte(FUNCTION),
        // A key of nothing but zeros hashes nothing: such a driver does not tell its key.
        key: match key.iter().all(|byte| *byte == 0) {
            true => Vec::new(),
            false => key,
        },
        table: (0..entries as usize)
            .map(|entry| hash.number(REST + 4 * entry))
            .collect(),
    })
}

/// Sets the queue of each entry of a device's table. The table that the kernel makes of itself, all
/// queues in turn, is given back to it: it follows the number of queues, one that was set does not.
///
/// # Errors
/// What the system said; `EINVAL` for a table of another length.
pub fn set_table(interface: &str, table: &[u32]) -> io::Result<()> {
    let entries = u32::try_from(table.len())
        .ok()
        .filter(|entries| (1..=MAX_HASH_ENTRIES).contains(entries))
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    if receive_hash(interface)?.table.len() != table.len() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let is_own = queues(interface).is_ok_and(|queues| is_in_turn(table, queues));
    let entries = if is_own { 0 } else { entries };
    let mut hash = Argument::new(SET, REST + 4 * entries as usize);
    hash.set(TABLE_ENTRIES, entries.to_ne_bytes());
    for (index, queue) in table.iter().take(entries as usize).enumerate() {
        hash.set(REST + 4 * index, queue.to_ne_bytes());
    }
    // SAFETY: there are as many entries as it says, and no key; without entries the kernel reads
    // none, and makes its own.
    unsafe { hash.exchange(interface) }
}

/// Whether a table is the kernel's own: queues in turn.
fn is_in_turn(table: &[u32], queues: u32) -> bool {
    queues > 0
        && (0..)
            .zip(table)
            .all(|(entry, queue)| entry % queues == *queue)
}

/// Queues that the hash spreads over.
fn queues(interface: &str) -> io::Result<u32> {
    let mut answer = Argument::new(GET_QUEUES, RULE_BYTES);
    // SAFETY: the fixed structure, and the command fills in no list.
    unsafe { answer.exchange(interface) }?;
    Ok(u32::try_from(answer.long(DATA)).unwrap_or(0))
}

/// Whether the ports of UDP over IPv4 are hashed, beside the addresses.
///
/// # Errors
/// What the system said; `EOPNOTSUPP` where the driver does not tell.
pub fn udp4_hashes_ports(interface: &str) -> io::Result<bool> {
    let mut fields = Argument::new(GET_FIELDS, RULE_BYTES);
    fields.set(FLOW_TYPE, UDP4.to_ne_bytes());
    // SAFETY: the fixed structure, and the command fills in no list.
    unsafe { fields.exchange(interface) }?;
    Ok(fields.long(DATA) & HASHES_PORTS == HASHES_PORTS)
}

/// Has the ports of UDP over IPv4 hashed beside the addresses, or the addresses only.
///
/// # Errors
/// What the system said; `EOPNOTSUPP` or `EINVAL` where the driver has no choice.
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
}
