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

use std::thread;
use std::time::Duration;

use isolane::Qos;
use isolane_rtps::limits::{BATCH_BYTES, MAX_DATA_PAYLOAD_BYTES};
use serde::{Deserialize, Serialize};

use super::end::measured_level;
use super::flow::Flow;
use super::plan;
use super::program::{self, Printed};
use super::transport::{BY_LANE, LEAST_BY_LANE, Transport};
use super::{ConfigError, RttMessage, ScenarioError, Site};
use crate::child::{ChildError, Program, Role, Running};
use crate::clock::NANOS_PER_SECOND;
use crate::experiment::System;
use crate::limits::{MAX_RTT_MESSAGE_BYTES, MAX_SAMPLES};
use crate::namespace::{Host, TestHosts};
use crate::process::{Cores, Note};
use crate::record::Rounds;
use crate::report::{EndUsage, Publisher, Run, Scenario, Stream};

pub use ends::{ReaderReport, WriterReport, run_reader, run_writer};

/// Topic name.
pub const TOPIC: &str = "Throughput";

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
}

impl EndConfig {
    /// Checks whether the configuration can be measured.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.run.check()
    }

    fn qos(&self) -> Qos {
        let qos = match self.run.reliability {
            Reliability::BestEffort => Qos::best_effort(),
            Reliability::Reliable => Qos::reliable().keep_all().max_samples(self.run.max_samples),
        };
        qos.level(measured_level())
            .latency_budget(Duration::from_micros(self.run.latency_budget_us))
            .max_bytes(RttMessage::max_bytes(self.run.payload_bytes))
    }
}

/// Time for frames in flight to arrive after the writer has ended.
pub(super) const DRAIN: Duration = Duration::from_millis(300);

/// Descriptions of the path between two hosts.
const BY_SOCKETS: &str = "kernel sockets of two hosts joined by a veth pair, without a cable";
const BY_LANES: &str = "AF_XDP lanes of two hosts joined by a veth pair, without a cable";
const TOO_LARGE: &str =
    "kernel sockets of two hosts joined by a veth pair: larger samples pass no lane";

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
    /// Writing time in seconds.
    pub seconds: u32,
    /// Cores of the writer (`hosts`) and the reader (`cable`).
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
/// use it, the run is invalid.
pub fn run_between_hosts(
    testbed: &TestHosts,
    program: &Program,
    transport: Transport,
    config: &Config,
) -> Result<Run, ScenarioError> {
    let spawn = |role: Role| {
        let host = match role {
            Role::ThroughputWriter(_) => Host::A,
            _ => Host::B,
        };
        Running::spawn(testbed, host, program, &role)
    };
    let sites = [Host::A, Host::B].map(Site::Host);
    let (writer, reader, notes) = run_ends(config, sites, transport, &spawn)?;
    let notes = [testbed.notes(), &notes].concat();
    let by_lane = reader.counts.lane.get(BY_LANE).copied().unwrap_or(0);
    let received = reader.counts.received;
    let ends = (writer, reader);
    let fits = config.payload_bytes <= MAX_RTT_MESSAGE_BYTES;
    if transport == Transport::Udp {
        return Ok(config.run("udp", BY_SOCKETS, ends, notes));
    }
    let link = if fits { BY_LANES } else { TOO_LARGE };
    let mut run = config.run("xdp", link, ends, notes);
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
    Ok(run)
}

/// Measures between two processes of this machine, by unicast on 127.0.0.1.
pub fn run_over_loopback(program: &Program, config: &Config) -> Result<Run, ScenarioError> {
    let spawn = |role: Role| Running::spawn_here(program, &role);
    let sites = [Site::loopback(); 2];
    let (writer, reader, notes) = run_ends(config, sites, Transport::Udp, &spawn)?;
    let link = "127.0.0.1 of this machine";
    Ok(config.run("udp-loopback", link, (writer, reader), notes))
}

/// Measures a system under test between the two hosts of a testbed without a cable.
pub fn run_system(
    testbed: &TestHosts,
    system: &System,
    config: &Config,
) -> Result<Run, ScenarioError> {
    let part = "the system under test";
    let ends = program::stream(testbed, system, config);
    let run = ends.and_then(|ends| config.run_of_system(ends));
    let mut run = run.map_err(ScenarioError::of(part))?;
    run.notes = testbed.notes().to_vec();
    Ok(run)
}

/// Starts both ends, lets them match and write, and returns both reports.
fn run_ends(
    config: &Config,
    [writer, reader]: [Site; 2],
    transport: Transport,
    spawn: &dyn Fn(Role) -> Result<Running, ChildError>,
) -> Result<(WriterReport, ReaderReport, Vec<Note>), ScenarioError> {
    let of_writer = || ScenarioError::of("the writer");
    let of_reader = || ScenarioError::of("the reader");
    let (writes, reads) = (
        config.end(writer, transport, config.cores.hosts),
        config.end(reader, transport, config.cores.cable),
    );
    writes.check()?;
    let mut reader = spawn(Role::ThroughputReader(reads)).map_err(of_reader())?;
    let mut writer = spawn(Role::ThroughputWriter(writes)).map_err(of_writer())?;
    reader.wait_until_ready().map_err(of_reader())?;
    writer.wait_until_ready().map_err(of_writer())?;
    let notes = [writer.notes(), reader.notes()].concat();
    writer.go().map_err(of_writer())?;
    let written = writer.wait(config.seconds.into()).map_err(of_writer())?;
    thread::sleep(DRAIN);
    let read = reader.finish().map_err(of_reader())?;
    Ok((written, read, notes))
}

impl Config {
    fn end(&self, site: Site, transport: Transport, core: usize) -> EndConfig {
        EndConfig {
            site,
            core: Some(core),
            transport,
            run: *self,
        }
    }

    /// Maximum number of samples lost with one datagram; `None` if each sample is one datagram.
    fn samples_a_datagram(&self) -> Option<u64> {
        let sample_bytes = RttMessage::max_bytes(self.payload_bytes);
        match () {
            () if sample_bytes > MAX_DATA_PAYLOAD_BYTES => Some(1),
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

    fn run(
        &self,
        datapath: &str,
        link: &str,
        (writer, reader): (WriterReport, ReaderReport),
        notes: Vec<Note>,
    ) -> Run {
        let flow =
            (self.reliability == Reliability::BestEffort).then(|| self.flow(&writer, &reader));
        let faults = [&writer.counts.faults[..], &reader.counts.faults[..]].concat();
        let mut stream = self.stream(
            link,
            writer.counts.written,
            reader.samples,
            reader.elapsed_ns,
        );
        stream.writer_waits = Some(writer.waits);
        stream.repaired = Some(writer.counts.repaired);
        stream.receive_dropped = Some(reader.counts.receive_dropped);
        stream.writer = writer.usage.per_sample(writer.counts.written);
        stream.reader = reader.usage.per_sample(reader.samples);
        let mut run = self.run_of_stream(datapath, stream);
        let unacknowledged =
            || (!writer.acknowledged).then(|| String::from("not all samples were acknowledged"));
        let invalid = (faults.into_iter().next())
            .or_else(|| flow.as_ref().and_then(|flow| flow.check().err()))
            .or_else(|| run.invalid.take())
            .or_else(unacknowledged);
        run.invalid = invalid;
        run.flows = flow.into_iter().collect();
        run.notes = notes;
        run
    }

    /// Run of a system under test, from the output of its writer and reader.
    fn run_of_system(&self, [writer, reader]: [Printed; 2]) -> Result<Run, ChildError> {
        let elapsed_ns = reader.count("elapsed_ns")?;
        let (written, delivered) = (writer.count("samples")?, reader.count("samples")?);
        let mut stream = self.stream(BY_SOCKETS, written, delivered, elapsed_ns);
        let usage = |end: &Printed| EndUsage {
            cpu_us_per_sample: end
                .get("cpu_ns")
                .zip(end.get("cpu_samples").filter(|&samples| samples > 0.0))
                .map(|(ns, samples)| ns / 1e3 / samples),
            resident_bytes: end.get("resident_bytes").map(|bytes| bytes as u64),
            threads: end.get("threads").map(|threads| threads as u64),
        };
        (stream.writer, stream.reader) = (usage(&writer), usage(&reader));
        let out_of_order = reader.count("out_of_order")?;
        let mut run = self.run_of_stream("program", stream);
        let disordered =
            || (out_of_order > 0).then(|| format!("{out_of_order} samples were out of order"));
        run.invalid = run.invalid.take().or_else(disordered);
        Ok(run)
    }

    fn stream(&self, link: &str, written: u64, delivered: u64, elapsed_ns: u64) -> Stream {
        let samples_per_s = (delivered > 1 && elapsed_ns > 0)
            .then(|| (delivered - 1) as f64 * NANOS_PER_SECOND as f64 / elapsed_ns as f64);
        Stream {
            link: link.to_owned(),
            samples_written: written,
            samples_delivered: delivered,
            samples_lost: written.saturating_sub(delivered),
            samples_per_s,
            mbit_per_s: samples_per_s.map(|rate| rate * f64::from(self.payload_bytes) * 8.0 / 1e6),
            ..Stream::default()
        }
    }

    /// Run without round trips. It is invalid if reliable samples are missing, or none arrived.
    fn run_of_stream(&self, datapath: &str, stream: Stream) -> Run {
        let scenario = Scenario {
            rate_hz: self.rate_hz.unwrap_or(0),
            ..plan::scenario(datapath, Publisher::Thread, self.payload_bytes, None)
        };
        let mut run = Run::new(&scenario, &Rounds::none(), None);
        let (written, delivered) = (stream.samples_written, stream.samples_delivered);
        let is_incomplete = self.reliability == Reliability::Reliable && delivered != written;
        run.invalid = if delivered < 2 {
            Some(format!("{delivered} of {written} samples were delivered"))
        } else if is_incomplete {
            Some(format!(
                "{written} samples were written reliably, {delivered} were delivered"
            ))
        } else {
            None
        };
        (run.samples, run.lost) = (written, stream.samples_lost);
        run.stream = Some(stream);
        run
    }
}
