//! `isolane spy`: what is on the wire, decoded; from the interfaces of this host, or from a capture.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use isolane::{Interfaces, Participant};

use super::participant::Until;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::ASKED_DOMAINS;
use crate::output::{JsonLines, print, tell};
use crate::settings::{SpySettings, SpySource};
use crate::spy::file::{CaptureFile, End};
use crate::spy::filter::Filter;
use crate::spy::frame::Frame;
use crate::spy::knowledge::Knowledge;
use crate::spy::live::Live;
use crate::spy::message::{Kind, Message};
use crate::spy::network::{Datagram, Network, Other};
use crate::spy::record::{Record, Style};
use crate::spy::summary::Summary;
use crate::spy::write::CaptureWriter;
use crate::values::Destination;

/// How long it waits for a frame before it looks whether to stop.
const SLICE: Duration = Duration::from_millis(100);

/// Shows datagrams until the file, the count, the time or the person says stop.
pub(crate) fn run(settings: SpySettings) -> Result<ExitCode, Failure> {
    let until = Until::new(settings.run_for.value)?;
    let mut spy = Spy::new(&settings)?;
    let ended = match &settings.source {
        SpySource::File(path) => read(&mut spy, path, &until),
        SpySource::Live(interfaces) => {
            let live = Live::open(&interfaces.value)?;
            listen(&mut spy, live, &until, &interfaces.value)
        }
    };
    // What was counted is told also when listening came to an end before its time.
    let told = spy.finish();
    let code = ended?;
    told.map(|()| code)
}

/// Reads a capture; twice where topics are wanted: a writer may be announced behind its first samples. Standard input
/// is read once.
fn read(spy: &mut Spy<'_>, path: &Path, until: &Until) -> Result<ExitCode, Failure> {
    if !spy.filter.topics.is_empty() && path.as_os_str() != "-" {
        let (mut network, mut knowledge) = (Network::default(), Knowledge::default());
        CaptureFile::open(path)?.read(|frame| {
            if let Ok(datagram) = network.read(&frame) {
                let message = Message::read(&datagram.payload, datagram.is_cut());
                let items = message.iter().flat_map(|message| &message.items);
                items.for_each(|item| knowledge.learn(item));
            }
            Ok(!until.over())
        })?;
        spy.knowledge.learn_endpoints_of(knowledge);
    }
    let end = CaptureFile::open(path)?
        .read(|frame| spy.take(&frame).map(|()| spy.wants_more() && !until.over()))?;
    spy.summary.broken_off = end == End::BrokenOff;
    Ok(match until.interrupted() {
        true => ExitCode::Interrupted,
        false => ExitCode::Done,
    })
}

/// Participants that ask for the topics of writers that were announced before `spy` began: discovery sends the
/// announcements again, and `spy` sees them pass.
struct Asking<'a> {
    interfaces: &'a [String],
    asked: Vec<u32>,
    /// Each with a participant.
    threads: Vec<JoinHandle<()>>,
    ended: Arc<AtomicBool>,
}

impl<'a> Asking<'a> {
    fn new(interfaces: &'a [String]) -> Self {
        Self {
            interfaces,
            asked: Vec::new(),
            threads: Vec::new(),
            ended: Arc::default(),
        }
    }

    /// Asks in this domain, if that is not done yet. The participant lives in a thread of its own until `spy` ends.
    fn ask(&mut self, domain: u32) {
        if self.asked.contains(&domain) || self.asked.len() == ASKED_DOMAINS {
            return;
        }
        let interfaces = self.interfaces.to_vec();
        let ended = Arc::clone(&self.ended);
        let asking = thread::Builder::new().name(format!("ask {domain}"));
        let (sender, made) = mpsc::channel();
        let begun = asking.spawn(move || {
            let mut builder = Participant::builder(domain).name("isolane spy");
            if !interfaces.is_empty() {
                builder = builder.interfaces(Interfaces::Named(interfaces));
            }
            let participant = match builder.build() {
                Ok(participant) => participant,
                Err(error) => return sender.send(Err(error.to_string())).unwrap_or_default(),
            };
            // Who waits for it is there until it comes.
            let _ = sender.send(Ok(()));
            while !ended.load(Ordering::Relaxed) {
                participant.run_for(SLICE);
            }
        });
        let made = match begun {
            Ok(thread) => {
                self.threads.push(thread);
                made.recv()
                    .unwrap_or_else(|_| Err(String::from("it ended")))
            }
            Err(error) => Err(error.to_string()),
        };
        match &made {
            Ok(()) => tell(format!(
                "the participants of domain {domain} are asked for their topics: samples of writers that were announced \
                 before are shown once they have answered"
            )),
            Err(why) => tell(format!(
                "note: the participants of domain {domain} cannot be asked for their topics: {why}"
            )),
        }
        self.asked.push(domain);
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Participants leave with a farewell, after a slice at most.
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn listen(
    spy: &mut Spy<'_>,
    mut live: Live,
    until: &Until,
    interfaces: &[String],
) -> Result<ExitCode, Failure> {
    let which = match interfaces {
        [] => String::from("all interfaces"),
        names => names.join(", "),
    };
    tell(format!("listening on {which}"));
    let mut asking = Asking::new(interfaces);
    if !spy.filter.topics.is_empty() {
        asking.ask(spy.filter.domain.unwrap_or_default());
    }
    let mut counted = Instant::now();
    let ended = loop {
        if !spy.wants_more() {
            break Ok(ExitCode::Done);
        }
        if until.over() {
            break Ok(match until.interrupted() {
                true => ExitCode::Interrupted,
                false => ExitCode::Done,
            });
        }
        // The kernel's counter is of 32 bits and starts again when it is read.
        if counted.elapsed() > Duration::from_secs(1) {
            counted = Instant::now();
            live.dropped();
        }
        let taken = live.take(|frame| spy.take(&frame));
        let waited = match taken {
            Ok(true) => Ok(()),
            Ok(false) => live.wait(until.left(SLICE)),
            Err(error) => Err(error),
        };
        if let Err(error) = waited {
            break Err(error);
        }
        if let Some(domain) = spy.unannounced_in.take() {
            asking.ask(domain);
        }
    };
    spy.summary.kernel_dropped = live.dropped();
    ended
}

/// What takes frames and shows them.
struct Spy<'a> {
    filter: &'a Filter,
    style: Style,
    text: bool,
    json: Option<JsonLines>,
    capture: Option<CaptureWriter>,
    /// Datagrams still to show.
    left: u64,
    network: Network,
    knowledge: Knowledge,
    summary: Summary,
    /// A capture: what it does not announce stays unknown.
    is_file: bool,
    /// The domain of a sample that is not shown for want of its topic.
    unannounced_in: Option<u32>,
}

impl<'a> Spy<'a> {
    fn new(settings: &'a SpySettings) -> Result<Self, Failure> {
        let one_interface = match &settings.source {
            SpySource::File(_) => false,
            SpySource::Live(interfaces) => interfaces.value.len() == 1,
        };
        Ok(Self {
            filter: &settings.filter,
            style: Style {
                context: [Kind::Info, Kind::Pad]
                    .iter()
                    .any(|kind| settings.filter.kinds.contains(kind)),
                interfaces: !one_interface,
            },
            text: settings.json != Some(Destination::StandardOutput),
            json: settings.json.as_ref().map(JsonLines::new).transpose()?,
            capture: settings
                .write
                .as_deref()
                .map(CaptureWriter::create)
                .transpose()?,
            left: settings.count.value.unwrap_or(u64::MAX),
            network: Network::default(),
            knowledge: Knowledge::default(),
            is_file: matches!(settings.source, SpySource::File(_)),
            summary: Summary {
                is_file: matches!(settings.source, SpySource::File(_)),
                ..Summary::default()
            },
            unannounced_in: None,
        })
    }

    fn wants_more(&self) -> bool {
        self.left > 0
    }

    /// Takes one frame through all stages.
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
                // What it belongs to is not known yet.
                let capture = self.capture.as_mut().filter(|_| other == Other::Fragment);
                return capture.map_or(Ok(()), |capture| capture.write(frame));
            }
        };
        self.summary.count_datagram(&datagram);
        self.take_datagram(frame, &datagram)
    }

    fn take_datagram(&mut self, frame: &Frame<'_>, datagram: &Datagram<'_>) -> Result<(), Failure> {
        let (header, items) = match Message::read(&datagram.payload, datagram.is_cut()) {
            Ok(message) => (Ok(message.header), message.items),
            Err(error) => {
                self.summary.malformed_datagrams += 1;
                (Err(error), Vec::new())
            }
        };
        for item in &items {
            self.summary.count_item(item);
            self.knowledge.learn(item);
        }
        let prefix = header.map(|header| header.prefix).unwrap_or_default();
        let domain = self.knowledge.domain_of(prefix, datagram);
        let traffic = self.knowledge.traffic_of(datagram, &items);
        let shown: Vec<_> = items
            .iter()
            .filter(|item| self.filter.wants(item, &self.knowledge, self.is_file))
            .collect();
        let unannounced = items
            .iter()
            .filter(|item| self.filter.misses_topic(item, &self.knowledge))
            .count() as u64;
        if unannounced > 0 {
            self.unannounced_in = domain;
        }
        self.summary.unannounced += unannounced;
        let nothing_chosen = self.filter.chooses_items() && shown.is_empty();
        if nothing_chosen || !self.filter.wants_datagram(domain, traffic) {
            self.summary.filtered += 1;
            return Ok(());
        }
        self.left -= 1;
        self.summary.shown += 1;
        let record = Record {
            frame,
            datagram,
            domain,
            traffic,
            header,
            items: shown,
            knowledge: &self.knowledge,
        };
        if let Some(lines) = &mut self.json {
            lines.write(&record.json())?;
        }
        if self.text {
            print(&record.text(self.style))?;
        }
        if let Some(capture) = &mut self.capture {
            capture.write(frame)?;
        }
        Ok(())
    }

    /// Says what was counted.
    fn finish(mut self) -> Result<(), Failure> {
        self.summary.incomplete_packets = self.network.incomplete_packets();
        tell(self.summary.text());
        if let Some(capture) = &mut self.capture {
            capture.finish()?;
        }
        match &mut self.json {
            Some(lines) => lines.write(&self.summary.json()).map(|_| ()),
            None => Ok(()),
        }
    }
}
