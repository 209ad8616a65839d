//! Fields of submessages and announcements: names and values in a fixed order. Text and JSON are made of them.

use std::time::Duration;

use isolane_wire::{
    discovery::{ContentFilterProperty, EndpointData, ParticipantData, ParticipantMessage},
    guid::Guid,
    locator::Locator,
    qos::QosPolicies,
    rtps::{Data, PayloadKind, Submessage},
    sequence::SequenceNumber,
};
use serde_json::{Map, Value, json};

use super::message::Announcement;
use super::names;
use super::notation::hexadecimal;
use super::qos;

/// Names and values. What is not said is null, false or empty.
pub(super) type Fields = Vec<(&'static str, Value)>;

macro_rules! fields {
    ($($name:literal: $value:expr),* $(,)?) => {
        vec![$(($name, json!($value))),*]
    };
}

/// The kind of a submessage (RTPS 2.5 §9.4.5.1.1), and what only it has.
pub(super) fn of_submessage(submessage: &Submessage<'_>) -> (&'static str, Fields) {
    match submessage {
        Submessage::Data(data) => ("DATA", of_data(data)),
        Submessage::DataFrag(data) => (
            "DATA_FRAG",
            fields! {
                "sequence": data.sequence.get(),
                "first_fragment": data.first_fragment,
                "fragments": data.fragments,
                "of_fragments": data.total_fragments(),
                "fragment_bytes": data.fragment_size,
                "sample_bytes": data.sample_size,
                "key_hash": data.key_hash().map(|hash| hexadecimal(&hash)),
                "disposed": data.status_info().disposed,
                "unregistered": data.status_info().unregistered,
            },
        ),
        Submessage::Heartbeat(it) => (
            "HEARTBEAT",
            fields! {
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
        ),
        Submessage::HeartbeatFrag(it) => (
            "HEARTBEAT_FRAG",
            fields! {
                "sequence": it.sequence.get(),
                "last_fragment": it.last_fragment,
                "count": it.count,
            },
        ),
        Submessage::AckNack(it) => (
            "ACKNACK",
            fields! {
                "base": it.state.base().get(),
                "missing": numbers(it.state.iter()),
                "count": it.count,
                "final": it.is_final,
            },
        ),
        Submessage::NackFrag(it) => (
            "NACK_FRAG",
            fields! {
                "sequence": it.sequence.get(),
                "missing": it.state.iter().collect::<Vec<_>>(),
                "count": it.count,
            },
        ),
        Submessage::Gap(it) => (
            "GAP",
            fields! {
                "start": it.start.get(),
                "base": it.list.base().get(),
                "skipped": numbers(it.list.iter()),
                "filtered": it.filtered,
                "group": it.group.map(|group| json!({
                    "start": group.start.get(),
                    "end": group.end.get(),
                })),
            },
        ),
        Submessage::InfoTimestamp(time) => (
            "INFO_TS",
            fields! { "time_us": time.map(|time| time.to_nanos() as f64 / 1e3) },
        ),
        Submessage::InfoDestination(prefix) => {
            ("INFO_DST", fields! { "guid_prefix": prefix.to_string() })
        }
        Submessage::InfoSource(info) => (
            "INFO_SRC",
            fields! {
                "guid_prefix": info.prefix.to_string(),
                "vendor": names::vendor(info.vendor),
            },
        ),
        Submessage::InfoReply(reply) => {
            let groups = reply.multicast.into_iter().flat_map(|list| list.iter());
            let fields = fields! {
                "unicast": texts(reply.unicast.iter()),
                "multicast": texts(groups),
            };
            ("INFO_REPLY", fields)
        }
        Submessage::InfoReplyIp4(reply) => (
            "INFO_REPLY_IP4",
            fields! {
                "unicast": [reply.unicast.to_string()],
                "multicast": texts(reply.multicast.into_iter()),
            },
        ),
        Submessage::HeaderExtension(it) => (
            "HEADER_EXTENSION",
            fields! {
                "message_bytes": it.message_bytes,
                "sent_us": it.sent.map(|time| time.to_nanos() as f64 / 1e3),
                "checksum": it.checksum.map(|checksum| hexadecimal(checksum.bytes())),
            },
        ),
        Submessage::Pad => ("PAD", Fields::new()),
        Submessage::Other { id, flags, body } => (
            "UNKNOWN",
            fields! { "id": format!("{id:#04x}"), "flags": flags, "bytes": body.len() },
        ),
    }
}

fn of_data(data: &Data<'_>) -> Fields {
    fields! {
        "sequence": data.sequence.get(),
        "payload": match data.payload {
            PayloadKind::None => "none",
            PayloadKind::Data => "data",
            PayloadKind::Key => "key",
        },
        "bytes": data.bytes.len(),
        // Null: there is none, or the payload has a form of the vendor's own.
        "encapsulation": names::encapsulation(data.bytes).filter(|_| !data.non_standard),
        "key_hash": data.key_hash().map(|hash| hexadecimal(&hash)),
        "disposed": data.status_info().disposed,
        "unregistered": data.status_info().unregistered,
    }
}

/// Kind of an announcement (participant, writer, reader, end, message, malformed) and its fields.
pub(super) fn of_announcement(
    announcement: &Announcement,
    data: &Data<'_>,
) -> (&'static str, Fields) {
    match announcement {
        Announcement::Participant(participant) => ("participant", of_participant(participant)),
        Announcement::Writer(writer) => (
            "writer",
            of_endpoint(writer, &QosPolicies::writer_default()),
        ),
        Announcement::Reader(reader) => {
            let mut fields = of_endpoint(reader, &QosPolicies::reader_default());
            fields.push(("content_filter", content_filter(data.bytes)));
            ("reader", fields)
        }
        Announcement::End(guid) => (
            "end",
            fields! {
                "guid": guid.map(text),
                "disposed": data.status_info().disposed,
                "unregistered": data.status_info().unregistered,
            },
        ),
        Announcement::Message {
            participant,
            kind,
            data_len,
        } => (
            "message",
            fields! {
                "guid_prefix": participant.to_string(),
                "liveliness": match *kind {
                    ParticipantMessage::KIND_AUTOMATIC_LIVELINESS => String::from("AUTOMATIC"),
                    ParticipantMessage::KIND_MANUAL_LIVELINESS => String::from("MANUAL_BY_PARTICIPANT"),
                    kind => hexadecimal(&kind),
                },
                "bytes": data_len,
            },
        ),
        Announcement::Malformed(error) => ("malformed", fields! { "why": error.to_string() }),
    }
}

fn of_participant(data: &ParticipantData) -> Fields {
    fields! {
        "guid_prefix": data.guid.prefix.to_string(),
        "name": data.entity_name.as_str(),
        "vendor": names::vendor(data.vendor),
        "domain": data.domain_id,
        // Null: infinite.
        "lease_s": (data.lease != Duration::MAX).then_some(data.lease.as_secs_f64()),
        "metatraffic_unicast": texts(data.metatraffic_unicast.iter()),
        "default_unicast": texts(data.default_unicast.iter()),
    }
}

/// `qos` holds the policies that differ from the standard's defaults.
fn of_endpoint(data: &EndpointData, defaults: &QosPolicies) -> Fields {
    let policies = qos::policies(&data.qos, defaults).into_iter();
    let policies = policies.map(|(name, value)| (name.to_owned(), value.into()));
    fields! {
        "guid": text(data.guid),
        "topic": data.topic_name.as_str(),
        "type": data.type_name.as_str(),
        "qos": policies.collect::<Map<String, Value>>(),
        "unicast": texts(data.unicast.iter()),
        "multicast": texts(data.multicast.iter()),
        "expects_inline_qos": data.expects_inline_qos,
    }
}

/// Null: the reader announces none.
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

fn numbers(all: impl Iterator<Item = SequenceNumber>) -> Vec<i64> {
    all.map(SequenceNumber::get).collect()
}

fn texts<L: std::borrow::Borrow<Locator>>(locators: impl Iterator<Item = L>) -> Vec<String> {
    locators.map(|it| it.borrow().to_string()).collect()
}

pub(super) fn text(guid: Guid) -> String {
    guid.to_string()
}
