//! Management messages of PTP (IEEE 1588-2019, clause 15): a question for a data set, and its answers.
//!
//! Only GET is ever asked; with no boundary hops, so that a clock forwards it to nobody. Data sets are those of the
//! standard, but for TIME_STATUS_NP and PORT_PROPERTIES_NP, which are linuxptp's own (its `tlv.h`). All numbers
//! are big-endian.

use crate::facts::{PtpDelay, PtpPort, PtpState};

/// The header that all messages have, and what management messages have behind it.
const HEADER_BYTES: usize = 34;
const MESSAGE_BYTES: usize = 48;
/// Type, length and id of a management TLV.
const TLV_HEAD_BYTES: usize = 6;
/// Bytes of a question.
pub(super) const QUESTION_BYTES: usize = MESSAGE_BYTES + TLV_HEAD_BYTES;

const MANAGEMENT: u8 = 0xd;
const PTP_VERSION: u8 = 2;
const CONTROL_MANAGEMENT: u8 = 4;
const NO_INTERVAL: u8 = 0x7f;
const ACTION_GET: u8 = 0;
const ACTION_RESPONSE: u8 = 2;
const TLV_MANAGEMENT: u16 = 1;
const TLV_ERROR: u16 = 2;

/// In TIME_PROPERTIES_DATA_SET: the offset from UTC is known to be right, and the time is TAI.
const UTC_OFFSET_VALID: u8 = 0x04;
const PTP_TIMESCALE: u8 = 0x08;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataSet {
    Default,
    Current,
    TimeProperties,
    TimeStatus,
    Port,
    PortProperties,
}

impl DataSet {
    fn id(self) -> u16 {
        match self {
            Self::Default => 0x2000,
            Self::Current => 0x2001,
            Self::TimeProperties => 0x2003,
            Self::Port => 0x2004,
            Self::TimeStatus => 0xc000,
            Self::PortProperties => 0xc004,
        }
    }
}

/// Whom a question is for: clocks answer only those of their own domain and majorSdoId.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) domain: u8,
    /// 1: IEEE 802.1AS.
    pub(super) major_sdo_id: u8,
}

/// The question for a data set, of all ports that have it.
pub(super) fn question(
    place: Place,
    sequence: u16,
    asker: u16,
    data_set: DataSet,
) -> [u8; QUESTION_BYTES] {
    let mut bytes = [0; QUESTION_BYTES];
    let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
    put(0, &[place.major_sdo_id << 4 | MANAGEMENT, PTP_VERSION]);
    put(2, &(QUESTION_BYTES as u16).to_be_bytes());
    put(4, &[place.domain]);
    // The identity of our own clock: none, which no clock has.
    put(28, &asker.to_be_bytes());
    put(30, &sequence.to_be_bytes());
    put(32, &[CONTROL_MANAGEMENT, NO_INTERVAL]);
    // Every clock and port that gets it.
    put(HEADER_BYTES, &[0xff; 10]);
    put(46, &[ACTION_GET]);
    put(MESSAGE_BYTES, &TLV_MANAGEMENT.to_be_bytes());
    put(50, &2_u16.to_be_bytes());
    put(52, &data_set.id().to_be_bytes());
    bytes
}

/// What a clock answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Default {
        identity: String,
        ports: u16,
    },
    Current {
        steps_removed: u16,
        mean_path_delay_ns: i64,
    },
    TimeProperties {
        utc_offset_s: i16,
        utc_offset_is_valid: bool,
        is_tai: bool,
    },
    TimeStatus {
        master_offset_ns: i64,
        has_grandmaster: bool,
        grandmaster: String,
    },
    Port(PtpPort),
    PortProperties {
        number: u16,
        stamps_in_hardware: bool,
        interface: Option<String>,
    },
    /// It does not tell (managementErrorId).
    Refused(u16),
}

/// The answer to the question of that place and number for that data set; `None`: these bytes are none.
pub(super) fn answer(
    bytes: &[u8],
    place: Place,
    sequence: u16,
    data_set: DataSet,
) -> Option<Answer> {
    let length = usize::from(Fields(bytes.get(2..4)?).u16()?);
    // What is behind the message is not of it.
    let message = bytes.get(..length)?;
    let is_answer = message.len() >= MESSAGE_BYTES
        && message[0] == (place.major_sdo_id << 4 | MANAGEMENT)
        && message[1] & 0xf == PTP_VERSION
        && message[4] == place.domain
        && message[30..32] == sequence.to_be_bytes()
        && message[46] & 0xf == ACTION_RESPONSE;
    if !is_answer {
        return None;
    }
    let mut tlv = Fields(&message[MESSAGE_BYTES..]);
    let (kind, length) = (tlv.u16()?, usize::from(tlv.u16()?));
    let mut value = Fields(tlv.0.get(..length)?);
    let first = value.u16()?;
    match kind {
        TLV_ERROR if value.u16()? == data_set.id() => Some(Answer::Refused(first)),
        TLV_MANAGEMENT if first == data_set.id() => value.data_set(data_set),
        _ => None,
    }
}

/// Bytes from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (taken, rest) = self.0.split_first_chunk::<COUNT>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    /// A TimeInterval, in nanoseconds: the standard counts them in 65,536ths.
    fn interval_ns(&mut self) -> Option<i64> {
        self.i64().map(|scaled| scaled >> 16)
    }

    /// The identity of a clock, as pmc prints it: `001122.fffe.334455`.
    fn identity(&mut self) -> Option<String> {
        let [a, b, c, d, e, f, g, h] = self.take()?;
        Some(format!(
            "{a:02x}{b:02x}{c:02x}.{d:02x}{e:02x}.{f:02x}{g:02x}{h:02x}"
        ))
    }

    fn data_set(&mut self, data_set: DataSet) -> Option<Answer> {
        Some(match data_set {
            DataSet::Default => {
                let [_flags, _reserved] = self.take()?;
                let ports = self.u16()?;
                // Its priorities and quality.
                self.take::<6>()?;
                let identity = self.identity()?;
                Answer::Default { identity, ports }
            }
            DataSet::Current => {
                let steps_removed = self.u16()?;
                let _offset = self.interval_ns()?;
                let mean_path_delay_ns = self.interval_ns()?;
                Answer::Current {
                    steps_removed,
                    mean_path_delay_ns,
                }
            }
            DataSet::TimeProperties => {
                let utc_offset_s = self.u16()?.cast_signed();
                let flags = self.u8()?;
                Answer::TimeProperties {
                    utc_offset_s,
                    utc_offset_is_valid: flags & UTC_OFFSET_VALID != 0,
                    is_tai: flags & PTP_TIMESCALE != 0,
                }
            }
            DataSet::TimeStatus => {
                let master_offset_ns = self.i64()?;
                // When it was measured, and what the grandmaster's last change of phase and rate was.
                self.take::<30>()?;
                let has_grandmaster = self.take::<4>()? != [0; 4];
                let grandmaster = self.identity()?;
                Answer::TimeStatus {
                    master_offset_ns,
                    has_grandmaster,
                    grandmaster,
                }
            }
            DataSet::Port => {
                let _clock = self.identity()?;
                let number = self.u16()?;
                let state = PtpState::of_number(self.u8()?);
                let _interval = self.u8()?;
                let peer_delay_ns = self.interval_ns()?;
                self.take::<3>()?;
                Answer::Port(PtpPort {
                    number,
                    state,
                    delay: PtpDelay::of_number(self.u8()?),
                    peer_delay_ns,
                    interface: None,
                    stamps_in_hardware: None,
                })
            }
            DataSet::PortProperties => {
                let _clock = self.identity()?;
                let number = self.u16()?;
                let _state = self.u8()?;
                let stamps_in_hardware = self.u8()? != 0;
                let length = usize::from(self.u8()?);
                let name = self.0.get(..length)?;
                Answer::PortProperties {
                    number,
                    stamps_in_hardware,
                    interface: String::from_utf8(name.to_vec())
                        .ok()
                        .filter(|name| !name.is_empty()),
                }
            }
        })
    }
}
