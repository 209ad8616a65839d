//! Submessages that tests send in a peer's name, and the calls of a participant that no world surrounds.

#![allow(dead_code, reason = "each test uses a part")]

use isolane_rtps::{EndpointConfig, LocalParticipant, MessageReceiver, Priority};
use isolane_wire::{
    builtin_data::LocatorList,
    guid::EntityId,
    locator::Locator,
    message::{AckNack, DataPrefix, Gap, Heartbeat, PayloadKind, StatusInfo},
    qos::{DurabilityKind, QosPolicies, ReliabilityKind},
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

/// The readers of SEDP, each with the writer that it hears.
pub(crate) const SEDP_READERS: [(EntityId, EntityId); 2] = [
    (
        EntityId::SEDP_PUBLICATIONS_READER,
        EntityId::SEDP_PUBLICATIONS_WRITER,
    ),
    (
        EntityId::SEDP_SUBSCRIPTIONS_READER,
        EntityId::SEDP_SUBSCRIPTIONS_WRITER,
    ),
];

/// Head of a DATA with a sample.
pub(crate) fn head(writer: EntityId, number: i64) -> DataPrefix {
    DataPrefix {
        reader: EntityId::UNKNOWN,
        writer,
        sequence: SequenceNumber(number),
        key_hash: None,
        status: None,
        payload: PayloadKind::Data,
    }
}

/// Head of a DATA that disposes and unregisters an instance: the end of a participant or of an endpoint.
pub(crate) fn end(writer: EntityId, number: i64) -> DataPrefix {
    DataPrefix {
        status: Some(StatusInfo {
            disposed: true,
            unregistered: true,
        }),
        payload: PayloadKind::Key,
        ..head(writer, number)
    }
}

/// HEARTBEAT to all readers that requires an ACKNACK.
pub(crate) fn heartbeat(writer: EntityId, (first, last): (i64, i64), count: i32) -> Heartbeat {
    Heartbeat {
        reader: EntityId::UNKNOWN,
        writer,
        group: None,
        first: SequenceNumber(first),
        last: SequenceNumber(last),
        count,
        is_final: false,
        liveliness: false,
    }
}

/// GAP to all readers.
pub(crate) fn gap(writer: EntityId, start: i64, list: SequenceNumberSet) -> Gap {
    Gap {
        reader: EntityId::UNKNOWN,
        writer,
        group: None,
        filtered: None,
        start: SequenceNumber(start),
        list,
    }
}

/// ACKNACK that requires no HEARTBEAT.
pub(crate) fn acknack(
    (reader, writer): (EntityId, EntityId),
    state: SequenceNumberSet,
    count: i32,
) -> AckNack {
    AckNack {
        reader,
        writer,
        state,
        count,
        is_final: true,
    }
}

/// Set of a base and the 255 numbers above it, the most that a set can have (RTPS 2.5 §9.4.2.6).
pub(crate) fn full_set(base: i64) -> SequenceNumberSet {
    set(base, base..base + 256)
}

/// Set with these members.
pub(crate) fn set(base: i64, members: impl IntoIterator<Item = i64>) -> SequenceNumberSet {
    let mut set = SequenceNumberSet::new(SequenceNumber(base));
    for member in members {
        set.insert(SequenceNumber(member));
    }
    set
}

/// Endpoint without key for payloads of at most 64 bytes, at port 7420 of the address 10.0.0.1.
pub(crate) fn endpoint(topic_name: &str, qos: QosPolicies) -> EndpointConfig<'_> {
    EndpointConfig {
        topic_name,
        type_name: "sim::Sample",
        keyed: false,
        key_of: None,
        qos,
        max_payload_bytes: 64,
        shares_long: false,
        max_datagram_bytes: isolane_rtps::limits::MAX_DATA_PAYLOAD_BYTES,
        unicast: LocatorList::from_iter([Locator::udpv4([10, 0, 0, 1], 7420)]),
        multicast: LocatorList::new(),
    }
}

/// Policies of a late joiner that wants the history: RELIABLE and TRANSIENT_LOCAL.
pub(crate) fn late_joiner() -> QosPolicies {
    let mut qos = QosPolicies::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.durability = DurabilityKind::TransientLocal;
    qos
}

/// Passes a datagram to a participant.
pub(crate) fn receive(protocol: &mut LocalParticipant, now: Instant, from: Locator, bytes: &[u8]) {
    let mut message = MessageReceiver::new(from);
    while protocol.receive(now, &mut message, bytes).is_some() {}
}

/// Highest priority at which a participant has work.
pub(crate) fn most_urgent(protocol: &LocalParticipant) -> Option<Priority> {
    Priority::descending().find(|priority| protocol.ready() >> priority.get() & 1 == 1)
}

/// Lets timers that are due expire.
pub(crate) fn advance(protocol: &mut LocalParticipant, now: Instant) {
    if protocol.next_time().is_some_and(|due| due <= now) {
        protocol.advance(now);
    }
}

/// Does all work of a participant and drops its datagrams; returns the number of steps.
pub(crate) fn work(protocol: &mut LocalParticipant, now: Instant, buffer: &mut [u8]) -> u64 {
    advance(protocol, now);
    let mut steps = 0;
    while let Some(priority) = most_urgent(protocol) {
        protocol.poll_transmit(now, priority, buffer);
        steps += 1;
    }
    while protocol.next_status().is_some() {}
    steps
}

/// Asserts that the ledgers of all local endpoints balance.
pub(crate) fn assert_balanced(protocol: &LocalParticipant) {
    for reader in protocol.local_readers() {
        let ledger = protocol.reader_ledger(reader).expect("it exists");
        assert!(ledger.balances(), "{ledger:?}");
    }
    for writer in protocol.local_writers() {
        let ledger = protocol.writer_ledger(writer).expect("it exists");
        assert!(ledger.balances(), "{ledger:?}");
    }
}
