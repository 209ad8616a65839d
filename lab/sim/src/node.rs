//! Nodes: hosts with one participant, its addresses and its lanes.
//!
//! Node *n* has an address in 10.0.0.0/16, or after a move in 10.1.0.0/16; both are one network. It listens on port
//! 7410 for discovery and on 7420 + *l* for data of level *l*, and in its groups: the SPDP group, and 239.255.(16 +
//! *l*).0 for each level with a multicast reader. Each port has a separate lane, so a frame's priority is known before
//! it is read.

use std::{
    collections::{BTreeSet, VecDeque},
    rc::Rc,
    time::Duration,
};

use isolane_rtps::{
    Limits, LocalParticipant, Network, ParticipantConfig, Priority, Timing,
    limits::DISCOVERY_BYTES_PER_S,
};
use isolane_wire::{
    builtin_data::LocatorList, guid::GuidPrefix, level::Level, locator::Locator, time::Instant,
};

use crate::{described::Description, limits::MAX_NODES};

/// SPDP multicast group in domain 0 (RTPS 2.5 §9.6.1.4).
pub(crate) const SPDP_GROUP: Locator = Locator::udpv4([239, 255, 0, 1], 7400);

pub(crate) const DISCOVERY_PORT: u16 = 7410;
const LEVEL_PORT: u16 = 7420;
const GROUP_PORT: u16 = 7401;
const FIRST_GROUP: u8 = 16;

/// Number of lanes: one for discovery, one a level.
const LANES: usize = 1 + Level::ALL.len();

/// Wall-clock time at the start of every world: in November 2026.
const WALL_OFFSET_NS: u64 = 1_795_000_000_000_000_000;

/// Node of a world, numbered from 0 in order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

impl NodeId {
    /// IPv4 address of the node.
    #[must_use]
    pub fn address(self) -> [u8; 4] {
        assert!(self.0 < MAX_NODES, "a world has at most {MAX_NODES} nodes");
        [10, 0, (self.0 / 250) as u8, (1 + self.0 % 250) as u8]
    }

    /// Address of the node after [`World::move_node`](crate::World::move_node), in the same network.
    #[must_use]
    pub fn other_address(self) -> [u8; 4] {
        let [a, b, c, d] = self.address();
        [a, b + 1, c, d]
    }

    /// Returns the node with an address, if it is valid.
    pub(crate) fn of_address(address: [u8; 4]) -> Option<Self> {
        match address {
            [10, 0 | 1, high, low @ 1..=250] => {
                Some(Self(usize::from(high) * 250 + usize::from(low) - 1))
            }
            _ => None,
        }
    }

    /// Discovery locator of the node.
    #[must_use]
    pub fn discovery_locator(self) -> Locator {
        Locator::udpv4(self.address(), DISCOVERY_PORT)
    }

    /// Data locator of the node for a level.
    #[must_use]
    pub fn level_locator(self, level: Level) -> Locator {
        Locator::udpv4(self.address(), LEVEL_PORT + u16::from(level.get()))
    }

    /// Multicast group of a level.
    #[must_use]
    pub fn level_group(level: Level) -> Locator {
        Locator::udpv4([239, 255, FIRST_GROUP + level.get(), 0], GROUP_PORT)
    }
}

/// Lane of a locator's port; `None` if the port is unused.
pub(crate) fn lane_of(locator: Locator) -> Option<usize> {
    if locator == SPDP_GROUP {
        return Some(0);
    }
    let level = match locator.ipv4()? {
        [239, 255, group, 0] if locator.port == u32::from(GROUP_PORT) => {
            group.checked_sub(FIRST_GROUP)?
        }
        _ if locator.port == u32::from(DISCOVERY_PORT) => return Some(0),
        _ => u8::try_from(locator.port.checked_sub(u32::from(LEVEL_PORT))?).ok()?,
    };
    Level::new(level).map(|level| 1 + usize::from(level.get()))
}

/// Receive priority of a lane.
fn priority_of(lane: usize) -> u8 {
    match lane.checked_sub(1) {
        None => Priority::DISCOVERY.get(),
        Some(level) => Priority::of_data(Level::clamp(level as i32)).get(),
    }
}

/// Discovery mode of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discovery {
    /// SPDP by multicast.
    Multicast,
    /// SPDP by unicast to these nodes; no multicast group.
    Peers(Vec<NodeId>),
}

/// Configuration of a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Discovery mode.
    pub discovery: Discovery,
    /// True if the node can send to multicast groups.
    pub multicast: bool,
    /// Timing of the participant.
    pub timing: Timing,
    /// Limits of the participant.
    pub limits: Limits,
    /// Rate limit of the participant's discovery in bytes per second.
    pub discovery_bytes_per_s: u64,
    /// Duration of a step: the reception of a frame, or one work item.
    pub step: Duration,
    /// Offset by which the clock of source timestamps is ahead of the participant's wall clock.
    pub stamps_ahead: Duration,
    /// Time that a datagram waits in the socket after the kernel's receive stamp.
    pub socket_wait: Duration,
    /// Static description of the participants, shared by the described nodes.
    pub described: Option<Rc<Description>>,
}

impl Default for NodeConfig {
    /// Multicast, default timing, room for about thirty peers, 5 µs a step.
    fn default() -> Self {
        Self {
            discovery: Discovery::Multicast,
            multicast: true,
            timing: Timing::default(),
            limits: Limits {
                local_endpoints: 16,
                participants: 32,
                remote_endpoints: 256,
                matches: 256,
                fixed_memory: false,
                // Large, because tests have long histories of large samples. Only pages that samples fill take memory.
                sample_bytes: 4 << 30,
            },
            discovery_bytes_per_s: DISCOVERY_BYTES_PER_S,
            step: Duration::from_micros(5),
            stamps_ahead: Duration::ZERO,
            socket_wait: Duration::ZERO,
            described: None,
        }
    }
}

impl NodeConfig {
    /// Creates the default with a list of peers instead of multicast.
    #[must_use]
    pub fn with_peers(peers: &[NodeId]) -> Self {
        Self {
            discovery: Discovery::Peers(peers.to_vec()),
            ..Self::default()
        }
    }
}

/// Datagram with its source.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) from: Locator,
    pub(crate) bytes: Rc<[u8]>,
}

/// Next action of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Receive { lane: usize },
    Work(Priority),
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) config: NodeConfig,
    /// Local participant; `None` while the node is down.
    pub(crate) protocol: Option<LocalParticipant>,
    /// Number of starts.
    pub(crate) incarnation: u32,
    /// Number of the current GUID prefix.
    pub(crate) identity: u32,
    pub(crate) lanes: [VecDeque<Frame>; LANES],
    /// Current IPv4 address.
    pub(crate) address: [u8; 4],
    pub(crate) groups: BTreeSet<Locator>,
    /// True if a step is in the world's queue.
    pub(crate) step_filed: bool,
    /// Timer in the world's queue, if any.
    pub(crate) timer: Option<Instant>,
    /// End of a stop: until then the node does nothing, and datagrams wait.
    pub(crate) stopped_until: Instant,
}

impl Node {
    pub(crate) fn new(config: NodeConfig) -> Self {
        Self {
            config,
            protocol: None,
            incarnation: 0,
            identity: 0,
            lanes: Default::default(),
            address: [0; 4],
            groups: BTreeSet::new(),
            step_filed: false,
            timer: None,
            stopped_until: Instant::new(0),
        }
    }

    /// Starts a participant. A new `identity` gives a new GUID prefix. `seed` is for the participant's hash tables.
    pub(crate) fn start(&mut self, id: NodeId, identity: u32, seed: u64, now: Instant) {
        self.incarnation += 1;
        self.identity = identity;
        let mut prefix = [0; 12];
        prefix[..2].copy_from_slice(&isolane_wire::message::VENDOR_ID);
        prefix[4..8].copy_from_slice(&(id.0 as u32).to_be_bytes());
        prefix[8..].copy_from_slice(&identity.to_be_bytes());
        let mut config = ParticipantConfig::new(0, GuidPrefix(prefix), seed);
        config.wall_offset_ns = WALL_OFFSET_NS;
        config.metatraffic_unicast = LocatorList::from_iter([id.discovery_locator()]);
        self.address = id.address();
        config.networks = self.networks();
        config.multicast = self.config.multicast;
        config.timing = self.config.timing;
        config.limits = self.config.limits;
        config.discovery_bytes_per_s = self.config.discovery_bytes_per_s;
        match &self.config.discovery {
            Discovery::Multicast => {
                config.announce_to = vec![SPDP_GROUP];
                config.metatraffic_multicast = LocatorList::from_iter([SPDP_GROUP]);
                self.groups.insert(SPDP_GROUP);
            }
            Discovery::Peers(peers) => {
                config.announce_to = peers.iter().map(|peer| peer.discovery_locator()).collect();
            }
        }
        let described = self.config.described.clone();
        config.described = described.as_ref().and_then(|all| all.of(id));
        let mut protocol = LocalParticipant::new(config, now);
        for peer in described.iter().flat_map(|all| all.peers_of(id)) {
            protocol
                .add_static_peer(now, peer)
                .expect("there is room for what is described");
        }
        self.protocol = Some(protocol);
    }

    pub(crate) fn networks(&self) -> Vec<Network> {
        vec![Network {
            address: self.address,
            prefix_bits: 15,
        }]
    }

    /// Most urgent action. A frame precedes work of the same priority, because the executor polls its sources before
    /// its jobs.
    pub(crate) fn next(&self) -> Option<Next> {
        let protocol = self.protocol.as_ref()?;
        let waits = |&lane: &usize| !self.lanes[lane].is_empty();
        let lane = (0..LANES).rev().find(waits);
        let work = Priority::descending().find(|p| protocol.ready() >> p.get() & 1 == 1);
        match (lane, work) {
            (Some(lane), Some(work)) if work.get() > priority_of(lane) => Some(Next::Work(work)),
            (Some(lane), _) => Some(Next::Receive { lane }),
            (None, work) => work.map(Next::Work),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_of_a_node_leads_to_its_lane() {
        let node = NodeId(260);
        assert_eq!(NodeId::of_address(node.address()), Some(node));
        assert_eq!(lane_of(SPDP_GROUP), Some(0));
        assert_eq!(lane_of(node.discovery_locator()), Some(0));
        for level in Level::ALL {
            let lane = Some(1 + usize::from(level.get()));
            assert_eq!(lane_of(node.level_locator(level)), lane);
            assert_eq!(lane_of(NodeId::level_group(level)), lane);
        }
        assert_eq!(lane_of(Locator::udpv4(node.address(), 9999)), None);
    }
}
