//! What ptp4l tells and what was measured, as a bound of the kernel clock's error.
//!
//! From the grandmaster to the kernel's clock there are two stretches. ptp4l keeps the device's clock by the
//! grandmaster: it is off by the offset that was measured, and by what cannot be measured, the asymmetry of the path, which is
//! at most its mean delay. phc2sys keeps the kernel's clock by the device's: how far the two are apart was measured here, to
//! within the window of that. The sum is what the bound is. It is as of the moment it was asked. With stamps of the kernel
//! there is one stretch: ptp4l keeps the kernel's clock itself.
//!
//! It holds only where messages of the master take the same each time: the delay is the median of several, and the offset is
//! that of one of them. One that waited in a switch, or was corrected by a transparent clock, is off by what nobody here
//! knows. So the bound says what it is provided with.
//!
//! Where more stands between than was measured, there is no bound: other clocks on the way (each has an error
//! of its own, of which nobody here knows), or a delay that is that of the first link only.

#[cfg(test)]
mod tests;

use std::fmt;

use super::{ClockError, duration};
use crate::facts::{DeviceClock, Facts, Ptp, PtpDelay, PtpPort, PtpState};

/// Nanoseconds in a second.
const SECOND_NS: i64 = 1_000_000_000;

/// What the error of a clock that follows another by PTP is provided with.
const WITHOUT_WAITING: &str = "PTP's messages wait nowhere on the way (a direct link, or a path without queues and transparent clocks)";

/// A bound, and what it consists of, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PtpBound {
    /// Of the device's clock from its master.
    pub(crate) offset_ns: u64,
    /// Of messages of the master; asymmetry can be no more where none waits. Zero for the grandmaster.
    pub(crate) path_ns: u64,
    /// Of the kernel's clock from the device's, and how wrong that may be.
    pub(crate) device_ns: u64,
    /// What it is a bound against.
    pub(crate) against: String,
    /// What it is provided with.
    pub(crate) provided: Option<&'static str>,
}

impl PtpBound {
    pub(crate) fn error(&self, keeper: &str) -> ClockError {
        let sum = self.offset_ns.saturating_add(self.path_ns);
        ClockError::Bound {
            nanoseconds: sum.saturating_add(self.device_ns),
            keeper: String::from(keeper),
            against: self.against.clone(),
            provided: self.provided.map(String::from),
        }
    }
}

/// Why there is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PtpDoubt {
    /// ptp4l tells nothing.
    Silent(String),
    /// No port follows a master, and none is one.
    NoMaster,
    /// How long messages of the master take is not known.
    NoPath,
    /// Other clocks stand between this one and the grandmaster.
    Between(u16),
    /// The delay that is known is to the neighbour, which need not be the master.
    FirstLinkOnly,
    /// Which device's clock it is cannot be told, or that one cannot be read.
    NoDevice,
    /// How many whole seconds the kernel's clock is behind the grandmaster's.
    NoSeconds,
    /// The kernel calls its clock unsynchronised: whoever is to keep it by the device's does not.
    NotFollowed,
}

impl fmt::Display for PtpDoubt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(why) => write!(formatter, "ptp4l tells nothing: {why}"),
            Self::NoMaster => formatter.write_str("ptp4l follows no master, and is none"),
            Self::NoPath => formatter.write_str("ptp4l has not measured how long messages of its master take"),
            Self::Between(steps) => write!(
                formatter,
                "{} stand between the grandmaster and this one, whose errors are not known here",
                match steps.saturating_sub(1) {
                    1 => String::from("a clock"),
                    clocks => format!("{clocks} clocks"),
                }
            ),
            Self::FirstLinkOnly => formatter.write_str(
                "ptp4l measures the delay of the first link only (peer delay), and without IEEE 802.1AS others may be behind it",
            ),
            Self::NoDevice => formatter.write_str("the clock of the device could not be read"),
            Self::NoSeconds => formatter.write_str(
                "by how many whole seconds the kernel's clock is behind the grandmaster's (UTC and TAI) is not told for certain",
            ),
            Self::NotFollowed => formatter.write_str("the kernel calls its clock unsynchronised"),
        }
    }
}

impl PtpDoubt {
    /// How to know.
    pub(crate) fn ask(&self) -> &'static str {
        match self {
            Self::Silent(_) | Self::NoDevice => {
                "as root, in the network namespace and file system of ptp4l (its uds_address is /var/run/ptp4l unless configured)"
            }
            Self::NoMaster | Self::NoPath => {
                "pmc -u -b 0 'GET PORT_DATA_SET', until a port is SLAVE"
            }
            Self::Between(_) => "the operator of the clocks between, each for its error",
            Self::FirstLinkOnly => "with delay_mechanism E2E, or the gPTP profile of linuxptp",
            Self::NoSeconds => {
                "pmc -u -b 0 'GET TIME_PROPERTIES_DATA_SET' (ptpTimescale, currentUtcOffset, currentUtcOffsetValid)"
            }
            Self::NotFollowed => {
                "journalctl -u 'phc2sys*' -u 'ptp4l*' (what they wait for; offset, in ns)"
            }
        }
    }
}

/// Whether ptp4l keeps the kernel's clock itself, by stamps of the kernel, on all ports that count.
pub(crate) fn keeps_the_kernels(facts: &Facts) -> bool {
    let Some(ptp) = &facts.clock.ptp else {
        return false;
    };
    let ports = slave(ptp).map_or_else(|| masters(ptp), |port| vec![port]);
    let in_software = |port: &&PtpPort| port.stamps_in_hardware == Some(false);
    !ports.is_empty() && ports.iter().all(in_software)
}

/// The bound of a machine on which ptp4l and phc2sys keep the clock, or ptp4l by stamps of the kernel.
pub(crate) fn bound(facts: &Facts) -> Result<PtpBound, PtpDoubt> {
    let clock = &facts.clock;
    let Some(ptp) = &clock.ptp else {
        let why = clock.ptp_silence.clone();
        return Err(PtpDoubt::Silent(
            why.unwrap_or_else(|| String::from("it was not asked")),
        ));
    };
    let (ports, offset_ns, path_ns, provided) = match slave(ptp) {
        Some(port) => {
            if clock.is_kept == Some(false) {
                return Err(PtpDoubt::NotFollowed);
            }
            (
                vec![port],
                ptp.master_offset_ns.unsigned_abs(),
                path(ptp, port)?,
                Some(WITHOUT_WAITING),
            )
        }
        // The grandmaster itself is not off itself.
        None => (masters(ptp), 0, 0, None),
    };
    let mut device_ns = 0;
    let mut behind_s = None;
    for port in ports {
        let (apart_ns, seconds) = from_device(facts, ptp, port)?;
        device_ns = device_ns.max(apart_ns);
        // Two ports whose clocks are whole seconds apart: neither is the one that was meant.
        if *behind_s.get_or_insert(seconds) != seconds {
            return Err(PtpDoubt::NoSeconds);
        }
    }
    // Kernels that are behind the same grandmaster by other whole seconds are that far apart.
    let behind = match behind_s.ok_or(PtpDoubt::NoMaster)? {
        0 => String::new(),
        seconds => format!(" less {seconds} s"),
    };
    Ok(PtpBound {
        offset_ns,
        path_ns,
        device_ns,
        against: format!(
            "grandmaster {} in PTP domain {}{behind}",
            ptp.grandmaster, ptp.domain
        ),
        provided,
    })
}

/// The port that follows a master.
pub(crate) fn slave(ptp: &Ptp) -> Option<&PtpPort> {
    let mut ports = ptp.ports.iter();
    ports.find(|port| ptp.has_grandmaster && port.state == PtpState::Slave)
}

/// The ports others follow, of a clock that is the grandmaster.
pub(crate) fn masters(ptp: &Ptp) -> Vec<&PtpPort> {
    let is_master = |port: &&PtpPort| !ptp.has_grandmaster && port.state == PtpState::Master;
    ptp.ports.iter().filter(is_master).collect()
}

/// How long messages of the master take.
fn path(ptp: &Ptp, port: &PtpPort) -> Result<u64, PtpDoubt> {
    match ptp.steps_removed {
        Some(1) => {}
        Some(steps @ 2..) => return Err(PtpDoubt::Between(steps)),
        _ => return Err(PtpDoubt::NoPath),
    }
    let delay_ns = match port.delay {
        // Each clock of 802.1AS on the way counts as a step: with one step the neighbour is the master.
        PtpDelay::PeerToPeer if ptp.is_gptp => Some(port.peer_delay_ns),
        PtpDelay::PeerToPeer => return Err(PtpDoubt::FirstLinkOnly),
        PtpDelay::EndToEnd => ptp.mean_path_delay_ns,
        PtpDelay::Unknown => None,
    };
    // Zero until it was measured.
    let delay_ns = delay_ns.filter(|delay_ns| *delay_ns > 0);
    delay_ns.map(i64::unsigned_abs).ok_or(PtpDoubt::NoPath)
}

/// How far the kernel's clock is from that of a port, in nanoseconds, beside the whole seconds it is behind.
fn from_device(facts: &Facts, ptp: &Ptp, port: &PtpPort) -> Result<(u64, i64), PtpDoubt> {
    // With stamps of the kernel ptp4l keeps the kernel's clock itself.
    if port.stamps_in_hardware == Some(false) {
        return Ok((0, seconds_in_software(ptp)?));
    }
    // Of a grandmaster whose time is not TAI some versions of ptp4l make TAI in the device, others do not.
    if ptp.has_grandmaster && ptp.is_tai == Some(false) {
        return Err(PtpDoubt::NoSeconds);
    }
    let device = device_of(facts, port).ok_or(PtpDoubt::NoDevice)?;
    let (apart_ns, seconds) = apart(facts, ptp, device);
    Ok((apart_ns.saturating_add(device.window_ns), seconds))
}

/// The whole seconds that ptp4l takes off the grandmaster's time where it keeps the kernel's clock. It takes off what is
/// valid, and else what it was built with.
fn seconds_in_software(ptp: &Ptp) -> Result<i64, PtpDoubt> {
    match (ptp.is_tai, ptp.utc_offset_s, ptp.utc_offset_is_valid) {
        (Some(false), ..) => Ok(0),
        (Some(true), Some(seconds), Some(true)) => Ok(i64::from(seconds)),
        _ => Err(PtpDoubt::NoSeconds),
    }
}

/// The clock of a port's device: that the interface has by ethtool, or else by sysfs. It is never guessed: a machine has
/// clocks of other devices, and guests that of their host.
pub(crate) fn device_of<'a>(facts: &'a Facts, port: &PtpPort) -> Option<&'a DeviceClock> {
    let interface = port.interface.as_ref()?;
    let mut devices = facts.devices.iter();
    let by_ethtool = devices
        .find(|device| device.interface == *interface)
        .and_then(|device| device.timestamps?.clock);
    let is_its = |clock: &&DeviceClock| match by_ethtool {
        Some(number) => clock.number == number,
        None => clock.interfaces.contains(interface),
    };
    facts.clock.devices.iter().find(is_its)
}

/// How far the kernel's clock and a device's are apart. Time by PTP is TAI, and the kernel's UTC: by as many whole seconds as the
/// grandmaster says, or the kernel was told; or both are alike. Whichever is nearest was meant.
pub(crate) fn apart(facts: &Facts, ptp: &Ptp, device: &DeviceClock) -> (u64, i64) {
    let told = [
        ptp.utc_offset_s.map(i64::from),
        facts.clock.tai_offset_s.map(i64::from),
    ];
    let offsets = std::iter::once(0).chain(told.into_iter().flatten());
    let apart = offsets.map(|seconds| {
        let off_ns = device
            .ahead_ns
            .saturating_sub(seconds.saturating_mul(SECOND_NS));
        (off_ns.unsigned_abs(), seconds)
    });
    apart.min().unwrap_or((u64::MAX, 0))
}

impl fmt::Display for PtpBound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} off its master, {} of path, {} between the device's clock and the kernel's",
            duration(self.offset_ns),
            duration(self.path_ns),
            duration(self.device_ns)
        )
    }
}
