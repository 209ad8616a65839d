//! `isolane spy`: decodes RTPS traffic on the interfaces of this host, or in a capture.
//!
//! [`capture`] reads frames. [`network`] extracts UDP datagrams and reassembles IP fragments. [`message`] decodes the
//! submessages, and [`discovery`] adds topic and level. [`Filter`] selects datagrams. [`record`] formats them as text
//! and JSON, and counts them for the summary. Only `isolane_wire` decodes protocol headers. Lengths are checked before
//! use, and every table has a bound.
//!
//! `spy` decodes the samples of ShapeType that one datagram contains whole. It knows no other type of users. `--write`
//! saves the shown frames, for Wireshark.

mod capture;
mod discovery;
mod message;
pub(super) mod names;
mod network;
mod record;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::Args;
use isolane::{Interfaces, Participant};
use isolane_wire::guid::Guid;
use isolane_wire::level::Level;

use self::capture::{CaptureFile, CaptureWriter, Frame, Live};
use self::discovery::{Discovery, Traffic};
use self::message::{Item, Kind, Message};
use self::network::{Network, Other};
use self::record::{Record, Summary};
use super::participant::Until;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{JsonLines, count_of, print, tell};
use crate::settings::Settings;
use crate::values::{Destination, count, level, seconds, word};

/// Maximum wait for a frame, and interval at which `spy` runs its own participant.
const SLICE: Duration = Duration::from_millis(50);

/// Time within which participants usually answer the request for their topics.
const TOPICS_KNOWN_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct Spy {
    /// Read this capture, pcap or pcapng; `-` is standard input [default: listen on all interfaces, or those of
    /// --interface; needs CAP_NET_RAW]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Show only this topic; may be repeated
    ///
    /// When it listens, `spy` joins the domain (--domain, else 0), so that participants announce their topics again. If
    /// a capture lacks the announcement of a writer, the writer's samples are shown too.
    #[arg(long, value_name = "TOPIC")]
    topic: Vec<String>,
    /// Show only submessages from or to this GUID, participant or entity id; may be repeated
    ///
    /// A participant is its GUID prefix of 24 hex digits, an entity id has 8. A GUID has both, with a colon between
    /// them.
    #[arg(long, visible_alias = "guid", value_name = "GUID")]
    writer: Vec<EntityPattern>,
    /// Show only datagrams of these levels, 0 to 7, separated by commas
    #[arg(long, value_name = "LIST", value_parser = level)]
    level: Vec<Level>,
    /// Show only these submessages, separated by commas: data, data-frag, heartbeat, heartbeat-frag, acknack,
    /// nack-frag, gap, spdp, sedp, liveliness, header-extension, info, pad, unknown, malformed [default: all; in text,
    /// all but info and pad]
    #[arg(long, value_name = "LIST", value_parser = word::<Kind>())]
    kind: Vec<Kind>,
    /// Stop after showing this many datagrams [default: no limit]
    #[arg(long, value_name = "N", value_parser = count())]
    count: Option<u64>,
    /// Stop listening after this many seconds; not with FILE [default: no limit]
    #[arg(long, alias = "duration", value_name = "N", value_parser = seconds())]
    seconds: Option<Duration>,
    /// Write each datagram, and the summary at the end, as a line of JSON; `-` prints JSON instead of text
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
    /// Save the frames of all shown datagrams as pcapng, for Wireshark
    ///
    /// All IP fragments are saved too.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

impl Spy {
    /// Shows datagrams until the file ends, the count is reached, the time is over, or a signal arrives.
    pub(super) fn run(self, mut settings: Settings) -> Result<ExitCode, Failure> {
        let interfaces = match settings.network.interfaces.value.clone() {
            Interfaces::Named(names) => names,
            _ => Vec::new(),
        };
        self.check(!interfaces.is_empty())?;
        // The default is all domains, because an interface may carry the traffic of several domains.
        let filter = Filter {
            domain: settings.chosen_domain(),
            levels: self.level,
            topics: self.topic,
            entities: self.writer,
            kinds: self.kind,
        };
        settings.begin()?;
        let until = Until::new(self.seconds)?;
        let json = self.json.as_ref().map(JsonLines::new);
        let capture = self.write.as_deref().map(CaptureWriter::create);
        let mut decoder = Decoder {
            is_file: self.file.is_some(),
            with_context: filter.kinds.contains(&Kind::Info) || filter.kinds.contains(&Kind::Pad),
            with_text: self.json != Some(Destination::StandardOutput),
            filter,
            json: json.transpose()?,
            capture: capture.transpose()?,
            count: self.count.unwrap_or(u64::MAX),
            network: Network::default(),
            discovery: Discovery::default(),
            summary: Summary::default(),
            unknown_link: None,
        };
        let ended = match &self.file {
            Some(path) => decoder.read(path, &until),
            None => decoder.listen(Live::open(&interfaces)?, &interfaces, &until),
        };
        // The counts are printed even after a failure.
        let finished = decoder.finish();
        ended?;
        finished?;
        Ok(match until.interrupted() {
            true => ExitCode::Interrupted,
            false => ExitCode::Done,
        })
    }

    /// Refuses options that have no effect on a capture, and `--write -`.
    fn check(&self, has_interfaces: bool) -> Result<(), Failure> {
        if self.file.is_some() && has_interfaces {
            return Err(Failure::wrong_usage(
                "`spy FILE` takes no --interface",
                "the interfaces of a capture were chosen when it was made",
            ));
        }
        if self.file.is_some() && self.seconds.is_some() {
            return Err(Failure::wrong_usage(
                "`spy FILE` takes no --seconds",
                "a capture is read as fast as possible",
            )
            .with_remedy("--count N stops after N datagrams"));
        }
        if self.write.as_deref() == Some(Path::new("-")) {
            return Err(Failure::wrong_usage(
                "`--write` takes the name of a file",
                "standard output is used for the text",
            ));
        }
        Ok(())
    }
}

/// State of a run.
struct Decoder {
    filter: Filter,
    is_file: bool,
    /// True if the text includes INFO submessages and PAD.
    with_context: bool,
    with_text: bool,
    json: Option<JsonLines>,
    capture: Option<CaptureWriter>,
    /// Number of datagrams to show.
    count: u64,
    network: Network,
    discovery: Discovery,
    summary: Summary,
    /// Link type of the last frame whose link type is not decoded.
    unknown_link: Option<i32>,
}

impl Decoder {
    /// Reads a capture. If topics are selected, a first pass reads the announcements, which may follow the samples.
    /// Standard input can be read only once, so it has no first pass.
    fn read(&mut self, path: &Path, until: &Until) -> Result<(), Failure> {
        if !self.filter.topics.is_empty() && path.as_os_str() != "-" {
            let mut network = Network::default();
            CaptureFile::open(path)?.read(|frame| {
                if let Ok(datagram) = network.read(frame) {
                    Message::read(&datagram, &mut self.discovery);
                }
                Ok(!until.over())
            })?;
        }
        self.summary.is_truncated = CaptureFile::open(path)?.read(|frame| {
            self.take(frame)?;
            Ok(self.wants_more() && !until.over())
        })?;
        Ok(())
    }

    fn listen(
        &mut self,
        mut live: Live,
        interfaces: &[String],
        until: &Until,
    ) -> Result<(), Failure> {
        match interfaces {
            [] => tell("listening on all interfaces"),
            names => tell(format!("listening on {}", names.join(", "))),
        }
        let participant = match self.filter.topics.is_empty() {
            true => None,
            false => participant(self.filter.domain.unwrap_or_default(), interfaces),
        };
        let begin = Instant::now();
        let mut is_told = false;
        let mut last_run = begin;
        let ended = loop {
            if !self.wants_more() || until.over() {
                break Ok(());
            }
            match live.take(|frame| self.take(frame)) {
                Ok(true) => {}
                Ok(false) => live.wait(until.left(SLICE))?,
                Err(error) => break Err(error),
            }
            if last_run.elapsed() >= SLICE {
                last_run = Instant::now();
                if let Some(participant) = &participant {
                    participant.run_for(Duration::ZERO);
                }
                if !is_told && begin.elapsed() >= TOPICS_KNOWN_AFTER && self.summary.shown == 0 {
                    is_told = true;
                    self.tell_skipped();
                }
                // Reading the kernel's counter resets it. It has 32 bits, and is read here before it can overflow.
                live.dropped();
            }
        };
        self.summary.kernel_dropped = live.dropped();
        ended
    }

    /// Says that samples were skipped because their topic is unknown, and how to see them.
    fn tell_skipped(&self) {
        let skipped = self.summary.unannounced;
        if skipped > 0 {
            tell(format!(
                "no sample is shown yet: {} skipped, because no participant of domain {} has announced their topic. To \
                 do: name the domain with --domain N, or leave --topic out to see all samples",
                count_of(skipped, "sample"),
                self.filter.domain.unwrap_or_default()
            ));
        }
    }

    fn wants_more(&self) -> bool {
        self.summary.shown < self.count
    }

    /// Decodes, filters and shows one frame.
    fn take(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        self.summary.frames += 1;
        let datagram = match self.network.read(frame) {
            Ok(datagram) if !datagram.payload.starts_with(b"RTPS") => {
                self.summary.other_udp += 1;
                return Ok(());
            }
            Ok(datagram) => datagram,
            Err(other) => {
                self.summary.count_other(other);
                if let Other::UnknownLink(link) = other {
                    self.unknown_link = Some(link.0);
                }
                // An incomplete datagram cannot be filtered yet, so all its fragments are written.
                return match &mut self.capture {
                    Some(capture) if other == Other::Fragment => capture.write(frame),
                    _ => Ok(()),
                };
            }
        };
        let mut message = Message::read(&datagram, &mut self.discovery);
        self.summary.count(&datagram, &message);
        let filter = &self.filter;
        let unannounced = message
            .items
            .iter()
            .filter(|item| filter.is_unannounced(item));
        self.summary.unannounced += unannounced.count() as u64;
        message
            .items
            .retain(|item| filter.matches_item(item, self.is_file));
        let is_empty = filter.chooses_items() && message.items.is_empty();
        if is_empty || !filter.matches(&message) {
            self.summary.filtered += 1;
            return Ok(());
        }
        self.summary.shown += 1;
        let record = Record {
            frame,
            datagram: &datagram,
            message: &message,
        };
        if let Some(lines) = &mut self.json {
            lines.write(&record.json())?;
        }
        if self.with_text {
            print(&record.text(self.with_context))?;
        }
        match &mut self.capture {
            Some(capture) => capture.write(frame),
            None => Ok(()),
        }
    }

    /// Prints the counts, and completes the capture file and the JSON output.
    fn finish(mut self) -> Result<(), Failure> {
        self.summary.incomplete_packets = self.network.incomplete_packets();
        tell(self.summary.text());
        if let Some(link) = self.unknown_link {
            tell(format!(
                "unknown_link: frames of link type {link} are not decoded"
            ));
        }
        if self.summary.unannounced > 0 {
            tell(match self.is_file {
                true => {
                    "unannounced: DATA may be of another topic, because the capture has no announcements of the writers"
                }
                false => {
                    "unannounced: DATA is not shown, because no participant has announced the topic of the writers"
                }
            });
        }
        if self.summary.is_truncated {
            tell(
                "is_truncated: the capture ends in the middle of a frame, because it was stopped or cut",
            );
        }
        if let Some(capture) = &mut self.capture {
            capture.finish()?;
        }
        match &mut self.json {
            Some(lines) => lines.write(&self.summary.json()).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// Creates a participant, so that other participants send it their announcements again. `spy` captures these, and so
/// learns the topics of writers that were announced before `spy` started.
fn participant(domain: u32, interfaces: &[String]) -> Option<Participant> {
    let mut builder = Participant::builder(domain).name("isolane spy");
    if !interfaces.is_empty() {
        builder = builder.interfaces(Interfaces::Named(interfaces.to_vec()));
    }
    let built = builder.build();
    match &built {
        Ok(_) => tell(format!(
            "asking the participants of domain {domain} for their topics: samples of writers that were announced \
             before are shown once these participants have answered"
        )),
        Err(why) => tell(format!(
            "note: cannot ask the participants of domain {domain} for their topics: {why}"
        )),
    }
    built.ok()
}

/// Conditions of the command line. An empty list matches everything.
#[derive(Clone, Debug, Default)]
struct Filter {
    domain: Option<u32>,
    levels: Vec<Level>,
    topics: Vec<String>,
    entities: Vec<EntityPattern>,
    kinds: Vec<Kind>,
}

impl Filter {
    /// Returns whether the message has the chosen domain and one of the chosen levels.
    fn matches(&self, message: &Message) -> bool {
        let is_of_level = |level: &Level| message.traffic == Some(Traffic::Level(*level));
        self.domain
            .is_none_or(|domain| message.domain == Some(domain))
            && (self.levels.is_empty() || self.levels.iter().any(is_of_level))
    }

    /// Returns whether there are conditions on single submessages.
    fn chooses_items(&self) -> bool {
        !(self.topics.is_empty() && self.entities.is_empty() && self.kinds.is_empty())
    }

    /// Returns whether topics are chosen and the topic of this sample is unknown, because its writer was not announced.
    fn is_unannounced(&self, item: &Item) -> bool {
        !self.topics.is_empty()
            && item.kind == Kind::Data
            && item
                .writer
                .is_some_and(|writer| !writer.entity.is_builtin())
            && item.topic.is_none()
    }

    /// Returns whether a submessage has a chosen topic, entity and kind. With `shows_unannounced`, a sample of an
    /// unannounced writer matches any topic.
    fn matches_item(&self, item: &Item, shows_unannounced: bool) -> bool {
        let is_topic = |topic: &String| item.topic.as_ref() == Some(topic);
        let is_entity = |pattern: &EntityPattern| {
            let mut endpoints = [item.writer, item.reader].into_iter().flatten();
            endpoints.any(|guid| pattern.matches(guid))
        };
        (self.kinds.is_empty() || self.kinds.contains(&item.kind))
            && (self.topics.is_empty()
                || self.topics.iter().any(is_topic)
                || (shows_unannounced && self.is_unannounced(item)))
            && (self.entities.is_empty() || self.entities.iter().any(is_entity))
    }
}

/// Text of a GUID, of a GUID prefix, or of an entity id in any participant, in the format of [`Guid`].
#[derive(Clone, Debug)]
struct EntityPattern(String);

impl EntityPattern {
    fn matches(&self, guid: Guid) -> bool {
        let guid = guid.to_string();
        guid == self.0 || guid.split(':').any(|part| part == self.0)
    }
}

impl fmt::Display for EntityPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for EntityPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_hexadecimal = |part: &str| part.chars().all(|c| c.is_ascii_hexdigit());
        let lengths: Vec<usize> = text.split(':').map(str::len).collect();
        match &lengths[..] {
            [24] | [8] | [24, 8] if text.split(':').all(is_hexadecimal) => {
                Ok(Self(text.to_ascii_lowercase()))
            }
            _ => Err(String::from(
                "write hexadecimal digits as `spy` prints them: a participant (24), an entity (8), or both with a colon \
                 between them",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::guid::{EntityId, GuidPrefix};

    use super::*;

    #[test]
    fn entities_are_written_as_they_are_printed() {
        let guid = Guid {
            prefix: GuidPrefix([0xab; 12]),
            entity: EntityId([0, 0, 1, 2]),
        };
        for text in [
            guid.to_string(),
            guid.prefix.to_string(),
            guid.entity.to_string(),
        ] {
            let pattern: EntityPattern = text.parse().expect(&text);
            assert!(pattern.matches(guid), "{text}");
            assert_eq!(pattern.to_string(), text);
            assert!(!pattern.matches(Guid::UNKNOWN), "{text}");
        }
        for text in ["", "12", "0000010", "000001zz", "ä"] {
            assert!(text.parse::<EntityPattern>().is_err(), "{text}");
        }
    }
}
