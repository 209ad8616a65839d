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
use super::transport::{BY_LANE, LEAST_BY_LANE, Transport};
use super::{ConfigError, RttMessage, ScenarioError, Site};
use crate::child::{ChildError, Program, Role, Running};
use crate::clock::NANOS_PER_SECOND;
use crate::experiment;
use crate::limits::MAX_RTT_MESSAGE_BYTES;
use crate::namespace::{Host, TestHosts};
use crate::process::{Cores, Note};
use crate::report::{Environment, Missing};

pub use ends::{ReaderReport, WriterReport, run_reader, run_writer};

/// Schema name and version.
pub const SCHEMA: &str = "isolane/throughput/1";

/// Topic name.
pub const TOPIC: &str = "Throughput";

/// Depth in samples of the writer's history and the reader's cache.
const HISTORY_SAMPLES: u16 = 256;

/// Complete result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Schema name, [`SCHEMA`].
    pub schema: String,
    /// Environment of the measurement.
    pub environment: Environment,
    /// Scenario of the measurement, after options.
    pub scenario: experiment::Scenario,
    /// SHA-256 of the scenario's file in hexadecimal digits, before options changed it.
    pub scenario_sha256: String,
    /// False after an interruption.
    pub is_complete: bool,
    /// Completed runs.
    pub runs: Vec<Run>,
    /// Requested runs without a result.
    pub missing: Vec<Missing>,
}

/// Reliability of the topic.
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
            Reliability::Reliable => Qos::reliable().keep_all().max_samples(HISTORY_SAMPLES),
        };
        qos.level(measured_level())
            .latency_budget(Duration::from_micros(self.run.latency_budget_us))
            .max_bytes(RttMessage::max_bytes(self.run.payload_bytes))
    }
}

/// Time for frames in flight to arrive after the writer has ended.
const DRAIN: Duration = Duration::from_millis(300);

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
    /// Writing time in seconds.
    pub seconds: u32,
    /// Cores of the writer (`hosts`) and the reader (`cable`).
    pub cores: Cores,
}

impl Config {
    /// Checks whether the run can be measured.
    pub fn check(&self) -> Result<(), ConfigError> {
        RttMessage::of_size(self.payload_bytes).map(drop)
    }
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Number of the run in its scenario file, from 1.
    pub number: u32,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Name of the datapath.
    pub datapath: String,
    /// Description of the path between the ends.
    pub link: String,
    /// Reliability of the topic.
    pub reliability: Reliability,
    /// LATENCY_BUDGET of the topic, in microseconds; 0 for none.
    #[serde(default)]
    pub latency_budget_us: u64,
    /// Serialised size of the message in bytes, without the encapsulation header.
    pub payload_bytes: u32,
    /// Samples accepted by `write`.
    pub samples_written: u64,
    /// Samples received by the reader's callback.
    pub samples_delivered: u64,
    /// Samples written and not delivered.
    pub samples_lost: u64,
    /// Sample rate at the reader.
    pub samples_per_s: Option<f64>,
    /// Payload rate at the reader, in 10^6 bit/s.
    pub mbit_per_s: Option<f64>,
    /// Number of times a full history blocked the writer.
    pub writer_waits: u64,
    /// Samples retransmitted on the reader's request.
    pub repaired: u64,
    /// Datagrams dropped on the reader's host, a cause of retransmissions.
    pub receive_dropped: u64,
    /// Datagrams the reader received by a lane; null over sockets.
    pub received_by_lane: Option<u64>,
    /// Accounting of best-effort samples; null for reliable ones.
    pub flow: Option<Flow>,
    /// Reason why this run is invalid, if it is.
    pub invalid: Option<String>,
    /// Steps the machine did not allow.
    pub notes: Vec<Note>,
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
    run.received_by_lane = Some(by_lane);
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
        let written = writer.counts.written;
        let incomplete = || {
            let complete = writer.acknowledged && reader.samples == written;
            (self.reliability == Reliability::Reliable && !complete).then(|| {
                format!(
                    "{written} samples were written reliably, {} came",
                    reader.samples
                )
            })
        };
        let invalid = (faults.into_iter().next())
            .or_else(|| flow.as_ref().and_then(|flow| flow.check().err()))
            .or_else(incomplete);
        let samples_per_s = (reader.samples > 1 && reader.elapsed_ns > 0).then(|| {
            (reader.samples - 1) as f64 * NANOS_PER_SECOND as f64 / reader.elapsed_ns as f64
        });
        Run {
            number: 0,
            repetition: 1,
            datapath: datapath.to_owned(),
            link: link.to_owned(),
            reliability: self.reliability,
            latency_budget_us: self.latency_budget_us,
            payload_bytes: self.payload_bytes,
            samples_written: written,
            samples_delivered: reader.samples,
            samples_lost: written.saturating_sub(reader.samples),
            samples_per_s,
            mbit_per_s: samples_per_s.map(|rate| rate * f64::from(self.payload_bytes) * 8.0 / 1e6),
            writer_waits: writer.waits,
            repaired: writer.counts.repaired,
            receive_dropped: reader.counts.receive_dropped,
            received_by_lane: None,
            flow,
            invalid,
            notes,
        }
    }
}
