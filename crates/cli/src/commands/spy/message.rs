//! RTPS messages. Each submessage becomes an item with writer, reader, topic and fields.

use std::borrow::Borrow;
use std::time::Duration;

use isolane_model::Word;
use isolane_wire::builtin_data::{
    ContentFilterProperty, EndpointData, ParticipantData, ParticipantMessage, parse_key_guid,
};
use isolane_wire::cdr::{EncapsulationId, TopicType as _, read_payload};
use isolane_wire::guid::{EntityId, Guid, GuidPrefix};
use isolane_wire::locator::Locator;
use isolane_wire::message::{Data, HEADER_BYTES, Header, PayloadKind, Submessage, Submessages};
use isolane_wire::qos::QosPolicies;
use isolane_wire::sequence::SequenceNumber;
use isolane_wire::time::Timestamp;
use serde_json::{Map, Value, json};

use super::discovery::{Discovery, Traffic};
use super::names;
use super::network::Datagram;
use crate::commands::endpoint::shape::ShapeType;

/// Kind of a submessage, as `--kind` and the summary name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// DATA of a user's writer, or of a built-in writer for which there is no other kind.
    Data,
    DataFragment,
    Heartbeat,
    HeartbeatFragment,
    AckNack,
    NackFragment,
    Gap,
    /// DATA that announces a participant.
    Spdp,
    /// DATA that announces a writer or reader.
    Sedp,
    /// DATA that asserts liveliness.
    Liveliness,
    HeaderExtension,
    /// INFO_TS, INFO_SRC, INFO_DST, INFO_REPLY, INFO_REPLY_IP4.
    Info,
    Pad,
    /// Submessage of a vendor, of DDS Security, or of a later RTPS version.
    Unknown,
    Malformed,
}

impl Word for Kind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("data", Self::Data),
        ("data-frag", Self::DataFragment),
        ("heartbeat", Self::Heartbeat),
        ("heartbeat-frag", Self::HeartbeatFragment),
        ("acknack", Self::AckNack),
        ("nack-frag", Self::NackFragment),
        ("gap", Self::Gap),
        ("spdp", Self::Spdp),
        ("sedp", Self::Sedp),
        ("liveliness", Self::Liveliness),
        ("header-extension", Self::HeaderExtension),
        ("info", Self::Info),
        ("pad", Self::Pad),
        ("unknown", Self::Unknown),
        ("malformed", Self::Malformed),
    ];
}

/// Named values of the text and JSON forms, in a fixed order that begins with the kind. An absent value is null, false
/// or empty.
pub(super) type Fields = Vec<(&'static str, Value)>;

macro_rules! fields {
    ($($name:literal: $value:expr),* $(,)?) => {
        vec![$(($name, json!($value))),*]
    };
}

/// Decoded RTPS message.
pub(super) struct Message {
    pub(super) header: Result<Header, isolane_wire::Error>,
    /// Name of the participant that sent the message.
    pub(super) participant: Option<String>,
    pub(super) domain: Option<u32>,
    pub(super) traffic: Option<Traffic>,
    pub(super) items: Vec<Item>,
}

/// Decoded submessage.
pub(super) struct Item {
    pub(super) kind: Kind,
    /// Position of the submessage in the message, in bytes.
    pub(super) offset: usize,
    pub(super) writer: Option<Guid>,
    /// Reader. With the entity id `UNKNOWN`, the submessage is for all matched readers.
    pub(super) reader: Option<Guid>,
    /// Topic of the announced endpoint, else of the writer or the reader. `None` if discovery has not announced it.
    pub(super) topic: Option<String>,
    pub(super) fields: Fields,
    /// Fields of the announcement in DATA of a built-in writer.
    pub(super) announcement: Option<Fields>,
    /// True if the capture ends within the submessage.
    pub(super) is_cut: bool,
}

impl Message {
    /// Decodes a message, and adds its announcements to `discovery`.
    pub(super) fn read(datagram: &Datagram, discovery: &mut Discovery) -> Self {
        let payload = &datagram.payload[..];
        let header = Header::parse(payload);
        let sender = header.map(|header| header.prefix).unwrap_or_default();
        // State of the RTPS receiver: source and destination GUID prefix (RTPS 2.5 8.3.4).
        let (mut source, mut destination) = (sender, GuidPrefix::UNKNOWN);
        let start = header.map_or(payload.len(), |_| HEADER_BYTES);
        let mut submessages = Submessages::new(payload, start);
        let mut items = Vec::new();
        loop {
            let offset = submessages.offset();
            let Some(mut submessage) = submessages.next() else {
                break;
            };
            let is_cut = datagram.is_cut() && submessages.offset() == payload.len();
            match &submessage {
                Ok(Submessage::InfoSource(info)) => {
                    (source, destination) = (info.prefix, GuidPrefix::UNKNOWN);
                }
                Ok(Submessage::InfoDestination(prefix)) => destination = *prefix,
                Ok(Submessage::HeaderExtension(extension)) if !datagram.is_cut() => {
                    submessage = extension.verify(payload).and(submessage);
                }
                _ => {}
            }
            let mut item = Item::new(&submessage, source, destination);
            if let Ok(Submessage::Data(data)) = &submessage
                && !is_cut
            {
                item.announcement = announcement(data, discovery);
                let endpoints = [item.writer, item.reader].into_iter().flatten();
                let type_name = endpoints.filter_map(|it| discovery.type_name(it)).next();
                item.fields.push(("sample", sample(data, type_name)));
            }
            let announced = item.announcement.as_ref();
            let announced = announced.and_then(|fields| text_of(fields, "topic"));
            let endpoints = [item.writer, item.reader].into_iter().flatten();
            let topic = announced.or_else(|| endpoints.filter_map(|it| discovery.topic(it)).next());
            item.topic = topic.map(String::from);
            items.push(Item {
                offset,
                is_cut,
                ..item
            });
        }
        Self {
            participant: discovery.participant_name(sender).map(String::from),
            domain: discovery.domain(sender, datagram),
            traffic: discovery.traffic(datagram, &items),
            header,
            items,
        }
    }
}

impl Item {
    fn new(
        submessage: &Result<Submessage<'_>, isolane_wire::Error>,
        source: GuidPrefix,
        destination: GuidPrefix,
    ) -> Self {
        let (kind, fields) = match submessage {
            Ok(submessage) => (kind_of(submessage), fields_of(submessage)),
            Err(error) => (
                Kind::Malformed,
                fields! { "kind": "MALFORMED", "why": error.to_string() },
            ),
        };
        let entities = submessage.as_ref().ok().and_then(entities_of);
        // Readers send ACKNACK and NACK_FRAG. Writers send the other submessages.
        let (writer, reader) = match kind {
            Kind::AckNack | Kind::NackFragment => (destination, source),
            _ => (source, destination),
        };
        let guid = |prefix| move |entity| Guid { prefix, entity };
        Self {
            kind,
            offset: 0,
            writer: entities.map(|(entity, _)| entity).map(guid(writer)),
            reader: entities.map(|(_, entity)| entity).map(guid(reader)),
            topic: None,
            fields,
            announcement: None,
            is_cut: false,
        }
    }
}

fn kind_of(submessage: &Submessage<'_>) -> Kind {
    match submessage {
        Submessage::Data(data) => match data.writer {
            EntityId::SPDP_WRITER => Kind::Spdp,
            EntityId::SEDP_PUBLICATIONS_WRITER | EntityId::SEDP_SUBSCRIPTIONS_WRITER => Kind::Sedp,
            EntityId::P2P_MESSAGE_WRITER => Kind::Liveliness,
            _ => Kind::Data,
        },
        Submessage::DataFrag(_) => Kind::DataFragment,
        Submessage::Heartbeat(_) => Kind::Heartbeat,
        Submessage::HeartbeatFrag(_) => Kind::HeartbeatFragment,
        Submessage::AckNack(_) => Kind::AckNack,
        Submessage::NackFrag(_) => Kind::NackFragment,
        Submessage::Gap(_) => Kind::Gap,
        Submessage::HeaderExtension(_) => Kind::HeaderExtension,
        Submessage::InfoTimestamp(_)
        | Submessage::InfoSource(_)
        | Submessage::InfoDestination(_)
        | Submessage::InfoReply(_)
        | Submessage::InfoReplyIp4(_) => Kind::Info,
        Submessage::Pad => Kind::Pad,
        Submessage::Other { .. } => Kind::Unknown,
    }
}

/// Entity ids of writer and reader, if the submessage has them.
fn entities_of(submessage: &Submessage<'_>) -> Option<(EntityId, EntityId)> {
    Some(match submessage {
        Submessage::Data(it) => (it.writer, it.reader),
        Submessage::DataFrag(it) => (it.writer, it.reader),
        Submessage::Heartbeat(it) => (it.writer, it.reader),
        Submessage::HeartbeatFrag(it) => (it.writer, it.reader),
        Submessage::AckNack(it) => (it.writer, it.reader),
        Submessage::NackFrag(it) => (it.writer, it.reader),
        Submessage::Gap(it) => (it.writer, it.reader),
        _ => return None,
    })
}

fn fields_of(submessage: &Submessage<'_>) -> Fields {
    match submessage {
        Submessage::Data(it) => fields! {
            "kind": "DATA",
            "sequence": it.sequence.get(),
            "payload": match it.payload {
                PayloadKind::None => "none",
                PayloadKind::Data => "data",
                PayloadKind::Key => "key",
            },
            "bytes": it.bytes.len(),
            // Null if there is no payload, or if the vendor defines its format.
            "encapsulation": encapsulation(it.bytes).filter(|_| !it.non_standard),
            "key_hash": it.key_hash().map(|hash| hexadecimal(&hash)),
            "disposed": it.status_info().disposed,
            "unregistered": it.status_info().unregistered,
        },
        Submessage::DataFrag(it) => fields! {
            "kind": "DATA_FRAG",
            "sequence": it.sequence.get(),
            "first_fragment": it.first_fragment,
            "fragments": it.fragments,
            "total_fragments": it.total_fragments(),
            "fragment_bytes": it.fragment_size,
            "sample_bytes": it.sample_size,
            "key_hash": it.key_hash().map(|hash| hexadecimal(&hash)),
            "disposed": it.status_info().disposed,
            "unregistered": it.status_info().unregistered,
        },
        Submessage::Heartbeat(it) => fields! {
            "kind": "HEARTBEAT",
            "first": it.first.get(),
            "last": it.last.get(),
            "liveliness": it.liveliness,
            "group": it.group.map(|group| json!({
                "first": group.first.get(),
                "last": group.last.get(),
                "current": group.current.get(),
            })),
            "count": it.count,
            "final": it.is_final,
        },
        Submessage::HeartbeatFrag(it) => fields! {
            "kind": "HEARTBEAT_FRAG",
            "sequence": it.sequence.get(),
            "last_fragment": it.last_fragment,
            "count": it.count,
        },
        Submessage::AckNack(it) => fields! {
            "kind": "ACKNACK",
            "base": it.state.base().get(),
            "missing": numbers(it.state.iter()),
            "count": it.count,
            "final": it.is_final,
        },
        Submessage::NackFrag(it) => fields! {
            "kind": "NACK_FRAG",
            "sequence": it.sequence.get(),
            "missing": it.state.iter().collect::<Vec<_>>(),
            "count": it.count,
        },
        Submessage::Gap(it) => fields! {
            "kind": "GAP",
            "start": it.start.get(),
            "base": it.list.base().get(),
            "skipped": numbers(it.list.iter()),
            "filtered_count": it.filtered,
            "group": it.group.map(|group| json!({
                "start": group.start.get(),
                "end": group.end.get(),
            })),
        },
        Submessage::InfoTimestamp(time) => fields! {
            "kind": "INFO_TS",
            "time_us": time.map(microseconds),
        },
        Submessage::InfoDestination(prefix) => fields! {
            "kind": "INFO_DST",
            "guid_prefix": prefix.to_string(),
        },
        Submessage::InfoSource(info) => fields! {
            "kind": "INFO_SRC",
            "guid_prefix": info.prefix.to_string(),
            "vendor": names::vendor(info.vendor),
        },
        Submessage::InfoReply(reply) => fields! {
            "kind": "INFO_REPLY",
            "unicast": texts(reply.unicast.iter()),
            "multicast": texts(reply.multicast.into_iter().flat_map(|list| list.iter())),
        },
        Submessage::InfoReplyIp4(reply) => fields! {
            "kind": "INFO_REPLY_IP4",
            "unicast": [reply.unicast.to_string()],
            "multicast": texts(reply.multicast.into_iter()),
        },
        Submessage::HeaderExtension(it) => fields! {
            "kind": "HEADER_EXTENSION",
            "message_bytes": it.message_bytes,
            "sent_us": it.sent.map(microseconds),
            "checksum": it.checksum.map(|checksum| hexadecimal(checksum.bytes())),
        },
        Submessage::Pad => fields! { "kind": "PAD" },
        Submessage::Other { id, flags, body } => fields! {
            "kind": "UNKNOWN",
            "id": format!("{id:#04x}"),
            "flags": flags,
            "bytes": body.len(),
        },
    }
}

/// Returns the announcement in DATA of a built-in writer, and adds it to `discovery`.
fn announcement(data: &Data<'_>, discovery: &mut Discovery) -> Option<Fields> {
    let bytes = data.bytes;
    let fields = match (data.writer, data.payload) {
        (EntityId::SPDP_WRITER, PayloadKind::Data) => ParticipantData::parse(bytes).map(|it| {
            discovery.add_participant(&it);
            of_participant(&it)
        }),
        (EntityId::SEDP_PUBLICATIONS_WRITER, PayloadKind::Data) => {
            EndpointData::parse_writer(bytes).map(|it| {
                discovery.add_endpoint(&it);
                of_endpoint("writer", &it, &QosPolicies::writer_default())
            })
        }
        (EntityId::SEDP_SUBSCRIPTIONS_WRITER, PayloadKind::Data) => {
            EndpointData::parse_reader(bytes).map(|it| {
                discovery.add_endpoint(&it);
                let mut fields = of_endpoint("reader", &it, &QosPolicies::reader_default());
                fields.push(("content_filter", content_filter(bytes)));
                fields
            })
        }
        (EntityId::P2P_MESSAGE_WRITER, PayloadKind::Data) => {
            ParticipantMessage::parse(bytes).map(|it| of_participant_message(&it))
        }
        _ if matches!(kind_of(&Submessage::Data(*data)), Kind::Spdp | Kind::Sedp) => {
            let guid = parse_key_guid(bytes).or(data.key_hash().map(Guid::from_bytes));
            Ok(fields! {
                "kind": "end",
                "guid": guid.map(|guid| guid.to_string()),
                "disposed": data.status_info().disposed,
                "unregistered": data.status_info().unregistered,
            })
        }
        _ => return None,
    };
    Some(fields.unwrap_or_else(|error| fields! { "kind": "malformed", "why": error.to_string() }))
}

/// Returns the members of a sample, or why it cannot be decoded. Null if the type is unknown, or if there is no sample.
fn sample(data: &Data<'_>, type_name: Option<&str>) -> Value {
    let has_sample = data.payload == PayloadKind::Data && !data.non_standard;
    if !has_sample || type_name != Some(ShapeType::TYPE_NAME) {
        return Value::Null;
    }
    read_payload::<ShapeType>(data.bytes).map_or_else(
        |error| json!({ "not_decoded": error.to_string() }),
        |shape| {
            json!({
                "color": shape.color.as_str(),
                "x": shape.x,
                "y": shape.y,
                "shapesize": shape.shapesize,
                "additional_payload_size": shape.additional_payload_size.len(),
            })
        },
    )
}

fn of_participant(data: &ParticipantData) -> Fields {
    fields! {
        "kind": "participant",
        "guid_prefix": data.guid.prefix.to_string(),
        "name": data.entity_name.as_str(),
        "vendor": names::vendor(data.vendor),
        "domain": data.domain_id,
        // Null if the lease is infinite.
        "lease_s": (data.lease != Duration::MAX).then_some(data.lease.as_secs_f64()),
        "metatraffic_unicast": texts(data.metatraffic_unicast.iter()),
        "default_unicast": texts(data.default_unicast.iter()),
    }
}

/// Fields of an announced endpoint. `qos` contains only the policies that differ from `defaults`.
fn of_endpoint(what: &str, data: &EndpointData, defaults: &QosPolicies) -> Fields {
    let policies = names::policies(&data.qos, defaults).into_iter();
    let policies = policies.map(|(name, value)| (name.to_owned(), value.into()));
    fields! {
        "kind": what,
        "guid": data.guid.to_string(),
        "topic": data.topic_name.as_str(),
        "type": data.type_name.as_str(),
        "qos": policies.collect::<Map<String, Value>>(),
        "unicast": texts(data.unicast.iter()),
        "multicast": texts(data.multicast.iter()),
        "expects_inline_qos": data.expects_inline_qos,
    }
}

/// Returns the content filter that a reader announces, or null.
fn content_filter(payload: &[u8]) -> Value {
    let found = ContentFilterProperty::find(payload);
    let property = found.and_then(|(value, order)| ContentFilterProperty::parse(value, order).ok());
    property.map_or(Value::Null, |property| {
        json!({
            "class": property.class_name,
            "expression": property.expression,
            "parameters": property.parameters.as_slice(),
        })
    })
}

fn of_participant_message(message: &ParticipantMessage<'_>) -> Fields {
    fields! {
        "kind": "message",
        "guid_prefix": message.participant.to_string(),
        "liveliness": match message.kind {
            ParticipantMessage::KIND_AUTOMATIC_LIVELINESS => String::from("AUTOMATIC"),
            ParticipantMessage::KIND_MANUAL_LIVELINESS => String::from("MANUAL_BY_PARTICIPANT"),
            kind => hexadecimal(&kind),
        },
        "bytes": message.data.len(),
    }
}

/// Returns the value of the field of this name, if that value is a string.
pub(super) fn text_of<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    let (_, value) = fields.iter().find(|(known, _)| *known == name)?;
    value.as_str()
}

/// Encapsulation of a payload (RTPS 2.5 10.5, XTypes 1.3 Table 60).
fn encapsulation(payload: &[u8]) -> Option<String> {
    let id = EncapsulationId::of_payload(payload)?;
    let unnamed = || format!("encapsulation {id}");
    Some(id.name().map_or_else(unnamed, String::from))
}

fn numbers(all: impl Iterator<Item = SequenceNumber>) -> Vec<i64> {
    all.map(SequenceNumber::get).collect()
}

fn texts<L: Borrow<Locator>>(locators: impl Iterator<Item = L>) -> Vec<String> {
    locators.map(|it| it.borrow().to_string()).collect()
}

fn microseconds(time: Timestamp) -> f64 {
    time.to_nanos() as f64 / 1e3
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
