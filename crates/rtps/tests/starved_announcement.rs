//! Test that a participant announces itself in time, even while more urgent work never ends.

use std::time::Duration;

use isolane_rtps::{
    Destinations, EndpointConfig, LocalParticipant, MessageReceiver, ParticipantConfig, Priority,
    WorkKind,
};
use isolane_wire::{
    builtin_data::{BuiltinEndpoints, LocatorList, ParticipantData},
    guid::{EntityId, GuidPrefix},
    locator::Locator,
    message::{AckNack, DataPrefix, Header, MessageWriter, PayloadKind},
    qos::QosPolicies,
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

fn is_ready(protocol: &LocalParticipant, priority: Priority) -> bool {
    protocol.ready() & (1 << priority.get()) != 0
}

fn protocol() -> LocalParticipant {
    let config = ParticipantConfig::new(0, GuidPrefix([1; 12]), 1);
    LocalParticipant::new(config, Instant::new(1))
}

fn let_the_next_timer_run_out(protocol: &mut LocalParticipant) {
    let due = protocol.next_time().expect("the next announcement");
    protocol.advance(due);
}

#[test]
fn an_announcement_that_has_waited_for_a_period_becomes_the_most_urgent_work() {
    let mut protocol = protocol();
    assert!(is_ready(&protocol, Priority::DISCOVERY));
    assert!(!is_ready(&protocol, Priority::HIGHEST));

    let_the_next_timer_run_out(&mut protocol);
    assert!(!is_ready(&protocol, Priority::DISCOVERY));
    let mut buffer = [0; 2048];
    let work = protocol.poll_transmit(Instant::new(1), Priority::HIGHEST, &mut buffer);
    let work = work.expect("the announcement");
    assert_eq!(work.kind, WorkKind::Announce);
    assert!(work.bytes > 0);
    assert!(!is_ready(&protocol, Priority::HIGHEST), "once a period");
}

#[test]
fn an_announcement_that_goes_out_in_time_stays_with_discovery() {
    let mut protocol = protocol();
    let mut buffer = [0; 2048];
    for _ in 0..10 {
        while protocol
            .poll_transmit(Instant::new(1), Priority::DISCOVERY, &mut buffer)
            .is_some()
        {}
        let_the_next_timer_run_out(&mut protocol);
        assert!(!is_ready(&protocol, Priority::HIGHEST));
    }
}

const PEER: GuidPrefix = GuidPrefix([2; 12]);
const ITS_ADDRESS: Locator = Locator::udpv4([10, 0, 0, 2], 7410);

/// Receives an announcement of a peer that is not in this participant's peer list.
fn hear_of_the_peer(protocol: &mut LocalParticipant) {
    let mut data = ParticipantData::new(PEER);
    data.builtin_endpoints =
        BuiltinEndpoints::PUBLICATIONS_DETECTOR | BuiltinEndpoints::P2P_MESSAGE_READER;
    data.metatraffic_unicast = LocatorList::from_iter([ITS_ADDRESS]);
    let mut payload = [0; 512];
    let length = data.emit(&mut payload).expect("it fits");
    let head = DataPrefix {
        reader: EntityId::UNKNOWN,
        writer: EntityId::SPDP_WRITER,
        sequence: SequenceNumber(1),
        key_hash: None,
        status: None,
        payload: PayloadKind::Data,
    };
    hear(protocol, |message| {
        message.data(&head, &payload[..length]).expect("it fits");
    });
}

/// Receives the answer of the peer's SEDP reader.
fn hear_its_answer(protocol: &mut LocalParticipant) {
    let acknack = AckNack {
        reader: EntityId::SEDP_PUBLICATIONS_READER,
        writer: EntityId::SEDP_PUBLICATIONS_WRITER,
        state: SequenceNumberSet::new(SequenceNumber(1)),
        count: 1,
        is_final: true,
    };
    hear(protocol, |message| {
        message.acknack(&acknack).expect("it fits");
    });
}

fn hear(protocol: &mut LocalParticipant, fill: impl FnOnce(&mut MessageWriter<'_>)) {
    let mut buffer = [0; 1024];
    let mut message = MessageWriter::new(&mut buffer, &Header::new(PEER)).expect("it fits");
    fill(&mut message);
    let length = message.len();
    let mut state = MessageReceiver::new(ITS_ADDRESS);
    assert_eq!(
        protocol.receive(Instant::new(1), &mut state, &buffer[..length]),
        None
    );
    discover(protocol);
}

/// Advances the time to the end of the `nth` of the first announcement periods.
fn let_a_period_pass(protocol: &mut LocalParticipant, nth: u64) {
    let period = ParticipantConfig::new(0, PEER, 1)
        .timing
        .announce_initial_period;
    protocol.advance(Instant::new(1 + nth * period.as_nanos() as u64));
}

/// Runs all discovery work.
fn discover(protocol: &mut LocalParticipant) {
    let mut buffer = [0; 2048];
    while is_ready(protocol, Priority::DISCOVERY) {
        protocol.poll_transmit(Instant::new(1), Priority::DISCOVERY, &mut buffer);
    }
}

/// Runs the announcements at the highest priority; returns for each whether it goes to the peer.
fn urgent_announcements(protocol: &mut LocalParticipant) -> Vec<bool> {
    let mut buffer = [0; 2048];
    let mut found = Vec::new();
    while let Some(work) = protocol.poll_transmit(Instant::new(1), Priority::HIGHEST, &mut buffer) {
        assert_eq!(work.kind, WorkKind::Announce);
        assert!(work.bytes > 0);
        found.push(matches!(work.to, Destinations::Listed(to) if to.first() == Some(&ITS_ADDRESS)));
    }
    found
}

#[test]
fn a_starved_announcement_to_a_peer_on_no_list_becomes_the_most_urgent_work_too() {
    let mut protocol = protocol();
    hear_of_the_peer(&mut protocol);
    hear_its_answer(&mut protocol);
    let_a_period_pass(&mut protocol, 1);
    assert!(!is_ready(&protocol, Priority::HIGHEST));
    // For one period, no discovery work runs.
    let_a_period_pass(&mut protocol, 2);
    assert_eq!(urgent_announcements(&mut protocol), [false, true]);
    assert!(!is_ready(&protocol, Priority::HIGHEST), "once a period");
}

#[test]
fn one_to_a_peer_that_has_never_answered_stays_with_discovery() {
    let mut protocol = protocol();
    hear_of_the_peer(&mut protocol);
    for nth in 1..=3 {
        let_a_period_pass(&mut protocol, nth);
    }
    assert_eq!(urgent_announcements(&mut protocol), [false]);
}

/// Creates a writer that must assert its liveliness three times in 300 ms.
fn promise_to_be_alive(protocol: &mut LocalParticipant) {
    let mut qos = QosPolicies::writer_default();
    qos.liveliness.lease = Duration::from_millis(300).into();
    let endpoint = EndpointConfig {
        topic_name: "Alive",
        type_name: "Alive",
        keyed: false,
        key_of: None,
        qos,
        max_payload_bytes: 64,
        shares_long: false,
        max_datagram_bytes: 64,
        unicast: LocatorList::new(),
        multicast: LocatorList::new(),
    };
    let created = protocol.create_writer(Instant::new(1), &endpoint);
    created.expect("it can be created");
}

/// Runs the work at the highest priority; returns its kinds.
fn urgent_work(protocol: &mut LocalParticipant) -> Vec<WorkKind> {
    let mut buffer = [0; 2048];
    let mut next = || protocol.poll_transmit(Instant::new(1), Priority::HIGHEST, &mut buffer);
    std::iter::from_fn(|| next().map(|work| work.kind)).collect()
}

#[test]
fn a_message_that_its_writers_are_alive_becomes_the_most_urgent_work_when_the_next_one_is_due() {
    let mut protocol = protocol();
    hear_of_the_peer(&mut protocol);
    hear_its_answer(&mut protocol);
    promise_to_be_alive(&mut protocol);
    discover(&mut protocol);
    let_a_period_pass(&mut protocol, 1);
    assert!(!is_ready(&protocol, Priority::HIGHEST));
    // No discovery work runs until the next assertion.
    let_a_period_pass(&mut protocol, 2);
    assert!(urgent_work(&mut protocol).contains(&WorkKind::Data));
    discover(&mut protocol);
    let_a_period_pass(&mut protocol, 3);
    assert_eq!(urgent_work(&mut protocol), [], "it goes out in time again");
}
