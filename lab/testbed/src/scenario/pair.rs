//! `pair`: two guests with one device each, connected like two machines by a cable. isolane publishes on one and
//! subscribes on the other, reliably: by sockets, and by lanes.
//!
//! Guests run in real time here, slowed down by the emulation. The checks use counts, never durations.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use isolane_support::{Result, command};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Scenario, report_faults};
use crate::Bench;
use crate::guest::{Guest, Network, Time};
use crate::inside::tools::Counters;
use crate::inside::{appeared, tools};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "pair",
    shows: "two guests back to back: samples arrive complete and in order, by sockets and by lanes",
    run,
    inside,
};

/// Topic, datapath and level of each half of the scenario: by sockets, then by lanes. A lane receives its level's
/// frames and leaves the others to sockets.
const HALVES: [[&str; 3]; 2] = [["Square", "udp", "0"], ["Circle", "xdp", "7"]];
/// Samples of each topic that the subscriber waits for.
const SAMPLES: u64 = 300;
/// Timeout of the subscriber and run time of the publisher, in seconds of the guest's clock.
const SUBSCRIBES: u32 = 60;
const PUBLISHES: u32 = 75;
/// Time between two samples.
const PERIOD: &str = "20ms";

/// The one device of a guest.
const DEVICE: &str = "eth0";
const PUBLISHER: &str = "publisher";
const SUBSCRIBER: &str = "subscriber";

/// Result of a guest.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Report {
    /// Results by topic.
    halves: BTreeMap<String, Half>,
    /// Frames of the device's queues.
    frames: Counters,
}

/// Result of a topic.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Half {
    /// Sequence numbers in the order of arrival; empty for the publisher.
    sequences: Vec<u64>,
    /// Standard error of isolane.
    #[serde(rename = "told")]
    messages: String,
    exit_code: Option<i32>,
}

impl Half {
    fn of(output: &Output) -> Half {
        Half {
            sequences: sequences(&String::from_utf8_lossy(&output.stdout)),
            messages: String::from_utf8_lossy(&output.stderr).into_owned(),
            exit_code: output.status.code(),
        }
    }
}

fn run(bench: &Bench) -> Result<bool> {
    let guest = |role: &str, number: u8| Guest {
        name: format!("pair-{role}"),
        task: vec![SCENARIO.name.into(), role.into()],
        time: Time::Real {
            seed: bench.first_seed,
        },
        network: Network::Peer {
            socket: bench.machine.folder.join("link"),
            listens: role == SUBSCRIBER,
            number,
        },
        processors: 2,
        patience: Duration::from_secs(400),
    };
    let (subscriber, publisher) = (guest(SUBSCRIBER, 2), guest(PUBLISHER, 1));
    let running = [&subscriber, &publisher].map(|guest| guest.start(&bench.machine));
    let [subscriber, publisher] = running;
    let received: Report = serde_json::from_value(subscriber?.finish()?)?;
    let sent: Report = serde_json::from_value(publisher?.finish()?)?;
    for [topic, datapath, _] in HALVES {
        let half = received.halves.get(topic);
        eprintln!(
            "{datapath}: {}",
            half.map_or("no result", |half| half.messages.trim())
        );
    }
    eprintln!("frames received: {:?}", received.frames);
    bench.report(&[&received, &sent])?;
    Ok(report_faults(faults(&received, &sent)))
}

/// Missing or wrong results.
fn faults(received: &Report, sent: &Report) -> Vec<String> {
    let mut faults = Vec::new();
    for [topic, datapath, _] in HALVES {
        let Some(half) = received.halves.get(topic) else {
            faults.push(format!("{datapath}: no subscriber"));
            continue;
        };
        let samples = half.sequences.len();
        if samples as u64 != SAMPLES {
            faults.push(format!("{datapath}: {samples} of {SAMPLES} samples came"));
        }
        let follows = |pair: &[u64]| pair[1] == pair[0] + 1;
        if !half.sequences.windows(2).all(follows) {
            faults.push(format!(
                "{datapath}: reliable samples are missing or out of order"
            ));
        }
        let codes = [Some(half), sent.halves.get(topic)].map(|half| half?.exit_code);
        if codes != [Some(0); 2] {
            faults.push(format!(
                "{datapath}: isolane's exit codes are {codes:?}, not 0"
            ));
        }
    }
    let frames = |counters: &Counters, way: &str| {
        let queues = counters.iter().filter(|(name, _)| name.starts_with(way));
        queues.map(|(_, frames)| frames).sum::<u64>()
    };
    let (left, came) = (
        frames(&sent.frames, "tx_queue"),
        frames(&received.frames, "rx_queue"),
    );
    let wanted = SAMPLES * HALVES.len() as u64;
    if left < wanted || came < wanted {
        faults.push(format!(
            "the devices sent {left} and received {came} frames, fewer than the {wanted} samples"
        ));
    }
    faults
}

fn inside(task: &[String]) -> Result<Value> {
    let is_publisher = match task.first().map(String::as_str) {
        Some(PUBLISHER) => true,
        Some(SUBSCRIBER) => false,
        _ => return Err("a guest of a pair publishes or subscribes".into()),
    };
    appeared(&Path::new("/sys/class/net").join(DEVICE))?;
    let number = if is_publisher { 1 } else { 2 };
    for line in [
        // One queue: every frame reaches the lanes, whatever its hash.
        format!("ethtool --set-channels {DEVICE} combined 1"),
        format!("ip address add 10.79.0.{number}/24 dev {DEVICE}"),
        format!("ip link set {DEVICE} up"),
        format!("ip route add 224.0.0.0/4 dev {DEVICE}"),
    ] {
        let (name, arguments) = line.split_once(' ').unwrap_or((&line, ""));
        tools::run(name, arguments)?;
    }
    let mut report = Report::default();
    match is_publisher {
        true => publish(&mut report)?,
        false => subscribe(&mut report)?,
    }
    let statistics = tools::run("ethtool", &format!("--statistics {DEVICE}"))?;
    report.frames = tools::counters(&statistics);
    Ok(serde_json::to_value(report)?)
}

/// Publishes both topics at once, for as long as a subscriber may need them.
fn publish(report: &mut Report) -> Result<()> {
    let start = |[topic, datapath, level]: [&str; 3]| -> Result<(String, Child)> {
        let mut publisher = isolane(&format!(
            "pub {topic} --reliable --history all --level {level} --datapath {datapath} --period {PERIOD} \
             --seconds {PUBLISHES}"
        ));
        let child = command::spawn(&mut publisher)?;
        Ok((topic.to_owned(), child))
    };
    let running = HALVES.map(start);
    for one in running {
        let (topic, child) = one?;
        let half = Half::of(&child.wait_with_output()?);
        report.halves.insert(topic, half);
    }
    Ok(())
}

/// Subscribes to one topic after the other.
fn subscribe(report: &mut Report) -> Result<()> {
    for [topic, datapath, level] in HALVES {
        let mut subscriber = isolane(&format!(
            "sub {topic} --reliable --history all --level {level} --datapath {datapath} --count {SAMPLES} \
             --seconds {SUBSCRIBES} --json -"
        ));
        let half = Half::of(&command::captured(&mut subscriber)?);
        report.halves.insert(topic.to_owned(), half);
    }
    Ok(())
}

fn isolane(arguments: &str) -> Command {
    let mut command = tools::program("isolane");
    command
        .args(arguments.split_whitespace())
        .args(["--interface", DEVICE])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Sequence numbers of samples with a value, from JSON lines.
fn sequences(lines: &str) -> Vec<u64> {
    let samples = lines.lines().filter_map(|line| {
        let sample: Value = serde_json::from_str(line).ok()?;
        let has_value = !sample["value"].is_null();
        sample["info"]["sequence"].as_u64().filter(|_| has_value)
    });
    samples.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports() -> (Report, Report) {
        let frames = |way: &str| Counters::from([(format!("{way}_queue_0_packets"), 2 * SAMPLES)]);
        let half = |sequences: Vec<u64>| Half {
            sequences,
            messages: String::new(),
            exit_code: Some(0),
        };
        let halves = |sequences: &[u64]| {
            let half = |[topic, ..]: [&str; 3]| (topic.to_owned(), half(sequences.to_vec()));
            HALVES.map(half).into()
        };
        let came: Vec<u64> = (5..5 + SAMPLES).collect();
        let received = Report {
            halves: halves(&came),
            frames: frames("rx"),
        };
        let sent = Report {
            halves: halves(&[]),
            frames: frames("tx"),
        };
        (received, sent)
    }

    #[test]
    fn all_samples_in_order_are_no_fault() {
        let (received, sent) = reports();
        assert_eq!(faults(&received, &sent), [""; 0]);
    }

    #[test]
    fn a_gap_a_failure_and_frames_that_never_were_are_faults() {
        let gap = |report: &mut Report| {
            if let Some(half) = report.halves.get_mut("Circle") {
                half.sequences[7] = 1_000;
            }
        };
        let few = |report: &mut Report| {
            if let Some(half) = report.halves.get_mut("Square") {
                half.sequences.pop();
            }
        };
        let failed = |report: &mut Report| {
            if let Some(half) = report.halves.get_mut("Square") {
                half.exit_code = Some(1);
            }
        };
        let unsent = |report: &mut Report| report.frames.clear();
        for breaks in [gap, few, failed, unsent] {
            let (mut received, sent) = reports();
            breaks(&mut received);
            assert_eq!(faults(&received, &sent).len(), 1);
        }
    }

    #[test]
    fn sequence_numbers_are_those_of_samples_with_a_value() {
        let lines = "{\"value\":{\"x\":1},\"info\":{\"sequence\":4}}\nnot JSON\n\
                     {\"value\":null,\"info\":{\"sequence\":5}}\n";
        assert_eq!(sequences(lines), [4]);
    }
}
