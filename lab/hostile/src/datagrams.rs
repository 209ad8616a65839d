//! Generator of hostile datagrams.

use std::net::SocketAddrV4;
use std::path::Path;

use fastrand::Rng;
use isolane_support::Result;
use isolane_wire::BufferTooSmall;
use isolane_wire::builtin_data::{
    BuiltinEndpoints, EndpointData, KeyKind, LocatorList, ParticipantData, emit_key_guid,
};
use isolane_wire::guid::{EntityId, EntityKind, Guid, GuidPrefix};
use isolane_wire::locator::Locator;
use isolane_wire::message::{
    AckNack, DataFragPrefix, DataPrefix, Gap, Header, Heartbeat, MessageWriter, PayloadKind,
    StatusInfo,
};
use isolane_wire::qos::ReliabilityKind;
use isolane_wire::sequence::{SequenceNumber, SequenceNumberSet};
use strum::VariantArray;

use super::sender::Kind;
use super::{TOPIC, captures};

/// Type of the victim's topic.
const TYPE: &str = "ShapeType";
/// Maximum size of a datagram in bytes: the payload of one Ethernet frame.
const DATAGRAM_BYTES: usize = 1472;
/// Number of participants that announce more and more endpoints. All other participants appear once.
const REGULARS: u8 = 8;
/// Number of recently announced endpoints from which a dispose names one.
const RECENT: usize = 16;

/// Boundary values of sequence numbers.
const EDGES: [i64; 10] = [
    1,
    2,
    256,
    257,
    1 << 31,
    1 << 32,
    1 << 62,
    i64::MAX - 257,
    i64::MAX - 1,
    i64::MAX,
];

/// Generator of hostile datagrams.
pub(super) struct DatagramGenerator {
    random: Rng,
    /// Locator that the generated participants announce.
    here: Locator,
    captured: Vec<Vec<u8>>,
    buffer: [u8; DATAGRAM_BYTES],
    /// Number of SEDP announcements so far, of all participants together.
    announced: i64,
    /// Recently announced endpoints.
    recent: [EntityId; RECENT],
    count: i32,
}

impl DatagramGenerator {
    pub(super) fn new(seed: u64, here: SocketAddrV4, captures: &Path) -> Result<Self> {
        Ok(Self {
            random: Rng::with_seed(seed),
            here: here.into(),
            captured: captured(captures)?,
            buffer: [0; DATAGRAM_BYTES],
            announced: 0,
            recent: [EntityId::UNKNOWN; RECENT],
            count: 0,
        })
    }

    /// Returns the next datagram and its kind.
    pub(super) fn next(&mut self) -> (Kind, &[u8]) {
        let kind = Kind::VARIANTS[self.random.usize(..Kind::VARIANTS.len())];
        let length = match kind {
            Kind::Garbage => self.garbage(),
            Kind::ChangedCapture => self.changed_capture(),
            _ => self.message(kind).unwrap_or(0),
        };
        (kind, &self.buffer[..length])
    }

    fn garbage(&mut self) -> usize {
        let length = self.random.usize(..DATAGRAM_BYTES);
        self.random.fill(&mut self.buffer[..length]);
        if self.random.bool() && length > 4 {
            self.buffer[..4].copy_from_slice(b"RTPS");
        }
        length
    }

    fn changed_capture(&mut self) -> usize {
        let which = self.random.usize(..self.captured.len());
        let message = &self.captured[which];
        let length = message.len();
        self.buffer[..length].copy_from_slice(message);
        for _ in 0..self.random.usize(1..5) {
            let place = self.random.usize(..length);
            self.buffer[place] = self.random.u8(..);
        }
        // One in four is truncated.
        match self.random.u8(..4) {
            0 => self.random.usize(..length),
            _ => length,
        }
    }

    /// Writes a well-formed message with hostile contents.
    fn message(&mut self, kind: Kind) -> std::result::Result<usize, BufferTooSmall> {
        let prefix = match kind {
            Kind::NewParticipant => {
                let mut prefix = [0xbd; 12];
                self.random.fill(&mut prefix[4..]);
                GuidPrefix(prefix)
            }
            _ => {
                let mut prefix = [1; 12];
                prefix[..4].copy_from_slice(&[0xba, 0xba, 0, self.random.u8(..REGULARS)]);
                GuidPrefix(prefix)
            }
        };
        let mut payload = [0; 1024];
        self.count = self.count.wrapping_add(1);
        let mut buffer = self.buffer;
        let mut message = MessageWriter::new(&mut buffer, &Header::new(prefix))?;
        match kind {
            Kind::Garbage | Kind::ChangedCapture => {}
            Kind::NewParticipant | Kind::Regular => {
                let length = self.participant(prefix).emit(&mut payload)?;
                let head = head(EntityId::SPDP_WRITER, 1);
                message.data(&head, &payload[..length])?;
            }
            Kind::NewWriter | Kind::NewReader => {
                self.announced += 1;
                let data = self.endpoint(prefix, kind == Kind::NewWriter);
                let length = data.emit(&mut payload)?;
                let writer = match kind {
                    Kind::NewWriter => EntityId::SEDP_PUBLICATIONS_WRITER,
                    _ => EntityId::SEDP_SUBSCRIPTIONS_WRITER,
                };
                message.data(&head(writer, self.announced), &payload[..length])?;
            }
            Kind::End => {
                // Disposes a recent endpoint, of the participant that announced it or of another one.
                self.announced += 1;
                let entity = self.recent[self.random.usize(..self.recent.len())];
                let writer = match entity.is_writer() {
                    true => EntityId::SEDP_PUBLICATIONS_WRITER,
                    false => EntityId::SEDP_SUBSCRIPTIONS_WRITER,
                };
                let guid = Guid { prefix, entity };
                let length = emit_key_guid(KeyKind::Endpoint, guid, &mut payload)?;
                let head = DataPrefix {
                    payload: PayloadKind::Key,
                    status: Some(StatusInfo {
                        disposed: true,
                        unregistered: true,
                    }),
                    ..head(writer, self.announced)
                };
                message.data(&head, &payload[..length])?;
            }
            Kind::Data => {
                let length = self.random.usize(..200);
                self.random.fill(&mut payload[..length]);
                let head = head(self.writer(), self.number());
                message.data(&head, &payload[..length])?;
            }
            Kind::Heartbeat => {
                let (one, other) = (self.number(), self.number());
                message.heartbeat(&Heartbeat {
                    reader: EntityId::UNKNOWN,
                    writer: self.writer(),
                    group: None,
                    first: SequenceNumber(one.min(other)),
                    last: SequenceNumber(one.max(other)),
                    count: self.count,
                    is_final: self.random.bool(),
                    liveliness: self.random.bool(),
                })?;
            }
            Kind::AckNack => {
                message.acknack(&AckNack {
                    reader: self.reader(),
                    writer: self.local_writer(),
                    state: self.set(),
                    count: self.count,
                    is_final: self.random.bool(),
                })?;
            }
            Kind::Gap => {
                message.gap(&Gap {
                    reader: EntityId::UNKNOWN,
                    writer: self.writer(),
                    group: None,
                    filtered: None,
                    start: SequenceNumber(self.number()),
                    list: self.set(),
                })?;
            }
            Kind::Fragment => {
                let fragments = &payload[..512];
                message.data_frag(&self.fragment_head(), fragments)?;
            }
        }
        let length = message.len();
        self.buffer = buffer;
        Ok(length)
    }

    fn participant(&mut self, prefix: GuidPrefix) -> ParticipantData {
        let mut data = ParticipantData::new(prefix);
        data.version = [2, 5];
        data.builtin_endpoints = BuiltinEndpoints::PARTICIPANT_ANNOUNCER
            | BuiltinEndpoints::PARTICIPANT_DETECTOR
            | BuiltinEndpoints::PUBLICATIONS_ANNOUNCER
            | BuiltinEndpoints::PUBLICATIONS_DETECTOR
            | BuiltinEndpoints::SUBSCRIPTIONS_ANNOUNCER
            | BuiltinEndpoints::SUBSCRIPTIONS_DETECTOR;
        data.metatraffic_unicast = LocatorList::from_iter([self.here]);
        data.default_unicast = LocatorList::from_iter([self.here]);
        data
    }

    /// Endpoint of the victim's topic, or of another topic.
    fn endpoint(&mut self, prefix: GuidPrefix, is_writer: bool) -> EndpointData {
        let kind = match is_writer {
            true => EntityKind::WRITER_WITH_KEY,
            false => EntityKind::READER_WITH_KEY,
        };
        let entity = EntityId::user(self.random.u32(1..1 << 20), kind);
        let place = self.announced as usize % self.recent.len();
        self.recent[place] = entity;
        let mut data = EndpointData::new(Guid { prefix, entity });
        // Both topic names are shorter than the bound, so no error is possible.
        let _ = match self.random.bool() {
            true => data.topic_name.push_str(TOPIC),
            false => data.topic_name.push_str("Elsewhere"),
        };
        let _ = data.type_name.push_str(TYPE);
        data.qos.reliability.kind = match self.random.bool() {
            true => ReliabilityKind::Reliable,
            false => ReliabilityKind::BestEffort,
        };
        data.unicast = LocatorList::from_iter([self.here]);
        data
    }

    /// Hostile writer: one of discovery, or a user-defined one, which may have been announced.
    fn writer(&mut self) -> EntityId {
        match self.random.u8(..8) {
            0 => EntityId::SEDP_PUBLICATIONS_WRITER,
            1 => EntityId::SEDP_SUBSCRIPTIONS_WRITER,
            2 => EntityId::SPDP_WRITER,
            _ => EntityId::user(self.random.u32(1..1 << 20), EntityKind::WRITER_WITH_KEY),
        }
    }

    fn reader(&mut self) -> EntityId {
        match self.random.u8(..3) {
            0 => EntityId::SEDP_PUBLICATIONS_READER,
            1 => EntityId::SEDP_SUBSCRIPTIONS_READER,
            _ => EntityId::user(self.random.u32(1..1 << 20), EntityKind::READER_WITH_KEY),
        }
    }

    /// Writer of the victim: one of discovery, or a user-defined one, which may not exist.
    fn local_writer(&mut self) -> EntityId {
        match self.random.u8(..3) {
            0 => EntityId::SEDP_PUBLICATIONS_WRITER,
            1 => EntityId::SEDP_SUBSCRIPTIONS_WRITER,
            _ => EntityId::user(self.random.u32(1..4), EntityKind::WRITER_WITH_KEY),
        }
    }

    fn number(&mut self) -> i64 {
        match self.random.u8(..3) {
            0 => self.random.i64(1..1000),
            1 => self.random.i64(1..),
            _ => EDGES[self.random.usize(..EDGES.len())],
        }
    }

    fn set(&mut self) -> SequenceNumberSet {
        let mut set = SequenceNumberSet::new(SequenceNumber(self.number()));
        for _ in 0..self.random.usize(..64) {
            let offset = self.random.i64(..256);
            set.insert(SequenceNumber(
                set.base().get().saturating_add(offset.abs()),
            ));
        }
        set
    }

    fn fragment_head(&mut self) -> DataFragPrefix {
        DataFragPrefix {
            reader: EntityId::UNKNOWN,
            writer: self.writer(),
            sequence: SequenceNumber(self.number()),
            first_fragment: self.random.u32(1..2000),
            fragments: 1,
            fragment_size: 512,
            sample_size: self.random.u32(512..2_000_000),
            key_hash: None,
            status: None,
            is_key: false,
        }
    }
}

fn head(writer: EntityId, sequence: i64) -> DataPrefix {
    DataPrefix {
        reader: EntityId::UNKNOWN,
        writer,
        sequence: SequenceNumber(sequence),
        key_hash: None,
        status: None,
        payload: PayloadKind::Data,
    }
}

/// Returns the RTPS messages of all captures in a folder, except those that do not fit a datagram.
fn captured(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let frames = captures::frames(folder)?;
    let messages = frames
        .iter()
        .filter_map(|frame| captures::rtps_message(frame))
        .filter(|message| message.len() <= DATAGRAM_BYTES)
        .map(<[u8]>::to_vec);
    let messages: Vec<_> = messages.collect();
    if messages.is_empty() {
        return Err(format!("there are no captures in {}", folder.display()).into());
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolane_wire::message::{HEADER_BYTES, Submessages};

    #[test]
    fn every_kind_is_sent_and_can_be_parsed_unless_it_is_broken_on_purpose() {
        let captures =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/wire/tests/captures");
        let here = SocketAddrV4::new([127, 0, 0, 1].into(), 9);
        let mut generator = DatagramGenerator::new(1, here, &captures).expect("captures");
        let mut seen = [0; Kind::VARIANTS.len()];
        for _ in 0..2000 {
            let (kind, datagram) = generator.next();
            seen[kind as usize] += 1;
            let is_broken = matches!(
                kind,
                // A set or fragment with boundary values may be invalid.
                Kind::Garbage | Kind::ChangedCapture | Kind::Fragment | Kind::AckNack | Kind::Gap
            );
            assert!(
                is_broken || Submessages::new(datagram, HEADER_BYTES).all(|one| one.is_ok()),
                "{kind:?} {datagram:02x?}"
            );
        }
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    }
}
