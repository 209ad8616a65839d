//! A view reader's callback may call any method of the participant before the rest of the datagram is read.

use isolane_rtps::{
    ChangeKind, DeliveryMode, EndpointConfig, LocalParticipant, MessageReceiver, ParticipantConfig,
    ReaderId, WriteSample, limits::MAX_HEAD_BYTES,
};
use isolane_wire::{
    builtin_data::LocatorList,
    guid::GuidPrefix,
    locator::Locator,
    qos::{QosPolicies, ReliabilityKind},
    time::{Instant, Timestamp},
};

const NOW: Instant = Instant::new(1);
const HERE: Locator = Locator::udpv4([10, 0, 0, 1], 7420);

fn topic() -> EndpointConfig<'static> {
    let mut qos = QosPolicies::default();
    qos.reliability.kind = ReliabilityKind::BestEffort;
    EndpointConfig {
        topic_name: "View",
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

/// A local participant with `count` view readers, and a datagram of a matched writer.
fn readers_and_a_datagram(count: usize) -> (LocalParticipant, Vec<ReaderId>, Vec<u8>) {
    let mut protocol =
        LocalParticipant::new(ParticipantConfig::new(0, GuidPrefix([1; 12]), 1), NOW);
    let created = protocol.create_writer(NOW, &topic());
    let writer = created.expect("there is room");
    let readers = (0..count).map(|_| {
        let created = protocol.create_reader(NOW, &topic(), DeliveryMode::View);
        created.expect("there is room")
    });
    let readers = readers.collect();
    let mut buffer = [0; MAX_HEAD_BYTES + 8];
    let sample = WriteSample {
        kind: ChangeKind::Alive,
        key_hash: None,
        timestamp: Timestamp::ZERO,
    };
    let payload = MAX_HEAD_BYTES..MAX_HEAD_BYTES + 8;
    let written = protocol.write_best_effort(writer, &sample, &mut buffer, payload);
    let datagram = buffer[written.expect("it fits")].to_vec();
    (protocol, readers, datagram)
}

/// Readers that received the sample; `callback` runs after each delivery, with its number.
fn served(
    protocol: &mut LocalParticipant,
    datagram: &[u8],
    mut callback: impl FnMut(&mut LocalParticipant, usize, ReaderId),
) -> Vec<ReaderId> {
    let mut message = MessageReceiver::new(HERE);
    let mut served = Vec::new();
    while let Some(delivery) = protocol.receive(NOW, &mut message, datagram) {
        served.push(delivery.reader);
        callback(protocol, served.len() - 1, delivery.reader);
    }
    served.sort();
    served
}

#[test]
fn every_reader_is_served_once() {
    let (mut protocol, readers, datagram) = readers_and_a_datagram(4);
    assert_eq!(served(&mut protocol, &datagram, |_, _, _| {}), readers);
    for &reader in &readers {
        let ledger = protocol.reader_ledger(reader).expect("it exists");
        assert_eq!((ledger.delivered, ledger.duplicates), (1, 0));
    }
}

#[test]
fn a_callback_that_deletes_any_one_reader_takes_the_sample_from_no_other() {
    for nth in 0..4 {
        for victim in 0..4 {
            let (mut protocol, readers, datagram) = readers_and_a_datagram(4);
            let served = served(&mut protocol, &datagram, |protocol, now, _| {
                if now == nth {
                    protocol.delete_reader(NOW, readers[victim]);
                }
            });
            for (at, reader) in readers.iter().enumerate() {
                let times = served.iter().filter(|&served| served == reader).count();
                assert!(times == 1 || at == victim, "{nth} {victim}: {served:?}");
            }
        }
    }
}

#[test]
fn a_callback_that_replaces_a_reader_takes_the_sample_from_no_other() {
    for victim in 0..4 {
        let (mut protocol, readers, datagram) = readers_and_a_datagram(4);
        let served = served(&mut protocol, &datagram, |protocol, now, _| {
            if now == 0 {
                protocol.delete_reader(NOW, readers[victim]);
                let created = protocol.create_reader(NOW, &topic(), DeliveryMode::View);
                created.expect("there is room");
            }
        });
        for (at, reader) in readers.iter().enumerate() {
            assert!(
                at == victim || served.contains(reader),
                "{victim}: {served:?}"
            );
        }
    }
}

#[test]
fn a_callback_that_replaces_its_reader_every_time_does_not_hold_up_the_datagram_for_ever() {
    let (mut protocol, readers, datagram) = readers_and_a_datagram(2);
    let served = served(&mut protocol, &datagram, |protocol, _, reader| {
        protocol.delete_reader(NOW, reader);
        let created = protocol.create_reader(NOW, &topic(), DeliveryMode::View);
        created.expect("there is room");
    });
    assert!(served.len() <= 8, "{served:?}");
    assert!(readers.iter().any(|reader| served.contains(reader)));
}
