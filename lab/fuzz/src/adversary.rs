//! Adversarial RTPS messages, composed of valid submessages. They reach code that random bytes do not reach.
//!
//! A message names entities of the [`Cast`], which are existing participants and endpoints, and some that do not exist.
//! Sequence numbers are small, as in a real exchange, or boundary values of the protocol.

use isolane_wire::{
    BufferTooSmall,
    builtin_data::{
        BuiltinEndpoints, EndpointData, KeyKind, LocatorList, ParticipantData, emit_key_guid,
    },
    guid::{EntityId, Guid, GuidPrefix},
    locator::Locator,
    message::{
        AckNack, ChecksumKind, DataFragPrefix, DataPrefix, Gap, Header, HeaderExtension, Heartbeat,
        HeartbeatFrag, InfoSource, MessageChecksum, MessageWriter, NackFrag, PayloadKind,
        StatusInfo,
    },
    qos::{DurabilityKind, HistoryKind, QosPolicies, ReliabilityKind},
    sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet},
    time::{Duration, Timestamp},
};

use crate::{input::Input, policies};

/// Topics for which participants create writers and readers.
pub(crate) const TOPICS: [&str; 3] = ["A", "B", "C"];
/// Type of all topics.
pub(crate) const TYPE: &str = "T";

/// Maximum length of a composed message, in bytes.
const MESSAGE_BYTES: usize = 4096;
/// Maximum number of submessages.
const MAX_SUBMESSAGES: usize = 6;
/// Minimum value of the choice byte with which a message has a header extension.
const EXTENDED_FROM: u8 = 252;
/// Maximum number of members inserted into a set.
const MAX_MEMBERS: usize = 12;

/// Boundary values of sequence numbers, counts and sets.
#[rustfmt::skip]
const EDGES: [i64; 24] = [
    1,
    2,
    3,
    4,
    5,
    8,
    16,
    17,
    32,
    63,
    64,
    255,
    256,
    257,
    258,
    512,
    1 << 31,
    1 << 32,
    1 << 62,
    i64::MAX - 257,
    i64::MAX - 256,
    i64::MAX - 2,
    i64::MAX - 1,
    i64::MAX,
];

/// Entities and addresses that adversarial messages may name.
#[derive(Debug, Default)]
pub(crate) struct Cast {
    /// Participants.
    pub(crate) prefixes: Vec<GuidPrefix>,
    /// Builtin and user-defined writers and readers.
    pub(crate) entities: Vec<EntityId>,
    /// Addresses in use.
    pub(crate) locators: Vec<Locator>,
}

impl Cast {
    /// Entities of every participant.
    pub(crate) fn builtin() -> Vec<EntityId> {
        vec![
            EntityId::UNKNOWN,
            EntityId::PARTICIPANT,
            EntityId::SPDP_WRITER,
            EntityId::SPDP_READER,
            EntityId::SEDP_PUBLICATIONS_WRITER,
            EntityId::SEDP_PUBLICATIONS_READER,
            EntityId::SEDP_SUBSCRIPTIONS_WRITER,
            EntityId::SEDP_SUBSCRIPTIONS_READER,
        ]
    }

    fn prefix(&self, input: &mut Input<'_>) -> GuidPrefix {
        let place = input.index(self.prefixes.len() + 1);
        // The index after the last one selects the prefix of no participant.
        let stranger = GuidPrefix([0xee; 12]);
        self.prefixes.get(place).copied().unwrap_or(stranger)
    }

    fn entity(&self, input: &mut Input<'_>) -> EntityId {
        let place = input.index(self.entities.len() + 1);
        match self.entities.get(place) {
            Some(entity) => *entity,
            None => EntityId(input.any()),
        }
    }

    fn locators(&self, input: &mut Input<'_>) -> LocatorList {
        let count = input.index(4);
        let some = (0..count).map(|_| {
            let place = input.index(self.locators.len() + 2);
            match self.locators.get(place) {
                Some(locator) => *locator,
                None if place == self.locators.len() => Locator {
                    kind: input.any(),
                    port: input.any(),
                    address: input.any(),
                },
                None => Locator::udpv4([239, 255, input.byte() % 32, 0], 7401),
            }
        });
        some.collect()
    }
}

/// Composes a message of one or more submessages.
pub(crate) fn message(input: &mut Input<'_>, cast: &Cast) -> Vec<u8> {
    let mut buffer = vec![0; MESSAGE_BYTES];
    let header = Header::new(cast.prefix(input));
    let choice = input.byte();
    let count = 1 + usize::from(choice) % MAX_SUBMESSAGES;
    let extension = (choice >= EXTENDED_FROM).then(|| header_extension(input));
    let Ok(mut message) = MessageWriter::new(&mut buffer, &header) else {
        return Vec::new();
    };
    if let Some(extension) = &extension {
        let _ = message.header_extension(extension);
    }
    for _ in 0..count {
        // Submessages that do not fit are omitted.
        let _ = submessage(input, cast, header.prefix, &mut message);
    }
    let length = message.len();
    buffer.truncate(length);
    // In most messages, length and checksum of the extension are correct.
    if let Some(mut extension) = extension.filter(|_| input.byte() < 200) {
        extension.seal(&mut buffer);
    }
    buffer
}

fn header_extension(input: &mut Input<'_>) -> HeaderExtension<'static> {
    let kinds = [ChecksumKind::Crc32c, ChecksumKind::Crc64, ChecksumKind::Md5];
    let bits = input.byte();
    let bit = |bit: u8| bits >> bit & 1 == 1;
    HeaderExtension {
        message_bytes: bit(0).then(|| input.any()),
        sent: bit(1).then(|| Timestamp {
            seconds: input.any(),
            fraction: input.any(),
        }),
        u_extension: bit(2).then(|| input.any()),
        w_extension: bit(3).then(|| input.any()),
        checksum: bit(4).then(|| MessageChecksum::zero(input.pick(&kinds))),
        parameters: None,
    }
}

fn submessage(
    input: &mut Input<'_>,
    cast: &Cast,
    sender: GuidPrefix,
    message: &mut MessageWriter<'_>,
) -> Result<(), BufferTooSmall> {
    match input.byte() % 13 {
        0 => message.info_destination(cast.prefix(input))?,
        1 => message.info_source(&InfoSource {
            version: [2, input.byte()],
            vendor: [1, input.byte()],
            prefix: cast.prefix(input),
        })?,
        2 => message.info_timestamp(Timestamp {
            seconds: input.any(),
            fraction: input.any(),
        })?,
        3 | 4 => {
            let heartbeat = heartbeat(input, cast);
            message.heartbeat(&heartbeat)?
        }
        5 => {
            let gap = gap(input, cast);
            message.gap(&gap)?
        }
        6 | 7 => {
            let acknack = acknack(input, cast);
            message.acknack(&acknack)?
        }
        8 => {
            let head = data_head(input, cast);
            let payload = input.bytes(1500);
            message.data(&head, payload)?
        }
        9 => {
            let head = fragment_head(input, cast);
            let payload = input.bytes(1500);
            message.data_frag(&head, payload)?
        }
        10 => message.heartbeat_frag(&HeartbeatFrag {
            reader: cast.entity(input),
            writer: cast.entity(input),
            sequence: SequenceNumber(number(input)),
            last_fragment: fragment(input),
            count: count(input),
        })?,
        11 => {
            let nack = nack_fragments(input, cast);
            message.nack_frag(&nack)?
        }
        _ => {
            let (writer, payload) = announcement(input, cast, sender);
            let head = DataPrefix {
                reader: EntityId::UNKNOWN,
                writer,
                sequence: SequenceNumber(number(input)),
                key_hash: None,
                status: status(input),
                payload: if input.flag() {
                    PayloadKind::Key
                } else {
                    PayloadKind::Data
                },
            };
            message.data(&head, &payload)?
        }
    };
    Ok(())
}

/// Chooses a sequence number, which is usually small.
fn number(input: &mut Input<'_>) -> i64 {
    match input.byte() {
        small @ 0..=127 => i64::from(small),
        edge @ 128..=254 => EDGES[usize::from(edge) % EDGES.len()],
        255 => input.any(),
    }
}

fn fragment(input: &mut Input<'_>) -> u32 {
    number(input) as u32
}

/// Chooses the count of an ACKNACK or HEARTBEAT.
fn count(input: &mut Input<'_>) -> i32 {
    match input.byte() {
        254 => i32::MAX,
        255 => i32::MIN,
        small => i32::from(small),
    }
}

fn heartbeat(input: &mut Input<'_>, cast: &Cast) -> Heartbeat {
    Heartbeat {
        reader: cast.entity(input),
        writer: cast.entity(input),
        group: None,
        first: SequenceNumber(number(input)),
        last: SequenceNumber(number(input)),
        count: count(input),
        is_final: input.flag(),
        liveliness: input.flag(),
    }
}

fn set(input: &mut Input<'_>) -> SequenceNumberSet {
    let mut set = SequenceNumberSet::new(SequenceNumber(number(input)));
    for _ in 0..input.index(MAX_MEMBERS) {
        let offset = i64::from(input.byte());
        set.insert(SequenceNumber(set.base().get().saturating_add(offset)));
    }
    set
}

fn gap(input: &mut Input<'_>, cast: &Cast) -> Gap {
    Gap {
        reader: cast.entity(input),
        writer: cast.entity(input),
        group: None,
        filtered: None,
        start: SequenceNumber(number(input)),
        list: set(input),
    }
}

fn acknack(input: &mut Input<'_>, cast: &Cast) -> AckNack {
    AckNack {
        reader: cast.entity(input),
        writer: cast.entity(input),
        state: set(input),
        count: count(input),
        is_final: input.flag(),
    }
}

fn nack_fragments(input: &mut Input<'_>, cast: &Cast) -> NackFrag {
    let mut state = FragmentNumberSet::new(fragment(input));
    for _ in 0..input.index(MAX_MEMBERS) {
        state.insert(state.base().saturating_add(u32::from(input.byte())));
    }
    NackFrag {
        reader: cast.entity(input),
        writer: cast.entity(input),
        sequence: SequenceNumber(number(input)),
        state,
        count: count(input),
    }
}

fn status(input: &mut Input<'_>) -> Option<StatusInfo> {
    let bits = input.byte();
    (bits & 4 != 0).then_some(StatusInfo {
        disposed: bits & 1 != 0,
        unregistered: bits & 2 != 0,
    })
}

fn data_head(input: &mut Input<'_>, cast: &Cast) -> DataPrefix {
    DataPrefix {
        reader: cast.entity(input),
        writer: cast.entity(input),
        sequence: SequenceNumber(number(input)),
        key_hash: input.flag().then(|| [input.byte() % 4; 16]),
        status: status(input),
        payload: input.pick(&[PayloadKind::Data, PayloadKind::Key, PayloadKind::None]),
    }
}

fn fragment_head(input: &mut Input<'_>, cast: &Cast) -> DataFragPrefix {
    DataFragPrefix {
        reader: cast.entity(input),
        writer: cast.entity(input),
        sequence: SequenceNumber(number(input)),
        first_fragment: fragment(input),
        fragments: 1 + u16::from(input.byte() % 4),
        fragment_size: input.pick(&[1, 4, 16, 64, 256, 1024, 1300, u16::MAX]),
        sample_size: match input.byte() {
            255 => u32::MAX,
            254 => 1 << 20,
            small => u32::from(small) * 16,
        },
        key_hash: input.flag().then(|| [input.byte() % 4; 16]),
        status: status(input),
        is_key: input.flag(),
    }
}

/// Composes the announcement of a participant or an endpoint. Returns it with the entity id of the discovery writer.
fn announcement(input: &mut Input<'_>, cast: &Cast, sender: GuidPrefix) -> (EntityId, Vec<u8>) {
    let mut payload = vec![0; 2048];
    let writer = input.pick(&[
        EntityId::SPDP_WRITER,
        EntityId::SEDP_PUBLICATIONS_WRITER,
        EntityId::SEDP_SUBSCRIPTIONS_WRITER,
    ]);
    // In about one of ten announcements, the GUID is of another participant than the sender.
    let prefix = if input.byte() < 230 {
        sender
    } else {
        cast.prefix(input)
    };
    let length = if input.byte() > 230 {
        let (key, entity) = if writer == EntityId::SPDP_WRITER {
            (KeyKind::Participant, EntityId::PARTICIPANT)
        } else {
            (KeyKind::Endpoint, cast.entity(input))
        };
        emit_key_guid(key, Guid { prefix, entity }, &mut payload)
    } else if writer == EntityId::SPDP_WRITER {
        participant(input, cast, prefix).emit(&mut payload)
    } else {
        endpoint(input, cast, prefix).emit(&mut payload)
    };
    payload.truncate(length.unwrap_or(0));
    (writer, payload)
}

fn participant(input: &mut Input<'_>, cast: &Cast, prefix: GuidPrefix) -> ParticipantData {
    let mut data = ParticipantData::new(prefix);
    data.version = [2, 5];
    data.vendor = [1, input.byte()];
    data.builtin_endpoints = match input.byte() {
        0..=199 => {
            BuiltinEndpoints::PARTICIPANT_ANNOUNCER
                | BuiltinEndpoints::PARTICIPANT_DETECTOR
                | BuiltinEndpoints::PUBLICATIONS_ANNOUNCER
                | BuiltinEndpoints::PUBLICATIONS_DETECTOR
                | BuiltinEndpoints::SUBSCRIPTIONS_ANNOUNCER
                | BuiltinEndpoints::SUBSCRIPTIONS_DETECTOR
        }
        _ => input.any(),
    };
    if input.byte() > 200 {
        data.domain_id = Some(u32::from(input.byte()));
    }
    data.metatraffic_unicast = cast.locators(input);
    data.metatraffic_multicast = cast.locators(input);
    data.default_unicast = cast.locators(input);
    if input.flag() {
        data.lease = std::time::Duration::from_millis(u64::from(input.any::<u16>()));
    }
    data
}

fn endpoint(input: &mut Input<'_>, cast: &Cast, prefix: GuidPrefix) -> EndpointData {
    let guid = Guid {
        prefix,
        entity: cast.entity(input),
    };
    let mut data = EndpointData::new(guid);
    // A name that is too long stays empty, and peers refuse the announcement.
    let _ = data.topic_name.push_str(input.pick(&TOPICS));
    let _ = data.type_name.push_str(TYPE);
    data.qos = qos(input);
    data.unicast = cast.locators(input);
    data.multicast = cast.locators(input);
    let choice = input.byte();
    data.expects_inline_qos = choice == 255;
    policies::add(&mut data.qos, choice);
    data
}

/// Chooses the QoS of an endpoint. The QoS of most pairs of endpoints match.
pub(crate) fn qos(input: &mut Input<'_>) -> QosPolicies {
    let mut qos = QosPolicies::default();
    let bits = input.byte();
    if bits & 1 == 0 {
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.reliability.max_blocking_time = Duration::ZERO;
    }
    if bits & 2 != 0 {
        qos.durability = DurabilityKind::TransientLocal;
    }
    if bits & 4 != 0 {
        qos.history.kind = HistoryKind::KeepAll;
        qos.resource_limits.max_samples = i32::from(1 + (bits >> 6));
    } else {
        qos.history.depth = i32::from(1 + (bits >> 6));
    }
    qos.transport_priority = i32::from(bits >> 3 & 7);
    qos
}
