//! Tests of described participants, which match without discovery, over sockets and in memory.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use isolane::{
    Announces, BuildError, Builder, EndpointKind, Level, Network, Participant, Qos,
    StaticDescription, TopicType,
};

use isolane_datapath::Lane;

use crate::support::{Message, Site, World, level, take_numbers};

/// Port of level 0 of the first participant at an address of the memory network.
const IN_MEMORY: u16 = 32_768;

fn brake() -> Qos {
    Qos::best_effort().level(level(7))
}

fn report() -> Qos {
    Qos::reliable().keep_all().max_samples(32).level(level(3))
}

fn described(name: &str, at: SocketAddrV4, is_writer: bool) -> StaticDescription {
    let described = StaticDescription::new(name, at).announces(Announces::Itself);
    match is_writer {
        true => described
            .writer::<Message>("Brake", &brake())
            .writer::<Message>("Report", &report()),
        false => described
            .reader::<Message>("Brake", &brake())
            .reader::<Message>("Report", &report()),
    }
}

/// First of eight consecutive free ports on 127.0.0.1; `from` determines where the search begins.
fn free_ports(from: u16) -> SocketAddrV4 {
    let is_free = |first: &u16| {
        (*first..first + 8).all(|port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
    };
    // Below the kernel's ephemeral ports.
    let own = u16::try_from(std::process::id() % 100).expect("less than 100") * 100;
    let mut candidates = (0..40).map(|nth| from + (own + nth * 16) % 10_000);
    let first = candidates.find(is_free).expect("eight free ports");
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, first)
}

struct Sides {
    builders: [Builder; 2],
    described: [StaticDescription; 2],
}

/// A writing and a reading participant that describe each other.
fn sides(site: &Site) -> Sides {
    let (builders, at) = match site {
        Site::Memory(network) => (
            [1, 2].map(|host| Participant::builder(0).memory(network, [10, 0, 0, host])),
            [1, 2].map(|host| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), IN_MEMORY)),
        ),
        Site::Loopback(_) => (
            [site.builder(), site.builder()],
            [free_ports(12_000), free_ports(22_100)],
        ),
    };
    let described = [
        described("pedal", at[0], true),
        described("wheel", at[1], false),
    ];
    Sides {
        builders,
        described,
    }
}

fn build(
    Sides {
        builders,
        described,
    }: Sides,
) -> [Participant; 2] {
    let [pedal, wheel] = described;
    let [one, other] = builders;
    let one = one
        .described_as(pedal.clone())
        .described_peer(wheel.clone());
    let other = other.described_as(wheel).described_peer(pedal);
    [one, other].map(|builder| builder.build().expect("both can be built"))
}

#[test]
fn described_endpoints_match_when_they_are_created_and_talk() {
    for site in Site::both() {
        let [pedal, wheel] = build(sides(&site));
        let mut world = World::new(site);
        let writer = pedal.create_writer::<Message>("Brake", &brake()).unwrap();
        let reports = pedal.create_writer::<Message>("Report", &report()).unwrap();
        let reader = wheel.create_reader::<Message>("Brake", &brake()).unwrap();
        let taken = wheel.create_reader::<Message>("Report", &report()).unwrap();
        // The loop has not run.
        assert_eq!((writer.matched_readers(), reader.matched_writers()), (1, 1));
        world.drive(&pedal);
        world.drive(&wheel);
        writer.write(&Message::number(1)).unwrap();
        world.until("the first sample came", || reader.ledger().available == 1);
        world.until_matched(&reports, &taken);
        for number in 0..20 {
            reports.write(&Message::number(number)).unwrap();
        }
        world.until("all came", || taken.ledger().available == 20);
        assert_eq!(take_numbers(&taken), (0..20).collect::<Vec<_>>());
        world.until("each has announced itself", || {
            let has_name = |peer: &Participant| {
                let peers = peer.participants();
                peers.iter().any(|it| it.data.static_digest.is_some())
            };
            has_name(&pedal) && has_name(&wheel)
        });
        let [known] = wheel.described_peers().try_into().expect("one peer");
        assert_eq!((known.name.as_str(), known.is_present), ("pedal", true));
        assert_eq!(known.prefix, pedal.guid().prefix);
        assert!(!known.disagrees);
        assert_eq!(known.restarts, 0);
    }
}

#[test]
fn one_that_is_built_again_is_met_again_at_once() {
    let network = Network::new(1);
    let site = Site::Memory(network);
    let of_both = sides(&site);
    let described = of_both.described.clone();
    let [mut pedal, wheel] = build(of_both);
    let mut world = World::new(site.clone());
    let reader = wheel.create_reader::<Message>("Report", &report()).unwrap();
    world.drive(&wheel);
    for round in 0..3 {
        let writer = pedal.create_writer::<Message>("Report", &report()).unwrap();
        world.drive(&pedal);
        world.until("it is met", || {
            let peers = wheel.described_peers();
            peers[0].prefix == pedal.guid().prefix && writer.matched_readers() == 1
        });
        for number in 0..5 {
            writer.write(&Message::number(number)).unwrap();
        }
        world.until("all came", || reader.ledger().available == 5);
        assert_eq!(take_numbers(&reader), [0, 1, 2, 3, 4], "round {round}");
        drop(writer);
        world.leave(pedal);
        let [own, peer] = described.clone();
        let Site::Memory(network) = &site else {
            unreachable!("it was made above")
        };
        let again = Participant::builder(0)
            .memory(network, [10, 0, 0, 1])
            .described_as(own)
            .described_peer(peer)
            .build();
        pedal = again.expect("the place is free again");
    }
}

#[test]
fn a_participant_that_cannot_be_as_described_is_not_built() {
    let network = Network::new(1);
    let builder = || Participant::builder(0).memory(&network, [10, 0, 0, 1]);
    let at = |address: [u8; 4], port| SocketAddrV4::new(address.into(), port);
    let elsewhere =
        builder().described_as(StaticDescription::new("a", at([10, 0, 0, 9], IN_MEMORY)));
    let error = elsewhere.build().err().expect("it is not there");
    assert!(matches!(error, BuildError::DescribedElsewhere { .. }));
    assert!(error.to_string().contains("10.0.0.9") && error.is_wrong_setting());

    let few_ports = builder().described_as(StaticDescription::new("a", at([10, 0, 0, 1], 65_529)));
    let error = few_ports.build().err().expect("there are too few ports");
    assert!(matches!(error, BuildError::DescribedPort { port: 65_529 }));

    let shared = builder()
        .level_mapping(|_| Level::MIN)
        .described_as(StaticDescription::new("a", at([10, 0, 0, 1], IN_MEMORY)));
    let error = shared.build().err().expect("levels share a port");
    assert!(matches!(error, BuildError::DescribedSharedLane));

    let twice = StaticDescription::new("b", at([10, 0, 0, 2], IN_MEMORY))
        .endpoint(EndpointKind::Reader, "T", ("t::T", false), &brake())
        .endpoint(EndpointKind::Reader, "T", ("t::T", false), &report());
    let error = builder().described_peer(twice).build();
    let error = error.err().expect("two endpoints of one name");
    assert!(matches!(error, BuildError::Described(_)), "{error}");
}

#[test]
fn an_endpoint_that_is_not_as_described_is_not_created() {
    let [pedal, _wheel] = build(sides(&Site::memory()));
    let of_level = report().level(level(4));
    let refused = pedal.create_writer::<Message>("Report", &of_level);
    let error = refused.err().expect("it is at another level");
    assert!(error.to_string().contains("its level"), "{error}");
    let refused = pedal.create_writer::<Message>("Other", &report());
    let error = refused.err().expect("no peer would learn of it");
    assert!(
        error.to_string().contains("announces no endpoints"),
        "{error}"
    );
}

#[test]
fn however_many_participants_and_endpoints_are_described_there_are_places_for_them() {
    const PEERS: u8 = 60;
    let (network, qos) = (Network::new(1), brake());
    let at = |host| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), IN_MEMORY);
    let topic = |number: u8| format!("Topic {number}");
    let described = |host: u8, kind| {
        let one =
            StaticDescription::new(&format!("part {host}"), at(host)).announces(Announces::Nothing);
        (0..12).fold(one, |one, number| {
            one.endpoint(
                kind,
                &topic(number),
                (Message::TYPE_NAME, Message::KEYED),
                &qos,
            )
        })
    };
    let own = described(1, EndpointKind::Writer);
    let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
    let builder = (2..2 + PEERS).fold(builder.described_as(own), |builder, host| {
        builder.described_peer(described(host, EndpointKind::Reader))
    });
    let participant = builder.build().expect("there are places");
    let peers = participant.described_peers();
    assert!(peers.len() == usize::from(PEERS) && peers.iter().all(|peer| peer.is_present));
    let writer = |number| participant.create_writer::<Message>(&topic(number), &qos);
    let writers: Vec<_> = (0..12)
        .map(|number| writer(number).expect("it is described"))
        .collect();
    for writer in &writers {
        assert_eq!(writer.matched_readers(), usize::from(PEERS));
    }
    // Each reader has its own address, and a best-effort reader requests no missing samples.
    let offered = || {
        let report = participant.report();
        let transmit = &report.datagrams.lane(Lane::Level(level(7))).transmit;
        transmit.sent + transmit.refused_total()
    };
    let before = offered();
    writers[0]
        .write(&Message::default())
        .expect("it is matched");
    assert_eq!(offered() - before, u64::from(PEERS));
    let counters = participant.report().counters;
    let refused = counters.endpoints_refused + counters.matches_refused;
    assert_eq!((refused, counters.destinations_full), (0, 0));
}
