//! Time by PTP: what ptp4l tells of itself, and how far devices' clocks are from the kernel's.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What ptp4l tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ptp {
    /// The PTP domain it answered in.
    pub domain: u8,
    /// Whether it is a clock of IEEE 802.1AS (gPTP: majorSdoId 1).
    pub is_gptp: bool,
    /// The identity of its own clock.
    pub identity: Option<String>,
    /// The identity of the grandmaster, its own where it has found no better one.
    pub grandmaster: String,
    /// Whether that is another clock.
    pub has_grandmaster: bool,
    /// How far it is ahead of its master, in nanoseconds, as of its last measurement.
    pub master_offset_ns: i64,
    /// Clocks on the way from the grandmaster, this one included.
    pub steps_removed: Option<u16>,
    /// How long messages of its master take, the mean of both ways, in nanoseconds.
    pub mean_path_delay_ns: Option<i64>,
    /// Whether the grandmaster's time is TAI, as it says (PTP_TIMESCALE).
    pub is_tai: Option<bool>,
    /// Seconds that TAI is ahead of UTC, as a grandmaster says whose time is TAI: phc2sys goes by it, valid or not.
    pub utc_offset_s: Option<i16>,
    /// Whether the grandmaster calls that number valid.
    pub utc_offset_is_valid: Option<bool>,
    /// Its ports, by number.
    pub ports: Vec<PtpPort>,
}

/// A port of ptp4l: an interface it speaks PTP on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PtpPort {
    /// Its number, from 1.
    pub number: u16,
    /// Its state.
    pub state: PtpState,
    /// Whose delay it measures.
    pub delay: PtpDelay,
    /// How long messages of its neighbour take, in nanoseconds.
    pub peer_delay_ns: i64,
    /// The interface; only root is told.
    pub interface: Option<String>,
    /// Whether that stamps in hardware; only root is told.
    pub stamps_in_hardware: Option<bool>,
}

/// Delay mechanisms of a port (IEEE 1588-2019, table 21).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PtpDelay {
    /// That of its master's messages.
    EndToEnd,
    /// That of its neighbour's (peer delay), its own or that of the common service.
    PeerToPeer,
    /// None, or one that is not known here.
    #[default]
    Unknown,
}

impl PtpDelay {
    /// By its number in PORT_DATA_SET: 3 is the common mean link delay service, which is asked of neighbours, too.
    pub(crate) fn of_number(number: u8) -> PtpDelay {
        match number {
            1 => Self::EndToEnd,
            2 | 3 => Self::PeerToPeer,
            _ => Self::Unknown,
        }
    }
}

/// States of a port (IEEE 1588-2019, table 20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PtpState {
    /// It prepares itself.
    Initializing,
    /// Something is wrong with its interface.
    Faulty,
    /// It was switched off.
    Disabled,
    /// It waits for a master.
    Listening,
    /// It is about to be a master.
    PreMaster,
    /// Others follow it.
    Master,
    /// Neither: another port, or another clock, is better.
    Passive,
    /// It has a master, and is not with it yet.
    Uncalibrated,
    /// It follows its master.
    Slave,
    /// One that the standard does not have.
    #[default]
    Unknown,
}

impl PtpState {
    /// By its number in PORT_DATA_SET.
    pub(crate) fn of_number(number: u8) -> PtpState {
        match number {
            1 => Self::Initializing,
            2 => Self::Faulty,
            3 => Self::Disabled,
            4 => Self::Listening,
            5 => Self::PreMaster,
            6 => Self::Master,
            7 => Self::Passive,
            8 => Self::Uncalibrated,
            9 => Self::Slave,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for PtpState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Initializing => "INITIALIZING",
            Self::Faulty => "FAULTY",
            Self::Disabled => "DISABLED",
            Self::Listening => "LISTENING",
            Self::PreMaster => "PRE_MASTER",
            Self::Master => "MASTER",
            Self::Passive => "PASSIVE",
            Self::Uncalibrated => "UNCALIBRATED",
            Self::Slave => "SLAVE",
            Self::Unknown => "in no state of the standard",
        })
    }
}

/// A device's clock, `/dev/ptpN`, beside the kernel's (`CLOCK_REALTIME`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceClock {
    /// Its number.
    pub number: u32,
    /// The interfaces of its device.
    pub interfaces: Vec<String>,
    /// How far it is ahead of the kernel's clock, in nanoseconds. Time by PTP is usually TAI, and then this is
    /// 37 s and what they are apart.
    pub ahead_ns: i64,
    /// How long the kernel's clock went on while the device's was read, in nanoseconds: how wrong that may be.
    pub window_ns: u64,
}
