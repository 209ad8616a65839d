//! The clock: who keeps it, and how far it may be from those of other hosts.

use super::Findings;
use crate::clock::{ClockError, clock_error};
use crate::facts::Facts;
use crate::limits::CLOCK_ERROR_US;
use crate::needs::Needs;

/// Programs that keep the time.
const TIME_KEEPERS: [&str; 5] = ["chronyd", "ntpd", "systemd-timesyn", "ptp4l", "phc2sys"];

pub(super) fn examine(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    keepers(facts, findings);
    error(facts, findings);
    ptp(facts, needs, findings);
}

fn runs(facts: &Facts, name: &str) -> bool {
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
        ClockError::Bound {
            microseconds,
            keeper,
        } if microseconds <= CLOCK_ERROR_US => findings.ok(
            id,
            format!("the clock is within {microseconds} us of its source, {keeper} says"),
        ),
        ClockError::Bound {
            microseconds,
            keeper,
        } => findings.info(
            id,
            format!("the clock may be {microseconds} us off its source, {keeper} says"),
            "one-way delays between hosts are uncertain by as much, on each host: more than most of them are; \
             round trips are right",
            "use PTP on interfaces that stamp in hardware (linuxptp: ptp4l, phc2sys), or a source of time nearby",
        ),
        ClockError::Untold { keepers, ask } => findings.info(
            id,
            format!(
                "how far the clock is off cannot be known from here: {} keeps it to itself",
                keepers.join(", ")
            ),
            "one-way delays between hosts are as uncertain as that; round trips are right",
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

/// PTP takes two programs: one keeps the device's clock, the other the kernel's by it.
fn ptp(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    let id = "kernel.ptp";
    match (runs(facts, "ptp4l"), runs(facts, "phc2sys")) {
        (true, true) => findings.ok(id, "ptp4l keeps the device's clock, phc2sys the kernel's by it"),
        (false, true) => findings.warn(
            id,
            "phc2sys runs without ptp4l",
            "the kernel's clock follows a device's that nobody keeps: it drifts by up to 100 us a second, and calls \
             itself kept",
            "systemctl enable --now ptp4l@INTERFACE; or stop phc2sys, and run chrony",
        ),
        (true, false) if has_clock(facts, needs) && !runs(facts, "chronyd") => findings.warn(
            id,
            "ptp4l runs without phc2sys",
            "it keeps the device's clock alone: time stamps of topics are the kernel's, which nobody keeps",
            "systemctl enable --now phc2sys@INTERFACE; or have chrony follow the device (refclock PHC)",
        ),
        _ => {}
    }
    if runs(facts, "phc2sys")
        && (runs(facts, "chronyd") || runs(facts, "ntpd") || runs(facts, "systemd-timesyn"))
    {
        findings.warn(
            "kernel.clock-keepers",
            "two programs keep the kernel's clock: phc2sys, and one that follows the network",
            "they pull it to and fro: steps of up to milliseconds, in both directions",
            "stop one of them: systemctl disable --now chrony systemd-timesyncd",
        );
    }
}

fn has_clock(facts: &Facts, needs: &Needs) -> bool {
    let is_meant = |name: &str| {
        needs
            .interface
            .as_deref()
            .is_none_or(|wanted| wanted == name)
    };
    let mut devices = facts
        .devices
        .iter()
        .filter(|device| is_meant(&device.interface));
    devices.any(|device| {
        device
            .timestamps
            .is_some_and(|stamps| stamps.clock.is_some())
    })
}
