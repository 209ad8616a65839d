//! `isolane doctor`: compares this machine with the needs of critical topics. Also compares the core and scheduling
//! policy of running participants with the description.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use isolane::observe::ParticipantSample;
use isolane_model::{Host, visible_line};
use isolane_tune::{Finding, Severity, examine, probe, wrap_lines};
use serde::Serialize;

use crate::datapaths::kinds;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{count_of, joined, print_json, print_json_or, terminal_columns};
use crate::settings::Settings;
use crate::values::Destination;

use super::top::discovery::Watcher;
use super::top::sample::Seen;
use super::tune::{FACTS, recorded};

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Use [host.NAME] of the description for this machine [default: the entry of its host name, else the only entry]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Check the facts in this file (written by `doctor --facts`, perhaps on another machine) instead of this machine
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Show also the checks that passed
    #[arg(long)]
    all: bool,
    /// Print the facts (this machine's state) as JSON instead of findings, for `doctor --from` and `tune plan --facts`
    #[arg(long, conflicts_with_all = ["host", "all"])]
    facts: bool,
    /// Write the findings (or with --facts, the facts) as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

/// JSON form of the findings (`--json`).
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    hostname: &'a str,
    host: Option<&'a str>,
    domain: u32,
    findings: &'a [Finding],
}

impl Doctor {
    /// Examines the machine and prints the findings. The exit code is 1 if a finding is an error.
    pub(super) fn run(self, settings: &Settings) -> Result<ExitCode, Failure> {
        settings.begin()?;
        settings.check_host(self.host.as_ref())?;
        let facts = match &self.from {
            Some(path) => recorded(path, "facts", FACTS)?,
            None => probe(kinds()),
        };
        if self.facts {
            let destination = self.json.unwrap_or(Destination::StandardOutput);
            return print_json(&facts, &destination);
        }
        let needs = settings.needs(self.host.as_deref(), &facts.hostname)?;
        let mut findings = examine(&facts, &needs, kinds());
        let host = settings.system.as_ref().zip(needs.host.as_deref());
        let host = host.and_then(|(system, name)| system.host(name));
        if let Some(host) = host.filter(|_| self.from.is_none()) {
            findings.extend(examine_placements(host, needs.domain));
        }
        let report = Report {
            schema: "isolane/doctor/1",
            hostname: &facts.hostname,
            host: needs.host.as_deref(),
            domain: needs.domain,
            findings: &findings,
        };
        let printed = print_json_or(&report, self.json.as_ref(), |report| {
            wrap_lines(text(report, self.all), terminal_columns())
        })?;
        let is_error = |finding: &Finding| finding.severity == Severity::Error;
        Ok(match findings.iter().any(is_error) {
            true => ExitCode::AnswerIsNo,
            false => printed,
        })
    }
}

/// Groups of findings in the text: the first part of their ids, and a title.
const GROUPS: [(&str, &str); 12] = [
    ("description", "Description"),
    ("kernel", "Kernel and time"),
    ("cores", "Cores"),
    ("scheduler", "Scheduler"),
    ("programs", "Programs"),
    ("rights", "Rights of this process"),
    ("memory", "Memory"),
    ("sockets", "Sockets"),
    ("ports", "Ports and filters"),
    ("participant", "Described participants"),
    ("interface", "Interfaces"),
    ("lane", "Lanes"),
];

fn text(report: &Report<'_>, all: bool) -> String {
    let findings = report.findings;
    // Writing to a string cannot fail.
    let mut text = String::new();
    let _ = write!(text, "{}, domain {}", report.hostname, report.domain);
    if let Some(host) = report.host {
        let _ = write!(text, ", as host {host} of the description");
    }
    text.push('\n');
    for (start, title) in GROUPS {
        let group: Vec<&Finding> = findings
            .iter()
            .filter(|finding| finding.id.split('.').next() == Some(start))
            .filter(|finding| all || finding.severity > Severity::Ok)
            .collect();
        if group.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{title}");
        for finding in group {
            describe(&mut text, finding);
        }
    }
    let count = |severity| {
        let of = findings
            .iter()
            .filter(|finding| finding.severity == severity);
        of.count() as u64
    };
    let _ = writeln!(
        text,
        "\n{}, {}, {}, {} passed{}",
        count_of(count(Severity::Error), "error"),
        count_of(count(Severity::Warn), "warning"),
        count_of(count(Severity::Info), "note"),
        count_of(count(Severity::Ok), "check"),
        if all { "" } else { " (--all shows them)" },
    );
    text
}

fn describe(text: &mut String, finding: &Finding) {
    let mark = match finding.severity {
        Severity::Ok => "ok",
        Severity::Info => "info",
        Severity::Warn => "WARN",
        Severity::Error => "ERROR",
    };
    // Names of interfaces and programs are untrusted. `visible_line` keeps them on one line.
    let _ = writeln!(
        text,
        "  {mark:<5}  {}  [{}]",
        visible_line(&finding.what),
        finding.id
    );
    for (name, said) in [("cost", &finding.cost), ("to do", &finding.remedy)] {
        if !said.is_empty() {
            let _ = writeln!(text, "         {name}: {}", visible_line(said));
        }
    }
}

/// Maximum wait for the snapshots of running participants, which are published once a second.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval at which the participants' connections are read.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Findings about the running participants of a domain. There are none if `host` describes neither core nor priority.
fn examine_placements(host: &Host, domain: u32) -> Vec<Finding> {
    if host.core.value.is_none() && host.priority.value.is_none() {
        return Vec::new();
    }
    // Without /proc no participant can be found.
    let running = running(domain).unwrap_or_default();
    running
        .iter()
        .map(|participant| compare(host, participant))
        .collect()
}

/// Snapshots of the running participants of a domain on this host.
fn running(domain: u32) -> io::Result<Vec<ParticipantSample>> {
    let mut watcher = Watcher::new(Some(domain));
    let begun = Instant::now();
    loop {
        watcher.look()?;
        let seen = watcher.sample().participants;
        let is_settled = |seen: &Seen| seen.snapshot.is_some() || seen.problem.is_some();
        if seen.iter().all(is_settled) || begun.elapsed() >= PATIENCE {
            let snapshots = seen.into_iter().filter_map(|seen| seen.snapshot);
            return Ok(snapshots.map(|snapshot| snapshot.participant).collect());
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn compare(host: &Host, participant: &ParticipantSample) -> Finding {
    let mut differs = Vec::new();
    if let Some(core) = host.core.value
        && participant.allowed_cores != [usize::from(core)]
    {
        let cores = joined(&participant.allowed_cores, ", ");
        differs.push(format!(
            "may run on cores {cores}, not on core {core} alone"
        ));
    }
    if let Some(priority) = host.priority.value {
        let wanted = format!("SCHED_FIFO {priority}");
        let policy = participant.policy.as_deref().unwrap_or("an unknown policy");
        if policy != wanted {
            differs.push(format!("runs under {policy}, not under {wanted}"));
        }
    }
    let ParticipantSample { pid, name, .. } = participant;
    let id = format!("scheduler.participant.{pid}.{}", participant.number);
    let who = format!("participant \"{name}\" of process {pid}");
    if differs.is_empty() {
        return Finding {
            id,
            severity: Severity::Ok,
            what: format!("{who} has the described core and policy"),
            cost: String::new(),
            remedy: String::new(),
        };
    }
    Finding {
        id,
        severity: Severity::Warn,
        what: format!("{who} {}", differs.join("; it ")),
        cost: "other programs delay its loop, and the kernel may move it to another core".into(),
        remedy: format!(
            "start it with the description (isolane sub TOPIC --config FILE --host {}; in a program: Builder::core \
             and Builder::realtime), and read its messages about refused rights",
            host.name.value
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(keys: &str) -> Host {
        let text = format!("[host.a]\ninterface = \"lo\"\n{keys}");
        let system = isolane_model::System::from_toml(&text, "isolane.toml", isolane::DATAPATHS);
        system
            .expect("a description")
            .host("a")
            .expect("it is there")
            .clone()
    }

    fn participant(allowed: &[usize], policy: &str) -> ParticipantSample {
        let sample = serde_json::json!({
            "pid": 7, "number": 0, "name": "arm", "domain": 0, "guid_prefix": "", "datapath": "udp",
            "at_us": 0.0, "allowed_cores": allowed, "policy": policy, "participants": 0, "notes": [],
            "counters": {}, "frames_out": 0, "frames_armed": 0, "frames_lent": 0, "no_frame": 0,
            "imbalance": null, "observers_refused": 0, "observers_dropped": 0,
        });
        serde_json::from_value(sample).expect("a participant")
    }

    #[test]
    fn a_participant_that_runs_elsewhere_than_described_is_a_warning() {
        let described = host("core = 1\npriority = 70\n");
        let found = compare(&described, &participant(&[0, 1], "SCHED_OTHER"));
        assert_eq!(found.severity, Severity::Warn);
        for words in [
            "cores 0, 1",
            "core 1 alone",
            "SCHED_OTHER",
            "SCHED_FIFO 70",
            "process 7",
        ] {
            assert!(found.what.contains(words), "no {words} in {}", found.what);
        }
        let found = compare(&described, &participant(&[1], "SCHED_OTHER"));
        assert!(!found.what.contains("cores"), "{}", found.what);
        let found = compare(&described, &participant(&[1], "SCHED_FIFO 70"));
        assert_eq!(found.severity, Severity::Ok);
    }

    #[test]
    fn without_a_description_nothing_is_found() {
        assert_eq!(examine_placements(&host(""), 0), []);
    }
}
