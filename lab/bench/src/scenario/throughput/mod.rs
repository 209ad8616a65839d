//! Throughput: one process writes as fast as possible, another counts the samples of its callback.
//!
//! With best effort every `write` sends a datagram at once, and losses are final. With reliable KEEP_ALL a full history
//! blocks the writer until the reader acknowledges. The rate is measured at the reader, from its first to its last
//! sample.
//!
//! Both ends are ordinary threads on separate cores: a writer that never sleeps must not run under SCHED_FIFO. They run
//! on two hosts joined by one veth pair, for sockets and lanes alike, or on 127.0.0.1 where the machine allows no
//! namespaces. There is no cable, because a process that relays each frame would be the bottleneck.

mod ends;
mod load;

use std::thread;
use std::time::Duration;

use isolane::Qos;
use isolane_rtps::limits::{BATCH_BYTES, MAX_DATA_PAYLOAD_BYTES};
use serde::{Deserialize, Serialize};

use super::end::measured_qos;
use super::flow::Flow;
use super::program::{self, PROGRAM, Printed};
use super::transport::{BY_LANE, LEAST_BY_LANE, Transport};
use super::{ConfigError, Content, RttMessage, ScenarioError, Site, Waiting};
use crate::child::{ChildError, Program, Role, Running};
use crate::clock::NANOS_PER_SECOND;
use crate::experiment::System;
use crate::limits::{MAX_RTT_MESSAGE_BYTES, MAX_SAMPLES};
use crate::namespace::{Host, TestHosts};
use crate::process::{Cores, Note, Usage};
use crate::record::Rounds;
use crate::report::{Run, RunSettings, Stream};

pub use ends::{ReaderReport, WriterReport, run_reader, run_writer};
pub(super) use load::Load;

/// Topic from host A to host B.
pub const TOPIC: &str = "Throughput";
/// Topic from host B to host A.
pub const TOPIC_BACK: &str = "ThroughputBack";

/// Reliability of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// Lost samples are not retransmitted.
    BestEffort,
    /// Lost samples are retransmitted, and a full history blocks the writer.
    Reliable,
}

/// Configuration of an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndConfig {
    /// Location of the end.
    pub site: Site,
    /// CPU core of the end.
    pub core: Option<usize>,
    /// Transport of the end's datagrams.
    pub transport: Transport,
    /// Configuration of the run.
    pub run: Config,
    /// True for an end of the stream from host B to host A.
    pub is_back: bool,
}

impl EndConfig {
    fn topic(&self) -> &'static str {
        if self.is_back { TOPIC_BACK } else { TOPIC }
    }

    fn qos(&self) -> Qos {
        let run = &self.run;
        measured_qos(run.reliability, run.max_samples, run.payload_bytes)
            .latency_budget(Duration::from_micros(run.latency_budget_us))
    }
}

/// Time for frames in flight to arrive after the writer has ended.
pub(super) const DRAIN: Duration = Duration::from_millis(300);

/// Descriptions of the path between two hosts.
const BY_SOCKETS: &str = "kernel sockets of two hosts joined by a veth pair, without a cable";
const BY_LANES: &str = "AF_XDP lanes of two hosts joined by a veth pair, without a cable";
const BY_PROGRAM: &str = "two hosts joined by a veth pair, without a cable";
const TOO_LARGE: &str =
    "kernel sockets of two hosts joined by a veth pair: the samples do not fit a lane";

/// Configuration of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Reliability of the topic.
    pub reliability: Reliability,
    /// LATENCY_BUDGET of the topic, in microseconds; 0 sends every sample at once.
    pub latency_budget_us: u64,
    /// Serialised size of the message, in bytes.
    pub payload_bytes: u32,
    /// Depth of the history and of the reader's cache, in samples.
    pub max_samples: u16,
    /// Samples per second; `None` for as many as possible.
    pub rate_hz: Option<u32>,
    /// Way in which both ends wait for work.
    pub waiting: Waiting,
    /// Padding of messages.
    pub content: Content,
    /// True for a second stream at the same time, from host B to host A.
    pub both_directions: bool,
    /// Number of readers.
    pub readers: u8,
    /// True for a loop that never sleeps on each core.
    pub busy: bool,
    /// Writing time in seconds.
    pub seconds: u32,
    /// Cores of the writer (`hosts`) and the readers (`cable`).
    pub cores: Cores,
}

impl Config {
    /// Checks whether the run can be measured.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.rate_hz == Some(0) {
            return Err(ConfigError::Samples {
                samples: 0,
                most: MAX_SAMPLES,
            });
        }
        RttMessage::of_size(self.payload_bytes).map(drop)
    }
}

/// Measures between the two hosts of a testbed without a cable; the kernel passes frames directly to the other device.
/// Over lanes, the result states the number of datagrams that the lane received. If samples that fit the lane did not
/// use it, the run is invalid. Two streams at the same time have one result.
pub fn run_between_hosts(
    testbed: &TestHosts,
    program: &Program,
    transport: Transport,
    config: &Config,
) -> Result<Run, ScenarioError> {
    let start = |is_back| {
        let [from, to] = match is_back {
            false => [Host::A, Host::B],
            true => [Host::B, Host::A],
        };
        let spawn = |role: Role| {
            let host = match role {
                Role::ThroughputWriter(_) => from,
                _ => to,
            };
            Running::spawn(testbed, host, program, &role)
        };
        Ends::start(
            config,
            [from, to].map(Site::Host),
            transport,
            is_back,
            &spawn,
        )
    };
    let mut there = start(false)?;
    let mut back = config.both_directions.then(|| start(true)).transpose()?;
    let load = Load::begin(config);
    for ends in [&mut there].into_iter().chain(&mut back) {
        ends.go()?;
    }
    let there = there.finish(config)?;
    let back = back.map(|ends| ends.finish(config)).transpose()?;
    let mut run = run_of_hosts(testbed, transport, config, there);
    if let Some(back) = back {
        run = with_back(run, run_of_hosts(testbed, transport, config, back));
    }
    load.end(&mut run);
    Ok(run)
}

fn run_of_hosts(
    testbed: &TestHosts,
    transport: Transport,
    config: &Config,
    mut reports: Reports,
) -> Run {
    reports.notes = [testbed.notes(), &reports.notes].concat();
    let of_lane = |reader: &ReaderReport| reader.counts.lanes.counts.get(BY_LANE).copied();
    let by_lane: u64 = reports.readers.iter().filter_map(of_lane).sum();
    let received: u64 = reports.readers.iter().map(|it| it.counts.received).sum();
    let fits = config.payload_bytes <= MAX_RTT_MESSAGE_BYTES;
    let (datapath, link) = match transport {
        Transport::Udp => ("udp", BY_SOCKETS),
        Transport::Xdp(_) if fits => ("xdp", BY_LANES),
        Transport::Xdp(_) => ("xdp", TOO_LARGE),
    };
    let mut run = config.run(datapath, link, reports);
    if transport == Transport::Udp {
        return run;
    }
    if let Some(stream) = &mut run.stream {
        stream.received_by_lane = Some(by_lane);
    }
    if fits && (by_lane as f64) < received as f64 * LEAST_BY_LANE {
        run.invalid.get_or_insert_with(|| {
            format!(
                "only {by_lane} of {received} datagrams came by their lane: these are numbers of sockets"
            )
        });
    }
    run
}

/// Result of two streams at the same time: counts and rates are sums, resources those of the stream from A to B.
fn with_back(mut there: Run, mut back: Run) -> Run {
    there.samples += back.samples;
    there.lost += back.lost;
    let name = |direction| move |why| format!("from {direction}: {why}");
    there.invalid = there.invalid.map(name("A to B"));
    there.invalid = there.invalid.or(back.invalid.map(name("B to A")));
    for flow in &mut back.flows {
        TOPIC_BACK.clone_into(&mut flow.topic);
    }
    there.flows.append(&mut back.flows);
    there.notes.append(&mut back.notes);
    if let (Some(there), Some(back)) = (&mut there.stream, back.stream) {
        let count = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
        let rate = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        *there = Stream {
            link: format!("{}; in both directions", there.link),
            samples_written: there.samples_written + back.samples_written,
            samples_delivered: there.samples_delivered + back.samples_delivered,
            samples_lost: there.samples_lost + back.samples_lost,
            samples_per_s: rate(there.samples_per_s, back.samples_per_s),
            mbit_per_s: rate(there.mbit_per_s, back.mbit_per_s),
            refused: count(there.refused, back.refused),
            writer_waits: count(there.writer_waits, back.writer_waits),
            repaired: count(there.repaired, back.repaired),
            receive_dropped: count(there.receive_dropped, back.receive_dropped),
            received_by_lane: count(there.received_by_lane, back.received_by_lane),
            segmented: count(there.segmented, back.segmented),
            coalesced: count(there.coalesced, back.coalesced),
            stolen: None,
            writer: there.writer,
            reader: there.reader,
        };
    }
    there
}

/// Measures between two processes of this machine, by unicast on 127.0.0.1.
pub fn run_over_loopback(program: &Program, config: &Config) -> Result<Run, ScenarioError> {
    let spawn = |role: Role| Running::spawn_here(program, &role);
    let sites = [Site::loopback(); 2];
    let mut ends = Ends::start(config, sites, Transport::Udp, false, &spawn)?;
    let load = Load::begin(config);
    ends.go()?;
    let link = "127.0.0.1 of this machine";
    let mut run = config.run("udp-loopback", link, ends.finish(config)?);
    load.end(&mut run);
    Ok(run)
}

/// Measures a system under test between the two hosts of a testbed without a cable.
pub fn run_system(
    testbed: &TestHosts,
    system: &System,
    config: &Config,
) -> Result<Run, ScenarioError> {
    let part = "the system under test";
    let ends = program::stream(testbed, system, config);
    let (writer, readers, load) = ends.map_err(ScenarioError::of(part))?;
    let run = config.run_of_system(&writer, &readers);
    let mut run = run.map_err(ScenarioError::of(part))?;
    run.notes = testbed.notes().to_vec();
    load.end(&mut run);
    Ok(run)
}

/// Ends of a stream.
struct Ends {
    writer: Running,
    readers: Vec<Running>,
}

/// Reports of the ends, and the notes of their start.
struct Reports {
    writer: WriterReport,
    readers: Vec<ReaderReport>,
    notes: Vec<Note>,
}

impl Ends {
    /// Starts the ends, and waits until they are matched.
    fn start(
        config: &Config,
        [writer, reader]: [Site; 2],
        transport: Transport,
        is_back: bool,
        spawn: &dyn Fn(Role) -> Result<Running, ChildError>,
    ) -> Result<Ends, ScenarioError> {
        config.check()?;
        let Cores { hosts, cable } = config.cores;
        let [write_core, read_core] = match is_back {
            false => [hosts, cable],
            true => [cable, hosts],
        };
        let end = |site, core| EndConfig {
            site,
            core: Some(core),
            transport,
            run: *config,
            is_back,
        };
        let read = || spawn(Role::ThroughputReader(end(reader, read_core)));
        let readers: Result<Vec<Running>, ChildError> =
            (0..config.readers).map(|_| read()).collect();
        let writer = spawn(Role::ThroughputWriter(end(writer, write_core)));
        let mut ends = Ends {
            writer: writer.map_err(ScenarioError::of("the writer"))?,
            readers: readers.map_err(ScenarioError::of("a reader"))?,
        };
        for reader in &mut ends.readers {
            let ready = reader.wait_until_ready();
            ready.map_err(ScenarioError::of("a reader"))?;
        }
        let ready = ends.writer.wait_until_ready();
        ready.map_err(ScenarioError::of("the writer"))?;
        Ok(ends)
    }

    /// Lets the writer begin.
    fn go(&mut self) -> Result<(), ScenarioError> {
        self.writer.go().map_err(ScenarioError::of("the writer"))
    }

    /// Waits until the writer has ended, and stops the readers.
    fn finish(self, config: &Config) -> Result<Reports, ScenarioError> {
        let of_readers = self.readers.iter().flat_map(Running::notes);
        let notes = self
            .writer
            .notes()
            .iter()
            .chain(of_readers)
            .cloned()
            .collect();
        let written = self.writer.wait(config.seconds.into());
        let written = written.map_err(ScenarioError::of("the writer"))?;
        thread::sleep(DRAIN);
        let read: Result<Vec<ReaderReport>, ChildError> =
            self.readers.into_iter().map(Running::finish).collect();
        Ok(Reports {
            writer: written,
            readers: read.map_err(ScenarioError::of("a reader"))?,
            notes,
        })
    }
}

impl Config {
    /// True if a sample is longer than a datagram.
    fn is_fragmented(&self) -> bool {
        RttMessage::max_bytes(self.payload_bytes) > MAX_DATA_PAYLOAD_BYTES
    }

    /// Maximum number of samples lost with one datagram; `None` if each sample is one datagram.
    fn samples_a_datagram(&self) -> Option<u64> {
        let sample_bytes = RttMessage::max_bytes(self.payload_bytes);
        match () {
            () if self.is_fragmented() => Some(1),
            () if self.latency_budget_us > 0 => Some((BATCH_BYTES / sample_bytes).max(1) as u64),
            () => None,
        }
    }

    fn flow(&self, writer: &WriterReport, reader: &ReaderReport) -> Flow {
        let offered = (writer.offered, writer.refused);
        let (from, to) = (&writer.counts, &reader.counts);
        match self.samples_a_datagram() {
            None => Flow::between(TOPIC, offered, from, to, None),
            Some(most) => Flow::in_datagrams(TOPIC, offered, from, to, most),
        }
    }

    fn run(&self, datapath: &str, link: &str, reports: Reports) -> Run {
        let Reports {
            writer,
            readers,
            notes,
        } = reports;
        let flow = match &readers[..] {
            // The writer's counts of datagrams are sums over several readers, and do not balance with those of one.
            [reader] if self.reliability == Reliability::BestEffort => {
                Some(self.flow(&writer, reader))
            }
            _ => None,
        };
        let of_readers = readers.iter().flat_map(|it| &it.counts.faults);
        let mut faults = writer.counts.faults.iter().chain(of_readers).cloned();
        let counted = readers.iter().map(|it| (it.samples, it.elapsed_ns));
        let mut stream = self.stream(link, writer.counts.written, &counted.collect::<Vec<_>>());
        stream.writer_waits = Some(writer.waits);
        stream.refused = Some(writer.refused);
        stream.repaired = Some(writer.counts.repaired);
        stream.receive_dropped = Some(readers.iter().map(|it| it.counts.receive_dropped).sum());
        stream.segmented = Some(writer.counts.segmented);
        stream.coalesced = Some(readers.iter().map(|it| it.counts.coalesced).sum());
        stream.writer = writer.usage.per_sample(writer.counts.written);
        let used = readers.iter().map(|it| it.usage).reduce(Usage::plus);
        stream.reader = used
            .unwrap_or_default()
            .per_sample(stream.samples_delivered);
        let mut run = self.run_of_stream(datapath, stream);
        let unacknowledged =
            || (!writer.acknowledged).then(|| String::from("not all samples were acknowledged"));
        let invalid = faults
            .next()
            .or_else(|| flow.as_ref().and_then(|flow| flow.check().err()))
            .or_else(|| run.invalid.take())
            .or_else(unacknowledged);
        run.invalid = invalid;
        run.flows = flow.into_iter().collect();
        run.notes = notes;
        run
    }

    /// Run of a system under test, from the output of its writer and readers.
    fn run_of_system(&self, writer: &Printed, readers: &[Printed]) -> Result<Run, ChildError> {
        let counted =
            |reader: &Printed| Ok((reader.count("samples")?, reader.count("elapsed_ns")?));
        let counted: Result<Vec<(u64, u64)>, ChildError> = readers.iter().map(counted).collect();
        let mut stream = self.stream(BY_PROGRAM, writer.count("samples")?, &counted?);
        stream.writer = writer.usage();
        stream.reader = readers.first().map(Printed::usage).unwrap_or_default();
        stream.refused = writer.get("refused").map(|count| count as u64);
        let out_of_order: Result<Vec<u64>, ChildError> = readers
            .iter()
            .map(|reader| reader.count("out_of_order"))
            .collect();
        let out_of_order: u64 = out_of_order?.into_iter().sum();
        let mut run = self.run_of_stream(PROGRAM, stream);
        let disordered =
            || (out_of_order > 0).then(|| format!("{out_of_order} samples were out of order"));
        run.invalid = run.invalid.take().or_else(disordered);
        Ok(run)
    }

    /// Stream to readers, each of which counted samples in a time in nanoseconds. The rate is their mean.
    fn stream(&self, link: &str, written: u64, readers: &[(u64, u64)]) -> Stream {
        let delivered = readers.iter().map(|(samples, _)| samples).sum();
        let rate = |&(samples, elapsed_ns): &(u64, u64)| {
            (samples > 1 && elapsed_ns > 0)
                .then(|| (samples - 1) as f64 * NANOS_PER_SECOND as f64 / elapsed_ns as f64)
        };
        let rates: Option<Vec<f64>> = readers.iter().map(rate).collect();
        let samples_per_s = rates.map(|rates| rates.iter().sum::<f64>() / rates.len() as f64);
        Stream {
            link: link.to_owned(),
            samples_written: written,
            samples_delivered: delivered,
            samples_lost: readers
                .iter()
                .map(|(samples, _)| written.saturating_sub(*samples))
                .sum(),
            samples_per_s,
            mbit_per_s: samples_per_s.map(|rate| rate * f64::from(self.payload_bytes) * 8.0 / 1e6),
            ..Stream::default()
        }
    }

    /// Run without round trips. It is invalid if reliable samples are missing, or none arrived.
    fn run_of_stream(&self, datapath: &str, stream: Stream) -> Run {
        let settings = RunSettings {
            rate_hz: self.rate_hz.unwrap_or(0),
            ..RunSettings::new(datapath, self.payload_bytes)
        };
        let mut run = Run::new(&settings, &Rounds::none(), None);
        let (written, delivered) = (stream.samples_written, stream.samples_delivered);
        let readers = u64::from(self.readers);
        let is_exact = stream.samples_lost == 0 && delivered == written * readers;
        run.invalid = if stream.samples_per_s.is_none() {
            Some(format!(
                "a reader received fewer than 2 of {written} samples"
            ))
        } else if self.reliability == Reliability::Reliable && !is_exact {
            Some(format!(
                "{written} samples were written reliably to {readers} readers, {delivered} were delivered"
            ))
        } else {
            None
        };
        (run.samples, run.lost) = (written, stream.samples_lost);
        run.stream = Some(stream);
        run
    }
}
