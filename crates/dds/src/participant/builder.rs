//! Construction of a participant from its options.

use std::net::{Ipv4Addr, SocketAddrV4};
#[cfg(feature = "config")]
use std::rc::Rc;

use isolane_datapath::{
    Datapath, DatapathFactory, InterfaceRateLimit, Interfaces, Lane, NetworkConfig, PoolConfig,
    RateLimitError,
    clock::{monotonic_now, wall_offset_ns},
    memory::Network,
    udp::UdpOptions,
};
use isolane_executor::{Executor, ExecutorConfig};
#[cfg(feature = "config")]
use isolane_model::System;
use isolane_rtps::{LocalParticipant, ParticipantConfig, Timing, limits::DISCOVERY_BYTES_PER_S};
use isolane_wire::{
    builtin_data::LocatorList,
    guid::GuidPrefix,
    level::Level,
    locator::Locator,
    message::VENDOR_ID,
    qos::{Octets, PolicyId},
};
use rustix::mm::{MlockAllFlags, mlockall};

use crate::{
    datapaths::open_first,
    error::BuildError,
    limits::{
        ANNOUNCED_PLACES, ANNOUNCEMENT_BYTES, DISCOVERY_PART, JOBS_PER_PAIR, MAX_JOBS,
        PARTICIPANTS_PER_PEER, RECEIVE_BUFFER_BYTES,
    },
    monitoring::Monitoring,
    participant::Participant,
    participant::io::{Io, Poller},
    participant::placement::Placement,
    participant::state::Lanes,
    participant::state::State,
    participant::static_discovery::{StaticDescription, with_places},
};

/// Behaviour of the loop when no job is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Waiting {
    /// Sleeps until a source is ready.
    #[default]
    Sleep,
    /// Busy-polls. Requires a dedicated core; never use it under SCHED_FIFO on a core that others need.
    Spin,
}

/// Builder of a [`Participant`].
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
/// assert!(participant.participants().is_empty(), "no peer is discovered yet");
/// # Ok::<(), isolane::BuildError>(())
/// ```
pub struct Builder {
    pub(crate) domain: u32,
    name: String,
    user_data: Vec<u8>,
    /// Datapaths in order of preference, at least one.
    factories: Vec<Box<dyn DatapathFactory>>,
    interfaces: Interfaces,
    multicast: bool,
    peers: Vec<Ipv4Addr>,
    peers_at: Vec<SocketAddrV4>,
    timing: Timing,
    limits: isolane_rtps::Limits,
    discovery_bytes_per_s: Option<u64>,
    sample_memory: Option<usize>,
    level_mapping: fn(Level) -> Level,
    priority_mapping: fn(u8) -> u8,
    waiting: Waiting,
    discovery_level: Option<Level>,
    sample_ports: Option<u16>,
    receive_stamps: bool,
    receive_buffer_bytes: Option<usize>,
    prefault: bool,
    lock_memory: bool,
    placement: Placement,
    placement_required: bool,
    observable: bool,
    enabled: bool,
    autoenable: bool,
    described: Option<StaticDescription>,
    described_peers: Vec<StaticDescription>,
    interface_limit: Option<InterfaceRateLimit>,
    #[cfg(feature = "config")]
    pub(crate) description: Option<Rc<System>>,
}

setters! {
    Builder:

    /// Name for people, announced to peers and truncated to 63 bytes. Default: the program's file name from `argv[0]`.
    name(name: &str) => name = name.into();

    /// USER_DATA: octets announced to every participant that discovers this one; isolane does not interpret them.
    ///
    /// [`build`](Self::build) fails with more than [`MAX_OCTETS`](isolane_wire::limits::MAX_OCTETS) octets.
    /// [`Participant::set_user_data`] changes them.
    user_data(octets: &[u8]) => user_data = octets.into();

    /// Network interfaces to use. Default: all that are up.
    interfaces(interfaces: Interfaces) => interfaces = interfaces;

    /// Enables or disables multicast groups. Default: enabled, on interfaces that support multicast.
    multicast(multicast: bool) => multicast = multicast;

    /// Periods of announcements and heartbeats.
    timing(timing: Timing) => timing = timing;

    /// Limits of the participant's tables, in addition to the memory for [described peers](Self::described_peer).
    limits(limits: isolane_rtps::Limits) => limits = limits;

    /// Rate limit of endpoint discovery (SEDP) in bytes a second, with a burst of one second's worth.
    ///
    /// Default: 5 % of the rate of the slowest link, or 65,536 if a driver does not report it. Announcements of this
    /// participant and liveliness assertions, which renew leases, are not limited.
    discovery_bytes_per_s(bytes_per_s: u64) => discovery_bytes_per_s = Some(bytes_per_s);

    /// Sample memory of all endpoints in bytes: histories, caches, and reassembly slots. Default: 16 MiB.
    ///
    /// Each endpoint reserves its share at creation, which fails if too little is left
    /// ([`CreateError::SampleMemory`](isolane_rtps::CreateError::SampleMemory)). Samples never allocate later. Pages
    /// are touched when samples fill them, or at once with [`prefault`](Self::prefault) and
    /// [`lock_memory`](Self::lock_memory).
    ///
    /// HISTORY and RESOURCE_LIMITS determine the number of slots of an endpoint. Each slot has
    /// [`Qos::max_bytes`](crate::Qos::max_bytes). If the type has unbounded strings or sequences, a slot has the size
    /// of an Ethernet frame, and longer samples share an area. The area has 256 KiB; 2 MiB under KEEP_ALL with
    /// `max_samples`; 4 MiB if `max_bytes` exceeds 64 KiB; and at least room for four of the largest samples. A
    /// reader that accepts fragments also has four reassembly slots for the largest samples.
    ///
    /// When long samples have used up the shared area, KEEP_LAST removes the oldest. Under KEEP_ALL a writer returns
    /// [`HistoryFull`](isolane_rtps::WriteError::HistoryFull), a reliable reader requests the sample again later,
    /// and a best-effort reader rejects it.
    sample_memory(bytes: usize) => sample_memory = Some(bytes);

    /// Maps each level to the level whose lane carries its samples. Default: the level itself. Levels mapped to one
    /// lane share its sockets, port, group, frames and traffic class (SO_PRIORITY, DSCP), and are not isolated from
    /// each other. Experiments measure the cost of that.
    level_mapping(mapping: fn(Level) -> Level) => level_mapping = mapping;

    /// Maps the priority of a job to its ready list. Default: the priority itself. Higher lists are served first; jobs
    /// of one list run in the order in which they became ready. See [`ExecutorConfig`].
    priority_mapping(mapping: fn(u8) -> u8) => priority_mapping = mapping;

    /// Behaviour of the loop when no job is ready.
    waiting(waiting: Waiting) => waiting = waiting;

    /// Traffic class of discovery datagrams (SO_PRIORITY and DSCP). Default: one below the highest level in use, at
    /// least 1. Discovery's jobs in the loop keep priority 1.
    discovery_level(level: Level) => discovery_level = Some(level);

    /// First of [`SAMPLE_PORTS`](isolane_datapath::SAMPLE_PORTS) fixed UDP ports for samples, for rules of firewalls and switches.
    /// Level l has the first free port of `base` + l, `base` + 8 + l and so on, so that several participants of a host
    /// can have the same base. Default: the kernel chooses the ports.
    ///
    /// Discovery has the well-known ports of RTPS 2.5 §9.6.1.1 in any case. The ports of a
    /// [description](Self::described_as) go first.
    sample_ports(base: u16) => sample_ports = Some(base);

    /// Enables or disables the kernel's receive time stamps. Default: enabled.
    ///
    /// With time stamps, response times and priority inversions are measured from the arrival; otherwise, from when the
    /// loop saw the socket readable. The kernel then reads the clock for each received packet.
    receive_stamps(receive_stamps: bool) => receive_stamps = receive_stamps;

    /// Receive buffer of each socket in bytes (SO_RCVBUF); the kernel doubles the value for its own overhead.
    ///
    /// Default: [`RECEIVE_BUFFER_BYTES`], or less if `net.core.rmem_max` limits it.
    /// [`Report::sockets`](crate::Report::sockets) reports the granted size. If it is below the size requested here,
    /// [`Participant::warnings`] reports it.
    receive_buffer_bytes(bytes: usize) => receive_buffer_bytes = Some(bytes);

    /// Touches reserved memory at allocation if enabled, so that the first samples cause no page faults. Default:
    /// disabled; memory that is never used is then never resident.
    ///
    /// This covers histories, caches, and frames: up to the size of the topics' samples, or whole frames where bursts
    /// are segmented, about 3.3 MiB for each level in use. Pages can still be swapped out; see
    /// [`lock_memory`](Self::lock_memory).
    prefault(prefault: bool) => prefault = prefault;

    /// Touches and locks all current and future memory of the process if enabled (`mlockall`). Includes
    /// [`prefault`](Self::prefault). Default: disabled.
    ///
    /// This also covers code, stacks and whole frames of 64 KiB, about 3.3 MiB for each level in use. It requires a
    /// limit (`ulimit -l`) of that size or CAP_IPC_LOCK; otherwise [`build`](Self::build) fails, unless
    /// [`require_placement`](Self::require_placement) is off. The lock applies to the whole process and stays when the
    /// participant is dropped.
    lock_memory(lock_memory: bool) => lock_memory = lock_memory;

    /// Allows processes of the same user or root in this network namespace to observe the participant (`isolane top`).
    /// Default: false.
    ///
    /// Cost: a job at priority 0, and one system call a second. An observer adds a few steps of some ten microseconds
    /// each a second: see [`observe`](crate::observe).
    observable(observable: bool) => observable = observable;

    /// Enables the participant at creation if true, the default. Otherwise [`enable`](Participant::enable) does so
    /// later.
    ///
    /// Until then, the participant and its endpoints announce, receive and match nothing.
    enabled(enabled: bool) => enabled = enabled;

    /// ENTITY_FACTORY `autoenable_created_entities`: whether writers and readers are enabled at creation, or together
    /// with the participant. Default: true.
    ///
    /// Otherwise each is enabled by a call ([`DataWriter::enable`](crate::DataWriter::enable),
    /// [`DataReader::enable`](crate::DataReader::enable)).
    autoenable(autoenable: bool) => autoenable = autoenable;

    /// Budget of all topics together, and budget of all other traffic, as
    /// [`set_interface_limit`](Participant::set_interface_limit) sets them. [`Participant::warnings`] reports if the
    /// datapath does not support them.
    interface_limit(rate_limit: InterfaceRateLimit) => interface_limit = Some(rate_limit);

    /// Datapath, given by its options or another [`DatapathFactory`]. Default: [`UdpOptions`], kernel sockets.
    /// [`build`](Self::build) fails if the datapath cannot be opened.
    ///
    /// ```
    /// use isolane::{Participant, XdpOptions};
    ///
    /// let options = XdpOptions { interface: Some("eth1".into()), ..XdpOptions::default() };
    /// let builder = Participant::builder(93).datapath(options);
    /// ```
    datapath(factory: impl DatapathFactory + 'static) => factories = vec![Box::new(factory)];

    /// Core of the thread that runs the loop. The thread is bound to the core (`sched_setaffinity`) when it first runs
    /// the loop.
    ///
    /// Threads started earlier are not bound. Default: the scheduler chooses. The application itself places the threads
    /// of [`WriterHandle`](crate::WriterHandle)s.
    core(core: u16) => placement.core = Some(core);

    /// SCHED_FIFO priority, 1 to 99, of the thread that runs the loop, from its first run on. A device's receive
    /// threads and interrupts should have a higher one. Default: the scheduling class is unchanged.
    ///
    /// With [`Waiting::Spin`] the priority is refused where it would starve other threads: without
    /// [`core`](Self::core), on a machine with one core, and if the kernel limits SCHED_FIFO
    /// (`kernel.sched_rt_runtime_us` is not -1).
    realtime(priority: u8) => placement.priority = Some(priority);

    /// Requires [`core`](Self::core), [`realtime`](Self::realtime) and [`lock_memory`](Self::lock_memory) if true, the
    /// default: [`build`](Self::build) fails if one of them is refused.
    ///
    /// Otherwise the participant runs without that option, and [`Participant::warnings`] reports the reason and remedy.
    require_placement(required: bool) => placement_required = required;

    /// Static description of this participant, as its peers have it. Its GUID follows from its name, its levels use the
    /// described ports, and its described endpoints are not announced.
    described_as(own: StaticDescription) => described = Some(own);
}

/// Bytes of stack that building a participant may take, as far as known with a margin.
const STACK_BYTES: usize = 32 << 10;

/// Grows the stack before frames take the rest of the address space. Where a limit (`ulimit -v`) leaves too little for
/// both, the lack is then an error, and not a stack that cannot grow.
#[inline(never)]
#[expect(clippy::large_stack_arrays, reason = "the size is the purpose")]
fn take_stack() {
    std::hint::black_box([0_u8; STACK_BYTES]);
}

impl Builder {
    pub(crate) fn new(domain: u32) -> Self {
        Self {
            domain,
            name: program_name(),
            user_data: Vec::new(),
            factories: vec![Box::new(UdpOptions::default())],
            interfaces: Interfaces::All,
            multicast: true,
            peers: Vec::new(),
            peers_at: Vec::new(),
            timing: Timing::default(),
            limits: isolane_rtps::Limits::default(),
            discovery_bytes_per_s: None,
            sample_memory: None,
            level_mapping: |level| level,
            priority_mapping: |priority| priority,
            waiting: Waiting::Sleep,
            discovery_level: None,
            sample_ports: None,
            receive_stamps: true,
            receive_buffer_bytes: None,
            prefault: false,
            lock_memory: false,
            placement: Placement::default(),
            placement_required: true,
            observable: false,
            enabled: true,
            autoenable: true,
            described: None,
            described_peers: Vec::new(),
            interface_limit: None,
            #[cfg(feature = "config")]
            description: None,
        }
    }

    /// Limits set so far.
    #[cfg(feature = "config")]
    pub(crate) fn limits_so_far(&self) -> isolane_rtps::Limits {
        self.limits
    }

    /// Restricts the participant to unicast on 127.0.0.1. It discovers participants of this host without multicast.
    #[must_use]
    pub fn loopback(mut self) -> Self {
        self.interfaces = Interfaces::Loopback;
        self.multicast = false;
        self.peers.push(Ipv4Addr::LOCALHOST);
        self
    }

    /// Host to which this participant is announced by unicast, in addition to multicast. The announcements go to the
    /// well-known ports of the host's first [`PARTICIPANTS_PER_PEER`] participants.
    #[must_use]
    pub fn peer(mut self, address: Ipv4Addr) -> Self {
        self.peers.push(address);
        self
    }

    /// Peer with a known discovery port; like [`peer`](Self::peer) otherwise.
    #[must_use]
    pub fn peer_at(mut self, address: SocketAddrV4) -> Self {
        self.peers_at.push(address);
        self
    }

    /// Datapaths in order of preference. The first whose requirements this machine meets is opened; if it meets those
    /// of none, the last. [`Participant::warnings`] reports why the others are not used.
    ///
    /// ```
    /// use isolane::{Participant, UdpOptions, XdpOptions};
    ///
    /// let builder =
    ///     Participant::builder(93).datapaths(vec![Box::new(XdpOptions::default()), Box::new(UdpOptions::default())]);
    /// ```
    #[must_use]
    pub fn datapaths(mut self, factories: Vec<Box<dyn DatapathFactory>>) -> Self {
        self.factories = factories;
        self
    }

    /// Address on an in-memory network, instead of sockets. All participants on the network run on one thread.
    #[must_use]
    pub fn memory(self, network: &Network, address: [u8; 4]) -> Self {
        self.datapath(network.attach(address))
    }

    /// Static description of a peer, which needs no discovery. Endpoints of this participant match the peer's described
    /// endpoints at creation.
    #[must_use]
    pub fn described_peer(mut self, peer: StaticDescription) -> Self {
        self.described_peers.push(peer);
        self
    }

    /// Builds the participant: opens the discovery sockets and allocates the memory.
    ///
    /// # Errors
    /// [`BuildError`], with the reason and the remedy.
    pub fn build(mut self) -> Result<Participant, BuildError> {
        take_stack();
        let policy = PolicyId::USER_DATA;
        let user_data = Octets::of(&self.user_data).ok_or(BuildError::Octets { policy })?;
        let refused = self.schedule()?;
        let prefault = self.prefault || self.lock_memory;
        let lanes = Lanes::new(self.level_mapping);
        let level_ports = match &self.described {
            Some(described) => described.level_ports()?,
            None => [None; 8],
        };
        let network = NetworkConfig {
            interfaces: self.interfaces,
            multicast: self.multicast,
            level_ports,
            sample_ports: self.sample_ports,
            discovery_level: self.discovery_level,
            timestamps: self.receive_stamps,
            receive_buffer_bytes: self.receive_buffer_bytes.or(Some(RECEIVE_BUFFER_BYTES)),
            pool: PoolConfig {
                prefault_bytes: if prefault { ANNOUNCEMENT_BYTES } else { 0 },
                ..PoolConfig::default()
            },
            ..NetworkConfig::new(self.domain)
        };
        let (mut datapath, not_used) = open_first(self.factories, network)?;
        datapath.open_lane(Lane::Discovery)?;

        let system = |action| move |source: std::io::Error| BuildError::System { action, source };
        let mut random = [0; 18];
        getrandom::fill(&mut random)
            .map_err(|error| system("read random bytes")(std::io::Error::other(error)))?;
        if let Some(described) = &self.described {
            described.check(&*datapath, lanes)?;
        }
        let mut peers = self.peers;
        if !datapath.capabilities().multicast {
            // Without multicast, described peers learn of this participant only by unicast.
            let announced = self.described_peers.iter().filter(|it| it.is_announced());
            let unnamed = announced.map(StaticDescription::address);
            for address in unnamed {
                if !peers.contains(&address) {
                    peers.push(address);
                }
            }
        }
        let (prefix, seed) = identity(&random);
        let now = monotonic_now();
        let mut config = ParticipantConfig::new(self.domain, prefix, seed);
        config.name = bounded_name(&self.name);
        config.user_data = user_data;
        (config.is_enabled, config.autoenable) = (self.enabled, self.autoenable);
        config.wall_offset_ns = wall_offset_ns();
        config.metatraffic_unicast = locators(datapath.unicast(Lane::Discovery));
        config.metatraffic_multicast = locators(datapath.multicast(Lane::Discovery));
        config.default_unicast = config.metatraffic_unicast.clone();
        config.announce_to = announce_to(&*datapath, self.domain, &peers, &self.peers_at)?;
        config.networks = networks(&*datapath);
        config.multicast = datapath.capabilities().multicast;
        config.timing = self.timing;
        config.limits = with_places(self.limits, self.described.as_ref(), &self.described_peers);
        let of_link = || discovery_bytes_per_s(datapath.link_bits_per_s());
        config.discovery_bytes_per_s = self.discovery_bytes_per_s.unwrap_or_else(of_link);
        config.zeroed = isolane_datapath::zeroed;
        if let Some(bytes) = self.sample_memory {
            config.limits.sample_bytes = bytes;
        }
        let described = self.described.as_ref().map(StaticDescription::participant);
        config.described = described.transpose()?;
        let mut protocol = LocalParticipant::try_new(config, now)?;
        for peer in &self.described_peers {
            protocol.add_static_peer(now, peer.participant()?)?;
        }

        let max_jobs = max_jobs(&self.limits);
        let executor = Executor::new(ExecutorConfig {
            priority_mapping: self.priority_mapping,
            max_jobs,
        });
        let poller = Poller::new().map_err(system("make an epoll instance"))?;
        let spinning = self.waiting == Waiting::Spin;
        let io = Io::new(datapath, poller, spinning, prefault);
        let mut monitoring = Monitoring::new(not_used, refused);
        monitoring.has_asked_for_buffer = self.receive_buffer_bytes.is_some();
        let mut state = State::new(protocol, executor, io, lanes, max_jobs, monitoring)?;
        state.placement = Some(self.placement);
        state.open_lane(Lane::Discovery)?;
        state.touch(Lane::Discovery, ANNOUNCEMENT_BYTES);
        if self.observable {
            state.make_observable(&self.name, self.domain)?;
        }
        let participant = Participant::new(state);
        #[cfg(feature = "config")]
        let participant = participant.with_description(self.description);
        if let Some(rate_limit) = self.interface_limit {
            use RateLimitError::{NoLanes, Unsupported};
            match participant.set_interface_limit(rate_limit) {
                Ok(()) => {}
                Err(error @ (Unsupported { .. } | NoLanes)) => {
                    let monitoring = &mut participant.core().state.borrow_mut().monitoring;
                    let warning = format!("the budget of the interface is not enforced: {error}");
                    monitoring.limit_not_enforced = Some(warning);
                }
                Err(error) => return Err(error.into()),
            }
        }
        participant.core().state.borrow_mut().tell_new_warnings();
        Ok(participant)
    }
}

impl Builder {
    /// Locks memory and tests how the loop's thread can be scheduled. Returns why options were refused; if they are
    /// required, that is an error.
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

/// Returns the capacity for jobs, which grows with the endpoint limit.
fn max_jobs(limits: &isolane_rtps::Limits) -> usize {
    let usual = isolane_rtps::Limits::default().local_endpoints;
    let more = limits.local_endpoints.saturating_sub(usual);
    MAX_JOBS + JOBS_PER_PAIR * usize::from(more)
}

/// Returns the first locators, as many as an announcement holds.
pub(crate) fn locators(all: &[Locator]) -> LocatorList {
    all.iter()
        .copied()
        .take(LocatorList::new().capacity())
        .collect()
}

/// Returns the GUID prefix, which starts with the vendor id (RTPS 2.5 §9.3.1.5), and a random seed.
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

/// Returns the destinations of SPDP: the multicast group if there is one, the well-known ports of named peers (RTPS
/// 2.5 §9.6.2.3), and the peers with a known port.
fn announce_to(
    datapath: &dyn Datapath,
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
    let mut places = datapath.multicast(Lane::Discovery).to_vec();
    places.extend(peers.iter().flat_map(of_peer));
    places.extend(peers_at.iter().copied().map(Locator::from));
    if places.len() > ANNOUNCED_PLACES {
        return Err(BuildError::TooManyPeers {
            places: places.len(),
        });
    }
    Ok(places)
}

pub(crate) fn networks(datapath: &dyn Datapath) -> Vec<isolane_rtps::Network> {
    let network = |(address, prefix_bits)| isolane_rtps::Network {
        address,
        prefix_bits,
    };
    datapath.networks().into_iter().map(network).collect()
}

/// Returns the rate limit of discovery: 5 % of the link rate, or a fixed rate if that is unknown.
fn discovery_bytes_per_s(link_bits_per_s: Option<u64>) -> u64 {
    link_bits_per_s.map_or(DISCOVERY_BYTES_PER_S, |bits| bits / 8 / DISCOVERY_PART)
}

/// Returns the program's file name from `argv[0]`.
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
