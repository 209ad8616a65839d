//! A datagram for programs: one object, schema `isolane/spy/1`, record `datagram`. What is not known
//! is null.

use isolane_wire::{
    discovery::{ContentFilterProperty, EndpointData, ParticipantData},
    guid::Guid,
    locator::Locator,
    qos::QosPolicies,
    rtps::{Data, HeaderExtension, PayloadKind, Submessage},
};
use serde_json::{Map, Value, json};

use super::knowledge::{Knowledge, Traffic};
use super::message::{Announcement, Item};
use super::names;
use super::notation::{date_and_time, hexadecimal};
use super::qos;
use super::text::Record;

/// The object of a datagram.
pub(crate) fn object(record: &Record<'_>) -> Value {
    let Record {
        frame, datagram, ..
    } = record;
    let header = record.header.as_ref().ok();
    let level = match record.traffic {
        Some(Traffic::Level(level)) => Some(level.get()),
        _ => None,
    };
    let name = header.and_then(|header| record.knowledge.participant_name(header.prefix));
    json!({
        "schema": "isolane/spy/1",
        "record": "datagram",
        "time": frame.time_ns.map(date_and_time),
        "time_us": frame.time_ns.map(|time| time as f64 / 1e3),
        "interface": frame.interface,
        "source": datagram.source.to_string(),
        "destination": datagram.destination.to_string(),
        "domain": record.domain,
        "discovery": record.traffic == Some(Traffic::Discovery),
        "level": level,
        "dscp": datagram.dscp,
        "vlan": datagram.vlan.map(|tag| json!({ "id": tag.id, "pcp": tag.pcp })),
        "bytes": datagram.payload_len,
        "captured_bytes": datagram.payload.len(),
        "ip_packets": datagram.packets,
        "checksum": datagram.checksum.word(),
        "malformed": record.header.as_ref().err().map(ToString::to_string),
        "vendor": header.map(|header| names::vendor(header.vendor)),
        "rtps_version": header.map(|header| format!("{}.{}", header.version[0], header.version[1])),
        "guid_prefix": header.map(|header| header.prefix.to_string()),
        "participant": name,
        "submessages": record
            .items
            .iter()
            .map(|item| item_object(item, record.knowledge))
            .collect::<Vec<_>>(),
    })
}

fn item_object(item: &Item<'_>, knowledge: &Knowledge) -> Value {
    let submessage = match &item.submessage {
        Ok(submessage) => submessage,
        Err(error) => {
            return json!({
                "kind": "MALFORMED",
                "offset": item.offset,
                "why": error.to_string(),
                "cut": item.is_cut,
            });
        }
    };
    let (kind, own) = own_members(submessage);
    let mut object = Map::new();
    object.insert("kind".into(), kind.into());
    object.insert("offset".into(), item.offset.into());
    if let (Some(writer), Some(reader)) = (item.writer, item.reader) {
        object.insert("writer".into(), guid(writer));
        object.insert("reader".into(), guid(reader));
        object.insert("topic".into(), knowledge.topic_of(item).into());
    }
    if let Value::Object(own) = own {
        object.extend(own);
    }
    if let Some(announcement) = &item.announcement {
        let payload: &[u8] = match submessage {
            Submessage::Data(data) => data.bytes,
            _ => &[],
        };
        object.insert("announcement".into(), announced(announcement, payload));
    }
    Value::Object(object)
}

/// The kind of a submessage, and the members that only it has.
fn own_members(submessage: &Submessage<'_>) -> (&'static str, Value) {
    match submessage {
        Submessage::Data(data) => ("DATA", data_members(data)),
        Submessage::DataFrag(data) => (
            "DATA_FRAG",
            json!({
                "sequence": data.sequence.get(),
                "first_fragment": data.first_fragment,
                "fragments": data.fragments,
                "fragment_bytes": data.fragment_size,
                "sample_bytes": data.sample_size,
                "bytes": data.bytes.len(),
                "key_hash": data.key_hash().map(|hash| hexadecimal(&hash)),
                "disposed": data.status_info().disposed,
                "unregistered": data.status_info().unregistered,
            }),
        ),
        Submessage::Heartbeat(it) => (
            "HEARTBEAT",
            json!({
                "first": it.first.get(),
                "last": it.last.get(),
                "count": it.count,
                "final": it.is_final,
                "liveliness": it.liveliness,
                "group": it.group.map(|group| json!({
                    "current": group.current.get(),
                    "first": group.first.get(),
                    "last": group.last.get(),
                    "writers": hexadecimal(&group.writers),
                    "secure_writers": hexadecimal(&group.secure_writers),
                })),
            }),
        ),
        Submessage::HeartbeatFrag(it) => (
            "HEARTBEAT_FRAG",
            json!({
                "sequence": it.sequence.get(),
                "last_fragment": it.last_fragment,
                "count": it.count,
            }),
        ),
        Submessage::AckNack(it) => (
            "ACKNACK",
            json!({
                "base": it.state.base().get(),
                "bits": it.state.num_bits(),
                "missing": it.state.iter().map(|number| number.get()).collect::<Vec<_>>(),
                "count": it.count,
                "final": it.is_final,
            }),
        ),
        Submessage::NackFrag(it) => (
            "NACK_FRAG",
            json!({
                "sequence": it.sequence.get(),
                "missing": it.state.iter().collect::<Vec<_>>(),
                "count": it.count,
            }),
        ),
        Submessage::Gap(it) => (
            "GAP",
            json!({
                "start": it.start.get(),
                "base": it.list.base().get(),
                "skipped": it.list.iter().map(|number| number.get()).collect::<Vec<_>>(),
                "filtered": it.filtered,
                "group": it.group.map(|group| json!({
                    "start": group.start.get(),
                    "end": group.end.get(),
                })),
            }),
        ),
        Submessage::InfoTimestamp(time) => (
            "INFO_TS",
            json!({ "time_us": time.map(|time| time.to_nanos() as f64 / 1e3) }),
        ),
        Submessage::InfoDestination(prefix) => {
            ("INFO_DST", json!({ "guid_prefix": prefix.to_string() }))
        }
        Submessage::InfoSource(info) => (
            "INFO_SRC",
            json!({
                "guid_prefix": info.prefix.to_string(),
                "vendor": names::vendor(info.vendor),
            }),
        ),
        Submessage::InfoReply(reply) => (
            "INFO_REPLY",
            json!({
                "unicast": reply.unicast.iter().map(|it| it.to_string()).collect::<Vec<_>>(),
                "multicast": reply
                    .multicast
                    .map(|list| list.iter().map(|it| it.to_string()).collect::<Vec<_>>()),
            }),
        ),
        Submessage::InfoReplyIp4(reply) => (
            "INFO_REPLY_IP4",
            json!({
                "unicast": reply.unicast.to_string(),
                "multicast": reply.multicast.map(|it| it.to_string()),
            }),
        ),
        Submessage::HeaderExtension(it) => ("HEADER_EXTENSION", extension_members(it)),
        Submessage::Pad => ("PAD", json!({})),
        Submessage::Other { id, flags, body } => (
            "UNKNOWN",
            json!({
                "id": id,
                "name": names::security_submessage(*id),
                "flags": flags,
                "bytes": body.len(),
            }),
        ),
    }
}

fn data_members(data: &Data<'_>) -> Value {
    json!({
        "sequence": data.sequence.get(),
        "payload": match data.payload {
            PayloadKind::None => "none",
            PayloadKind::Data => "data",
            PayloadKind::Key => "key",
        },
        "bytes": data.bytes.len(),
        "encapsulation": names::encapsulation(data.bytes),
        "key_hash": data.key_hash().map(|hash| hexadecimal(&hash)),
        "disposed": data.status_info().disposed,
        "unregistered": data.status_info().unregistered,
    })
}

fn extension_members(extension: &HeaderExtension<'_>) -> Value {
    let checksum = extension.checksum.map(|checksum| {
        json!({
            "kind": names::checksum(checksum.kind()),
            "value": hexadecimal(checksum.bytes()),
        })
    });
    let parameters = extension.parameters.map(|list| {
        let ids = list.iter().map(|parameter| parameter.id);
        ids.collect::<Vec<_>>()
    });
    json!({
        "message_bytes": extension.message_bytes,
        "sent_us": extension.sent.map(|time| time.to_nanos() as f64 / 1e3),
        "checksum": checksum,
        "u_extension": extension.u_extension.map(|bytes| hexadecimal(&bytes)),
        "w_extension": extension.w_extension.map(|bytes| hexadecimal(&bytes)),
        "parameters": parameters,
    })
}

fn announced(announcement: &Announcement, payload: &[u8]) -> Value {
    match announcement {
        Announcement::Participant(data) => participant(data),
        Announcement::Writer(data) => endpoint("writer", data, &QosPolicies::writer_default()),
        Announcement::Reader(data) => {
            let mut reader = endpoint("reader", data, &QosPolicies::reader_default());
            reader["content_filter"] = content_filter(payload);
            reader
        }
        Announcement::End(named) => json!({ "what": "end", "guid": named.map(guid) }),
        Announcement::Message {
            participant,
            kind,
            data_len,
        } => json!({
            "what": "participant message",
            "guid_prefix": participant.to_string(),
            "kind": hexadecimal(kind),
            "bytes": data_len,
        }),
        Announcement::Malformed(error) => {
            json!({ "what": "malformed", "why": error.to_string() })
        }
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

fn participant(data: &ParticipantData) -> Value {
    json!({
        "what": "participant",
        "guid_prefix": data.guid.prefix.to_string(),
        "name": data.entity_name.as_str(),
        "vendor": names::vendor(data.vendor),
        "domain": data.domain_id,
        "lease_s": data.lease.as_secs_f64(),
        "builtin_endpoints": data.builtin_endpoints,
        "metatraffic_unicast": locators(&data.metatraffic_unicast),
        "metatraffic_multicast": locators(&data.metatraffic_multicast),
        "default_unicast": locators(&data.default_unicast),
        "default_multicast": locators(&data.default_multicast),
    })
}

/// `qos` holds the policies that differ from the standard's defaults.
fn endpoint(what: &str, data: &EndpointData, defaults: &QosPolicies) -> Value {
    let policies = qos::policies(&data.qos, defaults, false);
    let policies: Map<String, Value> = policies
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    json!({
        "what": what,
        "guid": guid(data.guid),
        "topic": data.topic_name.as_str(),
        "type": data.type_name.as_str(),
        "qos": policies,
        "unicast": locators(&data.unicast),
        "multicast": locators(&data.multicast),
        "expects_inline_qos": data.expects_inline_qos,
    })
}

fn locators(list: &[Locator]) -> Value {
    list.iter().map(Locator::to_string).collect()
}

fn guid(guid: Guid) -> Value {
    guid.to_string().into()
}
