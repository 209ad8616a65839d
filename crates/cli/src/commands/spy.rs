//! `isolane spy`: RTPS traffic of the interfaces of this host or of a capture, decoded.

use std::path::Path;
use std::time::{Duration, Instant};

use isolane::{Interfaces, Participant};

use super::participant::Until;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{JsonLines, print, tell};
use crate::settings::{SpySettings, SpySource};
use crate::spy::capture::{CaptureFile, CaptureWriter, Frame, Live};
use crate::spy::discovery::Discovery;
use crate::spy::filter::Filter;
use crate::spy::message::{Kind, Message};
use crate::spy::network::{Network, Other};
use crate::spy::record::{Record, Summary};
use crate::values::Destination;

/// Longest wait for a frame: then the participant runs, and the end is checked.
const SLICE: Duration = Duration::from_millis(50);

/// Shows datagrams until the end of the file, the count, the time or a signal.
pub(crate) fn run(settings: SpySettings) -> Result<ExitCode, Failure> {
    let until = Until::new(settings.run_for.value)?;
    let mut spy = Spy::new(&settings)?;
    let ended = match &settings.source {
        SpySource::File(path) => spy.read(path, &until),
        SpySource::Live(interfaces) => {
            let live = Live::open(&interfaces.value)?;
            spy.listen(live, &interfaces.value, &until)
        }
    };
    // The counts are printed after a failure, too.
    let finished = spy.finish();
    ended?;
    finished?;
    Ok(match until.interrupted() {
        true => ExitCode::Interrupted,
        false => ExitCode::Done,
    })
}

/// State of a run.
struct Spy<'a> {
    filter: &'a Filter,
    is_file: bool,
    /// True when the text shows INFO submessages and PAD.
    with_context: bool,
    with_text: bool,
    json: Option<JsonLines>,
    capture: Option<CaptureWriter>,
    /// Number of datagrams to show.
    count: u64,
    network: Network,
    discovery: Discovery,
    summary: Summary,
    /// Last link type that is not decoded.
    unknown_link: Option<i32>,
}

impl<'a> Spy<'a> {
    fn new(settings: &'a SpySettings) -> Result<Self, Failure> {
        let kinds = &settings.filter.kinds;
        let json = settings.json.as_ref().map(JsonLines::new);
        let capture = settings.write.as_deref().map(CaptureWriter::create);
        Ok(Self {
            filter: &settings.filter,
            is_file: matches!(settings.source, SpySource::File(_)),
            with_context: kinds.contains(&Kind::Info) || kinds.contains(&Kind::Pad),
            with_text: settings.json != Some(Destination::StandardOutput),
            json: json.transpose()?,
            capture: capture.transpose()?,
            count: settings.count.value.unwrap_or(u64::MAX),
            network: Network::default(),
            discovery: Discovery::default(),
            summary: Summary::default(),
            unknown_link: None,
        })
    }

    /// Reads a capture. With topics, a first pass reads announcements: they may follow the samples. Standard input is read
    /// once.
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
        self.summary.broken_off = CaptureFile::open(path)?.read(|frame| {
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
        let mut last_run = Instant::now();
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
                // The kernel's counter starts again when it is read, and has 32 bits.
                live.dropped();
            }
        };
        self.summary.kernel_dropped = live.dropped();
        ended
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
                // The datagram of a fragment is not known yet.
                return match &mut self.capture {
                    Some(capture) if other == Other::Fragment => capture.write(frame),
                    _ => Ok(()),
                };
            }
        };
        let mut message = Message::read(&datagram, &mut self.discovery);
        self.summary.count(&datagram, &message);
        let filter = self.filter;
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

    /// Prints the counts.
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
                    "unannounced: DATA may be of another topic, as the capture does not announce the writers"
                }
                false => {
                    "unannounced: DATA is not shown, as no participant has announced the topic of the writers"
                }
            });
        }
        if self.summary.broken_off {
            tell("broken_off: the capture ends in the middle of a frame, as it was stopped or cut");
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

/// Creates a participant that asks for the topics of writers that were announced before `spy` started: discovery sends the
/// announcements again, and `spy` captures them.
fn participant(domain: u32, interfaces: &[String]) -> Option<Participant> {
    let mut builder = Participant::builder(domain).name("isolane spy");
    if !interfaces.is_empty() {
        builder = builder.interfaces(Interfaces::Named(interfaces.to_vec()));
    }
    let built = builder.build();
    match &built {
        Ok(_) => tell(format!(
            "the participants of domain {domain} are asked for their topics: samples of writers that were announced before \
             are shown once they have answered"
        )),
        Err(why) => tell(format!(
            "note: the participants of domain {domain} cannot be asked for their topics: {why}"
        )),
    }
    built.ok()
}
