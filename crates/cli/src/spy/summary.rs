//! What was counted on the way, shown at the end: nothing is left out without a number.

use std::collections::BTreeMap;

use isolane_model::Word;
use serde_json::{Map, Value, json};

use super::message::{Announcement, Item, Kind};
use super::network::{Datagram, Other};
use crate::limits::UNKNOWN_SUBMESSAGES;
use crate::output::count_of;

/// Counts of one run.
#[derive(Default)]
pub(crate) struct Summary {
    pub(crate) frames: u64,
    /// Datagrams that begin with `RTPS`.
    pub(crate) datagrams: u64,
    pub(crate) shown: u64,
    /// RTPS datagrams of which nothing was wanted.
    pub(crate) filtered: u64,
    /// DATA whose topic is not known, where one is wanted: its writer was announced before the first frame.
    pub(crate) unannounced: u64,
    /// The frames are of a capture: such DATA is shown.
    pub(crate) is_file: bool,
    pub(crate) malformed_datagrams: u64,
    pub(crate) malformed_frames: u64,
    /// DATA of discovery that says nothing that can be understood.
    pub(crate) malformed_announcements: u64,
    pub(crate) cut_datagrams: u64,
    pub(crate) other_udp: u64,
    pub(crate) ipv6: u64,
    pub(crate) not_udp: u64,
    pub(crate) fragments: u64,
    pub(crate) incomplete_packets: u64,
    /// Frames of a link that is not decoded, by its number.
    pub(crate) unknown_links: BTreeMap<i32, u64>,
    pub(crate) submessages: BTreeMap<Kind, u64>,
    /// Unknown submessages, by identifier.
    pub(crate) unknown_submessages: BTreeMap<u8, u64>,
    /// Frames the kernel had no room for; `None` for a file, which does not say.
    pub(crate) kernel_dropped: Option<u64>,
    pub(crate) broken_off: bool,
}

impl Summary {
    pub(crate) fn count_other(&mut self, other: Other) {
        match other {
            Other::Link(number) => *self.unknown_links.entry(number).or_default() += 1,
            Other::Ipv6 => self.ipv6 += 1,
            Other::NotUdp => self.not_udp += 1,
            Other::Fragment => self.fragments += 1,
            Other::Malformed(_) => self.malformed_frames += 1,
        }
    }

    pub(crate) fn count_datagram(&mut self, datagram: &Datagram<'_>) {
        self.datagrams += 1;
        // The packet that made it whole was a fragment too.
        self.fragments += u64::from(datagram.packets > 1);
        self.cut_datagrams += u64::from(datagram.is_cut());
    }

    pub(crate) fn count_item(&mut self, item: &Item<'_>) {
        if item.is_cut && item.submessage.is_err() {
            return;
        }
        *self.submessages.entry(item.kind).or_default() += 1;
        if let Some(Announcement::Malformed(_)) = item.announcement {
            self.malformed_announcements += 1;
        }
        if let Ok(isolane_wire::rtps::Submessage::Other { id, .. }) = item.submessage {
            *self.unknown_submessages.entry(id).or_default() += 1;
        }
    }

    fn malformed_submessages(&self) -> u64 {
        self.submessages
            .get(&Kind::Malformed)
            .copied()
            .unwrap_or_default()
    }

    /// The summary for people.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![format!(
            "{}, {} of RTPS, {} shown{}",
            count_of(self.frames, "frame"),
            count_of(self.datagrams, "datagram"),
            self.shown,
            nonzero(self.filtered, |n| format!(", {n} filtered out")),
        )];
        let submessages: Vec<String> = self
            .submessages
            .iter()
            .map(|(kind, count)| format!("{count} {}", kind.word()))
            .collect();
        if !submessages.is_empty() {
            lines.push(format!("submessages: {}", submessages.join(", ")));
        }
        if !self.unknown_submessages.is_empty() {
            let ids = self.unknown_submessages.iter().take(UNKNOWN_SUBMESSAGES);
            let ids: Vec<String> = ids
                .map(|(id, count)| format!("{count} of {id:#04x}"))
                .collect();
            lines.push(format!("unknown submessages: {}", ids.join(", ")));
        }
        if self.unannounced > 0 {
            lines.push(match self.is_file {
                true => format!(
                    "{} data may be of another topic: the capture does not announce their writers; they are shown",
                    self.unannounced
                ),
                false => format!(
                    "{} DATA not shown: the topic of their writers is unknown, and no participant answered",
                    self.unannounced
                ),
            });
        }
        let malformed = listed(&[
            (self.malformed_frames, "frames"),
            (self.malformed_datagrams, "datagrams"),
            (self.malformed_submessages(), "submessages"),
            (self.malformed_announcements, "announcements"),
        ]);
        lines.push(match malformed.as_str() {
            "" => String::from("malformed: none"),
            malformed => format!("malformed: {malformed}"),
        });
        let others = listed(&[
            (self.other_udp, "other UDP"),
            (self.not_udp, "not UDP"),
            (self.ipv6, "IPv6 (not decoded)"),
            (self.fragments, "IP fragments"),
            (self.incomplete_packets, "fragmented packets never whole"),
            (self.cut_datagrams, "datagrams cut by the capture"),
        ]);
        if !others.is_empty() {
            lines.push(format!("beside that: {others}"));
        }
        for (link, count) in &self.unknown_links {
            lines.push(format!(
                "{count} frames of link type {link}, which is not decoded"
            ));
        }
        if let Some(dropped) = self.kernel_dropped {
            lines.push(format!("dropped by the kernel: {dropped}"));
        }
        if self.broken_off {
            lines.push(String::from(
                "the capture ends in the middle of a frame: it was stopped or cut",
            ));
        }
        lines.join("\n")
    }

    /// The last line of `--json`.
    pub(crate) fn json(&self) -> Value {
        let submessages: Map<String, Value> = Kind::WORDS
            .iter()
            .map(|(word, kind)| {
                let count = self.submessages.get(kind).copied().unwrap_or_default();
                (String::from(*word), count.into())
            })
            .collect();
        let unknown: Map<String, Value> = self
            .unknown_submessages
            .iter()
            .map(|(id, count)| (format!("{id:#04x}"), (*count).into()))
            .collect();
        let links: u64 = self.unknown_links.values().sum();
        json!({
            "schema": "isolane/spy/2",
            "record": "summary",
            "frames": self.frames,
            "datagrams": self.datagrams,
            "shown": self.shown,
            "filtered": self.filtered,
            "unannounced": self.unannounced,
            "submessages": submessages,
            "unknown_submessages": unknown,
            "malformed": {
                "frames": self.malformed_frames,
                "datagrams": self.malformed_datagrams,
                "submessages": self.malformed_submessages(),
                "announcements": self.malformed_announcements,
            },
            "other_udp": self.other_udp,
            "not_udp": self.not_udp,
            "ipv6": self.ipv6,
            "unknown_link": links,
            "ip_fragments": self.fragments,
            "incomplete_packets": self.incomplete_packets,
            "cut_datagrams": self.cut_datagrams,
            "kernel_dropped": self.kernel_dropped,
            "broken_off": self.broken_off,
        })
    }
}

fn nonzero(count: u64, text: impl FnOnce(u64) -> String) -> String {
    if count == 0 {
        String::new()
    } else {
        text(count)
    }
}

/// Counts with their names, those that are zero left out.
fn listed(counts: &[(u64, &str)]) -> String {
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    counts.join(", ")
}
