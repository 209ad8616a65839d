//! Each change at an endpoint is reported once, with its counts.

use isolane_rtps::{
    ChangeKind, DeliveryMode, EndpointConfig, LocalParticipant, LostReason, MessageReceiver,
    ParticipantConfig, ReaderId, ReaderStatus, RejectReason, StatusChange, UnreadableSamples,
    WriteSample, WriterId, WriterStatus, limits::MAX_HEAD_BYTES,
};
use isolane_wire::{
    builtin_data::LocatorList,
    cdr::{Encapsulation, EncapsulationId},
    guid::GuidPrefix,
    locator::Locator,
    qos::{HistoryKind, PolicyId, QosPolicies, ReliabilityKind},
    time::{Instant, Timestamp},
};

const NOW: Instant = Instant::new(1);
const HERE: Locator = Locator::udpv4([10, 0, 0, 1], 7420);

fn topic(reliability: ReliabilityKind) -> EndpointConfig<'static> {
    let mut qos = QosPolicies::default();
    qos.reliability.kind = reliability;
    qos.history.kind = HistoryKind::KeepAll;
    qos.resource_limits.max_samples = 2;
    EndpointConfig {
        topic_name: "Status",
        type_name: "Byte",
        keyed: false,
        key_of: None,
        qos,
        max_payload_bytes: 64,
        shares_long: false,
        max_datagram_bytes: isolane_rtps::limits::MAX_DATA_PAYLOAD_BYTES,
        unicast: LocatorList::from_iter([HERE]),
        multicast: LocatorList::new(),
    }
}

/// A local participant, and a best-effort writer in it.
fn a_writer() -> (LocalParticipant, WriterId) {
    let mut protocol =
        LocalParticipant::new(ParticipantConfig::new(0, GuidPrefix([1; 12]), 1), NOW);
    let created = protocol.create_writer(NOW, &topic(ReliabilityKind::BestEffort));
    (protocol, created.expect("there is room"))
}

fn a_reader(
    protocol: &mut LocalParticipant,
    reliability: ReliabilityKind,
    delivery: DeliveryMode,
) -> ReaderId {
    let created = protocol.create_reader(NOW, &topic(reliability), delivery);
    created.expect("there is room")
}

fn write(protocol: &mut LocalParticipant, writer: WriterId, bytes: usize) -> Vec<u8> {
    write_of(protocol, writer, bytes, None)
}

fn write_of(
    protocol: &mut LocalParticipant,
    writer: WriterId,
    bytes: usize,
    key_hash: Option<[u8; 16]>,
) -> Vec<u8> {
    let mut buffer = [0; MAX_HEAD_BYTES + 64];
    let sample = WriteSample {
        kind: ChangeKind::Alive,
        key_hash,
        timestamp: Timestamp::ZERO,
    };
    let payload = MAX_HEAD_BYTES..MAX_HEAD_BYTES + bytes;
    let written = protocol.write_best_effort(writer, &sample, &mut buffer, payload);
    buffer[written.expect("it fits")].to_vec()
}

fn receive(protocol: &mut LocalParticipant, datagram: &[u8]) {
    let mut message = MessageReceiver::new(HERE);
    while protocol.receive(NOW, &mut message, datagram).is_some() {}
}

/// Statuses reported now for a reader and for a writer.
fn reported(protocol: &mut LocalParticipant) -> (ReaderStatus, WriterStatus) {
    let mut reported = (ReaderStatus::empty(), WriterStatus::empty());
    while let Some(change) = protocol.next_status() {
        match change {
            StatusChange::Reader(_, status) => reported.0 |= status,
            StatusChange::Writer(_, status) => reported.1 |= status,
            StatusChange::Discovery => {}
        }
    }
    reported
}

#[test]
fn endpoints_that_join_and_part_are_counted_on_both_sides() {
    let (mut protocol, writer) = a_writer();
    assert_eq!(protocol.take_publication_matched(writer), None);
    let readers = [(); 2].map(|()| {
        a_reader(
            &mut protocol,
            ReliabilityKind::BestEffort,
            DeliveryMode::View,
        )
    });
    let (of_reader, of_writer) = reported(&mut protocol);
    assert!(of_reader.contains(ReaderStatus::SUBSCRIPTION_MATCHED));
    assert!(of_writer.contains(WriterStatus::PUBLICATION_MATCHED));
    let matched = protocol
        .take_publication_matched(writer)
        .expect("two joined");
    assert_eq!((matched.total, matched.total_change), (2, 2));
    assert_eq!((matched.current, matched.current_change), (2, 2));
    let last = protocol.reader_data(readers[1]).expect("it exists").guid;
    assert_eq!(matched.last, last);
    assert_eq!(protocol.take_publication_matched(writer), None, "taken");

    protocol.delete_reader(NOW, readers[0]);
    let matched = protocol
        .take_publication_matched(writer)
        .expect("one parted");
    assert_eq!((matched.total, matched.total_change), (2, 0));
    assert_eq!((matched.current, matched.current_change), (1, -1));

    let matched = protocol.take_subscription_matched(readers[1]);
    assert_eq!(matched.map(|matched| matched.current), Some(1));
    protocol.delete_writer(NOW, writer);
    let matched = protocol.take_subscription_matched(readers[1]);
    assert_eq!(matched.map(|it| (it.current, it.total)), Some((0, 1)));
    assert_eq!(
        protocol.take_publication_matched(writer),
        None,
        "it is gone"
    );
}

#[test]
fn one_that_joins_and_parts_between_two_looks_is_still_seen() {
    let (mut protocol, writer) = a_writer();
    let reader = a_reader(
        &mut protocol,
        ReliabilityKind::BestEffort,
        DeliveryMode::View,
    );
    protocol.delete_reader(NOW, reader);
    let matched = protocol
        .take_publication_matched(writer)
        .expect("one came and went");
    assert_eq!((matched.total_change, matched.current_change), (1, 0));
}

#[test]
fn an_incompatible_endpoint_is_counted_with_the_policy() {
    let (mut protocol, writer) = a_writer();
    let reader = a_reader(
        &mut protocol,
        ReliabilityKind::Reliable,
        DeliveryMode::Cache,
    );
    let (of_reader, of_writer) = reported(&mut protocol);
    assert!(of_reader.contains(ReaderStatus::REQUESTED_INCOMPATIBLE_QOS));
    assert!(of_writer.contains(WriterStatus::OFFERED_INCOMPATIBLE_QOS));
    let offered = protocol.take_offered_incompatible(writer).expect("one");
    assert_eq!(offered.policy, PolicyId::RELIABILITY);
    assert_eq!((offered.total, offered.total_change), (1, 1));
    assert_eq!(protocol.take_offered_incompatible(writer), None);
    a_reader(
        &mut protocol,
        ReliabilityKind::Reliable,
        DeliveryMode::Cache,
    );
    let offered = protocol.take_offered_incompatible(writer).expect("another");
    assert_eq!((offered.total, offered.total_change), (2, 1));
    assert!(protocol.take_requested_incompatible(reader).is_some());
    assert_eq!(protocol.take_requested_incompatible(reader), None);
}

#[test]
fn a_lost_sample_is_reported_to_view_readers_and_to_readers_with_a_cache() {
    for delivery in [DeliveryMode::View, DeliveryMode::Cache] {
        let (mut protocol, writer) = a_writer();
        let reader = a_reader(&mut protocol, ReliabilityKind::BestEffort, delivery);
        let sent: Vec<_> = (0..4).map(|_| write(&mut protocol, writer, 8)).collect();
        receive(&mut protocol, &sent[0]);
        reported(&mut protocol);
        assert_eq!(protocol.take_sample_lost(reader), None);
        receive(&mut protocol, &sent[3]);
        assert!(
            reported(&mut protocol)
                .0
                .contains(ReaderStatus::SAMPLE_LOST)
        );
        let lost = protocol.take_sample_lost(reader).expect("two were lost");
        assert_eq!((lost.total, lost.change), (2, 2));
        assert_eq!(protocol.take_sample_lost(reader), None);
    }
}

#[test]
fn a_sample_that_is_too_large_is_reported_as_lost_with_its_size() {
    let (mut protocol, writer) = a_writer();
    let mut small = topic(ReliabilityKind::BestEffort);
    small.max_payload_bytes = 8;
    let created = protocol.create_reader(NOW, &small, DeliveryMode::Cache);
    let reader = created.expect("there is room");
    for _ in 0..3 {
        let sent = write(&mut protocol, writer, 64);
        receive(&mut protocol, &sent);
    }
    let status = reported(&mut protocol).0;
    assert!(status.contains(ReaderStatus::SAMPLE_LOST));
    assert!(!status.contains(ReaderStatus::SAMPLE_REJECTED));
    let lost = protocol.take_sample_lost(reader).expect("three are");
    assert_eq!((lost.total, lost.change, lost.too_large), (3, 3, 3));
    assert_eq!(lost.reason, LostReason::TooLarge { bytes: 64 });
    let last = protocol.last_too_large().expect("the third");
    assert_eq!((last.bytes, last.limit), (64, 8));
    assert_eq!(protocol.counters().samples_too_large, 3);
    let ledger = protocol.reader_ledger(reader).expect("it lives");
    assert_eq!((ledger.accounted, ledger.too_large), (3, 3));
    assert!(ledger.balances());

    // The next sample that is lost in transmission has the other reason.
    let _ = write(&mut protocol, writer, 8);
    let sent = write(&mut protocol, writer, 8);
    receive(&mut protocol, &sent);
    let lost = protocol.take_sample_lost(reader).expect("a fourth");
    assert_eq!((lost.total, lost.change, lost.too_large), (4, 1, 3));
    assert_eq!(lost.reason, LostReason::NotReceived);
    protocol.delete_reader(NOW, reader);
    assert_eq!(protocol.last_too_large(), None);
}

#[test]
fn a_rejected_sample_is_reported_with_its_reason() {
    let (mut protocol, writer) = a_writer();
    let mut small = topic(ReliabilityKind::BestEffort);
    small.max_payload_bytes = 8;
    let created = protocol.create_reader(NOW, &small, DeliveryMode::Cache);
    let reader = created.expect("there is room");
    for _ in 0..3 {
        let sent = write(&mut protocol, writer, 8);
        receive(&mut protocol, &sent);
    }
    assert!(
        reported(&mut protocol)
            .0
            .contains(ReaderStatus::SAMPLE_REJECTED)
    );
    let rejected = protocol.take_sample_rejected(reader).expect("two fit");
    assert_eq!((rejected.total, rejected.change), (1, 1));
    assert_eq!(rejected.reason, RejectReason::NoRoom);
    protocol.remove_oldest(reader);
    let guid = protocol.writer_data(writer).expect("it exists").guid;
    protocol.reject_delivered(reader, guid, RejectReason::NotOfType);
    let rejected = protocol.take_sample_rejected(reader).expect("by its user");
    assert_eq!(rejected.reason, RejectReason::NotOfType);
}

#[test]
fn a_sample_in_a_parameter_list_is_rejected_by_name_although_its_writer_says_the_key() {
    const PL_CDR_LE: u16 = 0x0003;
    const PAYLOAD_BYTES: usize = 8;
    let mut keyed = topic(ReliabilityKind::BestEffort);
    keyed.keyed = true;
    keyed.key_of = Some(|payload, _| Encapsulation::split(payload).map(|_| [1; 16]));
    let mut protocol =
        LocalParticipant::new(ParticipantConfig::new(0, GuidPrefix([1; 12]), 1), NOW);
    let writer = protocol.create_writer(NOW, &keyed).expect("there is room");
    let created = protocol.create_reader(NOW, &keyed, DeliveryMode::Cache);
    let reader = created.expect("there is room");
    let sent = write_of(&mut protocol, writer, PAYLOAD_BYTES, Some([1; 16]));
    receive(&mut protocol, &sent);
    assert_eq!(
        (
            protocol.available(reader),
            protocol.unreadable_samples(reader)
        ),
        (1, None)
    );

    for total in 1..3 {
        let mut sent = write_of(&mut protocol, writer, PAYLOAD_BYTES, Some([1; 16]));
        let payload = sent.len() - PAYLOAD_BYTES;
        sent[payload..payload + 2].copy_from_slice(&PL_CDR_LE.to_be_bytes());
        receive(&mut protocol, &sent);
        let identifier = EncapsulationId(PL_CDR_LE);
        let refused = UnreadableSamples {
            total,
            identifier: Some(identifier),
            writer: protocol.writer_data(writer).expect("it exists").guid,
        };
        assert_eq!(protocol.unreadable_samples(reader), Some(refused));
        assert!(
            reported(&mut protocol)
                .0
                .contains(ReaderStatus::SAMPLE_REJECTED)
        );
        let rejected = protocol.take_sample_rejected(reader).expect("one was");
        assert_eq!(rejected.reason, RejectReason::Encapsulation(identifier));
        assert_eq!(protocol.counters().samples_unreadable, total);
    }
    assert_eq!(protocol.available(reader), 1);
}
