//! Output of datagrams and of the summary. The text of a datagram is a line for the datagram and a line for each of its
//! submessages. The schema of the JSON form is `isolane/spy/3`.
//!
//! Text and JSON have the same names and values. The text omits values that are null, false or empty. It escapes names
//! chosen by peers, which may contain any character.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use isolane_model::Word;
use isolane_wire::guid::EntityId;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::capture::Frame;
use super::discovery::Traffic;
use super::message::{Fields, Item, Kind, Message, text_of};
use super::names;
use super::network::{Datagram, Other};

/// Datagram to show. `message` contains only the selected submessages.
pub(super) struct Record<'a> {
    pub(super) frame: &'a Frame<'a>,
    pub(super) datagram: &'a Datagram,
    pub(super) message: &'a Message,
}

impl Record<'_> {
    /// Returns the JSON record of kind `datagram`. Unknown values are null.
    pub(super) fn json(&self) -> Value {
        let Self {
            frame,
            datagram,
            message,
        } = self;
        let header = message.header.as_ref().ok();
        let level = match message.traffic {
            Some(Traffic::Level(level)) => Some(level.get()),
            _ => None,
        };
        json!({
            "schema": "isolane/spy/3",
            "record": "datagram",
            "time": frame.time_ns.map(date_and_time),
            "time_us": frame.time_ns.map(|time| time as f64 / 1e3),
            "interface": frame.interface,
            "source": datagram.source.to_string(),
            "destination": datagram.destination.to_string(),
            "domain": message.domain,
            "discovery": message.traffic == Some(Traffic::Discovery),
            "level": level,
            "dscp": datagram.dscp,
            "vlan": datagram.vlan.map(|tag| json!({ "id": tag.id, "pcp": tag.pcp })),
            "bytes": datagram.payload_len,
            "captured_bytes": datagram.payload.len(),
            "ip_packets": datagram.packets,
            "malformed": message.header.as_ref().err().map(ToString::to_string),
            "vendor": header.map(|header| names::vendor(header.vendor)),
            "rtps_version": header.map(|header| format!("{}.{}", header.version[0], header.version[1])),
            "guid_prefix": header.map(|header| header.prefix.to_string()),
            "participant": message.participant,
            "submessages": message.items.iter().map(Item::json).collect::<Vec<_>>(),
        })
    }

    /// Returns the lines of the datagram. INFO submessages and PAD are omitted without `with_context`.
    pub(super) fn text(&self, with_context: bool) -> String {
        let Self {
            frame,
            datagram,
            message,
        } = self;
        let mut parts = vec![match message.traffic {
            Some(Traffic::Discovery) => String::from("discovery"),
            Some(Traffic::Level(level)) => format!("level {level}"),
            None => String::from("level unknown"),
        }];
        parts.extend(message.domain.map(|domain| format!("domain {domain}")));
        parts.push(match &message.header {
            Ok(header) => {
                let name = message.participant.as_ref();
                let name = name.map_or_else(String::new, |name| format!(" {name:?}"));
                format!("{} {}{name}", names::vendor(header.vendor), header.prefix)
            }
            Err(error) => format!("MALFORMED: {error}"),
        });
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
        let time = frame.time_ns.map(date_and_time);
        // Time of day without the date, with microseconds.
        let time = time.as_ref().and_then(|time| time.get(11..26));
        let mut text = time.unwrap_or("--:--:--.------").to_owned();
        if let Some(name) = frame.interface {
            let _ = write!(text, " {}", name.escape_debug());
        }
        let (source, destination) = (datagram.source, datagram.destination);
        let _ = writeln!(text, " {source} > {destination}  {}", parts.join(", "));
        for item in &message.items {
            if with_context || !matches!(item.kind, Kind::Info | Kind::Pad) {
                let _ = writeln!(text, "    {}", item.text());
            }
        }
        text
    }
}

impl Item {
    fn json(&self) -> Value {
        let mut all = object(&self.fields);
        all.insert("offset".into(), self.offset.into());
        if self.kind == Kind::Malformed {
            all.insert("cut".into(), self.is_cut.into());
        }
        if let (Some(writer), Some(reader)) = (self.writer, self.reader) {
            all.insert("writer".into(), writer.to_string().into());
            all.insert("reader".into(), reader.to_string().into());
            all.insert("topic".into(), self.topic.as_deref().into());
        }
        if let Some(announcement) = &self.announcement {
            all.insert("announcement".into(), object(announcement).into());
        }
        all.into()
    }

    fn text(&self) -> String {
        let (kind, fields) = kind_and_words(&self.fields);
        if self.kind == Kind::Malformed {
            return match self.is_cut {
                true => format!("(the capture ends here, at byte {})", self.offset),
                false => format!("MALFORMED at byte {}: {fields}", self.offset),
            };
        }
        if let Some(announcement) = &self.announcement {
            let (what, fields) = kind_and_words(announcement);
            return format!("{} {what} {fields}", self.kind.word().to_uppercase());
        }
        format!("{kind} {}{fields}", self.sender_and_receiver())
    }

    /// Returns the entity ids of sender and receiver and the topic, such as `00000102 -> 00000107 "Square" `. The
    /// receiver is omitted if all entities are addressed, or if the sender is a built-in entity.
    fn sender_and_receiver(&self) -> String {
        let (Some(writer), Some(reader)) = (self.writer, self.reader) else {
            return String::new();
        };
        let (from, to) = match self.kind {
            Kind::AckNack | Kind::NackFragment => (reader.entity, writer.entity),
            _ => (writer.entity, reader.entity),
        };
        let mut text = match names::built_in_entity(from) {
            Some(name) => format!("{name} "),
            None if to == EntityId::UNKNOWN => format!("{from} "),
            None => format!("{from} -> {to} "),
        };
        if let Some(topic) = &self.topic {
            let _ = write!(text, "{topic:?} ");
        }
        text
    }
}

/// Counts of a run, and the JSON record of kind `summary`.
#[derive(Default, Serialize)]
pub(super) struct Summary {
    pub(super) frames: u64,
    /// Datagrams that begin with `RTPS`.
    pub(super) datagrams: u64,
    pub(super) shown: u64,
    /// RTPS datagrams that the filter excludes.
    pub(super) filtered: u64,
    /// DATA whose topic is unknown, because discovery has not announced the writer; counted if topics are selected.
    pub(super) unannounced: u64,
    /// Number of submessages of each kind, by the word that `--kind` uses.
    submessages: BTreeMap<&'static str, u64>,
    /// Number of unknown submessages by submessage id.
    unknown_submessages: BTreeMap<String, u64>,
    malformed: Malformed,
    pub(super) other_udp: u64,
    not_udp: u64,
    ipv6: u64,
    /// Frames whose link type is not decoded.
    unknown_link: u64,
    ip_fragments: u64,
    pub(super) incomplete_packets: u64,
    truncated_datagrams: u64,
    /// Frames that the kernel dropped; `None` for a file.
    pub(super) kernel_dropped: Option<u64>,
    /// True if the file ends within a frame.
    pub(super) is_truncated: bool,
}

#[derive(Default, Serialize)]
struct Malformed {
    frames: u64,
    datagrams: u64,
    submessages: u64,
    announcements: u64,
}

impl Summary {
    pub(super) fn count_other(&mut self, other: Other) {
        *match other {
            Other::UnknownLink(_) => &mut self.unknown_link,
            Other::Ipv6 => &mut self.ipv6,
            Other::NotUdp => &mut self.not_udp,
            Other::Fragment => &mut self.ip_fragments,
            Other::Malformed => &mut self.malformed.frames,
        } += 1;
    }

    pub(super) fn count(&mut self, datagram: &Datagram, message: &Message) {
        self.datagrams += 1;
        // `count_other` does not count the fragment that completes a datagram.
        self.ip_fragments += u64::from(datagram.packets > 1);
        self.truncated_datagrams += u64::from(datagram.is_cut());
        self.malformed.datagrams += u64::from(message.header.is_err());
        for item in &message.items {
            if item.kind == Kind::Malformed && item.is_cut {
                continue;
            }
            *self.submessages.entry(item.kind.word()).or_default() += 1;
            self.malformed.submessages += u64::from(item.kind == Kind::Malformed);
            let announcement = item.announcement.as_ref();
            let what = announcement.and_then(|fields| text_of(fields, "kind"));
            self.malformed.announcements += u64::from(what == Some("malformed"));
            if item.kind == Kind::Unknown
                && let Some(id) = text_of(&item.fields, "id")
            {
                *self.unknown_submessages.entry(id.into()).or_default() += 1;
            }
        }
    }

    /// Returns the JSON record of the summary, which is the last line of `--json`.
    pub(super) fn json(&self) -> Value {
        let mut all = json!(self);
        all["schema"] = "isolane/spy/3".into();
        all["record"] = "summary".into();
        for (word, _) in Kind::WORDS {
            if all["submessages"][word].is_null() {
                all["submessages"][word] = 0.into();
            }
        }
        all
    }

    /// Returns the counts that are not zero, as text.
    pub(super) fn text(&self) -> String {
        let mut all = json!(self);
        let counts = all.as_object_mut().into_iter().flatten();
        let words = counts.filter_map(|(name, count)| {
            if let Value::Object(counts) = count {
                counts.retain(|_, count| *count != 0);
            }
            word(name, count).filter(|_| *count != 0)
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

fn object(fields: &Fields) -> Map<String, Value> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| (String::from(*name), value.clone()))
        .collect()
}

/// Returns the value of the first field, which is the kind, and the text of the other fields.
fn kind_and_words(fields: &Fields) -> (&str, String) {
    let mut fields = fields.iter();
    let kind = fields.next().and_then(|(_, kind)| kind.as_str());
    let words = fields.filter_map(|(name, value)| match value {
        // Policies are printed without the word `qos`, and a reason without the word `why`.
        Value::Object(policies) if *name == "qos" => Some(named(policies)),
        Value::String(reason) if *name == "why" => Some(reason.clone()),
        value => word(name, value),
    });
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    (kind.unwrap_or_default(), words.join(", "))
}

fn named(object: &Map<String, Value>) -> String {
    let words = object.iter().filter_map(|(name, value)| word(name, value));
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the text of a name with its value; `None` if the value is null, false or empty.
fn word(name: &str, value: &Value) -> Option<String> {
    let value = match value {
        Value::Null | Value::Bool(false) => return None,
        Value::Bool(true) => return Some(name.to_owned()),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.is_empty() => return None,
        Value::String(text) => quoted(text),
        Value::Array(all) if all.is_empty() => return None,
        Value::Array(all) => match all.iter().map(Value::as_i64).collect::<Option<Vec<_>>>() {
            Some(numbers) => ranges(&numbers),
            None => {
                let texts = all.iter().filter_map(Value::as_str).map(quoted);
                texts.collect::<Vec<_>>().join(" ")
            }
        },
        Value::Object(object) if object.is_empty() => return None,
        Value::Object(object) => format!("({})", named(object)),
    };
    Some(format!("{name} {value}"))
}

/// Returns a text. Adds quotes if it is empty, or contains other characters than letters, digits and `_:/.-+`.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_:/.-+".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("{text:?}"),
    }
}

/// Returns ascending numbers as text. Consecutive numbers become a range: `3 5..9`.
fn ranges(numbers: &[i64]) -> String {
    let ranges = numbers.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let ranges = ranges.map(|range| match range {
        [first, .., last] => format!("{first}..{last}"),
        only => only.iter().map(i64::to_string).collect(),
    });
    ranges.collect::<Vec<_>>().join(" ")
}

/// Converts nanoseconds since 1970 to date and time in UTC (RFC 3339).
fn date_and_time(time_ns: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_nanos(time_ns);
    humantime::format_rfc3339_nanos(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_ranges() {
        assert_eq!(ranges(&[3, 5, 6, 7, 9]), "3 5..7 9");
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[i64::MAX]), i64::MAX.to_string());
    }
}
