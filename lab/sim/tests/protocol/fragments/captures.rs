//! Captured large samples of other implementations, replayed to a local participant that replaces the reader.

#[path = "../../../../../crates/wire/tests/captures/pcap.rs"]
#[allow(dead_code)]
mod pcap;

use std::time::Duration;

use isolane_rtps::{
    DeliveryMode, EndpointConfig, LocalParticipant, MessageReceiver, Network, ParticipantConfig,
    Priority, ReaderId, limits::MAX_DATA_PAYLOAD_BYTES,
};
use isolane_wire::{
    builtin_data::LocatorList,
    cdr::CdrError,
    locator::Locator,
    message::{HEADER_BYTES, Header, Submessage, Submessages},
    qos::{DataRepresentationId, HistoryKind, QosPolicies, ReliabilityKind},
    sequence::SequenceNumber,
    time::Instant,
};

/// Addresses of the captures' publisher and subscriber.
const PUBLISHER: [u8; 4] = [10, 78, 0, 1];
const SUBSCRIBER: [u8; 4] = [10, 78, 0, 2];

/// Local participant in place of a capture's subscriber, and its sent messages.
struct Replay {
    protocol: LocalParticipant,
    now: Instant,
    sent: Vec<Vec<u8>>,
}

impl Replay {
    fn of(messages: &[pcap::Message]) -> Self {
        let own = messages.iter().find(|message| message.source == SUBSCRIBER);
        let own = own.expect("the subscriber spoke");
        let prefix = Header::parse(&own.bytes).expect("a message").prefix;
        let now = Instant::new(1);
        let mut config = ParticipantConfig::new(0, prefix, 7);
        config.limits.sample_bytes = 1 << 30;
        config.metatraffic_unicast = LocatorList::from_iter([Locator::udpv4(SUBSCRIBER, 7410)]);
        config.announce_to = vec![Locator::udpv4([239, 255, 0, 1], 7400)];
        config.networks = vec![Network {
            address: SUBSCRIBER,
            prefix_bits: 24,
        }];
        Self {
            protocol: LocalParticipant::new(config, now),
            now,
            sent: Vec::new(),
        }
    }

    /// Creates a reader of shapes that may be large.
    fn reader(&mut self, topic_name: &str) -> ReaderId {
        let mut qos = QosPolicies::default();
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.history.kind = HistoryKind::KeepAll;
        qos.data_representation.clear();
        for id in [DataRepresentationId::XCDR1, DataRepresentationId::XCDR2] {
            qos.data_representation.push(id).expect("there is room");
        }
        let config = EndpointConfig {
            topic_name,
            type_name: "ShapeType",
            keyed: true,
            key_of: Some(|payload, _| {
                let key = payload.get(4..20).and_then(|key| key.try_into().ok());
                key.ok_or(CdrError::Truncated)
            }),
            qos,
            max_payload_bytes: 110_000,
            shares_long: false,
            max_datagram_bytes: MAX_DATA_PAYLOAD_BYTES,
            unicast: LocatorList::from_iter([Locator::udpv4(SUBSCRIBER, 7411)]),
            multicast: LocatorList::new(),
        };
        let created = self
            .protocol
            .create_reader(self.now, &config, DeliveryMode::Cache);
        created.expect("a reader")
    }

    /// Receives a message, and runs all work that it causes.
    fn hear(&mut self, message: &pcap::Message) {
        self.now = self.now + Duration::from_millis(1);
        let mut receiver = MessageReceiver::new(Locator::udpv4(message.source, 7411));
        let viewed = self
            .protocol
            .receive(self.now, &mut receiver, &message.bytes);
        assert_eq!(viewed, None);
        self.protocol.advance(self.now);
        let mut buffer = vec![0; 65_507];
        while let Some(priority) =
            Priority::descending().find(|p| self.protocol.ready() >> p.get() & 1 == 1)
        {
            let work = self.protocol.poll_transmit(self.now, priority, &mut buffer);
            let work = work.expect("what is ready can be done");
            self.sent.push(buffer[..work.bytes].to_vec());
        }
    }

    /// Returns whether the local participant has acknowledged a sample, with nothing missing before it.
    fn is_acknowledged(&self, sequence: SequenceNumber) -> bool {
        let messages = self.sent.iter().filter(|message| !message.is_empty());
        let mut all =
            messages.flat_map(|message| Submessages::new(message, HEADER_BYTES).flatten());
        all.any(|submessage| match submessage {
            Submessage::AckNack(ack) => {
                !ack.writer.is_builtin() && ack.state.base() > sequence && ack.state.is_empty()
            }
            _ => false,
        })
    }
}

/// Returns the bytes of a sample, composed of its captured fragments.
fn sent_in_fragments(messages: &[pcap::Message]) -> (SequenceNumber, Vec<u8>) {
    let mut sample = (SequenceNumber::UNKNOWN, Vec::new());
    for message in messages {
        for submessage in pcap::submessages(message) {
            if let Submessage::DataFrag(part) = submessage {
                assert_eq!(part.sample_offset(), sample.1.len(), "in order");
                sample.0 = part.sequence;
                sample.1.extend(part.bytes);
            }
        }
    }
    sample
}

#[test]
fn the_large_samples_of_cyclone_dds_and_of_fast_dds_are_put_together_and_acknowledged() {
    // In one capture a fragment has 1,344 bytes and a submessage has ten fragments; in the other, 65,324 bytes and one
    // fragment.
    for name in ["big-cyc", "big-fast"] {
        let messages = pcap::messages(name);
        let (sequence, payload) = sent_in_fragments(&messages);
        assert_eq!(payload.len(), 100_032, "{name}");
        let mut replay = Replay::of(&messages);
        // The first reader is only there so that the second one has the entity id that Fast DDS addresses.
        replay.reader("Circle");
        let reader = replay.reader("Square");
        for message in messages
            .iter()
            .filter(|message| message.source == PUBLISHER)
        {
            replay.hear(message);
        }
        assert_eq!(replay.protocol.matched_writers(reader), 1, "{name}");
        let sample = replay.protocol.sample(reader, 0).expect("it came");
        assert_eq!(sample.info.sequence, sequence);
        assert!(sample.payload == payload, "{name}: other bytes");
        assert!(sample.info.source_timestamp.is_some());
        assert!(replay.is_acknowledged(sequence), "{name}");
        assert_eq!(replay.protocol.counters().fragments_unused, 0);
        let ledger = replay.protocol.reader_ledger(reader).expect("it exists");
        assert!(ledger.balances(), "{name}: {ledger:?}");
    }
}
