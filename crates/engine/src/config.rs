//! What an engine is told when it is made: who it is, where it is reached, how much it may hold.

use alloc::{boxed::Box, vec, vec::Vec};
use core::time::Duration;

use heapless::String as BoundedString;
use isolane_wire::{discovery::LocatorList, guid::GuidPrefix, locator::Locator, qos::Octets};

use crate::{
    discovery::StaticParticipant,
    engine::BUILTIN_ENDPOINTS,
    limits::{DISCOVERY_BYTES_PER_S, MIN_PERIOD},
};

/// How much an engine may hold. Beyond it a newcomer is refused and counted, and what is there goes on.
///
/// Memory for peers is taken in blocks as they are discovered, by discovery's job; with
/// [`fixed_memory`](Self::fixed_memory) all of it is taken when the engine is made. What local endpoints hold is taken
/// when they are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Local writers and readers, each.
    pub local_endpoints: u16,
    /// Participants of others.
    pub participants: u16,
    /// Their endpoints. Their announcements take 504 bytes each on average at most, with content filters; where they are
    /// longer, there is room for fewer endpoints. Some places more are kept for endpoints of topics that have the highest level in use here
    /// ([`KEPT_PART`](crate::limits::KEPT_PART)).
    pub remote_endpoints: u16,
    /// Pairs of a local writer and a reader, and of a local reader and a writer, each; every peer
    /// participant uses two of both for discovery, and a third for liveliness where it is of another vendor
    /// or some match with it has a LIVELINESS lease. Some places more are kept as among the endpoints.
    pub matches: u16,
    /// Whether all memory for peers is taken at the start, and none later. Content filters that a writer evaluates are the
    /// exception: each takes memory when a reader that asks for it is matched, at most
    /// [`MAX_FILTERS`](crate::limits::MAX_FILTERS) of a writer and a record for each of those readers.
    pub fixed_memory: bool,
    /// Bytes that the samples of all local endpoints have: histories, caches, and places for fragments. Each endpoint
    /// takes its part when it is created, and no sample takes any later.
    pub sample_bytes: usize,
}

impl Default for Limits {
    /// A plant or a fleet: a thousand participants with ten endpoints each, of which five are matched with an endpoint
    /// here. It takes at most 16 MB.
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
    /// The same with places left for the endpoints of discovery, which lie in the same tables.
    pub(crate) fn bounded(self) -> Self {
        Self {
            local_endpoints: self.local_endpoints.min(u16::MAX - BUILTIN_ENDPOINTS),
            ..self
        }
    }
}

/// When the engine does what it does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Time between two announcements of this participant.
    pub announce_period: Duration,
    /// The first announcements come faster, so that a lost one costs little.
    pub announce_initial_period: Duration,
    /// How many first ones.
    pub announce_initial_count: u8,
    /// How long peers are to believe an announcement (RTPS 2.5 §8.5.3.2 `leaseDuration`).
    pub lease: Duration,
    /// Time from a sample to the HEARTBEAT that asks for its acknowledgement, and between such.
    pub heartbeat_period: Duration,
    /// The longest time between two, reached by doubling while nothing is acknowledged.
    pub heartbeat_period_max: Duration,
    /// A reader asks for the same sample again no sooner, unless the writer demands an answer.
    pub nack_suppression: Duration,
}

impl Timing {
    /// The same with no period below [`MIN_PERIOD`]: a timer that is due again at once would
    /// never let time go on.
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

/// An IPv4 network this host is on: address and prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// The host's address in it.
    pub address: [u8; 4],
    /// Bits of the prefix, 0 to 32.
    pub prefix_bits: u8,
}

impl Network {
    /// Whether an address lies in the network.
    #[must_use]
    pub fn contains(&self, address: [u8; 4]) -> bool {
        let differing = u32::from_be_bytes(self.address) ^ u32::from_be_bytes(address);
        differing.leading_zeros() >= u32::from(self.prefix_bits.min(32))
    }
}

/// What makes an engine.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// The DDS domain.
    pub domain: u32,
    /// Unique in the domain, and different at every start.
    pub guid_prefix: GuidPrefix,
    /// Random: makes the order in hash tables unpredictable to peers.
    pub seed: u64,
    /// Where large pieces of memory for samples are taken from.
    pub zeroed: Zeroed,
    /// A name for people (`entityName`).
    pub name: BoundedString<64>,
    /// USER_DATA of the participant.
    pub user_data: Octets,
    /// Wall-clock time minus the monotonic clock, for source time stamps.
    pub wall_offset_ns: u64,
    /// Where SEDP reaches this participant.
    pub metatraffic_unicast: LocatorList,
    /// The group SEDP may use to reach it.
    pub metatraffic_multicast: LocatorList,
    /// Where data reaches endpoints that announce no locator of their own.
    pub default_unicast: LocatorList,
    /// Where this participant announces itself: the SPDP group, and known peers.
    pub announce_to: Vec<Locator>,
    /// The networks this host is on: of a peer's several addresses one in these is used.
    pub networks: Vec<Network>,
    /// Whether groups can be sent to: peers' groups are used only then.
    pub multicast: bool,
    /// Times.
    pub timing: Timing,
    /// Sizes.
    pub limits: Limits,
    /// Bytes a second that SEDP sends, with one second's worth at once; at least 1,024. Announcements of this participant
    /// and assertions of liveliness, which renew leases, are not limited.
    pub discovery_bytes_per_s: u64,
    /// Whether the participant takes part from the beginning, or when it is
    /// [enabled](crate::Engine::enable).
    pub is_enabled: bool,
    /// Whether its endpoints do.
    pub autoenable: bool,
    /// This participant as it is described to others: its GUID prefix follows from its name then, and only the last
    /// four bytes of `guid_prefix` count.
    pub described: Option<StaticParticipant>,
}

/// Zeroed memory of so many bytes; `None`: there is none left.
pub type Zeroed = fn(bytes: usize) -> Option<Box<[u8]>>;

/// Size in bytes from which glibc maps zeroed memory from the kernel, and so need not write it (`M_MMAP_THRESHOLD`).
const LARGE_BYTES: usize = 128 << 10;

/// Takes memory for `bytes` bytes; `None` if there is none left. A large piece has its full length, zeroed by the kernel
/// page by page at first use. A small one is empty with that capacity and grows as it is used, because an allocator would
/// zero it whole.
pub(crate) fn memory_of(bytes: usize, zeroed: Zeroed) -> Option<Vec<u8>> {
    if bytes >= LARGE_BYTES {
        return zeroed(bytes).map(<[u8]>::into_vec);
    }
    let mut memory = Vec::new();
    memory.try_reserve_exact(bytes).ok()?;
    Some(memory)
}

/// The allocator's, which ends the process where there is none left.
pub(crate) fn from_allocator(bytes: usize) -> Option<Box<[u8]>> {
    Some(vec![0; bytes].into_boxed_slice())
}

impl EngineConfig {
    /// A configuration with defaults for all but the identity.
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
