//! Many `isolane sub` for one `isolane pub`, and the output of `isolane ls` and `isolane why` about them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::namespace::BridgedHosts;
use isolane_support::process::Killed;
use isolane_support::steps::Check;
use isolane_support::{Result, command};
use serde::Serialize;
use serde_json::Value;

const TOPIC: &str = "Many";
/// Time between two samples.
const PERIOD: &str = "50ms";
/// Number of samples that each reader must get.
const SAMPLES: usize = 10;
/// Maximum time from the start of the last process until each reader has its samples.
const PATIENCE: Duration = Duration::from_secs(30);
/// Polling interval of the readers' output.
const LOOK: Duration = Duration::from_millis(200);
/// Listening time of `ls` and `why`, in seconds.
const LISTEN: &str = "5";

/// Case: number and kind of the readers.
pub(super) struct Readers {
    pub(super) name: &'static str,
    pub(super) readers: usize,
    /// Number of hosts.
    pub(super) hosts: usize,
    pub(super) reliable: bool,
    /// True to use 127.0.0.1 with `--peer`, without multicast.
    pub(super) by_unicast: bool,
    pub(super) writer_first: bool,
    /// True if `ls` and `why` must name all endpoints.
    pub(super) is_listed: bool,
}

/// First of the four cases in which readers once got no samples. The other three follow.
pub(super) const FORTY_FIVE: Readers = Readers {
    name: "45 readers on two hosts",
    readers: 45,
    hosts: 2,
    reliable: true,
    by_unicast: false,
    writer_first: false,
    is_listed: true,
};
pub(super) const TEN_BY_UNICAST: Readers = Readers {
    name: "ten participants by --peer",
    readers: 9,
    hosts: 1,
    reliable: false,
    by_unicast: true,
    ..FORTY_FIVE
};
pub(super) const TWENTY_BY_UNICAST: Readers = Readers {
    name: "20 best-effort readers by --peer",
    readers: 20,
    writer_first: true,
    is_listed: false,
    ..TEN_BY_UNICAST
};
pub(super) const MORE_THAN_THE_PORTS: Readers = Readers {
    name: "126 participants of one host",
    readers: 125,
    hosts: 1,
    ..FORTY_FIVE
};

/// Result of a case.
#[derive(Debug, Serialize)]
pub(super) struct ReadersReport {
    name: &'static str,
    readers: usize,
    /// Time from the start of the last process until each reader had its samples; null after the timeout.
    seconds: Option<f64>,
    pub(super) checks: Vec<Check>,
}

impl Readers {
    /// Starts writer and readers, waits for their samples, and judges the result.
    pub(super) fn run(
        &self,
        hosts: &BridgedHosts,
        isolane: &Path,
        folder: &Path,
    ) -> Result<ReadersReport> {
        eprintln!("{} ...", self.name);
        let folder = folder.join(self.name);
        fs::create_dir_all(&folder)?;
        let place = |mut program: Command, host: usize| {
            program
                .env_remove("ISOLANE_CONFIG")
                .env_remove("ISOLANE_DOMAIN");
            if self.by_unicast {
                program.args(["--interface", "lo", "--peer", "127.0.0.1"]);
            }
            hosts.command(host, program)
        };
        let start_writer = || {
            let mut program = Command::new(isolane);
            program.args(["pub", TOPIC, "--period", PERIOD]);
            start(place(program, 0), &folder, "writer")
        };
        let mut writer = self.writer_first.then(start_writer).transpose()?;
        if writer.is_some() {
            thread::sleep(Duration::from_secs(1));
        }
        let mut readers = Vec::new();
        for number in 0..self.readers {
            let mut program = Command::new(isolane);
            program.args(["sub", TOPIC]);
            if self.reliable {
                program.arg("--reliable");
            }
            let name = format!("reader {number}");
            readers.push(start(place(program, number % self.hosts), &folder, &name)?);
        }
        if writer.is_none() {
            thread::sleep(Duration::from_secs(1));
            writer = Some(start_writer()?);
        }
        let begin = Instant::now();
        let lacks = |reader: &&Started| reader.lines() < SAMPLES;
        while begin.elapsed() < PATIENCE && readers.iter().any(|it| lacks(&it)) {
            thread::sleep(LOOK);
        }
        let elapsed = begin.elapsed().as_secs_f64();
        let lacking = readers.iter().filter(lacks).count();
        let mut checks = vec![Check {
            what: format!(
                "{}: {} of {} have samples",
                self.name,
                self.readers - lacking,
                self.readers
            ),
            holds: lacking == 0,
        }];
        if self.is_listed {
            let ask = |arguments: &[&str]| -> Result<Child> {
                let mut program = Command::new(isolane);
                program.args(arguments);
                program.args(["--seconds", LISTEN, "--json", "-"]);
                let mut program = place(program, 0);
                program
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null());
                command::spawn(&mut program)
            };
            // The machine is busy, so both run at the same time, and `why` does not look at other domains.
            let (ls, why) = (ask(&["ls"])?, ask(&["why", TOPIC, "--no-other-domains"])?);
            let listing: Value = serde_json::from_slice(&ls.wait_with_output()?.stdout)?;
            let answer: Value = serde_json::from_slice(&why.wait_with_output()?.stdout)?;
            checks.push(self.judge_listing(&listing));
            checks.push(self.judge_answer(&answer));
        }
        drop(writer);
        Ok(ReadersReport {
            name: self.name,
            readers: self.readers,
            seconds: (lacking == 0).then_some(elapsed),
            checks,
        })
    }

    /// Checks that `ls` names the writer, each reader and their participants.
    fn judge_listing(&self, listing: &Value) -> Check {
        let participants = listing["participants"].as_array();
        let participants = participants.map(Vec::as_slice).unwrap_or_default();
        let endpoints = || {
            let all = participants
                .iter()
                .filter_map(|it| it["endpoints"].as_array());
            all.flatten().filter(|it| it["topic"] == TOPIC)
        };
        let count = |kind: &str| endpoints().filter(|it| it["kind"] == kind).count();
        let (writers, readers) = (count("writer"), count("reader"));
        Check {
            what: format!(
                "{}: ls shows {readers} of {} readers and {writers} of 1 writers",
                self.name, self.readers
            ),
            holds: (writers, readers) == (1, self.readers) && listing["refused"].is_null(),
        }
    }

    /// Checks that `why` reports that all endpoints match.
    fn judge_answer(&self, answer: &Value) -> Check {
        let first = &answer["reasons"][0]["sentence"];
        Check {
            what: format!("{}: why says {}", self.name, first),
            holds: answer["communicates"] == true
                && answer["writers"] == 1
                && answer["readers"] == self.readers,
        }
    }
}

impl ReadersReport {
    /// Formats the numbers that are reported but not judged.
    pub(super) fn text(&self) -> String {
        match self.seconds {
            Some(seconds) => format!(
                "{}: each had {SAMPLES} samples {seconds:.1} s after the last start",
                self.name
            ),
            None => format!("{}: not each had {SAMPLES} samples", self.name),
        }
    }
}

/// Started program and the file of its output.
struct Started {
    _child: Killed,
    output: PathBuf,
}

impl Started {
    /// Returns the number of lines printed so far.
    fn lines(&self) -> usize {
        let text = fs::read(&self.output).unwrap_or_default();
        text.iter().filter(|&&byte| byte == b'\n').count()
    }
}

fn start(mut program: Command, folder: &Path, name: &str) -> Result<Started> {
    let output = folder.join(format!("{name}.txt"));
    let log = folder.join(format!("{name}.log"));
    program
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .stderr(File::create(log)?);
    Ok(Started {
        _child: Killed(command::spawn(&mut program)?),
        output,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_listing_that_lacks_a_reader_does_not_hold() {
        let reader = json!({ "kind": "reader", "topic": TOPIC });
        let other = json!({ "kind": "reader", "topic": "Other" });
        let mut endpoints = vec![reader; TEN_BY_UNICAST.readers];
        endpoints.extend([json!({ "kind": "writer", "topic": TOPIC }), other]);
        let listing = |endpoints: &[Value], refused: Value| json!({ "refused": refused, "participants": [{ "endpoints": endpoints }] });
        let holds = |listing: Value| TEN_BY_UNICAST.judge_listing(&listing).holds;
        assert!(holds(listing(&endpoints, Value::Null)));
        assert!(!holds(listing(&endpoints, json!("2 participants"))));
        assert!(!holds(listing(&endpoints[1..], Value::Null)));
        assert!(!holds(json!({})));
    }

    #[test]
    fn an_answer_that_counts_too_few_does_not_hold() {
        let answer = |readers: usize, communicates: bool| json!({ "communicates": communicates, "writers": 1, "readers": readers, "reasons": [] });
        let holds = |answer: Value| TEN_BY_UNICAST.judge_answer(&answer).holds;
        assert!(holds(answer(9, true)));
        assert!(!holds(answer(9, false)));
        assert!(!holds(answer(8, true)));
    }
}
