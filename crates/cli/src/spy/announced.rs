//! What built-in writers say, for people: participants, writers and readers, their ends, and that they are
//! alive.

use isolane_wire::{
    discovery::{ContentFilterProperty, EndpointData, ParticipantData},
    guid::EntityId,
    locator::Locator,
    qos::QosPolicies,
    rtps::Data,
};

use super::message::Announcement;
use super::names;
use super::qos;

/// What a submessage of discovery says, on a line.
pub(super) fn line(announcement: &Announcement, data: &Data<'_>, all: bool) -> String {
    let sequence = if all {
        format!(", #{}, {} B", data.sequence, data.bytes.len())
    } else {
        String::new()
    };
    match announcement {
        Announcement::Participant(participant) => {
            format!(
                "SPDP participant {}{sequence}",
                participant_text(participant, all)
            )
        }
        Announcement::Writer(writer) => {
            let defaults = QosPolicies::writer_default();
            format!("SEDP writer {}{sequence}", endpoint(writer, &defaults, all))
        }
        Announcement::Reader(reader) => {
            let defaults = QosPolicies::reader_default();
            let filter = filter(data).unwrap_or_default();
            format!(
                "SEDP reader {}{filter}{sequence}",
                endpoint(reader, &defaults, all)
            )
        }
        Announcement::End(guid) => {
            let status = data.status_info();
            let how = match (status.disposed, status.unregistered) {
                (true, _) => "disposed",
                (_, true) => "unregistered",
                (false, false) => "leaves",
            };
            let what = match data.writer {
                EntityId::SPDP_WRITER => "SPDP participant",
                EntityId::SEDP_PUBLICATIONS_WRITER => "SEDP writer",
                _ => "SEDP reader",
            };
            let who = guid.map_or_else(|| String::from("unnamed"), |guid| guid.to_string());
            format!("{what} {who} {how}{sequence}")
        }
        Announcement::Message {
            participant,
            kind,
            data_len,
        } => {
            let kind = names::participant_message(*kind);
            let data = match data_len {
                0 => String::new(),
                bytes => format!(", {bytes} B of data"),
            };
            format!("LIVELINESS participant {participant} {kind}{data}{sequence}")
        }
        Announcement::Malformed(error) => format!("MALFORMED announcement: {error}{sequence}"),
    }
}

fn participant_text(participant: &ParticipantData, all: bool) -> String {
    let mut parts = vec![participant.guid.prefix.to_string()];
    if !participant.entity_name.is_empty() {
        parts.push(format!("{:?}", participant.entity_name.as_str()));
    }
    if let Some(domain) = participant.domain_id {
        parts.push(format!("domain {domain}"));
    }
    parts.push(format!("lease {:?}", participant.lease));
    parts.push(format!("at {}", locators(&participant.metatraffic_unicast)));
    if all {
        for (name, list) in [
            ("discovery groups", &participant.metatraffic_multicast),
            ("user traffic at", &participant.default_unicast),
            ("user groups", &participant.default_multicast),
        ] {
            parts.push(format!("{name} {}", locators(list)));
        }
        let endpoints = participant.builtin_endpoints;
        parts.push(format!("builtin endpoints {endpoints:#010x}"));
    }
    parts.join(", ")
}

fn endpoint(data: &EndpointData, defaults: &QosPolicies, all: bool) -> String {
    let name = if all {
        data.guid.to_string()
    } else {
        data.guid.entity.to_string()
    };
    let mut parts = vec![format!(
        "{name} {:?} of {:?}",
        data.topic_name.as_str(),
        data.type_name.as_str()
    )];
    let policies = qos::policies(&data.qos, defaults, all);
    parts.extend(policies.into_iter().map(|(name, value)| match name {
        "RELIABILITY" | "DURABILITY" | "HISTORY" if !all => value,
        name => format!("{name} {value}"),
    }));
    let addresses = data.unicast.iter().chain(&data.multicast);
    let addresses: Vec<String> = addresses.map(Locator::to_string).collect();
    if !addresses.is_empty() {
        parts.push(format!("at {}", addresses.join(" ")));
    }
    if data.expects_inline_qos {
        parts.push(String::from("expects inline QoS"));
    }
    parts.join(", ")
}

/// What a reader announces of its content filter.
fn filter(data: &Data<'_>) -> Option<String> {
    let (value, order) = ContentFilterProperty::find(data.bytes)?;
    Some(match ContentFilterProperty::parse(value, order) {
        Ok(filter) if filter.parameters.is_empty() => format!(", wants {:?}", filter.expression),
        Ok(filter) => format!(
            ", wants {:?} with {:?}",
            filter.expression, filter.parameters
        ),
        Err(error) => format!(", wants something that is no filter: {error}"),
    })
}

fn locators(list: &[Locator]) -> String {
    if list.is_empty() {
        return String::from("none");
    }
    let locators: Vec<String> = list.iter().map(Locator::to_string).collect();
    locators.join(" ")
}
