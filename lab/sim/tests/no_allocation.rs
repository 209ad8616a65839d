//! A local participant does not allocate once it knows its peers; with fixed memory, once it has started.
//!
//! Two local participants exchange datagrams through a few preallocated buffers. Every seventh datagram is lost, so
//! that the test includes repairs. The allocator counts while the participants work.

#[path = "../../../tests/support/counting_allocator.rs"]
mod counting_allocator;
#[path = "support/submessages.rs"]
mod submessages;

use std::time::Duration;

use counting_allocator::allocator_calls_of;
use submessages::{advance, assert_balanced, most_urgent};

use isolane_rtps::{
    Announces, ChangeKind, DeliveryMode, Destinations, EndpointConfig, EndpointKind, Limits,
    LocalParticipant, MessageReceiver, ParticipantConfig, ReaderId, StaticParticipant, WriteSample,
    WriterId,
};
use isolane_sim::{Sample, key_of};
use isolane_wire::{
    builtin_data::LocatorList,
    guid::GuidPrefix,
    locator::Locator,
    message::VENDOR_ID,
    qos::{
        DestinationOrderKind, HistoryKind, LivelinessKind, Presentation, PresentationAccessScope,
        QosPolicies, ReliabilityKind,
    },
    time::{Instant, Timestamp},
};

const STEP: Duration = Duration::from_micros(10);
const GROUP: Locator = Locator::udpv4([239, 255, 0, 1], 7400);
const DATAGRAM_BYTES: usize = 2048;
const PLACES: usize = 256;

/// Datagrams in flight, in preallocated buffers.
struct Pipe {
    bytes: Vec<u8>,
    /// Receiver, buffer and length, oldest first.
    waiting: std::collections::VecDeque<(usize, usize, usize)>,
    next: usize,
    sent: u64,
}

impl Pipe {
    fn new() -> Self {
        Self {
            bytes: vec![0; PLACES * DATAGRAM_BYTES],
            waiting: std::collections::VecDeque::with_capacity(PLACES),
            next: 0,
            sent: 0,
        }
    }

    /// Sends a datagram to the other participant, or loses it.
    fn send(&mut self, from: usize, datagram: &[u8]) {
        self.sent += 1;
        if self.sent.is_multiple_of(7) || self.waiting.len() == PLACES {
            return;
        }
        let place = self.next;
        self.next = (self.next + 1) % PLACES;
        self.bytes[place * DATAGRAM_BYTES..][..datagram.len()].copy_from_slice(datagram);
        self.waiting.push_back((1 - from, place, datagram.len()));
    }
}

struct Pair {
    now: Instant,
    participants: [LocalParticipant; 2],
    pipe: Pipe,
    buffer: Vec<u8>,
    viewed: u64,
    taken: u64,
}

impl Pair {
    fn new() -> Self {
        let now = Instant::new(1);
        let protocol = |which: u8| {
            // The prefix begins with isolane's vendor id, so that the extensions for other vendors are not used.
            let mut prefix = [which + 1; 12];
            prefix[..2].copy_from_slice(&VENDOR_ID);
            let mut config = ParticipantConfig::new(0, GuidPrefix(prefix), u64::from(which));
            config.metatraffic_unicast = LocatorList::from_iter([address(which)]);
            config.announce_to = vec![GROUP];
            LocalParticipant::new(config, now)
        };
        Self {
            now,
            participants: [protocol(0), protocol(1)],
            pipe: Pipe::new(),
            buffer: vec![0; DATAGRAM_BYTES],
            viewed: 0,
            taken: 0,
        }
    }

    /// Runs rounds until the two participants know each other, despite losses.
    fn settle(&mut self, readers: &[ReaderId]) {
        for _ in 0..100_000 {
            self.round(readers);
        }
    }

    /// Runs one round: time advances, one datagram is delivered, and both participants do all their work.
    fn round(&mut self, readers: &[ReaderId]) {
        self.now = self.now + STEP;
        if let Some((to, place, length)) = self.pipe.waiting.pop_front() {
            let bytes = &self.pipe.bytes[place * DATAGRAM_BYTES..][..length];
            let mut message = MessageReceiver::new(address(1 - to as u8));
            while self.participants[to]
                .receive(self.now, &mut message, bytes)
                .is_some()
            {
                self.viewed += 1;
            }
        }
        for which in 0..2 {
            let protocol = &mut self.participants[which];
            advance(protocol, self.now);
            while let Some(priority) = most_urgent(protocol) {
                let Some(work) = protocol.poll_transmit(self.now, priority, &mut self.buffer)
                else {
                    break;
                };
                let is_for_anyone = match &work.to {
                    Destinations::Writer(writer) => !protocol.destinations(*writer).is_empty(),
                    Destinations::Announce | Destinations::Subset(..) => true,
                    Destinations::Listed(listed) => !listed.is_empty(),
                };
                if work.bytes > 0 && is_for_anyone {
                    self.pipe.send(which, &self.buffer[..work.bytes]);
                }
            }
            while protocol.next_status().is_some() {}
        }
        for &reader in readers {
            while self.participants[1].sample(reader, 0).is_some() {
                self.participants[1].remove_oldest(reader);
                self.taken += 1;
            }
        }
    }

    fn write(&mut self, writer: WriterId, payload: &[u8], key: Option<u32>) -> bool {
        let sample = WriteSample {
            kind: ChangeKind::Alive,
            key_hash: key.and_then(|_| key_of(payload, false).ok()),
            timestamp: Timestamp::from_nanos(self.now.as_nanos()),
        };
        let protocol = &mut self.participants[0];
        if protocol.keeps_history(writer) {
            let Ok(slot) = protocol.reserve(writer, sample.key_hash, 0) else {
                return false;
            };
            slot[..payload.len()].copy_from_slice(payload);
            return protocol.commit(writer, &sample, payload.len()).is_ok();
        }
        let place = 128..128 + payload.len();
        self.buffer[place.clone()].copy_from_slice(payload);
        let written = protocol.write_best_effort(writer, &sample, &mut self.buffer, place);
        written.is_ok_and(|datagram| {
            self.pipe.send(0, &self.buffer[datagram]);
            true
        })
    }
}

fn address(which: u8) -> Locator {
    Locator::udpv4([10, 0, 0, which + 1], 7410)
}

/// Index of the topic with timed policies.
const TIMED: usize = 5;

/// Index of the first topic whose samples are sent in fragments.
const FIRST_LARGE: usize = 6;

/// Payload size of the topics whose samples are sent in fragments.
const LARGE_BYTES: usize = 6_000;

fn endpoint<'a>(name: &'a str, keyed: bool, qos: &QosPolicies, which: u8) -> EndpointConfig<'a> {
    let is_large = name.starts_with("Large");
    EndpointConfig {
        keyed,
        key_of: keyed.then_some(key_of),
        max_payload_bytes: if is_large { LARGE_BYTES } else { 64 },
        unicast: LocatorList::from_iter([address(which)]),
        ..submessages::endpoint(name, qos.clone())
    }
}

/// RELIABLE and KEEP_ALL with room for 14 samples.
fn reliable() -> QosPolicies {
    let mut qos = QosPolicies::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.history.kind = HistoryKind::KeepAll;
    qos.resource_limits.max_samples = 14;
    qos
}

#[test]
fn a_participant_allocates_nothing_once_it_has_started() {
    let reliable = reliable();
    let mut keyed = reliable.clone();
    keyed.history.kind = HistoryKind::KeepLast;
    keyed.resource_limits.max_instances = 14;
    let effort = QosPolicies::default();
    // All timed policies together, with values at which each of them acts.
    let mut timed = reliable.clone();
    timed.lifespan = Duration::from_millis(50).into();
    timed.deadline = Duration::from_millis(60).into();
    timed.time_based_filter = Duration::from_millis(60).into();
    timed.liveliness.kind = LivelinessKind::ManualByParticipant;
    timed.liveliness.lease = Duration::from_millis(20).into();

    let mut pair = Pair::new();
    let now = pair.now;
    let kinds = [
        ("Reliable", false, &reliable, DeliveryMode::Cache),
        ("Keyed", true, &reliable, DeliveryMode::Cache),
        ("Last", true, &keyed, DeliveryMode::Cache),
        ("Effort", false, &effort, DeliveryMode::View),
        ("Cached", false, &effort, DeliveryMode::Cache),
        ("Timed", true, &timed, DeliveryMode::Cache),
        ("Large", false, &reliable, DeliveryMode::Cache),
        ("Large and last", true, &keyed, DeliveryMode::Cache),
        ("Large effort", false, &effort, DeliveryMode::View),
    ];
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    for (name, is_keyed, qos, delivery) in kinds {
        let writer = endpoint(name, is_keyed, qos, 0);
        writers.push(
            pair.participants[0]
                .create_writer(now, &writer)
                .expect("created"),
        );
        let reader = endpoint(name, is_keyed, qos, 1);
        readers.push(
            pair.participants[1]
                .create_reader(now, &reader, delivery)
                .expect("created"),
        );
    }
    let payloads: Vec<_> = (0..1000)
        .map(|key| Sample::keyed(key, 1).payload())
        .collect();

    let large: Vec<_> = (0..1000)
        .map(|key| Sample::keyed(key, 1).padded(5_000).payload())
        .collect();

    // Counts from the first announcement on, so discovery and matching are included.
    let mut written = [0u64; 9];
    pair.settle(&readers);
    let calls = allocator_calls_of(|| {
        for round in 0..200_000u32 {
            pair.round(&readers);
            if round.is_multiple_of(4) {
                // More instances than the cache has entries for, one after the other.
                let key = round / 4 % 1000;
                for (at, &writer) in writers.iter().enumerate() {
                    let is_large = at >= FIRST_LARGE;
                    // A large sample has four fragments, and one datagram arrives in a round.
                    if is_large && !round.is_multiple_of(64) {
                        continue;
                    }
                    // Few enough instances that samples repeat within the minimum separation, but more than are
                    // watched.
                    let key = if at == TIMED { key % 300 } else { key };
                    let payloads = if is_large { &large } else { &payloads };
                    let is_matched = pair.participants[0].matched_readers(writer) == 1;
                    let key_of_it = kinds[at].1.then_some(key);
                    if is_matched && pair.write(writer, &payloads[key as usize], key_of_it) {
                        written[at] += 1;
                    }
                }
            }
        }
    });
    assert_eq!(calls, 0, "allocations in 200,000 rounds");

    // The counted rounds had traffic.
    let (small, large) = written.split_at(FIRST_LARGE);
    assert!(small.iter().all(|&count| count > 5_000), "{written:?}");
    assert!(large.iter().all(|&count| count > 500), "{written:?}");
    assert!(pair.viewed > 5_000 && pair.taken > 5_000);
    for &writer in &writers {
        let ledger = pair.participants[0]
            .writer_ledger(writer)
            .expect("it exists");
        assert!(ledger.balances());
        let is_reliable = pair.participants[0]
            .writer_data(writer)
            .is_some_and(|data| data.qos.reliability.kind == ReliabilityKind::Reliable);
        let again = ledger.repaired + ledger.fragments_repaired;
        assert!(again > 100 || !is_reliable, "{ledger:?}");
    }
    let (timed_writer, timed_reader) = (writers[TIMED], readers[TIMED]);
    let missed = pair.participants[0].take_offered_deadline_missed(timed_writer);
    assert!(
        missed.is_some_and(|missed| missed.total > 100),
        "{missed:?}"
    );
    let ledger = pair.participants[1].reader_ledger(timed_reader);
    assert!(ledger.is_some_and(|it| it.time_filtered > 50), "{ledger:?}");
    assert!(pair.participants[1].counters().unwatched > 100);
    assert_balanced(&pair.participants[1]);
}

#[test]
fn sets_and_the_order_of_a_group_allocate_nothing_either() {
    let presentation = Presentation {
        access_scope: PresentationAccessScope::Group,
        coherent: true,
        ordered: true,
    };
    let mut qos = reliable();
    qos.destination_order = DestinationOrderKind::BySourceTimestamp;
    let mut pair = Pair::new();
    let now = pair.now;
    let publisher = pair.participants[0]
        .create_publisher(presentation)
        .expect("created");
    let subscriber = pair.participants[1]
        .create_subscriber(presentation)
        .expect("created");
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    for (name, keyed) in [("Left", false), ("Right", true)] {
        let writer = endpoint(name, keyed, &qos, 0);
        let created = pair.participants[0].create_writer_in(now, publisher, &writer);
        writers.push((created.expect("created"), keyed));
        let reader = endpoint(name, keyed, &qos, 1);
        let created = pair.participants[1].create_reader_in(now, subscriber, &reader, None);
        readers.push(created.expect("created"));
    }
    let payloads: Vec<_> = (0..300)
        .map(|key| Sample::keyed(key, 1).payload())
        .collect();
    let (mut written, mut ended) = (0, 0);
    pair.settle(&readers);
    let calls = allocator_calls_of(|| {
        for round in 0..100_000u32 {
            pair.round(&readers);
            match round % 64 {
                0 => pair.participants[0]
                    .begin_coherent_changes(publisher)
                    .expect("it exists"),
                48.. => {
                    let timestamp = Timestamp::from_nanos(pair.now.as_nanos());
                    let end = pair.participants[0].end_coherent_changes(publisher, timestamp);
                    ended += u32::from(end.is_ok());
                }
                at if at.is_multiple_of(4) => {
                    let (writer, keyed) = writers[(at / 4 % 2) as usize];
                    let key = round / 4 % 300;
                    let is_matched = pair.participants[0].matched_readers(writer) == 1;
                    let key_of_it = keyed.then_some(key);
                    if is_matched && pair.write(writer, &payloads[key as usize], key_of_it) {
                        written += 1;
                    }
                }
                _ => {}
            }
        }
    });
    assert_eq!(calls, 0, "allocations in 100,000 rounds");
    assert!(
        written > 1_000 && ended > 500,
        "{written} written, {ended} ended"
    );
    assert!(pair.taken > 500, "{} taken", pair.taken);
    for &reader in &readers {
        let ledger = pair.participants[1]
            .reader_ledger(reader)
            .expect("it exists");
        assert!(ledger.balances() && ledger.set_ends > 100, "{ledger:?}");
    }
}

/// Creates one of two described participants, with the given start.
fn described_protocol(which: u8, start: u8, qos: &QosPolicies, now: Instant) -> LocalParticipant {
    let described = |which: u8| {
        let name = ["writing", "reading"][usize::from(which)];
        let mut described = StaticParticipant::new(name, [10, 0, 0, which + 1], Announces::Nothing);
        let kind = [EndpointKind::Writer, EndpointKind::Reader][usize::from(which)];
        let added = described.add(kind, &endpoint("Described", false, qos, which));
        added.expect("one endpoint");
        described
    };
    let prefix = GuidPrefix([start; 12]);
    let mut config = ParticipantConfig::new(0, prefix, u64::from(which));
    config.described = Some(described(which));
    // Each start takes new entries in the tables.
    config.limits = Limits {
        participants: 32,
        remote_endpoints: 640,
        matches: 512,
        fixed_memory: true,
        ..Limits::default()
    };
    let mut protocol = LocalParticipant::new(config, now);
    let added = protocol.add_static_peer(now, described(1 - which));
    added.expect("one peer");
    protocol
}

#[test]
fn a_described_peer_that_starts_again_and_again_allocates_nothing_at_the_one_that_stays() {
    let qos = reliable();
    let mut pair = Pair::new();
    let now = pair.now;
    pair.participants = [0, 1].map(|which| described_protocol(which, 1, &qos, now));
    let of_reader = endpoint("Described", false, &qos, 1);
    let reader = pair.participants[1].create_reader(now, &of_reader, DeliveryMode::Cache);
    let readers = [reader.expect("created")];
    let payload = Sample::value(1).payload();
    let mut calls = 0;
    for start in 1..=5 {
        let now = pair.now;
        pair.participants[0] = described_protocol(0, start, &qos, now);
        let of_writer = endpoint("Described", false, &qos, 0);
        let writer = pair.participants[0].create_writer(now, &of_writer);
        let writer = writer.expect("created");
        let before = pair.taken;
        calls += allocator_calls_of(|| {
            for _ in 0..40_000 {
                pair.round(&readers);
                if pair.participants[0].matched_readers(writer) == 1 {
                    pair.write(writer, &payload, None);
                }
            }
        });
        assert!(pair.taken > before + 1_000, "{} taken", pair.taken);
    }
    assert_eq!(calls, 0, "allocations in five starts");
    let known = pair.participants[1].static_peers().next().expect("one");
    assert_eq!(known.restarts, 4);
    let ledger = pair.participants[1].reader_ledger(readers[0]);
    assert!(ledger.is_some_and(|ledger| ledger.balances()));
}
