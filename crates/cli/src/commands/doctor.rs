//! `isolane doctor`: comparison of this machine with the needs of critical topics.

use std::fmt::Write as _;
use std::path::Path;

use isolane_model::{read_regular_text, visible_line};
use isolane_tune::{Facts, Finding, Needs, Severity, examine, probe};
use serde::Serialize;

use crate::datapaths::kinds;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::RECORDED_BYTES;
use crate::output::{count_of, print, print_json};
use crate::settings::DoctorSettings;
use crate::values::Destination;

use super::{needs, placements};

/// JSON form (`--json`).
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    hostname: &'a str,
    host: Option<&'a str>,
    domain: u32,
    findings: &'a [Finding],
}

/// Examines the machine and prints the findings; exit code 1 if the described topics cannot work.
pub(crate) fn run(settings: DoctorSettings) -> Result<ExitCode, Failure> {
    let facts = match &settings.from {
        Some(path) => recorded(path)?,
        None => probe(kinds()),
    };
    if settings.facts {
        let destination = settings.json.unwrap_or(Destination::StandardOutput);
        return print_json(&facts, &destination);
    }
    let domain = settings.network.domain.value.get();
    let needs = needs::of(
        settings.system.as_deref(),
        domain,
        settings.host.as_deref(),
        &facts.hostname,
    )?;
    let mut findings = examine(&facts, &needs, kinds());
    let host = settings.system.as_ref().zip(needs.host.as_deref());
    let host = host.and_then(|(system, name)| system.host(name));
    if let Some(host) = host.filter(|_| settings.from.is_none()) {
        findings.extend(placements::examine(host, domain));
    }
    let printed = match &settings.json {
        Some(destination) => print_json(
            &Report {
                schema: "isolane/doctor/1",
                hostname: &facts.hostname,
                host: needs.host.as_deref(),
                domain: needs.domain,
                findings: &findings,
            },
            destination,
        )?,
        None => ExitCode::Done,
    };
    if settings.json != Some(Destination::StandardOutput) {
        print(&text(&facts, &needs, &findings, settings.all))?;
    }
    let is_error = |finding: &Finding| finding.severity == Severity::Error;
    Ok(if findings.iter().any(is_error) {
        ExitCode::AnswerIsNo
    } else {
        printed
    })
}

fn recorded(path: &Path) -> Result<Facts, Failure> {
    let failed = |why: String| {
        Failure::wrong_usage(format!("cannot read the facts in {}", path.display()), why)
            .with_remedy("record them on the machine they are about: isolane doctor --facts")
    };
    let text =
        read_regular_text(path, RECORDED_BYTES).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
}

/// Groups of findings by the prefix of their ids.
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
    ("lane", "Lanes of AF_XDP"),
];

fn text(facts: &Facts, needs: &Needs, findings: &[Finding], all: bool) -> String {
    // Writing to a string cannot fail.
    let mut text = String::new();
    let _ = write!(text, "{}, domain {}", facts.hostname, needs.domain);
    if let Some(host) = &needs.host {
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
        "\n{}, {}, {} to know, {} as it should be{}",
        count_of(count(Severity::Error), "error"),
        count_of(count(Severity::Warn), "warning"),
        count(Severity::Info),
        count(Severity::Ok),
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
    // Names of interfaces and programs are untrusted and must stay on one line.
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
