//! PTP: who keeps what, and what ptp4l and the clocks themselves say of it.

use super::Findings;
use super::clock::runs;
use crate::clock::duration;
use crate::clock::ptp::{PtpDoubt, apart, bound, device_of, keeps_the_kernels, masters, slave};
use crate::facts::{Facts, Ptp, PtpPort, PtpState};
use crate::limits::CLOCK_ERROR_US;
use crate::needs::Needs;

const CLOCK_ERROR_NS: u64 = CLOCK_ERROR_US * 1_000;

pub(super) fn examine(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    programs(facts, needs, findings);
    let clock = &facts.clock;
    match (&clock.ptp, &clock.ptp_silence) {
        (Some(ptp), _) => {
            for port in &ptp.ports {
                state(ptp, port, findings);
            }
            grandmaster(ptp, findings);
            offset(ptp, findings);
            device(facts, ptp, findings);
            beyond(facts, findings);
        }
        (None, Some(why)) => findings.info(
            "kernel.ptp-answer",
            format!("ptp4l tells nothing of itself: {why}"),
            "whether it has found a master, and how far its clock is off, is not known from here",
            "ask as root, where its socket /var/run/ptp4l is seen; for everybody: uds_ro_address of ptp4l (linuxptp 3.1)",
        ),
        (None, None) => {}
    }
}

/// The port's number, and its interface where that is known.
fn name(port: &PtpPort) -> String {
    match &port.interface {
        Some(interface) => format!("port {} of ptp4l ({interface})", port.number),
        None => format!("port {} of ptp4l", port.number),
    }
}

/// What each port is doing.
fn state(ptp: &Ptp, port: &PtpPort, findings: &mut Findings) {
    let id = &format!("kernel.ptp-port.{}", port.number);
    let (what, no_time) = (
        format!("{} is {}", name(port), port.state),
        "by it no time comes to this host: its clock drifts by up to 100 us a second",
    );
    // With another port that follows, this one is not missed.
    let is_missed = slave(ptp).is_none();
    match port.state {
        PtpState::Slave | PtpState::Master | PtpState::Passive => findings.ok(id, what),
        PtpState::Listening if is_missed => findings.warn(
            id,
            what,
            "it hears no master, and waits for one: no time comes to this host, and its clock drifts by up to 100 us a second",
            format!(
                "run ptp4l on the host that is to be the master; the same domain there ({}), transport and profile; see that switches \
                 forward PTP's groups (224.0.1.129, 01:1b:19:00:00:00, 01:80:c2:00:00:0e)",
                ptp.domain
            ),
        ),
        PtpState::Uncalibrated if is_missed => findings.warn(
            id,
            what,
            "it has found a master and is not with it yet: its clock is off by an amount that nobody knows",
            "wait some seconds; if it stays, ptp4l's log names the cause (journalctl -u 'ptp4l*'): no answers to delay requests, or \
             stamps that the driver does not give in time (tx_timestamp_timeout)",
        ),
        PtpState::Faulty => findings.warn(
            id,
            what,
            no_time,
            "look into ptp4l's log (journalctl -u 'ptp4l*'): the interface is down, or does not stamp in hardware (ethtool -T)",
        ),
        _ if is_missed => findings.info(
            id,
            what,
            no_time,
            "wait until it has begun; if it stays, see ptp4l's log: journalctl -u 'ptp4l*'",
        ),
        _ => findings.ok(id, what),
    }
}

/// Whom the time is from.
fn grandmaster(ptp: &Ptp, findings: &mut Findings) {
    let id = "kernel.ptp-grandmaster";
    if ptp.has_grandmaster {
        let steps = match ptp.steps_removed {
            None => String::new(),
            Some(1) => String::from(", a step away"),
            Some(steps) => format!(", {steps} steps away"),
        };
        findings.ok(
            id,
            format!(
                "the time is that of grandmaster {} in PTP domain {}{steps}",
                ptp.grandmaster, ptp.domain
            ),
        );
    } else if masters(ptp).is_empty() {
        findings.warn(
            id,
            "ptp4l has found no grandmaster",
            "the clock of this host is its own: one-way delays to other hosts mean nothing",
            "run ptp4l on one host of the network as master (its default, without clientOnly 1), in the same domain",
        );
    } else {
        findings.info(
            id,
            format!("this host is the grandmaster of PTP domain {}: {}", ptp.domain, ptp.grandmaster),
            "none, if it was meant: others follow its clock. A second one that says so of itself has another time",
            "on hosts that are to follow: clientOnly 1 (slaveOnly 1) in ptp4l.conf, so that none of them takes over",
        );
    }
}

/// How far the device's clock is from its master's.
fn offset(ptp: &Ptp, findings: &mut Findings) {
    if slave(ptp).is_none() {
        return;
    }
    let id = "kernel.ptp-offset";
    let off_ns = ptp.master_offset_ns.unsigned_abs();
    let what = format!("ptp4l measured {} from its master", duration(off_ns));
    match off_ns <= CLOCK_ERROR_NS {
        true => findings.ok(id, what),
        false => findings.warn(
            id,
            what,
            "one-way delays and source time stamps are off by as much",
            "wait until ptp4l has settled (its log: s2, rms); if it stays, use hardware stamps (ptp4l -H), keep PTP's frames from \
             waiting behind bulk, and see that only one program sets that clock",
        ),
    }
}

/// How far the kernel's clock is from the device's: what phc2sys brings about, measured.
fn device(facts: &Facts, ptp: &Ptp, findings: &mut Findings) {
    let id = "kernel.ptp-device";
    let of_master = masters(ptp);
    let Some(port) = slave(ptp).or_else(|| of_master.first().copied()) else {
        return;
    };
    if port.stamps_in_hardware == Some(false) {
        return;
    }
    let Some(device) = device_of(facts, port) else {
        findings.info(
            id,
            format!(
                "the clock of the device behind {} could not be read",
                name(port)
            ),
            "whether phc2sys keeps the kernel's clock by it is not known",
            "ask as root: /dev/ptp* is for root only, and ptp4l tells only root its interfaces",
        );
        return;
    };
    let (apart_ns, seconds) = apart(facts, ptp, device);
    let behind = match seconds {
        0 => String::new(),
        seconds => format!(", beside the {seconds} s that PTP's time is ahead of UTC"),
    };
    let what = format!(
        "the kernel's clock is {} from /dev/ptp{}{behind} (measured within {})",
        duration(apart_ns),
        device.number,
        duration(device.window_ns)
    );
    match apart_ns.saturating_add(device.window_ns) <= CLOCK_ERROR_NS {
        true => findings.ok(id, what),
        // Its time goes from the kernel to the device.
        false if slave(ptp).is_none() => findings.warn(
            id,
            what,
            "others follow the device's clock, and time stamps of this host's topics are the kernel's: they are apart by as much",
            "have phc2sys set the device's clock by the kernel's (phc2sys -a -rr); if it does, see its offsets (journalctl -u \
             'phc2sys*')",
        ),
        false => findings.warn(
            id,
            what,
            "time stamps of topics are the kernel's: they are off by as much, however good the device's clock is",
            "run phc2sys for this device (systemctl enable --now phc2sys@INTERFACE); if it runs, see its offsets (journalctl -u \
             'phc2sys*'), that it knows the offset of UTC (phc2sys -w, or -O -37), and that nothing else sets the clock",
        ),
    }
}

/// What no offset tells.
fn beyond(facts: &Facts, findings: &mut Findings) {
    let id = "kernel.ptp-path";
    match bound(facts) {
        Ok(bound) => findings.ok(id, format!("what the clock may be off consists of: {bound}")),
        Err(doubt @ (PtpDoubt::Between(_) | PtpDoubt::FirstLinkOnly | PtpDoubt::NoPath | PtpDoubt::NoSeconds)) => findings.info(
            id,
            doubt.to_string(),
            "how far this clock is from the grandmaster has no bound that can be known here: one-way delays to other hosts are \
             refused",
            doubt.ask(),
        ),
        // These are findings of their own.
        Err(_) => {}
    }
}

/// PTP takes two programs: one keeps the device's clock, the other the kernel's by it.
fn programs(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    let id = "kernel.ptp";
    let leads = leads(facts);
    match (runs(facts, "ptp4l"), runs(facts, "phc2sys")) {
        (true, true) if leads => findings.ok(
            id,
            "ptp4l gives the device's clock to others; between that and the kernel's is phc2sys (-a -rr: the device's by the kernel's)",
        ),
        (true, true) => findings.ok(id, "ptp4l keeps the device's clock, phc2sys the kernel's by it"),
        (false, true) => findings.warn(
            id,
            "phc2sys runs without ptp4l",
            "the kernel's clock follows a device's that nobody keeps: it drifts by up to 100 us a second, and calls \
             itself kept",
            "systemctl enable --now ptp4l@INTERFACE; or stop phc2sys, and run chrony",
        ),
        (true, false) if keeps_the_kernels(facts) => findings.ok(
            id,
            "ptp4l stamps by the kernel's clock: there is no device's to follow",
        ),
        (true, false) if has_clock(facts, needs) && !runs(facts, "chronyd") => findings.warn(
            id,
            "ptp4l runs without phc2sys",
            "it keeps the device's clock alone: time stamps of topics are the kernel's, which nobody keeps",
            "systemctl enable --now phc2sys@INTERFACE; or have chrony follow the device (refclock PHC)",
        ),
        _ => {}
    }
    let of_network = ["chronyd", "ntpd", "systemd-timesyn"].into_iter();
    let of_network: Vec<&str> = of_network.filter(|name| runs(facts, name)).collect();
    if runs(facts, "phc2sys") && !of_network.is_empty() {
        let id = "kernel.clock-keepers";
        // On a grandmaster time goes the other way.
        if leads {
            findings.ok(
                id,
                format!(
                    "this host is the grandmaster: {} keeps the kernel's clock, and phc2sys is to set the device's by it (-a -rr)",
                    of_network.join(", ")
                ),
            );
            return;
        }
        findings.warn(
            id,
            "two programs keep the kernel's clock: phc2sys, and one that follows the network",
            "they pull it to and fro: steps of up to milliseconds, in both directions",
            "stop one of them: systemctl disable --now chrony systemd-timesyncd",
        );
    }
}

/// Whether others follow this host, and it follows none.
fn leads(facts: &Facts) -> bool {
    let ptp = facts.clock.ptp.as_ref();
    ptp.is_some_and(|ptp| slave(ptp).is_none() && !masters(ptp).is_empty())
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
