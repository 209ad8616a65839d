//! The clock: who keeps it, and how far it may be from those of other hosts.

use super::{Findings, ptp};
use crate::clock::{ClockError, clock_error, duration, one_way_bound};
use crate::facts::Facts;
use crate::limits::CLOCK_ERROR_US;
use crate::needs::Needs;

/// Programs that keep the time.
const TIME_KEEPERS: [&str; 5] = ["chronyd", "ntpd", "systemd-timesyn", "ptp4l", "phc2sys"];

pub(super) fn examine(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    keepers(facts, findings);
    error(facts, findings);
    one_way(facts, findings);
    ptp::examine(facts, needs, findings);
}

pub(super) fn runs(facts: &Facts, name: &str) -> bool {
    facts.programs.iter().any(|program| program == name)
}

fn keepers(facts: &Facts, findings: &mut Findings) {
    let keepers = TIME_KEEPERS.into_iter().filter(|name| runs(facts, name));
    let keepers: Vec<&str> = keepers.collect();
    if keepers.is_empty() {
        findings.info(
            "kernel.time-keeping",
            "no program that sets the clock is running",
            "source time stamps of different hosts drift apart, and one-way delays between hosts \
             mean nothing; round trips are right",
            "run chrony, or linuxptp (ptp4l and phc2sys) where the interface stamps in hardware",
        );
    } else {
        findings.ok(
            "kernel.time-keeping",
            format!("the clock is kept by {}", keepers.join(", ")),
        );
    }
}

fn error(facts: &Facts, findings: &mut Findings) {
    let id = "kernel.clock-error";
    match clock_error(facts) {
        error @ ClockError::Bound { nanoseconds, .. } if nanoseconds <= CLOCK_ERROR_US * 1_000 => {
            findings.ok(id, format!("how far the clock is off is known: {error}"));
        }
        ClockError::Bound {
            nanoseconds,
            keeper,
            against,
            provided,
        } => findings.info(
            id,
            format!(
                "the clock may be {} off {against}, according to {keeper}{}",
                duration(nanoseconds),
                condition(provided.as_deref())
            ),
            "one-way delays between hosts are uncertain by as much, on each host: more than most of them are; \
             round trips are right",
            "use PTP on interfaces that stamp in hardware (linuxptp: ptp4l, phc2sys), or a source of time nearby",
        ),
        ClockError::Untold { keepers, why, ask } => findings.info(
            id,
            format!(
                "how far the clock is off is not known ({}): {why}",
                keepers.join(", ")
            ),
            "one-way delays to other hosts are refused; round trips are right",
            format!("ask: {ask}"),
        ),
        ClockError::Unkept if facts.clock.is_kept == Some(false) => findings.info(
            id,
            "the kernel calls its clock unsynchronised",
            "one-way delays between hosts mean nothing: clocks drift apart by up to 100 us a second; round trips \
             are right",
            match runs(facts, "chronyd") {
                true => {
                    "wait until chrony has found its source; without the line rtcsync in chrony.conf it never tells the \
                     kernel that the clock is kept"
                }
                false => "run chrony, or linuxptp, and wait until it has found its source",
            },
        ),
        ClockError::Unkept | ClockError::Unknown => {}
    }
}

/// What a one-way delay to a host would have to be beyond whose clock is kept as well as this one.
fn one_way(facts: &Facts, findings: &mut Findings) {
    let error = clock_error(facts);
    // Where the error is not known, that is a finding of its own.
    if let Ok(bound) = one_way_bound(&error, &error) {
        let provided = match &error {
            ClockError::Bound { provided, .. } => provided.as_deref(),
            _ => None,
        };
        findings.ok(
            "kernel.one-way",
            format!(
                "one-way delays to hosts whose clocks are kept as well, by the same source, mean something beyond {}{}; \
                 shorter ones are refused",
                duration(bound.nanoseconds()),
                condition(provided)
            ),
        );
    }
}

/// What a statement is provided with, behind it.
fn condition(provided: Option<&str>) -> String {
    provided.map_or_else(String::new, |provided| format!(", if {provided}"))
}
