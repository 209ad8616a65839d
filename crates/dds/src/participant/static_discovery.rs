//! Static discovery: descriptions of participants and endpoints, and their conversion for the RTPS participant.

use std::net::{Ipv4Addr, SocketAddrV4};

use isolane_datapath::{Datapath, Lane};
use isolane_rtps::{Announces, EndpointConfig, EndpointKind, Limits, StaticParticipant};
use isolane_wire::{
    builtin_data::LocatorList,
    cdr::{Extensibility, TopicType},
    guid::GuidPrefix,
    level::Level,
    locator::Locator,
};

use crate::{error::BuildError, participant::Participant, participant::state::Lanes, qos::Qos};

/// Static description of a participant. The participant ([`Builder::described_as`](crate::Builder::described_as)) and
/// its peers ([`Builder::described_peer`](crate::Builder::described_peer)) must use the same description.
///
/// Described endpoints match at creation and are not announced. The participant has one address, and level *l* uses
/// port + *l*. Its GUID prefix follows from its name, except for four bytes that change at every start, from which
/// peers detect a restart.
///
/// ```
/// use isolane::{Level, Network, Participant, Qos, StaticDescription, TopicType};
/// use std::time::Duration;
///
/// #[derive(TopicType)]
/// struct Brake { pressure: u32 }
///
/// let qos = Qos::best_effort().level(Level::MAX);
/// let pedal = StaticDescription::new("pedal", "10.0.0.1:32768".parse()?).writer::<Brake>("Brake", &qos);
/// let wheel = StaticDescription::new("wheel", "10.0.0.2:32768".parse()?).reader::<Brake>("Brake", &qos);
///
/// let network = Network::new(1);
/// let left = Participant::builder(0)
///     .memory(&network, [10, 0, 0, 1])
///     .described_as(pedal.clone())
///     .described_peer(wheel.clone())
///     .build()?;
/// let right = Participant::builder(0)
///     .memory(&network, [10, 0, 0, 2])
///     .described_as(wheel)
///     .described_peer(pedal)
///     .build()?;
/// let writer = left.create_writer::<Brake>("Brake", &qos)?;
/// let reader = right.create_reader::<Brake>("Brake", &qos)?;
/// // No datagram was sent yet, and no participant has run.
/// assert_eq!((writer.matched_readers(), reader.matched_writers()), (1, 1));
/// writer.write(&Brake { pressure: 80 })?;
/// right.run_until(Duration::from_secs(5), || reader.ledger().available == 1);
/// assert_eq!(reader.take()?.and_then(|sample| sample.value).map(|brake| brake.pressure), Some(80));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct StaticDescription {
    name: String,
    at: SocketAddrV4,
    announces: Announces,
    endpoints: Vec<DescribedEndpoint>,
}

#[derive(Debug, Clone, PartialEq)]
struct DescribedEndpoint {
    kind: EndpointKind,
    topic: String,
    type_name: String,
    keyed: bool,
    qos: Qos,
}

/// Current state of a described peer: [`Participant::described_peers`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescribedPeer {
    /// Participant name.
    pub name: String,
    /// GUID prefix; the last four bytes are zero until a datagram of the peer arrives.
    pub prefix: GuidPrefix,
    /// True if the peer counts as alive and its endpoints are matched.
    pub is_present: bool,
    /// True if the peer announces a description whose endpoints differ from those described here.
    pub disagrees: bool,
    /// Number of detected restarts.
    pub restarts: u32,
}

impl StaticDescription {
    /// Creates a description without endpoints. The participant announces everything not described
    /// ([`Announces::All`]). Only the first 63 bytes of the name are used. Level *l* uses the port of `at` + *l*.
    #[must_use]
    pub fn new(name: &str, at: SocketAddrV4) -> Self {
        Self {
            name: name.into(),
            at,
            announces: Announces::All,
            endpoints: Vec::new(),
        }
    }

    /// Sets what the participant announces, and with it whether peers can detect its disappearance.
    #[must_use]
    pub fn announces(mut self, announces: Announces) -> Self {
        self.announces = announces;
        self
    }

    /// Adds a writer. Of `qos`, only the level and the policies for matching are used.
    #[must_use]
    pub fn writer<T: TopicType>(self, topic: &str, qos: &Qos) -> Self {
        let qos = qos.clone().representation(qos.sent(T::EXTENSIBILITY));
        self.endpoint(EndpointKind::Writer, topic, (T::TYPE_NAME, T::KEYED), &qos)
    }

    /// Adds a reader. Of `qos`, only the level and the policies for matching are used.
    #[must_use]
    pub fn reader<T: TopicType>(self, topic: &str, qos: &Qos) -> Self {
        self.endpoint(EndpointKind::Reader, topic, (T::TYPE_NAME, T::KEYED), qos)
    }

    /// Adds an endpoint whose type has this name, and a key if `keyed`. A writer offers XCDR1 unless `qos` names
    /// another representation.
    #[must_use]
    pub fn endpoint(
        mut self,
        kind: EndpointKind,
        topic: &str,
        (type_name, keyed): (&str, bool),
        qos: &Qos,
    ) -> Self {
        self.endpoints.push(DescribedEndpoint {
            kind,
            topic: topic.into(),
            type_name: type_name.into(),
            keyed,
            qos: qos.clone(),
        });
        self
    }

    /// Returns the GUID prefix with zeros for the last four bytes, which change at every start.
    #[must_use]
    pub fn prefix(&self) -> GuidPrefix {
        let address = self.address().octets();
        StaticParticipant::new(&self.name, address, self.announces).prefix_before_start()
    }

    /// Returns the digest of all endpoints
    /// ([`static_digest`](isolane_wire::builtin_data::ParticipantData::static_digest)). The participant announces the
    /// digest, and peers compare it with the digest of their own description.
    ///
    /// # Errors
    /// As when a participant with this description is built.
    pub fn digest(&self) -> Result<u64, BuildError> {
        Ok(self.participant()?.digest())
    }

    pub(crate) fn address(&self) -> Ipv4Addr {
        *self.at.ip()
    }

    pub(crate) fn is_announced(&self) -> bool {
        self.announces != Announces::Nothing
    }

    pub(crate) fn level_ports(&self) -> Result<[Option<u16>; 8], BuildError> {
        let mut ports = [None; 8];
        for (port, level) in ports.iter_mut().zip(Level::ALL) {
            let at = self.at.port().checked_add(u16::from(level.get()));
            *port = Some(at.ok_or(BuildError::DescribedPort {
                port: self.at.port(),
            })?);
        }
        Ok(ports)
    }

    /// Returns the locator of a level.
    fn reached_at(&self, level: Level) -> Result<Locator, BuildError> {
        let ports = self.level_ports()?;
        let port = ports[usize::from(level.get())].unwrap_or_default();
        Ok(Locator::udpv4(self.address().octets(), port))
    }

    /// Converts the description for the RTPS participant.
    pub(crate) fn participant(&self) -> Result<StaticParticipant, BuildError> {
        let address = self.address().octets();
        let mut participant = StaticParticipant::new(&self.name, address, self.announces);
        for endpoint in &self.endpoints {
            endpoint.qos.check()?;
            let config = EndpointConfig {
                topic_name: &endpoint.topic,
                type_name: &endpoint.type_name,
                keyed: endpoint.keyed,
                key_of: None,
                qos: match endpoint.kind {
                    EndpointKind::Writer => endpoint.qos.offered(Extensibility::Final),
                    EndpointKind::Reader => endpoint.qos.requested(),
                },
                max_payload_bytes: endpoint.qos.sample_bytes(),
                shares_long: false,
                max_datagram_bytes: endpoint.qos.max_datagram_bytes,
                unicast: LocatorList::from_iter([self.reached_at(endpoint.qos.transport_level())?]),
                multicast: LocatorList::new(),
            };
            participant.add(endpoint.kind, &config)?;
        }
        Ok(participant)
    }

    /// Checks that a participant on this datapath has the described address.
    pub(crate) fn check(&self, datapath: &dyn Datapath, lanes: Lanes) -> Result<(), BuildError> {
        if !lanes.is_per_level() {
            return Err(BuildError::DescribedSharedLane);
        }
        let here = datapath.unicast(Lane::Discovery);
        let mut addresses = here.iter().filter_map(|locator| locator.ipv4());
        match addresses.any(|address| address == self.address().octets()) {
            true => Ok(()),
            false => Err(BuildError::DescribedElsewhere {
                name: self.name.clone(),
                address: self.address(),
            }),
        }
    }
}

/// Built-in matches with a participant that announces itself: two for endpoint discovery, and one for liveliness.
const DISCOVERY_MATCHES: usize = 3;

/// Adds room for the described entities, whose number is known before the start, to the limits for discovered ones.
pub(crate) fn with_places(
    limits: Limits,
    own: Option<&StaticDescription>,
    peers: &[StaticDescription],
) -> Limits {
    let endpoints = peers.iter().flat_map(|peer| &peer.endpoints);
    let meets = |own: &DescribedEndpoint, it: &DescribedEndpoint| {
        it.kind != own.kind && it.topic == own.topic
    };
    let of_own = own.into_iter().flat_map(|own| &own.endpoints);
    let pairs: usize = of_own
        .map(|own| endpoints.clone().filter(|it| meets(own, it)).count())
        .sum();
    let plus = |places: u16, more: usize| {
        u16::try_from(more).map_or(u16::MAX, |more| places.saturating_add(more))
    };
    Limits {
        participants: plus(limits.participants, peers.len()),
        remote_endpoints: plus(limits.remote_endpoints, endpoints.clone().count()),
        matches: plus(limits.matches, pairs + DISCOVERY_MATCHES * peers.len()),
        ..limits
    }
}

impl Participant {
    /// Returns the state of the described peers, in the order of their descriptions.
    #[must_use]
    pub fn described_peers(&self) -> Vec<DescribedPeer> {
        let state = self.core().state.borrow();
        let peers = state.protocol.static_peers();
        let described = peers.map(|peer| DescribedPeer {
            name: peer.name.into(),
            prefix: peer.prefix,
            is_present: peer.is_present,
            disagrees: peer.disagrees,
            restarts: peer.restarts,
        });
        described.collect()
    }
}
