//! Configuration of a local participant: identity, addresses, bounds.

use alloc::{boxed::Box, vec, vec::Vec};
use core::time::Duration;

use heapless::String as BoundedString;
use isolane_wire::{builtin_data::LocatorList, guid::GuidPrefix, locator::Locator, qos::Octets};

use crate::{
    discovery::StaticParticipant,
    limits::{DISCOVERY_BYTES_PER_S, MIN_PERIOD},
    participant::BUILTIN_ENDPOINTS,
};

/// Capacities of a local participant. A table that is full refuses and counts new entries; existing ones are not
/// affected.
///
/// Memory for peers is allocated in blocks by the discovery job as peers are discovered, or in full at creation with
/// [`fixed_memory`](Self::fixed_memory). Memory of local endpoints is allocated when they are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of local writers, and of local readers.
    pub local_endpoints: u16,
    /// Maximum number of remote participants.
    pub participants: u16,
    /// Maximum number of remote endpoints. Their announcements have 504 bytes each on average, content filters
    /// included; longer announcements leave room for fewer endpoints. Additional entries are reserved for topics of the
    /// highest level in use here ([`RESERVE_RATIO`](crate::limits::RESERVE_RATIO)).
    pub remote_endpoints: u16,
    /// Maximum number of matches of local writers with readers, and of local readers with writers. Every remote
    /// participant uses two of each kind for discovery. It uses a third of each for liveliness if it is of another
    /// vendor or if a match with it has a LIVELINESS lease. Additional entries are reserved as for endpoints.
    pub matches: u16,
    /// Allocates all memory for peers at creation, and none later. Content filters evaluated by a writer are the
    /// exception: each allocates when a reader that announces it is matched. A writer has at most
    /// [`MAX_FILTERS`](crate::limits::MAX_FILTERS) of them and a record for each of those readers.
    pub fixed_memory: bool,
    /// Bytes of sample memory of all local endpoints: histories, caches and reassembly slots. Each endpoint allocates
    /// its share when it is created; samples allocate nothing.
    pub sample_bytes: usize,
}

impl Default for Limits {
    /// Capacities for a plant or a fleet: a thousand participants with ten endpoints each, five of them matched with an
    /// endpoint here. They take at most 16 MB.
    fn default() -> Self {
        Self {
            local_endpoints: 64,
            participants: 1_000,
            remote_endpoints: 10_000,
            matches: 8_000,
            fixed_memory: false,
            sample_bytes: 16 << 20,
        }
    }
}

impl Limits {
    /// Returns the limits with room left for the built-in endpoints, which are in the same tables.
    pub(crate) fn bounded(self) -> Self {
        Self {
            local_endpoints: self.local_endpoints.min(u16::MAX - BUILTIN_ENDPOINTS),
            ..self
        }
    }
}

/// Periods and timeouts of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Period of SPDP announcements.
    pub announce_period: Duration,
    /// Period of the first announcements: shorter, so that a lost one costs little.
    pub announce_initial_period: Duration,
    /// Number of announcements sent at the initial period.
    pub announce_initial_count: u8,
    /// Lease duration announced to peers (RTPS 2.5 §8.5.3.2 `leaseDuration`).
    pub lease: Duration,
    /// Time from a sample to the HEARTBEAT that requests its acknowledgement, and between HEARTBEATs.
    pub heartbeat_period: Duration,
    /// Upper bound of the time between HEARTBEATs, which doubles while nothing is acknowledged.
    pub heartbeat_period_max: Duration,
    /// Minimum time between two requests of a reader for the same sample, unless the writer demands an answer.
    pub nack_suppression: Duration,
}

impl Timing {
    /// Returns the periods with a minimum of [`MIN_PERIOD`]: a timer that is due again at once would never let time
    /// advance.
    pub(crate) fn bounded(self) -> Self {
        Self {
            announce_period: self.announce_period.max(MIN_PERIOD),
            announce_initial_period: self.announce_initial_period.max(MIN_PERIOD),
            heartbeat_period: self.heartbeat_period.max(MIN_PERIOD),
            heartbeat_period_max: self.heartbeat_period_max.max(MIN_PERIOD),
            ..self
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            announce_period: Duration::from_secs(2),
            announce_initial_period: Duration::from_millis(100),
            announce_initial_count: 5,
            lease: Duration::from_secs(10),
            heartbeat_period: Duration::from_millis(20),
            heartbeat_period_max: Duration::from_secs(1),
            nack_suppression: Duration::from_millis(5),
        }
    }
}

/// IPv4 network of this host: address and prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// Address of the host in the network.
    pub address: [u8; 4],
    /// Prefix length in bits, 0 to 32.
    pub prefix_bits: u8,
}

impl Network {
    /// Returns whether `address` is in the network.
    #[must_use]
    pub fn contains(&self, address: [u8; 4]) -> bool {
        let differing = u32::from_be_bytes(self.address) ^ u32::from_be_bytes(address);
        differing.leading_zeros() >= u32::from(self.prefix_bits.min(32))
    }
}

/// Configuration of a [`LocalParticipant`](crate::LocalParticipant).
#[derive(Debug, Clone)]
pub struct ParticipantConfig {
    /// DDS domain id.
    pub domain: u32,
    /// GUID prefix: unique in the domain, and different at every start.
    pub guid_prefix: GuidPrefix,
    /// Random seed of the hash tables, so that peers cannot predict collisions.
    pub seed: u64,
    /// Allocator of large zeroed blocks for samples.
    pub zeroed: Zeroed,
    /// Human-readable name of the participant (`entityName`).
    pub name: BoundedString<64>,
    /// USER_DATA of the participant.
    pub user_data: Octets,
    /// Wall-clock time minus the monotonic clock, for source time stamps.
    pub wall_offset_ns: u64,
    /// Unicast locators of this participant for SEDP.
    pub metatraffic_unicast: LocatorList,
    /// Multicast locators of this participant for SEDP.
    pub metatraffic_multicast: LocatorList,
    /// Unicast locators of endpoints that announce none of their own.
    pub default_unicast: LocatorList,
    /// Destinations of SPDP announcements: the SPDP multicast group and known peers.
    pub announce_to: Vec<Locator>,
    /// Networks of this host: of a peer's several addresses, one in these networks is used.
    pub networks: Vec<Network>,
    /// Whether this host can send to multicast groups. Peers' groups are used only then.
    pub multicast: bool,
    /// Periods and timeouts.
    pub timing: Timing,
    /// Capacities.
    pub limits: Limits,
    /// Rate limit of SEDP in bytes per second, with a burst of one second; at least 1,024. Announcements of this
    /// participant and liveliness assertions renew leases and are not limited.
    pub discovery_bytes_per_s: u64,
    /// True if the participant is enabled at creation; otherwise
    /// [`LocalParticipant::enable`](crate::LocalParticipant::enable) enables it.
    pub is_enabled: bool,
    /// True if endpoints are enabled at creation (ENTITY_FACTORY).
    pub autoenable: bool,
    /// Static description of this participant, as its peers have it. The GUID prefix then derives from its name, and
    /// only the last four bytes of `guid_prefix` count.
    pub described: Option<StaticParticipant>,
}

/// Allocates `bytes` bytes of zeroed memory; `None` if there is none left.
pub type Zeroed = fn(bytes: usize) -> Option<Box<[u8]>>;

/// Size in bytes from which glibc maps zeroed memory from the kernel and does not write it (`M_MMAP_THRESHOLD`).
const LARGE_BYTES: usize = 128 << 10;

/// Allocates `bytes` bytes; `None` if there is no memory left. A large block has its full length; the kernel zeroes it
/// page by page at first use. A small block is empty with that capacity and grows as it is used, because an allocator
/// would zero it whole.
pub(crate) fn memory_of(bytes: usize, zeroed: Zeroed) -> Option<Vec<u8>> {
    if bytes >= LARGE_BYTES {
        return zeroed(bytes).map(<[u8]>::into_vec);
    }
    let mut memory = Vec::new();
    memory.try_reserve_exact(bytes).ok()?;
    Some(memory)
}

/// Allocates from the global allocator, which aborts the process if no memory is left.
pub(crate) fn from_allocator(bytes: usize) -> Option<Box<[u8]>> {
    Some(vec![0; bytes].into_boxed_slice())
}

impl ParticipantConfig {
    /// Returns the seed of one hash table.
    pub(crate) fn salted_seed(&self, salt: u64) -> u64 {
        self.seed.wrapping_add(salt)
    }

    /// Creates a configuration with defaults for all but the identity.
    #[must_use]
    pub fn new(domain: u32, guid_prefix: GuidPrefix, seed: u64) -> Self {
        Self {
            domain,
            guid_prefix,
            seed,
            zeroed: from_allocator,
            name: BoundedString::new(),
            user_data: Octets::new(),
            wall_offset_ns: 0,
            metatraffic_unicast: LocatorList::new(),
            metatraffic_multicast: LocatorList::new(),
            default_unicast: LocatorList::new(),
            announce_to: Vec::new(),
            networks: Vec::new(),
            multicast: true,
            timing: Timing::default(),
            limits: Limits::default(),
            discovery_bytes_per_s: DISCOVERY_BYTES_PER_S,
            is_enabled: true,
            autoenable: true,
            described: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_endpoints_leave_places_for_those_of_discovery() {
        let most = Limits {
            local_endpoints: u16::MAX,
            ..Limits::default()
        };
        let places = most
            .bounded()
            .local_endpoints
            .checked_add(BUILTIN_ENDPOINTS);
        assert_eq!(places, Some(u16::MAX));
        assert_eq!(Limits::default().bounded(), Limits::default());
    }

    #[test]
    fn a_network_contains_the_addresses_that_share_its_prefix() {
        let network = Network {
            address: [10, 78, 0, 1],
            prefix_bits: 24,
        };
        assert!(network.contains([10, 78, 0, 200]));
        assert!(!network.contains([10, 78, 1, 1]));
        assert!(
            Network {
                address: [0; 4],
                prefix_bits: 0
            }
            .contains([9, 9, 9, 9])
        );
    }
}
