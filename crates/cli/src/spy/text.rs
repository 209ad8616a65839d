//! A datagram for people: one line for it, an indented one for each of its submessages.
//!
//! What peers call themselves and their topics may hold anything; a line stays a line.

use std::fmt::Write as _;

use isolane_wire::{
    guid::{EntityId, Guid},
    locator::Locator,
    rtps::{Data, DataFrag, HeaderExtension, PayloadKind, StatusInfo, Submessage},
};

use super::announced;
use super::knowledge::{Knowledge, Traffic};
use super::message::{Item, Kind};
use super::names;
use super::network::Checksum;
use super::notation::{hexadecimal, range, ranges, time_of_day, timestamp};
use super::{frame::Frame, network::Datagram};
use crate::limits::SHOWN_PAYLOAD_BYTES;

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

/// How it looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Everything, also what seldom matters.
    pub(crate) all: bool,
    /// The device a frame passed is of interest.
    pub(crate) interfaces: bool,
}

/// The lines of a datagram, each with its end.
pub(crate) fn lines(record: &Record<'_>, style: Style) -> String {
    let mut text = head(record, style);
    text.push('\n');
    for item in &record.items {
        if !style.all && is_context(item) {
            continue;
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "    {}", line(item, record.knowledge, style.all));
        if style.all {
            details(&mut text, item);
        }
    }
    text
}

/// A submessage that only says something about others.
fn is_context(item: &Item<'_>) -> bool {
    matches!(item.kind, Kind::Info | Kind::Pad)
}

fn head(record: &Record<'_>, style: Style) -> String {
    let Record { datagram, .. } = record;
    let mut parts = vec![match record.traffic {
        Some(Traffic::Discovery) => String::from("discovery"),
        Some(Traffic::Level(level)) => format!("level {level}"),
        None => String::from("level unknown"),
    }];
    if let Some(domain) = record.domain {
        parts.push(format!("domain {domain}"));
    }
    match &record.header {
        Ok(header) => {
            let mut who = format!("{} {}", names::vendor(header.vendor), header.prefix);
            if let Some(name) = record.knowledge.participant_name(header.prefix) {
                let _ = write!(who, " {name:?}");
            }
            if style.all {
                let [major, minor] = header.version;
                let _ = write!(who, " RTPS {major}.{minor}");
            }
            parts.push(who);
        }
        Err(error) => parts.push(format!("MALFORMED: {error}")),
    }
    parts.push(format!("{} B", datagram.payload_len));
    if datagram.payload.len() < datagram.payload_len {
        parts.push(format!("captured {} B", datagram.payload.len()));
    }
    if datagram.packets > 1 {
        parts.push(format!("in {} IP fragments", datagram.packets));
    }
    if let Some(tag) = datagram.vlan {
        parts.push(format!("VLAN {} PCP {}", tag.id, tag.pcp));
    }
    if style.all {
        parts.push(format!("DSCP {}", datagram.dscp));
        parts.push(format!("checksum {}", datagram.checksum.word()));
    } else if datagram.checksum == Checksum::Wrong {
        parts.push(String::from("checksum WRONG"));
    }
    let interface = match record.frame.interface {
        Some(name) if style.interfaces => format!("{} ", name.escape_debug()),
        _ => String::new(),
    };
    format!(
        "{} {interface}{} > {}  {}",
        time_of_day(record.frame.time_ns),
        datagram.source,
        datagram.destination,
        parts.join(", ")
    )
}

/// One submessage.
fn line(item: &Item<'_>, knowledge: &Knowledge, all: bool) -> String {
    let submessage = match &item.submessage {
        Ok(submessage) => submessage,
        Err(_) if item.is_cut => {
            return format!("(the capture ends here, at byte {})", item.offset);
        }
        Err(error) => return format!("MALFORMED at byte {}: {error}", item.offset),
    };
    let between = Between::of(item, knowledge, all);
    match submessage {
        Submessage::Data(data) => match &item.announcement {
            Some(announcement) => announced::line(announcement, data, all),
            None => format!("DATA {between} {}", data_text(data)),
        },
        Submessage::DataFrag(data) => format!("DATA_FRAG {between} {}", fragment_text(data)),
        Submessage::Heartbeat(it) => {
            let range = if it.last < it.first {
                format!("has nothing, next {}", it.first)
            } else {
                format!("has {}..{}", it.first, it.last)
            };
            let liveliness = if it.liveliness { ", liveliness" } else { "" };
            let group = it.group.filter(|_| all).map_or_else(String::new, |group| {
                format!(
                    ", group {}..{} of {}",
                    group.first, group.last, group.current
                )
            });
            let last = count(it.count, it.is_final);
            format!("HEARTBEAT {between} {range}{liveliness}{group}, {last}")
        }
        Submessage::HeartbeatFrag(it) => format!(
            "HEARTBEAT_FRAG {between} #{} has fragments 1..{}, count {}",
            it.sequence, it.last_fragment, it.count
        ),
        Submessage::AckNack(it) => {
            let missing = ranges(it.state.iter().map(|number| number.get()));
            let wants = match missing.as_str() {
                "" => String::new(),
                missing => format!(", wants {missing}"),
            };
            let bits = if all {
                format!(", {} bits", it.state.num_bits())
            } else {
                String::new()
            };
            let last = count(it.count, it.is_final);
            format!(
                "ACKNACK {between} has all below {}{wants}{bits}, {last}",
                it.state.base()
            )
        }
        Submessage::NackFrag(it) => format!(
            "NACK_FRAG {between} #{} wants fragments {}, count {}",
            it.sequence,
            ranges(it.state.iter().map(i64::from)),
            it.count
        ),
        Submessage::Gap(it) => {
            let mut parts = Vec::new();
            let (start, base) = (it.start.get(), it.list.base().get());
            match base - start {
                ..=0 => {}
                1 => parts.push(start.to_string()),
                _ => parts.push(format!("{start}..{}", base - 1)),
            }
            let single = ranges(it.list.iter().map(|number| number.get()));
            parts.extend((!single.is_empty()).then_some(single));
            if parts.is_empty() {
                parts.push(String::from("nothing"));
            }
            let filtered = it
                .filtered
                .map_or_else(String::new, |count| format!(", {count} of them filtered"));
            let group = it.group.filter(|_| all).map_or_else(String::new, |group| {
                format!(", group {}..{}", group.start, group.end)
            });
            format!("GAP {between} skips {}{filtered}{group}", parts.join(" "))
        }
        Submessage::InfoTimestamp(time) => match time {
            Some(time) => format!("INFO_TS {}", timestamp(*time)),
            None => String::from("INFO_TS none"),
        },
        Submessage::InfoDestination(prefix) => format!("INFO_DST {prefix}"),
        Submessage::InfoSource(info) => {
            format!("INFO_SRC {} {}", names::vendor(info.vendor), info.prefix)
        }
        Submessage::InfoReply(reply) => {
            let groups = reply.multicast.into_iter().flat_map(|list| list.iter());
            format!("INFO_REPLY {}", joined(reply.unicast.iter().chain(groups)))
        }
        Submessage::InfoReplyIp4(reply) => {
            let locators = [Some(reply.unicast), reply.multicast];
            format!("INFO_REPLY_IP4 {}", joined(locators.into_iter().flatten()))
        }
        Submessage::HeaderExtension(it) => format!("HEADER_EXTENSION {}", extension_text(it)),
        Submessage::Pad => String::from("PAD"),
        Submessage::Other { id, flags, body } => {
            let what = match names::security_submessage(*id) {
                Some(name) => String::from(name),
                None => format!("submessage {id:#04x}"),
            };
            let whose = names::origin_of_submessage(*id);
            format!("{what} {whose}, flags {flags:#04x}, {} B", body.len())
        }
    }
}

fn joined(locators: impl Iterator<Item = Locator>) -> String {
    let locators: Vec<String> = locators.map(|locator| locator.to_string()).collect();
    locators.join(" ")
}

fn extension_text(extension: &HeaderExtension<'_>) -> String {
    let mut parts = Vec::new();
    if let Some(bytes) = extension.message_bytes {
        parts.push(format!("message of {bytes} B"));
    }
    if let Some(sent) = extension.sent {
        parts.push(format!("sent {}", timestamp(sent)));
    }
    if let Some(checksum) = extension.checksum {
        let name = names::checksum(checksum.kind());
        parts.push(format!("{name} {}", hexadecimal(checksum.bytes())));
    }
    if let Some(bytes) = extension.u_extension {
        parts.push(format!("extension of 4 B {}", hexadecimal(&bytes)));
    }
    if let Some(bytes) = extension.w_extension {
        parts.push(format!("extension of 8 B {}", hexadecimal(&bytes)));
    }
    if let Some(list) = extension.parameters {
        let ids: Vec<String> = list.iter().map(|it| format!("{:#06x}", it.id)).collect();
        parts.push(format!("parameters {}", ids.join(" ")));
    }
    if parts.is_empty() {
        parts.push(String::from("says nothing"));
    }
    parts.join(", ")
}

/// Who an item is from and for, as `00000102 -> 00000107 "Square"`; without the second if that is
/// everybody.
struct Between<'a> {
    writer: Guid,
    reader: Guid,
    from_reader: bool,
    topic: Option<&'a str>,
    all: bool,
}

impl<'a> Between<'a> {
    fn of(item: &'a Item<'_>, knowledge: &'a Knowledge, all: bool) -> Self {
        Self {
            writer: item.writer.unwrap_or_default(),
            reader: item.reader.unwrap_or_default(),
            from_reader: matches!(item.kind, Kind::AckNack | Kind::NackFragment),
            topic: knowledge.topic_of(item),
            all,
        }
    }
}

impl std::fmt::Display for Between<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (from, to) = if self.from_reader {
            (self.reader, self.writer)
        } else {
            (self.writer, self.reader)
        };
        let known = names::entity(from.entity);
        match known {
            Some(name) => formatter.write_str(name)?,
            None => write!(formatter, "{}", from.entity)?,
        }
        if self.all {
            write!(formatter, " ({from} -> {to})")?;
        } else if to.entity != EntityId::UNKNOWN && known.is_none() {
            write!(formatter, " -> {}", to.entity)?;
        }
        match self.topic {
            Some(topic) => write!(formatter, " {topic:?}"),
            None => Ok(()),
        }
    }
}

fn data_text(data: &Data<'_>) -> String {
    let mut parts = vec![format!("#{}", data.sequence)];
    let encapsulation = names::encapsulation(data.bytes);
    match data.payload {
        PayloadKind::None => parts.push(String::from("no payload")),
        PayloadKind::Data | PayloadKind::Key => {
            let kind = if data.payload == PayloadKind::Key {
                "key "
            } else {
                ""
            };
            let form = match encapsulation {
                _ if data.non_standard => String::from(" of the vendor's own form"),
                Some(form) => format!(" {form}"),
                None => String::new(),
            };
            parts.push(format!("{kind}{} B{form}", data.bytes.len()));
        }
    }
    instance(&mut parts, data.key_hash(), data.status_info());
    parts.join(", ")
}

fn fragment_text(data: &DataFrag<'_>) -> String {
    let last = data.first_fragment + u32::from(data.fragments) - 1;
    let mut parts = vec![
        format!("#{}", data.sequence),
        format!(
            "fragments {} of {}",
            range(i64::from(data.first_fragment), i64::from(last)),
            data.total_fragments()
        ),
        format!("{} of {} B", data.bytes.len(), data.sample_size),
    ];
    instance(&mut parts, data.key_hash(), data.status_info());
    parts.join(", ")
}

fn instance(parts: &mut Vec<String>, key_hash: Option<[u8; 16]>, status: StatusInfo) {
    if let Some(hash) = key_hash {
        parts.push(format!("key {}", hexadecimal(&hash)));
    }
    if status.disposed {
        parts.push(String::from("disposed"));
    }
    if status.unregistered {
        parts.push(String::from("unregistered"));
    }
}

/// What only `-v` shows of an item.
fn details(text: &mut String, item: &Item<'_>) {
    let (payload, inline_qos) = match &item.submessage {
        Ok(Submessage::Data(data)) => (data.bytes, &data.inline_qos),
        Ok(Submessage::DataFrag(data)) => (data.bytes, &data.inline_qos),
        _ => return,
    };
    if let Some(list) = inline_qos {
        let ids: Vec<String> = list
            .iter()
            .map(|parameter| format!("{:#06x} ({} B)", parameter.id, parameter.value.len()))
            .collect();
        let _ = writeln!(text, "        inline QoS {}", ids.join(" "));
    }
    if item.announcement.is_none() && !payload.is_empty() {
        let shown = &payload[..payload.len().min(SHOWN_PAYLOAD_BYTES)];
        let more = if shown.len() < payload.len() {
            " ..."
        } else {
            ""
        };
        let _ = writeln!(text, "        payload {}{more}", hexadecimal(shown));
    }
}

fn count(count: i32, is_final: bool) -> String {
    let answer = if is_final { ", final" } else { "" };
    format!("count {count}{answer}")
}
