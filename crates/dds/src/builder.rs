//! How a participant is built: what is asked for, and what it becomes.

use std::net::{Ipv4Addr, SocketAddrV4};

use isolane_datapath::{
    Datapath, Lane, PoolConfig,
    clock::{monotonic_now, wall_offset_ns},
    memory::{Memory, Network},
    udp::{Interfaces, UdpConfig},
};
use isolane_engine::{Engine, EngineConfig, Timing, limits::DISCOVERY_BYTES_PER_S};
use isolane_executor::{Executor, ExecutorConfig};
use isolane_wire::{
    discovery::LocatorList,
    guid::GuidPrefix,
    level::Level,
    locator::Locator,
    qos::{Octets, PolicyId},
    rtps::VENDOR_ID,
};
use rustix::mm::{MlockAllFlags, mlockall};

use crate::{
    choice::{DatapathChoice, network_transport},
    error::BuildError,
    limits::{
        ANNOUNCED_PLACES, ANNOUNCEMENT_BYTES, DISCOVERY_PART, JOBS_PER_PAIR, MAX_JOBS,
        PARTICIPANTS_PER_PEER, RECEIVE_BUFFER_BYTES,
    },
    participant::Participant,
    placement::Placement,
    state::{Parts, State},
    static_discovery::{Described, with_places},
    transport::{Lanes, Transport, WrapDatapath},
    wait::Waiter,
};

/// What the loop does when nothing is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Waiting {
    /// Sleeps until something is.
    #[default]
    Sleep,
    /// Looks again at once. For a core of its own; never under SCHED_FIFO on a core that others
    /// need.
    Spin,
}

/// The datapath asked for.
enum Choice {
    Network(DatapathChoice),
    Memory(Box<Memory>),
}

/// Builds a [`Participant`].
///
/// ```
/// use std::{net::Ipv4Addr, time::Duration};
/// use isolane::{Interfaces, Limits, Participant, Timing};
///
/// let participant = Participant::builder(91)
///     .name("one of two on this host")
///     .interfaces(Interfaces::Loopback)
///     .multicast(false)
///     .peer(Ipv4Addr::LOCALHOST)
///     .timing(Timing { announce_period: Duration::from_secs(1), ..Timing::default() })
///     .limits(Limits { local_endpoints: 8, ..Limits::default() })
///     .build()?;
/// assert!(participant.participants().is_empty(), "it knows nobody yet");
/// # Ok::<(), isolane::BuildError>(())
/// ```
pub struct Builder {
    domain: u32,
    name: String,
    user_data: Vec<u8>,
    choice: Choice,
    interfaces: Interfaces,
    multicast: bool,
    peers: Vec<Ipv4Addr>,
    peers_at: Vec<SocketAddrV4>,
    timing: Timing,
    limits: isolane_engine::Limits,
    discovery_bytes_per_s: Option<u64>,
    sample_memory: Option<usize>,
    level_mapping: fn(Level) -> Level,
    priority_mapping: fn(u8) -> u8,
    waiting: Waiting,
    discovery_level: Option<Level>,
    receive_stamps: bool,
    receive_buffer_bytes: Option<usize>,
    prefault: bool,
    lock_memory: bool,
    placement: Placement,
    placement_required: bool,
    wrap: Option<WrapDatapath>,
    observable: bool,
    enabled: bool,
    autoenable: bool,
    described: Option<Described>,
    described_peers: Vec<Described>,
}

impl Builder {
    pub(crate) fn new(domain: u32) -> Self {
        Self {
            domain,
            name: program_name(),
            user_data: Vec::new(),
            choice: Choice::Network(DatapathChoice::Udp),
            interfaces: Interfaces::All,
            multicast: true,
            peers: Vec::new(),
            peers_at: Vec::new(),
            timing: Timing::default(),
            limits: isolane_engine::Limits::default(),
            discovery_bytes_per_s: None,
            sample_memory: None,
            level_mapping: |level| level,
            priority_mapping: |priority| priority,
            waiting: Waiting::Sleep,
            discovery_level: None,
            receive_stamps: true,
            receive_buffer_bytes: None,
            prefault: false,
            lock_memory: false,
            placement: Placement::default(),
            placement_required: true,
            wrap: None,
            observable: false,
            enabled: true,
            autoenable: true,
            described: None,
            described_peers: Vec::new(),
        }
    }

    /// A name for people, announced to peers; at most 63 bytes, the rest is cut. Default: the file name of the
    /// program, as it was called.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// USER_DATA: what the participant says of itself to whoever discovers it; isolane does not look at it. At
    /// most [`MAX_OCTETS`](isolane_wire::limits::MAX_OCTETS) octets, more are refused. It can be changed:
    /// [`Participant::set_user_data`].
    #[must_use]
    pub fn user_data(mut self, octets: &[u8]) -> Self {
        self.user_data = octets.into();
        self
    }

    /// The interfaces to use. Default: all that are up.
    #[must_use]
    pub fn interfaces(mut self, interfaces: Interfaces) -> Self {
        self.interfaces = interfaces;
        self
    }

    /// Unicast on 127.0.0.1 only, finding participants of this host without multicast.
    #[must_use]
    pub fn loopback(mut self) -> Self {
        self.interfaces = Interfaces::Loopback;
        self.multicast = false;
        self.peers.push(Ipv4Addr::LOCALHOST);
        self
    }

    /// Whether groups are joined and used. Default: yes, where interfaces can.
    #[must_use]
    pub fn multicast(mut self, multicast: bool) -> Self {
        self.multicast = multicast;
        self
    }

    /// A host to announce this participant to by unicast, beside the group: its first
    /// [`PARTICIPANTS_PER_PEER`] participants.
    #[must_use]
    pub fn peer(mut self, address: Ipv4Addr) -> Self {
        self.peers.push(address);
        self
    }

    /// As [`peer`](Self::peer), where the port of its discovery is known.
    #[must_use]
    pub fn peer_at(mut self, address: SocketAddrV4) -> Self {
        self.peers_at.push(address);
        self
    }

    /// How datagrams move: by sockets, or by AF_XDP lanes of a device. Default: sockets.
    ///
    /// ```
    /// use isolane::{DatapathChoice, Participant, XdpOptions};
    ///
    /// let options = XdpOptions { interface: Some("eth1".into()), ..XdpOptions::default() };
    /// let builder = Participant::builder(93).datapath(DatapathChoice::Auto(options));
    /// ```
    #[must_use]
    pub fn datapath(mut self, choice: DatapathChoice) -> Self {
        self.choice = Choice::Network(choice);
        self
    }

    /// A place on a network in memory instead of sockets. Participants on it share a thread.
    #[must_use]
    pub fn memory(mut self, network: &Network, address: [u8; 4]) -> Self {
        self.choice = Choice::Memory(Box::new(network.attach(address)));
        self
    }

    /// Periods of announcements and heartbeats.
    #[must_use]
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// How much the engine may hold, beside what is described ([`described_peer`](Self::described_peer)).
    #[must_use]
    pub fn limits(mut self, limits: isolane_engine::Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Bytes a second that discovery of endpoints (SEDP) sends, with one second's worth at once. Default: 5 % of the rate
    /// of the slowest link, or 65,536 where a driver does not tell it. Announcements of this participant and assertions
    /// of liveliness, which renew leases, are not limited.
    #[must_use]
    pub fn discovery_bytes_per_s(mut self, bytes_per_s: u64) -> Self {
        self.discovery_bytes_per_s = Some(bytes_per_s);
        self
    }

    /// Memory of the samples of all endpoints, in bytes: histories, caches, and places for fragments. Default: 16 MiB. Each
    /// endpoint takes its part when it is created, and is refused where that is more than is left
    /// ([`CreateError::SampleMemory`](isolane_engine::CreateError::SampleMemory)); no sample takes memory later. Pages
    /// are used when samples fill them, or at once with [`prefault`](Self::prefault) and
    /// [`lock_memory`](Self::lock_memory).
    ///
    /// An endpoint takes as many places as its history and RESOURCE_LIMITS say, of
    /// [`Qos::max_bytes`](crate::Qos::max_bytes) each. Where the type has strings or sequences without bounds, places
    /// have an Ethernet frame each, and longer samples share 256 KiB, or 4 MiB if `max_bytes` is above 64 KiB, and
    /// never less than four of the largest. A reader that takes fragments has four more places for the largest. Where
    /// long samples have used their share up, KEEP_LAST lets the oldest go; under KEEP_ALL a writer refuses
    /// ([`HistoryFull`](isolane_engine::WriteError::HistoryFull)), a reliable reader asks again later, and a best-effort
    /// one rejects.
    #[must_use]
    pub fn sample_memory(mut self, bytes: usize) -> Self {
        self.sample_memory = Some(bytes);
        self
    }

    /// The level whose lane carries the samples of each level: its sockets, port, group, frames, and
    /// traffic class (SO_PRIORITY, DSCP). Default: the level itself. Levels mapped to one share its
    /// lane, and are no longer isolated from each other; comparisons measure what that costs.
    #[must_use]
    pub fn level_mapping(mut self, mapping: fn(Level) -> Level) -> Self {
        self.level_mapping = mapping;
        self
    }

    /// The ready list of each priority of the loop's jobs. Default: the priority itself. Higher lists are
    /// served first; jobs of one list run in the order in which they became ready. See
    /// [`ExecutorConfig`].
    #[must_use]
    pub fn priority_mapping(mut self, mapping: fn(u8) -> u8) -> Self {
        self.priority_mapping = mapping;
        self
    }

    /// What the loop does with nothing to do.
    #[must_use]
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// Wire class of discovery's datagrams (SO_PRIORITY and DSCP). Default: one less than the highest level
    /// in use, and at least 1. The priority of discovery's jobs in the loop stays 1.
    #[must_use]
    pub fn discovery_level(mut self, level: Level) -> Self {
        self.discovery_level = Some(level);
        self
    }

    /// Whether the kernel is asked when each datagram arrived. Default: yes. Response times and
    /// priority inversions then count from there, otherwise from when the loop saw the socket
    /// readable. It costs the kernel a reading of the clock for each packet of the host.
    #[must_use]
    pub fn receive_stamps(mut self, receive_stamps: bool) -> Self {
        self.receive_stamps = receive_stamps;
        self
    }

    /// The receive buffer of each socket, in bytes; the kernel grants twice as many of its own memory.
    /// Default: [`RECEIVE_BUFFER_BYTES`], or what `net.core.rmem_max` allows of it. What there is, says
    /// [`Report::sockets`](crate::Report::sockets); where it is less than was asked for here,
    /// [`Participant::notes`] say so.
    #[must_use]
    pub fn receive_buffer_bytes(mut self, bytes: usize) -> Self {
        self.receive_buffer_bytes = Some(bytes);
        self
    }

    /// Whether reserved memory (frames, as far as the topics' samples fill them, histories, caches) is
    /// touched when it is taken, so that the first samples cost no page faults. Default: no; then the
    /// memory of what is never used is never taken. It does not keep pages in memory:
    /// [`lock_memory`](Self::lock_memory).
    #[must_use]
    pub fn prefault(mut self, prefault: bool) -> Self {
        self.prefault = prefault;
        self
    }

    /// Whether all memory of the process, now and from now on, is touched and kept from being paged
    /// out (`mlockall`): code, stacks and whole frames of 64 KiB too, about 3.3 MiB for each level in
    /// use. Includes [`prefault`](Self::prefault). It takes a limit (`ulimit -l`) of that size, or
    /// CAP_IPC_LOCK; where neither is there the participant is not built. It holds for the whole
    /// process and is not undone when the participant goes.
    #[must_use]
    pub fn lock_memory(mut self, lock_memory: bool) -> Self {
        self.lock_memory = lock_memory;
        self
    }

    /// Core of the thread that runs the loop: it is bound to it (`sched_setaffinity`) when it first runs the loop.
    /// Threads it has started before that are not. Default: the scheduler chooses. Threads of
    /// [`RemoteWriter`](crate::RemoteWriter)s are the user's to place.
    #[must_use]
    pub fn core(mut self, core: u16) -> Self {
        self.placement.core = Some(core);
        self
    }

    /// SCHED_FIFO with this priority, 1 to 99, for the thread that runs the loop, from when it first runs it. A device's
    /// receive threads and interrupts should be above it. Default: the thread's class stays as it is.
    ///
    /// With [`Waiting::Spin`] it is refused where others need the core: without [`core`](Self::core), on the only
    /// core, and where the kernel limits SCHED_FIFO (`kernel.sched_rt_runtime_us` is not -1).
    #[must_use]
    pub fn realtime(mut self, priority: u8) -> Self {
        self.placement.priority = Some(priority);
        self
    }

    /// Whether [`core`](Self::core), [`realtime`](Self::realtime) and [`lock_memory`](Self::lock_memory) are
    /// required: then the participant is not built where one of them is refused. Otherwise it goes without, and
    /// [`Participant::notes`] say why and what to do. Default: required.
    #[must_use]
    pub fn require_placement(mut self, required: bool) -> Self {
        self.placement_required = required;
        self
    }

    /// Whether other processes of this network namespace, of the same user or root, may look at the
    /// participant: `isolane top`. Default: no. It costs a job at priority 0, a system call a second
    /// while nobody looks, and some steps of ten microseconds a second while somebody does: see
    /// [`observe`](crate::observe).
    #[must_use]
    pub fn observable(mut self, observable: bool) -> Self {
        self.observable = observable;
        self
    }

    /// Whether the participant takes part from the beginning, or when it is
    /// [enabled](Participant::enable). Until then it announces nothing, hears nobody, and its endpoints do neither.
    /// Default: yes.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// ENTITY_FACTORY `autoenable_created_entities`: whether writers and readers take part as soon as they are
    /// created, or the participant is enabled. Otherwise each is enabled by its own call
    /// ([`DataWriter::enable`](crate::DataWriter::enable), [`DataReader::enable`](crate::DataReader::enable)).
    /// Default: yes.
    #[must_use]
    pub fn autoenable(mut self, autoenable: bool) -> Self {
        self.autoenable = autoenable;
        self
    }

    /// The participant is this one of those that its peers know by a description ([`Described`]): its GUID follows from
    /// its name, its levels have the ports that are described, and its described endpoints are announced to nobody.
    #[must_use]
    pub fn described_as(mut self, own: Described) -> Self {
        self.described = Some(own);
        self
    }

    /// A participant that is known by its description and need not be found. Its described endpoints match those of
    /// this one when they are created.
    #[must_use]
    pub fn described_peer(mut self, peer: Described) -> Self {
        self.described_peers.push(peer);
        self
    }

    /// Replaces the participant's datapath by one that `wrap` puts around it, before a lane is open.
    /// For datapaths that inject faults, record, or count. A second call replaces the first.
    ///
    /// ```
    /// use isolane::{Network, Participant};
    ///
    /// let network = Network::new(1);
    /// let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
    /// let participant = builder.wrap_datapath(|datapath| datapath).build()?;
    /// # Ok::<(), isolane::BuildError>(())
    /// ```
    #[must_use]
    pub fn wrap_datapath(
        mut self,
        wrap: impl FnOnce(Box<dyn Datapath>) -> Box<dyn Datapath> + 'static,
    ) -> Self {
        self.wrap = Some(Box::new(wrap));
        self
    }

    /// Makes the participant: opens the sockets of discovery and takes the memory.
    ///
    /// # Errors
    /// [`BuildError`]: what happened, why, and what to do.
    pub fn build(mut self) -> Result<Participant, BuildError> {
        let policy = PolicyId::USER_DATA;
        let user_data = Octets::of(&self.user_data).ok_or(BuildError::Octets { policy })?;
        let refused = self.schedule()?;
        let prefault = self.prefault || self.lock_memory;
        let lanes = Lanes::new(self.level_mapping);
        let level_ports = match &self.described {
            Some(described) => described.level_ports()?,
            None => [None; 8],
        };
        let mut transport = match self.choice {
            Choice::Memory(memory) => Transport::Memory(memory),
            Choice::Network(choice) => {
                let udp = UdpConfig {
                    interfaces: self.interfaces,
                    multicast: self.multicast,
                    level_ports,
                    discovery_level: self.discovery_level,
                    timestamps: self.receive_stamps,
                    receive_buffer_bytes: self.receive_buffer_bytes.or(Some(RECEIVE_BUFFER_BYTES)),
                    pool: PoolConfig {
                        prefault_bytes: if prefault { ANNOUNCEMENT_BYTES } else { 0 },
                        ..PoolConfig::default()
                    },
                    ..UdpConfig::new(self.domain)
                };
                network_transport(choice, udp)?
            }
        };
        if let Some(wrap) = self.wrap {
            transport = transport.wrapped(wrap);
        }
        transport.open_lane(Lane::Discovery)?;

        let system = |action| move |source: std::io::Error| BuildError::System { action, source };
        let mut random = [0; 18];
        getrandom::fill(&mut random)
            .map_err(|error| system("read random bytes")(std::io::Error::other(error)))?;
        if let Some(described) = &self.described {
            described.check(&transport, lanes)?;
        }
        let mut peers = self.peers;
        if !transport.capabilities().multicast {
            // By the group they would hear of this one; else they are named by where they are described.
            let announced = self.described_peers.iter().filter(|it| it.is_announced());
            let unnamed = announced.map(Described::address);
            for address in unnamed {
                if !peers.contains(&address) {
                    peers.push(address);
                }
            }
        }
        let (prefix, seed) = identity(&random);
        let now = monotonic_now();
        let mut config = EngineConfig::new(self.domain, prefix, seed);
        config.name = bounded_name(&self.name);
        config.user_data = user_data;
        (config.is_enabled, config.autoenable) = (self.enabled, self.autoenable);
        config.wall_offset_ns = wall_offset_ns();
        config.metatraffic_unicast = locators(transport.unicast(Lane::Discovery));
        config.metatraffic_multicast = locators(transport.multicast(Lane::Discovery));
        config.default_unicast = config.metatraffic_unicast.clone();
        config.announce_to = announce_to(&transport, self.domain, &peers, &self.peers_at)?;
        config.networks = networks(&transport);
        config.multicast = transport.capabilities().multicast;
        config.timing = self.timing;
        config.limits = with_places(self.limits, self.described.as_ref(), &self.described_peers);
        let of_link = || discovery_bytes_per_s(transport.link_bits_per_s());
        config.discovery_bytes_per_s = self.discovery_bytes_per_s.unwrap_or_else(of_link);
        config.zeroed = isolane_datapath::zeroed;
        if let Some(bytes) = self.sample_memory {
            config.limits.sample_bytes = bytes;
        }
        let described = self.described.as_ref().map(Described::participant);
        config.described = described.transpose()?;
        let mut engine = Engine::try_new(config, now)?;
        for peer in &self.described_peers {
            engine.add_static_peer(now, peer.participant()?)?;
        }

        let max_jobs = max_jobs(&self.limits);
        let executor = Executor::new(ExecutorConfig {
            priority_mapping: self.priority_mapping,
            max_jobs,
        });
        let waiter = Waiter::new().map_err(system("make an epoll instance"))?;
        let mut state = State::new(Parts {
            engine,
            executor,
            transport,
            lanes,
            waiter,
            max_jobs,
            spinning: self.waiting == Waiting::Spin,
            prefault,
            has_asked_for_buffer: self.receive_buffer_bytes.is_some(),
        })?;
        state.placement = Some(self.placement);
        state.not_placed = refused;
        state.open_lane(Lane::Discovery)?;
        state.touch(Lane::Discovery, ANNOUNCEMENT_BYTES);
        if self.observable {
            state.make_observable(&self.name, self.domain)?;
        }
        Ok(Participant::new(state))
    }
}

impl Builder {
    /// Locks memory, and finds out how the loop's thread can be scheduled. Returns what is refused and not required.
    fn schedule(&mut self) -> Result<Vec<String>, BuildError> {
        let mut refused = Vec::new();
        if self.lock_memory {
            let locked = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
            let locked = locked.map_err(|error| BuildError::Lock {
                source: error.into(),
            });
            refused.extend(locked.err());
        }
        let Placement { core, priority } = self.placement;
        if core.is_some() || priority.is_some() {
            let spins = self.waiting == Waiting::Spin;
            let tried = self.placement.take_refused(spins);
            let action = "schedule the loop's thread";
            let tried = tried.map_err(|source| BuildError::System { action, source })?;
            refused.extend(tried.into_iter().map(BuildError::from));
        }
        if self.placement_required && !refused.is_empty() {
            return Err(refused.swap_remove(0));
        }
        Ok(refused.iter().map(ToString::to_string).collect())
    }
}

/// Jobs there is room for: more where there may be more endpoints than usual.
fn max_jobs(limits: &isolane_engine::Limits) -> usize {
    let usual = isolane_engine::Limits::default().local_endpoints;
    let more = limits.local_endpoints.saturating_sub(usual);
    MAX_JOBS + JOBS_PER_PAIR * usize::from(more)
}

/// As many as are announced.
pub(crate) fn locators(all: &[Locator]) -> LocatorList {
    all.iter()
        .copied()
        .take(LocatorList::new().capacity())
        .collect()
}

/// The GUID prefix, its first two bytes the vendor's (RTPS 2.5 §9.3.1.5), and the seed.
fn identity(random: &[u8; 18]) -> (GuidPrefix, u64) {
    let mut prefix = [0; 12];
    prefix[..2].copy_from_slice(&VENDOR_ID);
    prefix[2..].copy_from_slice(&random[..10]);
    let seed = random[10..]
        .iter()
        .fold(0, |seed, &byte| seed << 8 | u64::from(byte));
    (GuidPrefix(prefix), seed)
}

fn bounded_name(name: &str) -> heapless::String<64> {
    let mut bounded = heapless::String::new();
    for character in name.chars() {
        if bounded.len() + character.len_utf8() > 63 || bounded.push(character).is_err() {
            break;
        }
    }
    bounded
}

/// The SPDP group where there is one, the ports of named peers (RTPS 2.5 §9.6.2.3), and peers
/// whose port is known.
fn announce_to(
    transport: &Transport,
    domain: u32,
    peers: &[Ipv4Addr],
    peers_at: &[SocketAddrV4],
) -> Result<Vec<Locator>, BuildError> {
    let ports = (0..PARTICIPANTS_PER_PEER)
        .filter_map(|participant| u16::try_from(7_410 + 250 * domain + 2 * participant).ok());
    let of_peer = |peer: &Ipv4Addr| {
        let address = peer.octets();
        ports.clone().map(move |port| Locator::udpv4(address, port))
    };
    let mut places = transport.multicast(Lane::Discovery).to_vec();
    places.extend(peers.iter().flat_map(of_peer));
    places.extend(peers_at.iter().copied().map(Locator::from));
    if places.len() > ANNOUNCED_PLACES {
        return Err(BuildError::TooManyPeers {
            places: places.len(),
        });
    }
    Ok(places)
}

/// Networks of this host, for the engine.
pub(crate) fn networks(transport: &Transport) -> Vec<isolane_engine::Network> {
    let all = transport.networks().into_iter();
    let network = |(address, prefix_bits)| isolane_engine::Network {
        address,
        prefix_bits,
    };
    all.map(network).collect()
}

/// What discovery may send: 5 % of a link, where its rate is known.
fn discovery_bytes_per_s(link_bits_per_s: Option<u64>) -> u64 {
    link_bits_per_s.map_or(DISCOVERY_BYTES_PER_S, |bits| bits / 8 / DISCOVERY_PART)
}

/// File name of the running program, as it was called.
fn program_name() -> String {
    let called = std::env::args_os().next();
    let name = called
        .as_deref()
        .and_then(|path| std::path::Path::new(path).file_name());
    name.map_or_else(
        || String::from("isolane"),
        |name| name.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discovery_may_send_a_twentieth_of_the_link_or_a_fixed_rate_where_it_is_not_known() {
        let rates = [Some(10_000_000), Some(1_000_000_000), None].map(discovery_bytes_per_s);
        assert_eq!(rates, [62_500, 6_250_000, 65_536]);
    }
}
