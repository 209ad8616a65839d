//! Participants and endpoints that are described, not discovered, in the words of a user; and what the engine is
//! told of them.

use std::net::{Ipv4Addr, SocketAddrV4};

use isolane_datapath::{Datapath, Lane};
use isolane_engine::{Announces, EndpointConfig, EndpointKind, Limits, StaticParticipant};
use isolane_wire::{
    cdr::{Extensibility, TopicType},
    discovery::LocatorList,
    guid::GuidPrefix,
    level::Level,
    locator::Locator,
};

use crate::{error::BuildError, lanes::Lanes, participant::Participant, qos::Qos};

/// A participant as it is described, to itself ([`Builder::described_as`](crate::Builder::described_as)) and to its
/// peers ([`Builder::described_peer`](crate::Builder::described_peer)), in the same words on all sides.
///
/// Its endpoints that are described match as soon as they are created, and nothing is announced of them. It is reached at
/// one address; level *l* at port + *l*. Its name is its GUID, but for four bytes that differ at every start, by which
/// peers tell that it has started again.
///
/// ```
/// use isolane::{Described, Level, Network, Participant, Qos, TopicType};
/// use std::time::Duration;
///
/// #[derive(TopicType)]
/// struct Brake { pressure: u32 }
///
/// let qos = Qos::best_effort().level(Level::MAX);
/// let pedal = Described::new("pedal", "10.0.0.1:32768".parse()?).writer::<Brake>("Brake", &qos);
/// let wheel = Described::new("wheel", "10.0.0.2:32768".parse()?).reader::<Brake>("Brake", &qos);
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
/// // Nothing was sent yet, and nobody has run.
/// assert_eq!((writer.matched_readers(), reader.matched_writers()), (1, 1));
/// writer.write(&Brake { pressure: 80 })?;
/// right.run_until(Duration::from_secs(5), || reader.ledger().available == 1);
/// assert_eq!(reader.take()?.and_then(|sample| sample.value).map(|brake| brake.pressure), Some(80));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
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

/// A described peer, as it is known now: [`Participant::described_peers`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescribedPeer {
    /// Its name.
    pub name: String,
    /// Its GUID prefix; the last four bytes are zeros as long as nothing has come of it.
    pub prefix: GuidPrefix,
    /// It counts as alive, and its endpoints are matched.
    pub is_present: bool,
    /// It announces itself with another description: what is described here of its endpoints is not what it has.
    pub disagrees: bool,
    /// Times that it was found to have started again.
    pub restarts: u32,
}

impl Described {
    /// One without endpoints that announces all that is not described ([`Announces::All`]): the first 63 bytes of its
    /// name count, and level *l* is at the port of `at` + *l*.
    #[must_use]
    pub fn new(name: &str, at: SocketAddrV4) -> Self {
        Self {
            name: name.into(),
            at,
            announces: Announces::All,
            endpoints: Vec::new(),
        }
    }

    /// What it says of itself, and so whether it can be seen to be gone.
    #[must_use]
    pub fn announces(mut self, announces: Announces) -> Self {
        self.announces = announces;
        self
    }

    /// With a writer. Of the policies those count that peers match by, and the level.
    #[must_use]
    pub fn writer<T: TopicType>(self, topic: &str, qos: &Qos) -> Self {
        let qos = qos.clone().representation(qos.sent(T::EXTENSIBILITY));
        self.endpoint(EndpointKind::Writer, topic, (T::TYPE_NAME, T::KEYED), &qos)
    }

    /// With a reader, likewise.
    #[must_use]
    pub fn reader<T: TopicType>(self, topic: &str, qos: &Qos) -> Self {
        self.endpoint(EndpointKind::Reader, topic, (T::TYPE_NAME, T::KEYED), qos)
    }

    /// With an endpoint whose type is known by its name and whether it has a key. A writer offers XCDR1 unless
    /// `qos` names another representation.
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

    /// Its GUID prefix, but for the last four bytes, which differ at every start and are zeros here.
    #[must_use]
    pub fn prefix(&self) -> GuidPrefix {
        let address = self.address().octets();
        StaticParticipant::new(&self.name, address, self.announces).prefix_before_start()
    }

    /// The number that stands for all its endpoints in what it announces of itself
    /// ([`static_digest`](isolane_wire::discovery::ParticipantData::static_digest)): peers compare it with theirs.
    ///
    /// # Errors
    /// As when a participant is built that is described so.
    pub fn digest(&self) -> Result<u64, BuildError> {
        Ok(self.participant()?.digest())
    }

    /// Its address.
    pub(crate) fn address(&self) -> Ipv4Addr {
        *self.at.ip()
    }

    pub(crate) fn is_announced(&self) -> bool {
        self.announces != Announces::Nothing
    }

    /// The port of each level.
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

    /// Where a level is reached.
    fn reached_at(&self, level: Level) -> Result<Locator, BuildError> {
        let ports = self.level_ports()?;
        let port = ports[usize::from(level.get())].unwrap_or_default();
        Ok(Locator::udpv4(self.address().octets(), port))
    }

    /// As the engine wants it.
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

    /// Whether a participant on this datapath is where it is described.
    pub(crate) fn check(&self, datapath: &dyn Datapath, lanes: Lanes) -> Result<(), BuildError> {
        if lanes == Lanes::Shared {
            return Err(BuildError::DescribedFifo);
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

/// Matches that discovery takes of a participant that announces itself: two, and one for liveliness.
const DISCOVERY_MATCHES: usize = 3;

/// The limits with places for all that is described, beside those for what is discovered: how much that is, is known
/// before start.
pub(crate) fn with_places(limits: Limits, own: Option<&Described>, peers: &[Described]) -> Limits {
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
    /// The peers that are described, in the order of their description, as they are known now.
    #[must_use]
    pub fn described_peers(&self) -> Vec<DescribedPeer> {
        let state = self.core().state.borrow();
        let peers = state.engine.static_peers();
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
