//! Local participant that replaces a captured one.

use std::{fmt::Write as _, time::Duration};

use isolane_derive::TopicType;
use isolane_rtps::{
    ChangeKind, DeliveryMode, EndpointConfig, LocalParticipant, MessageReceiver, ParticipantConfig,
    Priority, ReaderId, WriteSample, WriterId,
};
use isolane_wire::{
    builtin_data::LocatorList,
    cdr::{KeyHash, key_hash_of_payload},
    guid::{EntityId, GuidPrefix},
    locator::Locator,
    message::{
        Data, HEADER_BYTES, Header, PayloadKind, SUBMESSAGE_HEADER_BYTES, Submessage, Submessages,
    },
    time::{Instant, Timestamp},
};

use super::{
    cast::{Cast, Participant, data_in},
    heard::{Change, Heard, kind_of},
};
use crate::conversation::Said;

/// Payload size of endpoints: longer than all payloads in the captures except the large ones ([`LARGE_PAYLOAD_BYTES`]).
const MAX_PAYLOAD_BYTES: usize = 1_400;
const LARGE_PAYLOAD_BYTES: usize = 100_036;

/// Only the key of a shape is read here.
#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct ShapeType {
    #[topic(key, bound = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    #[topic(bound = 200_000)]
    additional_payload_size: Vec<u8>,
}

/// Endpoint of the local participant.
enum Endpoint {
    Writer(WriterId),
    Reader(ReaderId),
}

/// Present and maximum number.
#[derive(Default)]
struct Most {
    now: usize,
    most: usize,
}

impl Most {
    fn set(&mut self, now: usize) {
        self.now = now;
        self.most = self.most.max(now);
    }
}

pub(super) struct Place<'a> {
    one: &'a Participant,
    other: &'a Participant,
    protocol: LocalParticipant,
    endpoint: Endpoint,
    began_us: u64,
    now: Instant,
    participants: Most,
    endpoints: Most,
    matches: Most,
    heard: Heard,
    /// Changes delivered to the reader.
    taken: Vec<Change>,
    written: i64,
}

impl<'a> Place<'a> {
    pub(super) fn of(name: &str, cast: &'a Cast, one: &'a Participant) -> Self {
        let is_other = |known: &&Participant| known.prefix != one.prefix;
        let other = cast.participants.iter().find(is_other).expect("two");
        let now = Instant::new(1);
        let mut config = ParticipantConfig::new(0, one.prefix, 1);
        config.limits.sample_bytes = 1 << 30;
        config.metatraffic_unicast = LocatorList::from_iter([locator([10, 78, 0, 9], 7410)]);
        let mut protocol = LocalParticipant::new(config, now);
        let config = EndpointConfig {
            topic_name: &one.endpoint.topic_name,
            type_name: &one.endpoint.type_name,
            keyed: one.endpoint.is_keyed(),
            key_of: one
                .endpoint
                .is_keyed()
                .then_some(key_hash_of_payload::<ShapeType>),
            qos: one.endpoint.qos.clone(),
            max_payload_bytes: if name.starts_with("big") {
                LARGE_PAYLOAD_BYTES
            } else {
                MAX_PAYLOAD_BYTES
            },
            shares_long: false,
            max_datagram_bytes: isolane_rtps::limits::MAX_DATA_PAYLOAD_BYTES,
            unicast: LocatorList::from_iter([locator([10, 78, 0, 9], 7411)]),
            multicast: LocatorList::new(),
        };
        let endpoint = if one.endpoint.guid.entity.is_writer() {
            Endpoint::Writer(protocol.create_writer(now, &config).expect("a writer"))
        } else {
            let created = protocol.create_reader(now, &config, DeliveryMode::Cache);
            Endpoint::Reader(created.expect("a reader"))
        };
        Self {
            one,
            other,
            protocol,
            endpoint,
            began_us: 0,
            now,
            participants: Most::default(),
            endpoints: Most::default(),
            matches: Most::default(),
            heard: Heard::new(other.prefix, other.endpoint.guid.entity),
            taken: Vec::new(),
            written: 0,
        }
    }

    /// Records the messages to come. Writes the samples that the replaced participant had written before the capture
    /// began, because the capture's first number is higher.
    pub(super) fn prepare(&mut self, said: &[Said]) {
        self.heard.expect(said);
        let Endpoint::Writer(writer) = self.endpoint else {
            return;
        };
        let mine = self.one.endpoint.guid.entity;
        let numbers = said.iter().flat_map(|said| data_in(&said.message));
        let first = numbers
            .filter(|data| data.writer == mine)
            .map(|data| data.sequence.get());
        for _ in 1..first.min().unwrap_or(1) {
            let key_hash = self.one.endpoint.is_keyed().then_some([0; 16]);
            self.write(writer, ChangeKind::Alive, key_hash, &[]);
        }
        self.settle();
    }

    fn write(
        &mut self,
        writer: WriterId,
        kind: ChangeKind,
        key_hash: Option<KeyHash>,
        payload: &[u8],
    ) {
        let slot = self.protocol.reserve(writer, key_hash, 0).expect("room");
        slot[..payload.len()].copy_from_slice(payload);
        let sample = WriteSample {
            kind,
            key_hash,
            timestamp: Timestamp::ZERO,
        };
        let sequence = self.protocol.commit(writer, &sample, payload.len());
        self.written += 1;
        assert_eq!(sequence.map(|number| number.get()), Ok(self.written));
    }

    /// Processes the next message of the capture, from either participant.
    pub(super) fn hear(&mut self, said: &Said) {
        if self.began_us == 0 {
            self.began_us = said.time_us;
        }
        let time = Instant::new(1) + Duration::from_micros(said.time_us - self.began_us);
        self.go_on_until(time);
        let header = Header::parse(&said.message).expect("a header");
        if header.prefix == self.one.prefix {
            self.say(&said.message);
        } else {
            self.listen(said, header.prefix);
        }
        self.settle();
    }

    /// Writes the sample that the replaced participant wrote.
    fn say(&mut self, message: &[u8]) {
        let Endpoint::Writer(writer) = self.endpoint else {
            return;
        };
        for data in data_in(message) {
            // A new sample has the next number; all others are repairs.
            let is_mine = data.writer == self.one.endpoint.guid.entity;
            if is_mine && data.sequence.get() == self.written + 1 {
                self.write(writer, kind_of(&data), self.key_of(&data), data.bytes);
            }
        }
    }

    fn key_of(&self, data: &Data<'_>) -> Option<KeyHash> {
        if !self.one.endpoint.is_keyed() {
            return None;
        }
        match data.payload {
            PayloadKind::None => data.key_hash(),
            kind => key_hash_of_payload::<ShapeType>(data.bytes, kind == PayloadKind::Key).ok(),
        }
    }

    fn listen(&mut self, said: &Said, prefix: GuidPrefix) {
        assert_eq!(prefix, self.other.prefix);
        let mine = match self.endpoint {
            Endpoint::Writer(id) => self.protocol.writer_data(id),
            Endpoint::Reader(id) => self.protocol.reader_data(id),
        };
        let mine = mine.expect("it exists").guid.entity;
        let message = addressed(&said.message, self.one.endpoint.guid.entity, mine);
        let source = locator(said.source, said.source_port);
        self.receive(source, &message);
        self.heard.add(message);
    }

    fn receive(&mut self, source: Locator, message: &[u8]) {
        let mut receiver = MessageReceiver::new(source);
        let delivery = self.protocol.receive(self.now, &mut receiver, message);
        assert_eq!(delivery, None, "no reader takes views");
    }

    /// Advances the time, and handles expired timers.
    fn go_on_until(&mut self, end: Instant) {
        while let Some(due) = self.protocol.next_time().filter(|due| *due <= end) {
            self.now = due.max(self.now);
            self.protocol.advance(self.now);
            self.settle();
        }
        self.now = end;
    }

    /// Runs all filed work, takes all available samples, and counts the known participants.
    fn settle(&mut self) {
        let mut buffer = [0; 2048];
        while self.protocol.ready() != 0 {
            for priority in Priority::descending() {
                if self.protocol.ready() >> priority.get() & 1 == 1 {
                    let work = self.protocol.poll_transmit(self.now, priority, &mut buffer);
                    let bytes = work.map_or(0, |work| work.bytes);
                    for answer in self.heard.answers(&buffer[..bytes]) {
                        self.receive(locator([10, 78, 0, 8], 7411), &answer);
                    }
                }
            }
        }
        if let Endpoint::Reader(reader) = self.endpoint {
            while let Some(sample) = self.protocol.sample(reader, 0) {
                let what = (
                    sample.info.sequence.get(),
                    sample.info.kind,
                    sample.payload.to_vec(),
                );
                self.taken.push(what);
                self.protocol.remove_oldest(reader);
            }
        }
        let protocol = &self.protocol;
        self.participants
            .set(protocol.remote_participants().count());
        self.endpoints.set(protocol.remote_endpoints().count());
        self.matches.set(match self.endpoint {
            Endpoint::Writer(writer) => protocol.matched_readers(writer),
            Endpoint::Reader(reader) => protocol.matched_writers(reader),
        });
    }

    /// Description of the final state.
    pub(super) fn description(&self) -> String {
        let counters = self.protocol.counters();
        let malformed = counters.malformed_messages
            + counters.malformed_submessages
            + counters.malformed_announcements;
        assert_eq!(malformed, 0, "{counters:?}");
        let role = match self.endpoint {
            Endpoint::Writer(_) => "publisher",
            Endpoint::Reader(_) => "subscriber",
        };
        let mut text = format!(
            "{role:10}  hears {:11}  at most {}, at the end {}; ",
            vendor(self.other.vendor),
            self.known(|count| count.most),
            self.known(|count| count.now),
        );
        match self.endpoint {
            Endpoint::Reader(reader) => {
                let numbers = self.taken.iter().map(|(number, ..)| *number);
                assert!(numbers.is_sorted_by(|a, b| a < b), "once, in order");
                assert!(
                    self.taken.iter().all(|it| self.heard.said.contains(it)),
                    "as it was said"
                );
                let ledger = self.protocol.reader_ledger(reader).expect("it exists");
                assert_eq!(ledger.delivered as usize, self.taken.len());
                assert_eq!(ledger.waiting, 0, "for ever");
                let disposed = [ChangeKind::Dispose, ChangeKind::DisposeAndUnregister];
                for (kinds, what) in [
                    (&[ChangeKind::Alive][..], "samples"),
                    (&disposed, "disposed"),
                    (&[ChangeKind::Unregister], "unregistered"),
                ] {
                    text.extend(self.came(kinds, what));
                }
                let _ = write!(text, "{} requested again", self.heard.repeated);
            }
            Endpoint::Writer(writer) => {
                let acknowledged = self.heard.acknowledged.min(self.written);
                assert_eq!(
                    self.protocol.all_acknowledged(writer),
                    acknowledged == self.written || self.matches.now == 0
                );
                let _ = write!(text, "{} of {} acknowledged", acknowledged, self.written);
            }
        }
        if counters.skipped_submessages > 0 {
            let _ = write!(
                text,
                "; {} submessages passed over",
                counters.skipped_submessages
            );
        }
        text
    }

    /// Text of the numbers of participants, endpoints and matches.
    fn known(&self, of: impl Fn(&Most) -> usize) -> String {
        let [participants, endpoints, matches] =
            [&self.participants, &self.endpoints, &self.matches].map(of);
        format!("{participants} participant, {endpoints} endpoint, {matches} match")
    }

    /// Formats the number of received changes of these kinds, and of all in the capture.
    fn came(&self, kinds: &[ChangeKind], what: &str) -> Option<String> {
        let of = |list: &[Change]| list.iter().filter(|it| kinds.contains(&it.1)).count();
        let (came, said) = (of(&self.taken), of(&self.heard.said));
        (said > 0).then(|| format!("{came} of {said} {what}, "))
    }
}

fn locator(address: [u8; 4], port: u16) -> Locator {
    Locator::udpv4(address, port)
}

fn vendor(id: [u8; 2]) -> &'static str {
    match id {
        [1, 0x0f] => "Fast DDS",
        [1, 0x10] => "Cyclone DDS",
        [1, 0x14] => "Dust DDS",
        other => panic!("no capture is of vendor {other:02x?}"),
    }
}

/// Returns the message, addressed to the local participant's endpoint instead of the captured one.
fn addressed(message: &[u8], captured: EntityId, mine: EntityId) -> Vec<u8> {
    let mut changed = message.to_vec();
    let mut submessages = Submessages::new(message, HEADER_BYTES);
    loop {
        let body = submessages.offset() + SUBMESSAGE_HEADER_BYTES;
        let Some(submessage) = submessages.next() else {
            return changed;
        };
        let (addressee, at) = match submessage.expect("nothing is malformed") {
            Submessage::Data(it) => (it.reader, 4),
            Submessage::DataFrag(it) => (it.reader, 4),
            Submessage::Heartbeat(it) => (it.reader, 0),
            Submessage::HeartbeatFrag(it) => (it.reader, 0),
            Submessage::Gap(it) => (it.reader, 0),
            Submessage::AckNack(it) => (it.writer, 4),
            Submessage::NackFrag(it) => (it.writer, 4),
            _ => continue,
        };
        if addressee == captured {
            changed[body + at..][..4].copy_from_slice(&mine.0);
        }
    }
}
