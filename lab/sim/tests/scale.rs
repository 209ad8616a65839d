//! A domain of a thousand participants: the memory of a local participant that knows all of them, the cost of a sample
//! there, and the entries that are kept when the tables are full.
//!
//! One local participant with its own endpoints receives the announcements of the others. No world surrounds it, so
//! the counts are the participant's alone.

#[path = "../../../tests/support/counting_allocator.rs"]
mod counting_allocator;
#[path = "support/submessages.rs"]
mod submessages;

use std::time::Duration;

use counting_allocator::{allocator_calls_of, held_bytes_since};
use isolane_rtps::{
    ChangeKind, DeliveryMode, Destinations, Limits, LocalParticipant, ParticipantConfig, ReaderId,
    WorkKind, WriteSample, WriterId,
};
use isolane_sim::Sample;
use isolane_wire::{
    BufferTooSmall,
    builtin_data::{
        BuiltinEndpoints, ContentFilterProperty, EndpointData, LocatorList, ParticipantData,
    },
    guid::{EntityId, EntityKind, Guid, GuidPrefix},
    limits::MAX_OCTETS,
    locator::Locator,
    message::{DataPrefix, Header, MessageWriter, VENDOR_ID, VERSION},
    qos::{HistoryKind, Octets, QosPolicies, ReliabilityKind},
    time::{Instant, Timestamp},
};
use submessages::{
    SEDP_READERS, acknack, advance, end, endpoint, head, most_urgent, receive, set, work,
};

const PARTICIPANTS: u32 = 1_000;
const ENDPOINTS: u32 = 10;

/// What a local participant may take that knows a thousand participants with ten endpoints each.
const MEMORY_BYTES: isize = 16_000_000;

/// A topic that all write and read, and that is as critical as any here.
const SHARED: &str = "diagnostics/heartbeat of every component";
const LEVEL_OF_SHARED: i32 = 5;

fn qos(level: i32) -> QosPolicies {
    let mut qos = QosPolicies::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.history.kind = HistoryKind::KeepAll;
    qos.resource_limits.max_samples = 64;
    qos.transport_priority = level;
    qos
}

/// A local participant, and what its peers say to it.
struct Domain {
    protocol: LocalParticipant,
    now: Instant,
    writer: WriterId,
    reader: ReaderId,
    received: Vec<u8>,
    sent: Vec<u8>,
}

impl Domain {
    fn new(limits: Limits) -> Self {
        let now = Instant::new(1);
        let mut config = ParticipantConfig::new(0, prefix(0), 1);
        config.limits = limits;
        let mut protocol = LocalParticipant::new(config, now);
        let shared = endpoint(SHARED, qos(LEVEL_OF_SHARED));
        let writer = protocol.create_writer(now, &shared);
        let writer = writer.expect("there is room");
        let reader = protocol.create_reader(now, &shared, DeliveryMode::Cache);
        let reader = reader.expect("there is room");
        let bulk = endpoint("bulk", qos(0));
        protocol.create_writer(now, &bulk).expect("there is room");
        protocol
            .create_reader(now, &bulk, DeliveryMode::Cache)
            .expect("there is room");
        let mut domain = Self {
            protocol,
            now,
            writer,
            reader,
            received: vec![0; 4096],
            sent: vec![0; 4096],
        };
        domain.work();
        domain
    }

    fn work(&mut self) {
        work(&mut self.protocol, self.now, &mut self.sent);
    }

    /// A datagram of a peer arrives, and all it calls for is done.
    fn hear(
        &mut self,
        from: u32,
        fill: impl FnOnce(&mut MessageWriter<'_>) -> Result<(), BufferTooSmall>,
    ) {
        self.receive(from, fill);
        self.work();
    }

    /// A datagram of a peer arrives.
    fn receive(
        &mut self,
        from: u32,
        fill: impl FnOnce(&mut MessageWriter<'_>) -> Result<(), BufferTooSmall>,
    ) {
        let header = Header {
            version: VERSION,
            vendor: VENDOR_ID,
            prefix: prefix(from),
        };
        let mut message = MessageWriter::new(&mut self.received, &header).expect("it fits");
        fill(&mut message).expect("it fits");
        let length = message.len();
        let datagram = &self.received[..length];
        receive(&mut self.protocol, self.now, address(from), datagram);
    }

    /// SPDP: a peer announces itself, with a lease of five minutes.
    fn announce(&mut self, peer: u32) {
        let mut data = ParticipantData::new(prefix(peer));
        data.version = VERSION;
        data.vendor = VENDOR_ID;
        data.lease = Duration::from_secs(300);
        data.builtin_endpoints = BuiltinEndpoints::PUBLICATIONS_ANNOUNCER
            | BuiltinEndpoints::PUBLICATIONS_DETECTOR
            | BuiltinEndpoints::SUBSCRIPTIONS_ANNOUNCER
            | BuiltinEndpoints::SUBSCRIPTIONS_DETECTOR;
        data.metatraffic_unicast = LocatorList::from_iter([address(peer)]);
        data.metatraffic_multicast = LocatorList::from_iter([SPDP_GROUP]);
        let mut payload = [0; 1024];
        let length = data.emit(&mut payload).expect("it fits");
        let head = head(EntityId::SPDP_WRITER, 1);
        self.hear(peer, |message| {
            message.data(&head, &payload[..length]).map(drop)
        });
    }

    fn leave(&mut self, peer: u32) {
        let farewell = end(EntityId::SPDP_WRITER, 2);
        self.hear(peer, |message| message.data(&farewell, &[]).map(drop));
    }

    /// The readers of SEDP of a peer answer: so it is known to hear this one.
    fn answer(&mut self, peer: u32) {
        for pair in SEDP_READERS {
            self.acknowledge(peer, pair, 1_000);
        }
    }

    /// A reader of SEDP that has nothing yet asks for what there is; that is answered later.
    fn acknowledge_without_work(&mut self, peer: u32, pair: (EntityId, EntityId)) {
        let acknack = acknack(pair, set(1, []), 1);
        self.receive(peer, |message| message.acknack(&acknack).map(drop));
    }

    fn acknowledge(&mut self, peer: u32, pair: (EntityId, EntityId), below: i64) {
        let acknack = acknack(pair, set(below, []), 1);
        self.hear(peer, |message| message.acknack(&acknack).map(drop));
    }

    /// SEDP: the `nth` endpoint of a peer of its kind; a writer where the entity is one.
    fn announce_endpoint(&mut self, peer: u32, nth: u32, is_writer: bool, topic: &str, level: i32) {
        self.announce_as(peer, nth, is_writer, |data| {
            data.topic_name = topic.try_into().expect("short");
            data.qos = qos(level);
            None
        });
    }

    /// As [`Self::announce_endpoint`], with data that `change` sets, and the filter of a reader.
    fn announce_as<'a>(
        &mut self,
        peer: u32,
        nth: u32,
        is_writer: bool,
        change: impl FnOnce(&mut EndpointData) -> Option<&'a [u8]>,
    ) {
        let mut data = EndpointData::new(endpoint_guid(peer, nth, is_writer));
        data.type_name = "sim::Sample".try_into().expect("short");
        data.unicast = LocatorList::from_iter([address(peer)]);
        data.multicast = LocatorList::from_iter([Locator::udpv4([239, 255, 16, 0], 7401)]);
        let filter = change(&mut data);
        let mut payload = [0; 3072];
        let length = data.emit_filtered(filter, &mut payload).expect("it fits");
        let head = head(sedp_writer(is_writer), i64::from(nth));
        self.hear(peer, |message| {
            message.data(&head, &payload[..length]).map(drop)
        });
    }

    /// A writer whose announcement takes many times the usual memory, by the announcement of this number.
    fn announce_long(&mut self, peer: u32, (nth, number): (u32, u32), topic: &str, level: i32) {
        let most = Octets::of(&[7; MAX_OCTETS]).expect("it fits");
        self.announce_as(peer, number, true, |data| {
            data.guid = endpoint_guid(peer, nth, true);
            data.topic_name = topic.try_into().expect("short");
            data.qos = qos(level);
            data.qos.user_data = most.clone();
            data.qos.topic_data = most.clone();
            data.qos.group_data = most;
            None
        });
    }

    /// SEDP: a peer ends an endpoint, by its announcement of this number.
    fn end_endpoint(&mut self, peer: u32, nth: u32, is_writer: bool, number: i64) {
        let end = DataPrefix {
            key_hash: Some(endpoint_guid(peer, nth, is_writer).to_bytes()),
            ..end(sedp_writer(is_writer), number)
        };
        self.hear(peer, |message| message.data(&end, &[]).map(drop));
    }

    /// Writes a sample of the shared topic.
    fn write(&mut self, payload: &[u8]) {
        let sample = WriteSample {
            kind: ChangeKind::Alive,
            key_hash: None,
            timestamp: Timestamp::from_nanos(self.now.as_nanos()),
        };
        let slot = self.protocol.reserve(self.writer, None, payload.len());
        slot.expect("there is room")[..payload.len()].copy_from_slice(payload);
        let written = self.protocol.commit(self.writer, &sample, payload.len());
        written.expect("it fits");
        self.work();
    }

    /// A peer joins, with ten endpoints of topics that others have too; one of each kind is of the shared one.
    fn join(&mut self, peer: u32) {
        self.announce(peer);
        self.answer(peer);
        for nth in 1..=ENDPOINTS / 2 {
            let topic = match nth {
                1 => String::from(SHARED),
                _ => format!("robot {}/sensor {nth}/state", peer % 100),
            };
            for is_writer in [true, false] {
                self.announce_endpoint(peer, nth, is_writer, &topic, LEVEL_OF_SHARED);
            }
        }
    }

    /// A peer announces itself and answers, with writers of one topic.
    fn join_with_writers(&mut self, peer: u32, writers: u32, topic: &str, level: i32) {
        self.announce(peer);
        self.answer(peer);
        for nth in 1..=writers {
            self.announce_endpoint(peer, nth, true, topic, level);
        }
    }

    fn known(&self) -> (usize, usize) {
        (
            self.protocol.remote_participants().count(),
            self.protocol.remote_endpoints().count(),
        )
    }

    /// Writers of others that the reader is matched with, in addition to the one here.
    fn matched(&self) -> usize {
        self.protocol.matched_writers(self.reader) - 1
    }

    fn refused(&self) -> [u64; 5] {
        let counters = self.protocol.counters();
        [
            counters.participants_refused,
            counters.endpoints_refused,
            counters.matches_refused,
            counters.shares_exceeded,
            counters.participants_displaced,
        ]
    }
}

fn prefix(number: u32) -> GuidPrefix {
    let mut prefix = [7; 12];
    prefix[..2].copy_from_slice(&VENDOR_ID);
    prefix[8..].copy_from_slice(&number.to_be_bytes());
    GuidPrefix(prefix)
}

fn endpoint_guid(peer: u32, nth: u32, is_writer: bool) -> Guid {
    let kind = match is_writer {
        true => EntityKind::WRITER_NO_KEY,
        false => EntityKind::READER_NO_KEY,
    };
    Guid {
        prefix: prefix(peer),
        entity: EntityId::user(nth, kind),
    }
}

fn sedp_writer(is_writer: bool) -> EntityId {
    match is_writer {
        true => EntityId::SEDP_PUBLICATIONS_WRITER,
        false => EntityId::SEDP_SUBSCRIPTIONS_WRITER,
    }
}

fn address(number: u32) -> Locator {
    let [_, _, high, low] = number.to_be_bytes();
    Locator::udpv4([10, 1, high, low], 7410)
}

const SPDP_GROUP: Locator = Locator::udpv4([239, 255, 0, 1], 7400);

#[test]
fn a_thousand_participants_with_ten_thousand_endpoints_take_at_most_sixteen_megabytes() {
    let before = held_bytes_since(0);
    let mut domain = Domain::new(Limits::default());
    let alone = held_bytes_since(before);
    for peer in 1..=PARTICIPANTS {
        domain.join(peer);
    }
    assert_eq!(
        (domain.known(), domain.refused()),
        ((1_000, 10_000), [0; 5])
    );
    assert_eq!(domain.matched(), 1_000);
    let held = held_bytes_since(before);
    println!("alone {alone} bytes, with all {held}");
    assert!(held <= MEMORY_BYTES, "{held} bytes");
    // A second round of the same finds places where the first was.
    for _ in 0..2 {
        for peer in 1..=PARTICIPANTS {
            domain.leave(peer);
        }
        assert_eq!(domain.known(), (0, 0));
        for peer in 1..=PARTICIPANTS {
            domain.join(peer + PARTICIPANTS);
            domain.leave(peer + PARTICIPANTS);
            domain.join(peer);
        }
        assert_eq!(
            (domain.known(), domain.refused()),
            ((1_000, 10_000), [0; 5])
        );
    }
    let later = held_bytes_since(before);
    assert!(later <= held + held / 8, "{held} bytes, later {later}");
}

/// An expression of half a kilobyte.
fn a_filter(buffer: &mut [u8]) -> &[u8] {
    let property = ContentFilterProperty {
        filtered_topic_name: "filtered",
        related_topic_name: SHARED,
        class_name: ContentFilterProperty::DDSSQL,
        expression: core::str::from_utf8(&[b'x'; 500]).expect("ASCII"),
        parameters: Default::default(),
    };
    property.emit(buffer);
    &buffer[..property.buffer_len()]
}

#[test]
fn with_fixed_memory_nothing_is_taken_after_the_start() {
    // Of both some places are kept for the highest level, and taken.
    let mut domain = Domain::new(Limits {
        participants: 50,
        remote_endpoints: 1_000,
        matches: 600,
        fixed_memory: true,
        ..Limits::default()
    });
    let mut filter = [0; 1024];
    let filter = a_filter(&mut filter);
    // The names of the topics are the test's.
    domain.join(1);
    let calls = allocator_calls_of(|| {
        for peer in 2..=50 {
            domain.announce(peer);
            domain.answer(peer);
        }
        for peer in 2..=50 {
            for nth in 1..=11 {
                domain.announce_endpoint(peer, nth, true, SHARED, LEVEL_OF_SHARED);
                domain.announce_as(peer, nth, false, |data| {
                    data.topic_name = SHARED.try_into().expect("short");
                    data.qos = qos(LEVEL_OF_SHARED);
                    (nth == 1).then_some(filter)
                });
            }
        }
    });
    let [_, endpoints, matches, ..] = domain.refused();
    assert!(endpoints > 0 && matches > 0, "all places are taken");
    assert_eq!((domain.known(), calls), ((50, 1_061), 0));
}

#[test]
fn a_sample_takes_no_memory_while_a_thousand_participants_are_known() {
    let mut domain = Domain::new(Limits::default());
    domain.join(1);
    // The one reader that is waited for acknowledges; the others are not there any more.
    for peer in 2..=200 {
        domain.join(peer);
    }
    let values = Sample::value(1).payload();
    let calls = allocator_calls_of(|| {
        for number in 1..=100 {
            let head = head(EntityId::user(1, EntityKind::WRITER_NO_KEY), number);
            domain.hear(1, |message| message.data(&head, &values).map(drop));
            if number <= 50 {
                domain.write(&values);
            }
        }
    });
    assert_eq!(calls, 0);
    let sent = domain.protocol.writer_ledger(domain.writer);
    assert!(sent.is_some_and(|it| it.written == 50), "{sent:?}");
    let ledger = domain
        .protocol
        .reader_ledger(domain.reader)
        .expect("it is there");
    assert!(ledger.available > 0, "{ledger:?}");
}

#[test]
fn participants_that_were_made_up_give_way_to_newcomers_and_no_proven_one_does() {
    let limits = Limits {
        participants: 32,
        ..Limits::default()
    };
    let mut domain = Domain::new(limits);
    for honest in 1..=10 {
        domain.join(honest);
    }
    for round in 0..20 {
        for forged in 0..40 {
            domain.announce(1_000 + 40 * round + forged);
        }
        // Each newcomer is found at its first announcement, and proven before it is pushed out.
        domain.join(11 + round);
        assert_eq!(domain.matched(), 11 + round as usize);
    }
    let honest = domain
        .protocol
        .remote_participants()
        .filter(|it| it.is_proven());
    assert_eq!(honest.count(), 30);
    // No participant is left to give way: all others stay.
    domain.join(31);
    domain.join(32);
    let refused = domain.protocol.counters().participants_refused;
    domain.join(33);
    assert!(domain.protocol.counters().participants_refused > refused);
    assert_eq!(domain.matched(), 32);
}

#[test]
fn one_participant_has_a_share_of_the_tables_and_leaves_room_for_others() {
    let limits = Limits {
        participants: 32,
        remote_endpoints: 640,
        matches: 640,
        ..Limits::default()
    };
    let mut domain = Domain::new(limits);
    domain.announce(1);
    domain.answer(1);
    for nth in 1..=2_000 {
        domain.announce_endpoint(1, nth, true, SHARED, LEVEL_OF_SHARED);
        domain.announce_endpoint(1, nth, false, SHARED, LEVEL_OF_SHARED);
    }
    let greedy = domain.known().1;
    assert!((64..=330).contains(&greedy), "{greedy} endpoints");
    assert!(domain.protocol.counters().shares_exceeded > 1_000);
    for honest in 2..=10 {
        let before = domain.matched();
        domain.join(honest);
        assert_eq!(domain.matched(), before + 1);
    }
    assert_eq!(domain.known(), (10, greedy + 90));
}

#[test]
fn topics_of_the_highest_level_find_a_place_where_the_others_have_taken_theirs() {
    let limits = Limits {
        participants: 64,
        remote_endpoints: 1_000,
        matches: 4_000,
        ..Limits::default()
    };
    let mut domain = Domain::new(limits);
    for peer in 1..=40 {
        domain.join_with_writers(peer, 40, "bulk", 0);
    }
    let refused = domain.protocol.counters().endpoints_refused;
    assert!(
        refused > 0 && domain.known().1 == 1_000,
        "{:?}",
        domain.known()
    );
    for peer in 1..=40 {
        domain.announce_endpoint(peer, 41, true, SHARED, LEVEL_OF_SHARED);
    }
    assert_eq!(domain.matched(), 40);
    assert_eq!(domain.protocol.counters().endpoints_refused, refused);
}

/// A domain where every place of a match at a local reader is taken, those that are kept for the highest level too:
/// twelve participants with as many bulk writers as there is room for, one with critical writers.
fn full_of_matches() -> Domain {
    let mut domain = Domain::new(Limits {
        participants: 32,
        remote_endpoints: 2_000,
        matches: 600,
        ..Limits::default()
    });
    for peer in 1..=13 {
        domain.announce(peer);
        domain.answer(peer);
    }
    for peer in 1..=12 {
        for nth in 1..=50 {
            domain.announce_endpoint(peer, nth, true, "bulk", 0);
        }
    }
    for nth in 1..=12 {
        domain.announce_endpoint(13, nth, true, SHARED, LEVEL_OF_SHARED);
    }
    assert_eq!(domain.matched(), 11, "those are kept");
    domain
}

#[test]
fn a_critical_match_that_found_no_place_is_made_when_another_critical_one_has_gone() {
    let mut domain = full_of_matches();
    let refused = domain.refused();
    for gone in 1..=3 {
        domain.end_endpoint(13, gone, true, 12 + i64::from(gone));
        // One was waiting.
        assert_eq!(domain.matched(), 12 - gone as usize);
    }
    assert_eq!(domain.refused(), refused, "no other is tried in vain");
}

#[test]
fn discovery_of_a_participant_that_found_no_place_goes_on_in_a_kept_one() {
    let mut domain = full_of_matches();
    domain.announce(20);
    domain.answer(20);
    let known = domain.known();
    domain.announce_endpoint(20, 1, true, "other", 0);
    assert_eq!(domain.known(), known, "its announcements are not read");
    for gone in 1..=3 {
        domain.end_endpoint(13, gone, true, 12 + i64::from(gone));
    }
    let known = domain.known();
    domain.announce_endpoint(20, 1, true, "other", 0);
    assert_eq!(domain.known(), (known.0, known.1 + 1));
}

#[test]
fn a_critical_endpoint_that_found_no_place_is_requested_when_another_critical_one_has_gone() {
    let mut domain = Domain::new(Limits {
        participants: 32,
        remote_endpoints: 600,
        ..Limits::default()
    });
    for peer in 1..=13 {
        domain.join_with_writers(peer, 50, "bulk", 0);
    }
    for (peer, writers) in [(14, 11), (15, 1)] {
        domain.join_with_writers(peer, writers, SHARED, LEVEL_OF_SHARED);
    }
    assert_eq!((domain.known(), domain.matched()), ((15, 611), 11));
    domain.end_endpoint(14, 1, true, 12);
    assert_eq!(domain.matched(), 10);
    domain.announce(15);
    // Its announcements are requested, so that this one is no duplicate.
    domain.announce_endpoint(15, 1, true, SHARED, LEVEL_OF_SHARED);
    assert_eq!((domain.known(), domain.matched()), ((15, 611), 11));
}

/// Two participants, of which one has its share of all places and the other what is left.
fn full_of_shares(limits: Limits) -> Domain {
    let mut domain = Domain::new(limits);
    for peer in [1, 2] {
        domain.join_with_writers(peer, 250, SHARED, LEVEL_OF_SHARED);
    }
    let matched = domain.matched();
    assert!((300..450).contains(&matched), "{matched}");
    assert!(domain.protocol.counters().shares_exceeded > 50);
    domain
}

#[test]
fn endpoints_beyond_a_share_are_requested_when_the_share_has_grown() {
    let mut domain = full_of_shares(Limits {
        participants: 32,
        remote_endpoints: 450,
        ..Limits::default()
    });
    domain.leave(1);
    domain.announce(2);
    for nth in 1..=250 {
        domain.announce_endpoint(2, nth, true, SHARED, LEVEL_OF_SHARED);
    }
    assert!(domain.known().1 >= 225, "{:?}", domain.known());
}

#[test]
fn matches_beyond_a_share_are_made_when_the_share_has_grown() {
    let mut domain = full_of_shares(Limits {
        participants: 32,
        matches: 450,
        ..Limits::default()
    });
    assert_eq!(domain.known(), (2, 500));
    domain.leave(1);
    assert!(domain.matched() >= 223, "{}", domain.matched());
}

#[test]
fn one_participant_has_a_share_of_the_memory_for_announcements() {
    let mut domain = Domain::new(Limits {
        participants: 32,
        remote_endpoints: 640,
        matches: 1_200,
        ..Limits::default()
    });
    domain.announce(1);
    domain.answer(1);
    for nth in 1..=300 {
        domain.announce_long(1, (nth, nth), "bulk", 0);
    }
    assert!(domain.protocol.counters().shares_exceeded > 100);
    for honest in 2..=10 {
        let before = domain.matched();
        domain.join(honest);
        assert_eq!(domain.matched(), before + 1, "{:?}", domain.refused());
    }
    assert_eq!(domain.protocol.counters().endpoints_refused, 0);
}

#[test]
fn an_endpoint_whose_changed_announcement_finds_no_room_stays_matched_and_is_requested_later() {
    let mut domain = Domain::new(Limits {
        participants: 32,
        remote_endpoints: 640,
        matches: 1_200,
        ..Limits::default()
    });
    // Its first announcements, with one more.
    let begin = |domain: &mut Domain| {
        domain.join(1);
        domain.announce_endpoint(1, 6, true, "bulk", 0);
    };
    begin(&mut domain);
    for greedy in 2..=31 {
        domain.announce(greedy);
        domain.answer(greedy);
        for nth in 1..=20 {
            domain.announce_long(greedy, (nth, nth), "bulk", 0);
        }
    }
    let counters = *domain.protocol.counters();
    assert!(counters.endpoints_refused > 100, "{counters:?}");
    let known = domain.known();
    let user_data = |domain: &Domain, nth| {
        let guid = endpoint_guid(1, nth, true);
        let mut endpoints = domain.protocol.remote_endpoints();
        let found = endpoints.find(|endpoint| endpoint.data.guid == guid);
        found.map(|endpoint| endpoint.data.qos.user_data.as_slice().len())
    };
    domain.announce_long(1, (6, 7), "bulk", 0);
    assert_eq!((domain.known(), user_data(&domain, 6)), (known, Some(0)));
    // What is as critical as anything here finds room.
    domain.announce_long(1, (1, 8), SHARED, LEVEL_OF_SHARED);
    assert_eq!(user_data(&domain, 1), Some(MAX_OCTETS));
    domain.leave(2);
    begin(&mut domain);
    domain.announce_long(1, (6, 7), "bulk", 0);
    assert_eq!(user_data(&domain, 6), Some(MAX_OCTETS));
}

/// Announcements of a local participant to its peers: DATA of SEDP by the address they are sent to.
fn announced(domain: &mut Domain, announced: &mut [u8]) {
    advance(&mut domain.protocol, domain.now);
    while let Some(priority) = most_urgent(&domain.protocol) {
        let work = domain
            .protocol
            .poll_transmit(domain.now, priority, &mut domain.sent);
        let Some(work) = work.filter(|work| work.kind == WorkKind::History && work.bytes > 0)
        else {
            continue;
        };
        let Destinations::Listed(to) = work.to else {
            continue;
        };
        let [.., high, low] = to[0].ipv4().expect("of IPv4");
        announced[usize::from(u16::from_be_bytes([high, low]))] += 1;
    }
}

#[test]
fn a_newcomer_announces_ten_endpoints_to_a_thousand_others_within_a_minute() {
    let mut domain = Domain::new(Limits::default());
    for nth in 0..6 {
        let topic = endpoint("another", qos(nth));
        domain
            .protocol
            .create_writer(domain.now, &topic)
            .expect("there is room");
    }
    domain.work();
    for peer in 1..=PARTICIPANTS {
        domain.announce(peer);
    }
    for peer in 1..=PARTICIPANTS {
        for pair in SEDP_READERS {
            domain.acknowledge_without_work(peer, pair);
        }
    }
    let mut announced_to = vec![0; 1 + PARTICIPANTS as usize];
    let begin = domain.now;
    let elapsed = |domain: &Domain| domain.now.saturating_since(begin);
    while announced_to[1..].iter().any(|&endpoints| endpoints < 10) {
        announced(&mut domain, &mut announced_to);
        let next = domain.protocol.next_time().expect("it goes on");
        domain.now = domain.now.max(next);
        let least = announced_to[1..].iter().min();
        assert!(
            elapsed(&domain) < Duration::from_secs(60),
            "{least:?} announced"
        );
    }
    println!("all were notified within {:?}", elapsed(&domain));
    assert!(domain.protocol.counters().discovery_limited > 0);
}
