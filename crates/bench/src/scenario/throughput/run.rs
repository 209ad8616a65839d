//! What the parent of a throughput measurement does.

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{EndConfig, ReaderReport, Reliability, TOPIC, WriterReport};
use crate::cable::{self, Cable};
use crate::child::{Program, Role, Running};
use crate::clock::NANOS_PER_SECOND;
use crate::namespace::{Host, Testbed};
use crate::process::{Cores, Note};
use crate::scenario::flow::{CableFlow, Flow};
use crate::scenario::{ScenarioError, Site};

/// The cable of these runs holds nothing back by rule.
const CABLE_BITS_PER_S: u64 = 10_000_000_000;
const CABLE_QUEUE_FRAMES: u32 = 4096;

/// What is on the way when the writer ends has arrived after this time.
const DRAIN: Duration = Duration::from_millis(300);

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Of the topic.
    pub reliability: Reliability,
    /// The serialised size of the message.
    pub payload_bytes: u32,
    /// How long the writer writes.
    pub seconds: u32,
    /// Writer on `hosts`, reader (and cable) on `cable`.
    pub cores: Cores,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// By name.
    pub datapath: String,
    /// What the samples passed through, in words.
    pub link: String,
    /// Of the topic.
    pub reliability: Reliability,
    /// The serialised size of the message, without encapsulation header.
    pub payload_bytes: u32,
    /// Samples accepted by `write`.
    pub samples_written: u64,
    /// Samples the reader's callback got.
    pub samples_delivered: u64,
    /// The rest.
    pub samples_lost: u64,
    /// Counted at the reader.
    pub samples_per_s: Option<f64>,
    /// The same as payload, in 10^6 bits a second.
    pub mbit_per_s: Option<f64>,
    /// How often a full history held the writer back.
    pub writer_waits: u64,
    /// Samples sent again because the reader asked.
    pub repaired: u64,
    /// Where best-effort samples went; for reliable ones there is nowhere to go.
    pub flow: Option<Flow>,
    /// Why this run is no result, if it is none.
    pub invalid: Option<String>,
    /// What the machine did not allow.
    pub notes: Vec<Note>,
}

/// Measures between the two hosts of a testbed, through a cable that is set as fast as it goes.
pub fn run_between_hosts(
    testbed: &Testbed,
    program: &Program,
    config: &Config,
) -> Result<Run, ScenarioError> {
    let cable = cable::Config {
        bits_per_s: CABLE_BITS_PER_S,
        queue_frames: CABLE_QUEUE_FRAMES,
        core: Some(config.cores.cable),
        ..cable::Config::default()
    };
    let spawn = |host, role: Role| Running::spawn(testbed, host, program, &role);
    let [writer, reader] = config.ends([Site::Host(Host::A), Site::Host(Host::B)])?;
    let cable = Cable::start(testbed, program, &cable).map_err(ScenarioError::of("the cable"))?;
    let reader = spawn(Host::B, Role::ThroughputReader(reader));
    let reader = reader.map_err(ScenarioError::of("the reader"))?;
    let writer = spawn(Host::A, Role::ThroughputWriter(writer));
    let writer = writer.map_err(ScenarioError::of("the writer"))?;
    let (writer, reader, notes) = run_ends(config, writer, reader)?;
    let cable = cable.finish().map_err(ScenarioError::of("the cable"))?;
    let frames = cable.a_to_b.frames;
    let dropped = frames.dropped_queue
        + frames.dropped_oversize
        + frames.refused
        + frames.queued
        + cable.a_to_b.ingress_drops;
    let through = CableFlow {
        arrived: writer.counts.sent,
        dropped,
    };
    let notes = [testbed.notes(), &notes].concat();
    let mut run = config.run("udp", (writer, reader), Some(through), notes);
    "two namespaces and the cable between them, a process that carries every frame"
        .clone_into(&mut run.link);
    Ok(run)
}

/// Measures between two processes of this machine, by unicast on 127.0.0.1.
pub fn run_over_loopback(program: &Program, config: &Config) -> Result<Run, ScenarioError> {
    let [writer, reader] = config.ends([Site::Loopback; 2])?;
    let spawn = |role: Role| Running::spawn_here(program, &role);
    let reader = spawn(Role::ThroughputReader(reader));
    let reader = reader.map_err(ScenarioError::of("the reader"))?;
    let writer = spawn(Role::ThroughputWriter(writer));
    let writer = writer.map_err(ScenarioError::of("the writer"))?;
    let (writer, reader, notes) = run_ends(config, writer, reader)?;
    let mut run = config.run("udp-loopback", (writer, reader), None, notes);
    "127.0.0.1".clone_into(&mut run.link);
    Ok(run)
}

/// From two processes that look for each other to both reports.
fn run_ends(
    config: &Config,
    mut writer: Running,
    mut reader: Running,
) -> Result<(WriterReport, ReaderReport, Vec<Note>), ScenarioError> {
    let of_writer = || ScenarioError::of("the writer");
    let of_reader = || ScenarioError::of("the reader");
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
    /// Both ends' configurations.
    fn ends(&self, [of_writer, of_reader]: [Site; 2]) -> Result<[EndConfig; 2], ScenarioError> {
        let end = |site, core| EndConfig {
            site,
            reliability: self.reliability,
            payload_bytes: self.payload_bytes,
            seconds: self.seconds,
            core: Some(core),
        };
        let ends = [
            end(of_writer, self.cores.hosts),
            end(of_reader, self.cores.cable),
        ];
        ends[0].check()?;
        Ok(ends)
    }

    fn run(
        &self,
        datapath: &str,
        (writer, reader): (WriterReport, ReaderReport),
        cable: Option<CableFlow>,
        notes: Vec<Note>,
    ) -> Run {
        let offered = (writer.offered, writer.refused);
        let flow = (self.reliability == Reliability::BestEffort)
            .then(|| Flow::between(TOPIC, offered, &writer.counts, &reader.counts, cable));
        let faults = [&writer.counts.faults[..], &reader.counts.faults[..]].concat();
        let written = writer.counts.written;
        let incomplete = || {
            let complete = writer.acknowledged && reader.samples == written;
            (self.reliability == Reliability::Reliable && !complete).then(|| {
                format!("{written} samples were written reliably, {} came", reader.samples)
            })
        };
        let invalid = (faults.into_iter().next())
            .or_else(|| flow.as_ref().and_then(|flow| flow.check().err()))
            .or_else(incomplete);
        let samples_per_s = (reader.samples > 1 && reader.elapsed_ns > 0).then(|| {
            (reader.samples - 1) as f64 * NANOS_PER_SECOND as f64 / reader.elapsed_ns as f64
        });
        Run {
            datapath: datapath.to_owned(),
            link: String::new(),
            reliability: self.reliability,
            payload_bytes: self.payload_bytes,
            samples_written: written,
            samples_delivered: reader.samples,
            samples_lost: written.saturating_sub(reader.samples),
            samples_per_s,
            mbit_per_s: samples_per_s.map(|rate| rate * f64::from(self.payload_bytes) * 8.0 / 1e6),
            writer_waits: writer.waits,
            repaired: writer.counts.repaired,
            flow,
            invalid,
            notes,
        }
    }
}
