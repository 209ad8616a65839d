//! A datagram for people, one line for it and an indented one for each submessage, and for programs, one JSON object
//! (schema `isolane/spy/2`, record `datagram`).
//!
//! Both use the same names and values. The text leaves out what is null, false or empty, and what seldom matters. Names that
//! peers chose may hold anything: in the text they are escaped.

use std::fmt::Write as _;

use isolane_wire::guid::{EntityId, Guid};
use isolane_wire::rtps::Submessage;
use serde_json::{Map, Value, json};

use super::fields::{Fields, of_announcement, of_submessage, text};
use super::frame::Frame;
use super::knowledge::{Knowledge, Traffic};
use super::message::{Item, Kind};
use super::names;
use super::network::Datagram;
use super::notation::{date_and_time, ranges, time_of_day};

/// Everything there is to say about one datagram.
pub(crate) struct Record<'a> {
    pub(crate) frame: &'a Frame<'a>,
    pub(crate) datagram: &'a Datagram<'a>,
    pub(crate) domain: Option<u32>,
    pub(crate) traffic: Option<Traffic>,
    /// The message's header, or why there is none.
    pub(crate) header: Result<isolane_wire::rtps::Header, isolane_wire::Error>,
    /// The items to show.
    pub(crate) items: Vec<&'a Item<'a>>,
    pub(crate) knowledge: &'a Knowledge,
}

/// Optional parts of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Submessages that only say something about others: INFO_TS and its like, PAD.
    pub(crate) context: bool,
    /// The device a frame passed.
    pub(crate) interfaces: bool,
}

impl Record<'_> {
    /// The object of a datagram. What is not known is null.
    pub(crate) fn json(&self) -> Value {
        let Self {
            frame, datagram, ..
        } = self;
        let header = self.header.as_ref().ok();
        let level = match self.traffic {
            Some(Traffic::Level(level)) => Some(level.get()),
            _ => None,
        };
        let items = self.items.iter();
        json!({
            "schema": "isolane/spy/2",
            "record": "datagram",
            "time": frame.time_ns.map(date_and_time),
            "time_us": frame.time_ns.map(|time| time as f64 / 1e3),
            "interface": frame.interface,
            "source": datagram.source.to_string(),
            "destination": datagram.destination.to_string(),
            "domain": self.domain,
            "discovery": self.traffic == Some(Traffic::Discovery),
            "level": level,
            "dscp": datagram.dscp,
            "vlan": datagram.vlan.map(|tag| json!({ "id": tag.id, "pcp": tag.pcp })),
            "bytes": datagram.payload_len,
            "captured_bytes": datagram.payload.len(),
            "ip_packets": datagram.packets,
            "malformed": self.header.as_ref().err().map(ToString::to_string),
            "vendor": header.map(|header| names::vendor(header.vendor)),
            "rtps_version": header.map(|header| format!("{}.{}", header.version[0], header.version[1])),
            "guid_prefix": header.map(|header| header.prefix.to_string()),
            "participant": header.and_then(|header| self.knowledge.participant_name(header.prefix)),
            "submessages": items.map(|item| item.json(self.knowledge)).collect::<Vec<_>>(),
        })
    }

    /// The lines of a datagram, each with its end.
    pub(crate) fn text(&self, style: Style) -> String {
        let mut text = self.head(style);
        text.push('\n');
        for item in &self.items {
            if style.context || !matches!(item.kind, Kind::Info | Kind::Pad) {
                // Writing to a string does not fail.
                let _ = writeln!(text, "    {}", item.text(self.knowledge));
            }
        }
        text
    }

    fn head(&self, style: Style) -> String {
        let Self { datagram, .. } = self;
        let mut parts = vec![match self.traffic {
            Some(Traffic::Discovery) => String::from("discovery"),
            Some(Traffic::Level(level)) => format!("level {level}"),
            None => String::from("level unknown"),
        }];
        parts.extend(self.domain.map(|domain| format!("domain {domain}")));
        match &self.header {
            Ok(header) => {
                let name = self.knowledge.participant_name(header.prefix);
                let name = name.map_or_else(String::new, |name| format!(" {name:?}"));
                let vendor = names::vendor(header.vendor);
                parts.push(format!("{vendor} {}{name}", header.prefix));
            }
            Err(error) => parts.push(format!("MALFORMED: {error}")),
        }
        parts.push(format!("{} B", datagram.payload_len));
        if datagram.is_cut() {
            parts.push(format!("captured {} B", datagram.payload.len()));
        }
        if datagram.packets > 1 {
            parts.push(format!("in {} IP fragments", datagram.packets));
        }
        if let Some(tag) = datagram.vlan {
            parts.push(format!("VLAN {} PCP {}", tag.id, tag.pcp));
        }
        let interface = match self.frame.interface {
            Some(name) if style.interfaces => format!("{} ", name.escape_debug()),
            _ => String::new(),
        };
        format!(
            "{} {interface}{} > {}  {}",
            time_of_day(self.frame.time_ns),
            datagram.source,
            datagram.destination,
            parts.join(", ")
        )
    }
}

impl Item<'_> {
    /// Kind and fields of what the item announces.
    fn announced(&self) -> Option<(&'static str, Fields)> {
        match (&self.announcement, &self.submessage) {
            (Some(announcement), Ok(Submessage::Data(data))) => {
                Some(of_announcement(announcement, data))
            }
            _ => None,
        }
    }

    fn json(&self, knowledge: &Knowledge) -> Value {
        let submessage = match &self.submessage {
            Ok(submessage) => submessage,
            Err(error) => {
                return json!({
                    "kind": "MALFORMED",
                    "offset": self.offset,
                    "why": error.to_string(),
                    "cut": self.is_cut,
                });
            }
        };
        let (kind, fields) = of_submessage(submessage);
        let mut object = object(fields);
        object.insert("kind".into(), kind.into());
        object.insert("offset".into(), self.offset.into());
        if let (Some(writer), Some(reader)) = (self.writer, self.reader) {
            object.insert("writer".into(), text(writer).into());
            object.insert("reader".into(), text(reader).into());
            object.insert("topic".into(), knowledge.topic_of(self).into());
        }
        if let Some((what, fields)) = self.announced() {
            let mut announcement = self::object(fields);
            announcement.insert("what".into(), what.into());
            object.insert("announcement".into(), announcement.into());
        }
        object.into()
    }

    fn text(&self, knowledge: &Knowledge) -> String {
        let submessage = match &self.submessage {
            Ok(submessage) => submessage,
            Err(_) if self.is_cut => {
                return format!("(the capture ends here, at byte {})", self.offset);
            }
            Err(error) => return format!("MALFORMED at byte {}: {error}", self.offset),
        };
        if let Some((what, fields)) = self.announced() {
            let protocol = match self.kind {
                Kind::Spdp => "SPDP",
                Kind::Sedp => "SEDP",
                _ => "LIVELINESS",
            };
            return format!("{protocol} {what} {}", words(&fields));
        }
        let (kind, fields) = of_submessage(submessage);
        let between = match (self.writer, self.reader) {
            (Some(writer), Some(reader)) => self.between(writer, reader, knowledge),
            _ => String::new(),
        };
        format!("{kind} {between}{}", words(&fields))
    }

    /// Who a submessage is from and for, as `00000102 -> 00000107 "Square" `. The receiver is left out where it is every
    /// entity, or the sender is a built-in one.
    fn between(&self, writer: Guid, reader: Guid, knowledge: &Knowledge) -> String {
        let (from, to) = match self.kind {
            Kind::AckNack | Kind::NackFragment => (reader.entity, writer.entity),
            _ => (writer.entity, reader.entity),
        };
        let mut text = match names::entity(from) {
            Some(name) => format!("{name} "),
            None if to == EntityId::UNKNOWN => format!("{from} "),
            None => format!("{from} -> {to} "),
        };
        if let Some(topic) = knowledge.topic_of(self) {
            let _ = write!(text, "{topic:?} ");
        }
        text
    }
}

fn object(fields: Fields) -> Map<String, Value> {
    let fields = fields.into_iter();
    fields.map(|(name, value)| (name.into(), value)).collect()
}

/// Fields as words, without those that say nothing.
fn words(fields: &[(&'static str, Value)]) -> String {
    let words = fields.iter().filter_map(|(name, value)| match name {
        // Each policy has its name.
        &"qos" => value.as_object().map(named).filter(|all| !all.is_empty()),
        name => word(name, value),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn named(object: &Map<String, Value>) -> String {
    let words = object.iter().filter_map(|(name, value)| word(name, value));
    words.collect::<Vec<_>>().join(", ")
}

fn word(name: &str, value: &Value) -> Option<String> {
    let value = match value {
        Value::Null | Value::Bool(false) => return None,
        Value::Bool(true) => return Some(name.to_owned()),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.is_empty() => return None,
        Value::String(text) => quoted(text),
        Value::Array(all) if all.is_empty() => return None,
        Value::Array(all) => {
            let numbers: Option<Vec<i64>> = all.iter().map(Value::as_i64).collect();
            let texts = all.iter().filter_map(Value::as_str).map(quoted);
            numbers.map_or_else(
                || texts.collect::<Vec<_>>().join(" "),
                |numbers| ranges(numbers.into_iter()),
            )
        }
        Value::Object(object) => format!("({})", named(object)),
    };
    Some(format!("{name} {value}"))
}

/// A text as it is, or in quotes where it is empty or has anything but letters, digits and a few signs.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_:/.-+".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("{text:?}"),
    }
}
