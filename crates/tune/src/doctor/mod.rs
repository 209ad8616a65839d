//! Facts and needs become findings: a pure function, a file a subject.

mod cores;
mod interfaces;
mod kernel;
mod lanes;
mod participants;
mod ports;
mod rights;
mod sockets;

use serde::Serialize;

use crate::facts::Facts;
use crate::needs::Needs;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It is as it should be.
    Ok,
    /// Worth knowing; nothing has to be done.
    Info,
    /// It costs latency, or certainty.
    Warn,
    /// Topics will not flow as described.
    Error,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at: a subject and a name, `cores.governor`; of one interface, its name comes
    /// last. It keeps its meaning from version to version.
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// What is so.
    pub what: String,
    /// What it costs, in words; empty if nothing.
    pub cost: String,
    /// What to do: a command, or a setting; empty if nothing has to be done.
    pub remedy: String,
}

/// Looks at everything.
pub fn examine(facts: &Facts, needs: &Needs) -> Vec<Finding> {
    let mut findings = Findings::default();
    kernel::examine(facts, &mut findings);
    cores::examine(facts, needs, &mut findings);
    rights::examine(facts, &mut findings);
    sockets::examine(facts, needs, &mut findings);
    ports::examine(facts, needs, &mut findings);
    participants::examine(facts, needs, &mut findings);
    interfaces::examine(facts, needs, &mut findings);
    lanes::examine(facts, needs, &mut findings);
    findings.0
}

/// What was found so far.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, id: &str, what: impl Into<String>) {
        self.add(Severity::Ok, id, what, "", "");
    }

    fn info(&mut self, id: &str, what: impl Into<String>, cost: &str, remedy: impl Into<String>) {
        self.add(Severity::Info, id, what, cost, remedy);
    }

    fn warn(&mut self, id: &str, what: impl Into<String>, cost: &str, remedy: impl Into<String>) {
        self.add(Severity::Warn, id, what, cost, remedy);
    }

    fn error(&mut self, id: &str, what: impl Into<String>, cost: &str, remedy: impl Into<String>) {
        self.add(Severity::Error, id, what, cost, remedy);
    }

    fn add(
        &mut self,
        severity: Severity,
        id: &str,
        what: impl Into<String>,
        cost: &str,
        remedy: impl Into<String>,
    ) {
        self.0.push(Finding {
            id: id.into(),
            severity,
            what: what.into(),
            cost: cost.into(),
            remedy: remedy.into(),
        });
    }
}

/// Numbers as the kernel lists them, `0-2,6`.
fn list(numbers: &[u16]) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let ranges: Vec<String> = ranges
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            _ => format!("{first}-{last}"),
        })
        .collect();
    ranges.join(",")
}
