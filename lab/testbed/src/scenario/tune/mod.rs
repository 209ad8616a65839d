//! `tune`: two hosts of one guest, each with a device of two queues, configured by isolane's own commands. The hosts
//! learn the receive queues of datagrams, plan, apply, verify, and plan again. Then critical and ordinary samples cross
//! in both directions, by sockets and by a lane, and the devices count the frames of each queue. At the end a rollback
//! must restore each host's facts, field by field.
//!
//! The clock is the emulator's real time, so only counts are judged. The seed gives the devices their hash keys. (With
//! instruction counting and two idle processors, the emulator once hung for good.)

mod faults;
mod host;

use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use isolane_bench::report::Environment;
use isolane_support::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml::Table;

use super::{Scenario, failed, range, report_faults};
use crate::Bench;
use crate::guest::{Guest, Network, Time};
use crate::inside::appeared;
use crate::inside::tools::{self, Counters};
use faults::{differences, faults};
use host::{A, B, Host, Ran};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "tune",
    shows: "two hosts are set up by `isolane tune`, checked, and rolled back",
    run,
    inside,
};

const FILE: &str = include_str!("../../../scenarios/tune.toml");

/// The scenario's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TuneScenario {
    title: String,
    about: String,
    /// Samples of each crossing.
    samples: u64,
    /// Topic, sender, receiver, and datapath of the receiver.
    crossings: Vec<[String; 4]>,
    /// Description of the system.
    system: Table,
}

impl TuneScenario {
    fn read() -> Result<TuneScenario> {
        Ok(toml::from_str(FILE)?)
    }

    /// Level of a topic in the description; 0 if it names none.
    fn level(&self, topic: &str) -> u8 {
        let level = || {
            self.system
                .get("topic")?
                .get(topic)?
                .get("level")?
                .as_integer()
        };
        level().and_then(|level| level.try_into().ok()).unwrap_or(0)
    }
}

/// Receive queue of critical samples in the description.
const CRITICAL_QUEUE: u32 = 1;
/// The level of critical samples, and the ports of the description's participants.
const CRITICAL_LEVEL: u8 = 7;
const PORT: u16 = 7000;
/// The exit code after Ctrl-C.
const INTERRUPTED: i32 = 130;
const PATIENCE: Duration = Duration::from_secs(600);
/// Delay until the last frames are counted: drivers read their devices' counters every two seconds.
const COUNTED: Duration = Duration::from_millis(2_500);

/// Datapath of a receiver with a lane.
const BY_LANE: &str = "xdp";

/// Result of a guest.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Record {
    /// Commands in their order.
    commands: Vec<Ran>,
    crossings: Vec<Crossing>,
    /// Facts of hosts a and b that differ before and afterwards.
    differences: Vec<String>,
    /// Number of fields in the facts of both hosts.
    fields: usize,
}

impl Record {
    /// Runs isolane on a host to its end.
    fn run(&mut self, host: Host, line: &str) -> Result<()> {
        self.commands.push(host.run(line)?);
        Ok(())
    }

    /// Calls `ask` while another host runs `isolane tune answer`, once its port is bound.
    fn while_answering(
        &mut self,
        by: Host,
        line: &str,
        port: Option<u16>,
        ask: impl FnOnce(&mut Record) -> Result<()>,
    ) -> Result<()> {
        let answer = by.start(&format!("tune answer {line} --seconds 300"))?;
        by.wait_for_port(port)?;
        ask(self)?;
        self.commands
            .push(answer.interrupt()?.expecting(INTERRUPTED));
        Ok(())
    }
}

/// Samples of a topic that went from one host to the other.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Crossing {
    topic: String,
    level: u8,
    datapath: String,
    samples: u64,
    from: String,
    to: String,
    /// Counts of the receiver's device during the crossing.
    received: Counters,
    sent: Counters,
    /// Datagrams that used a lane.
    by_lane: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Seed {
    seed: u64,
    faults: Vec<String>,
    #[serde(rename = "told")]
    record: Record,
}

fn run(bench: &Bench) -> Result<bool> {
    let scenario = TuneScenario::read()?;
    let began = Environment::probe();
    let mut seeds = Vec::new();
    for seed in bench.seeds() {
        let guest = Guest {
            name: format!("tune-{seed}"),
            task: vec![SCENARIO.name.into()],
            time: Time::Real { seed },
            network: Network::Hub { devices: 2 },
            processors: 2,
            patience: PATIENCE,
        };
        let record: Record = serde_json::from_value(guest.run(&bench.machine)?)?;
        let faults = faults(&record);
        eprint!("seed {seed}\n{}", faults::table(&[&record]));
        report_faults(&faults);
        seeds.push(Seed {
            seed,
            faults,
            record,
        });
    }
    let records: Vec<&Record> = seeds.iter().map(|seed| &seed.record).collect();
    let fields = records.iter().map(|record| record.fields as f64);
    let text = format!(
        "range over {} seeds\n{}\n{} fields of facts, {} not as before\n{}",
        seeds.len(),
        faults::table(&records),
        range(fields, 0),
        records
            .iter()
            .map(|record| record.differences.len())
            .sum::<usize>(),
        failed(seeds.iter().flat_map(|seed| &seed.faults))
    );
    bench.publish(
        (&scenario.title, &scenario.about),
        (&began, FILE),
        &text,
        &seeds,
    )?;
    Ok(seeds.iter().all(|seed| seed.faults.is_empty()))
}

fn inside(_: &[String]) -> Result<Value> {
    let scenario = TuneScenario::read()?;
    for host in [A, B] {
        appeared(&Path::new("/sys/class/net").join(host.interface))?;
    }
    A.make(B, &scenario.system)?;
    B.make(A, &scenario.system)?;
    for host in [A, B] {
        host.wait_for_link()?;
    }
    let mut record = Record::default();
    let before = [
        facts(&mut record, A, "before")?,
        facts(&mut record, B, "before")?,
    ];
    set_up(&mut record)?;
    for (host, other) in [(A, B), (B, A)] {
        // The ports of the participants in the description.
        let answer = format!("--host {} -i {}", other.name, other.interface);
        let line = format!(
            "tune verify --host {} -i {} --seconds 1 --peer {}",
            host.name, host.interface, other.address
        );
        let port = PORT + u16::from(CRITICAL_LEVEL);
        record.while_answering(other, &answer, Some(port), |record| {
            record.run(host, &with_state(host, &line))
        })?;
    }
    for [topic, from, to, datapath] in &scenario.crossings {
        let hosts = (Host::named(from)?, Host::named(to)?);
        let level = scenario.level(topic);
        let crossing = cross(
            &mut record,
            topic,
            hosts,
            level,
            (datapath, scenario.samples),
        )?;
        record.crossings.push(crossing);
    }
    // The rollback is in reverse order, because only the first host found the shared machine's original settings.
    for host in [B, A] {
        record.run(host, &with_state(host, "tune rollback"))?;
    }
    let after = [
        facts(&mut record, A, "after")?,
        facts(&mut record, B, "after")?,
    ];
    for ((host, before), after) in [A, B].into_iter().zip(&before).zip(&after) {
        record.fields += faults::count(before);
        let found = differences(before, after);
        record.differences.extend(
            found
                .into_iter()
                .map(|field| format!("{}: {field}", host.name)),
        );
    }
    Ok(serde_json::to_value(record)?)
}

/// Command line of `tune` with its host's journal.
fn with_state(host: Host, line: &str) -> String {
    format!("{line} --state {}", host.file("state"))
}

fn facts(record: &mut Record, host: Host, when: &str) -> Result<Value> {
    let file = host.file(when);
    record.run(host, &format!("doctor --facts --json {file}"))?;
    let text = fs::read(&file).map_err(|error| format!("{file}: {error}"))?;
    Ok(serde_json::from_slice(&text)?)
}

/// Learns, plans and applies on both hosts, then verifies, plans and applies again.
fn set_up(record: &mut Record) -> Result<()> {
    for (host, other) in [(A, B), (B, A)] {
        let answer = format!("-i {} --learn", other.interface);
        let learnt = host.file("learnt.json");
        let line = format!(
            "tune learn {} --host {} -i {} --json {learnt}",
            other.address, host.name, host.interface
        );
        record.while_answering(other, &answer, None, |record| {
            record.run(host, &with_state(host, &line))
        })?;
    }
    for host in [A, B] {
        plan_and_apply(record, host, "first", &[host.file("learnt.json")])?;
    }
    let port = PORT + u16::from(CRITICAL_LEVEL);
    let answer = format!("-i {} --ports {port}", B.interface);
    let measured = A.file("measured.json");
    let line = format!(
        "tune ports {} -i {} --ports {port} --peer-ports {port} --queue {CRITICAL_QUEUE} \
         --peer-queue {CRITICAL_QUEUE} --json {measured}",
        B.address, A.interface
    );
    record.while_answering(B, &answer, Some(port), |record| record.run(A, &line))?;
    for host in [A, B] {
        plan_and_apply(
            record,
            host,
            "second",
            &[host.file("learnt.json"), measured.clone()],
        )?;
    }
    Ok(())
}

fn plan_and_apply(
    record: &mut Record,
    host: Host,
    which: &str,
    placements: &[String],
) -> Result<()> {
    let plan = host.file(&format!("{which}.json"));
    let placements: Vec<String> = placements
        .iter()
        .map(|file| format!("--receive-queues {file}"))
        .collect();
    let placements = placements.join(" ");
    let line = format!("tune plan --host {} {placements} {plan}", host.name);
    record.run(host, &line)?;
    apply(record, host, which)
}

fn apply(record: &mut Record, host: Host, which: &str) -> Result<()> {
    let plan = host.file(&format!("{which}.json"));
    let line = format!("tune apply --no-boot {plan}");
    record.run(host, &with_state(host, &line))
}

/// Applies the plan again while a lane is attached: the driver requests its interrupts anew for a lane, so their
/// threads start with the default priority, which `tune status` must report.
fn apply_with_lane(record: &mut Record, host: Host) -> Result<()> {
    let status = with_state(host, "tune status");
    record.commands.push(host.run(&status)?.expecting(1));
    apply(record, host, "second")?;
    record.run(host, &status)
}

/// Sends a topic's samples, and reads the devices' counters before and after.
fn cross(
    record: &mut Record,
    topic: &str,
    (from, to): (Host, Host),
    level: u8,
    (datapath, samples): (&str, u64),
) -> Result<Crossing> {
    let options = |host: Host| {
        format!(
            "--participant {0} --host {0} -i {1}",
            host.name, host.interface
        )
    };
    let receiver = to.start(&format!(
        "sub {topic} {} --datapath {datapath} --count {samples} --seconds 60 -vv",
        options(to)
    ))?;
    to.wait_for_port(Some(PORT + u16::from(level)))?;
    if datapath == BY_LANE {
        to.wait_for_lane()?;
        apply_with_lane(record, to)?;
    }
    thread::sleep(COUNTED);
    let before = [to.counters()?, from.counters()?];
    let sender = from.run(&format!(
        "pub {topic} {} --datapath udp --count {samples} -vv",
        options(from)
    ))?;
    record.commands.push(sender);
    let receiver = receiver.finish()?;
    let by_lane = faults::by_lane(&receiver.said);
    record.commands.push(receiver);
    thread::sleep(COUNTED);
    let [received, sent] = [to, from].map(Host::counters);
    Ok(Crossing {
        topic: topic.to_owned(),
        level,
        datapath: datapath.to_owned(),
        samples,
        from: from.name.to_owned(),
        to: to.name.to_owned(),
        received: tools::between(&before[0], &received?),
        sent: tools::between(&before[1], &sent?),
        by_lane,
    })
}
