//! Errors of opening a datapath or a lane. Each message says what happened, why, and what to do.

use std::io;

use crate::limits::MAX_DOMAIN;
use crate::network::{MIN_SAMPLE_PORT, SAMPLE_PORTS};
use crate::pool::NoMemory;

/// Suggests usable interfaces, or a remedy.
fn others(present: &str) -> String {
    match present {
        "" => String::from("no other is. Bring"),
        present => format!("these are: {present}. Name one of them, or bring"),
    }
}

/// Class of an error of opening a datapath. The class tells where to look for the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The options are invalid on any machine.
    InvalidOption,
    /// The process lacks a permission or capability.
    NotPermitted,
    /// Another socket uses a requested port.
    AddressInUse,
    /// The kernel, driver or datapath does not support what was requested.
    Unsupported,
    /// A limit of the process, system or datapath is reached.
    LimitReached,
    /// State of this machine: an interface is missing, down or used by another program, or a system call failed.
    System,
}

/// Error of opening a datapath or lane, with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The domain has no ports.
    #[error(
        "domain {domain} has no ports: they end at 65,535. Choose a domain from 0 to {MAX_DOMAIN}"
    )]
    Domain {
        /// Requested domain.
        domain: u32,
    },
    /// The participant id has no port in the domain.
    #[error(
        "participant id {participant_id} has no port in domain {domain}: choose an id from 0 to {limit}, or none, to \
         use the first free id"
    )]
    ParticipantId {
        /// Requested participant id.
        participant_id: u32,
        /// Domain.
        domain: u32,
        /// Last participant id of the domain.
        limit: u32,
    },
    /// The interface does not exist, is down, or has no IPv4 address.
    #[error(
        "no interface {wanted} is up with an IPv4 address; {} up {wanted}: ip link set {wanted} up",
        others(present)
    )]
    NoInterface {
        /// Requested interface.
        wanted: String,
        /// Usable interfaces.
        present: String,
    },
    /// No interface is usable.
    #[error(
        "no interface is up with an IPv4 address: at least loopback is needed (ip link set lo up)"
    )]
    NoInterfaces,
    /// The requested port is in use.
    #[error(
        "port {port}, for {purpose}, is used by another socket: choose another port, or end the program that uses it \
         (ss -ulpn 'sport = :{port}')"
    )]
    PortInUse {
        /// UDP port.
        port: u16,
        /// Purpose of the port.
        purpose: &'static str,
    },
    /// Fixed ports for samples are privileged, beyond 65,535, or those of discovery.
    #[error(
        "samples cannot use the {SAMPLE_PORTS} ports from {base} on: in domain {domain} they must be from {MIN_SAMPLE_PORT} to \
         65535, and none from {} to {}, which discovery uses. sample_ports = 6400 suits every domain",
        discovery.start, discovery.end - 1
    )]
    SamplePorts {
        /// First requested port.
        base: u16,
        /// Domain.
        domain: u32,
        /// Well-known ports of the domain.
        discovery: core::ops::Range<u32>,
    },
    /// All fixed ports for a purpose are taken.
    #[error(
        "all ports for {purpose}, of those from {base} on, are taken: choose other sample_ports, or end a program that has \
         them (ss -ulpn)"
    )]
    SamplePortsInUse {
        /// First of the fixed ports.
        base: u16,
        /// Purpose of the port.
        purpose: &'static str,
    },
    /// The system denied an operation.
    #[error(
        "the system does not let this program {action}: {source}. Run it with the rights it \
         needs, or outside of the sandbox that forbids it"
    )]
    Denied {
        /// Operation.
        action: &'static str,
        /// EACCES or EPERM.
        source: io::Error,
    },
    /// The process or system has no file descriptors left.
    #[error(
        "no file descriptor is left to {action}: {source}. Raise the limit (ulimit -n) or use \
         fewer levels"
    )]
    TooManyFiles {
        /// Operation.
        action: &'static str,
        /// EMFILE or ENFILE.
        source: io::Error,
    },
    /// The datapath does not support separate flows.
    #[error(
        "the datapath {datapath} has no ports for single topics, so a topic shares the port of its level. Choose xdp \
         if the topic needs its own budget"
    )]
    NoFlows {
        /// Name of the datapath.
        datapath: &'static str,
    },
    /// All separate flows are in use.
    #[error(
        "all {limit} ports for single topics are in use: give fewer topics their own budget, or let topics share the \
         port of their level"
    )]
    TooManyFlows {
        /// Maximum number of flows.
        limit: usize,
    },
    /// A device lane could not be created.
    #[error("interface {interface} gets no lanes: {source}")]
    Device {
        /// Device.
        interface: String,
        /// Class of the error.
        class: ErrorClass,
        /// Error with its remedy.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system has no memory left for the lane's frames.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// The memory network is full.
    #[error("the memory network has no room for another participant: {limit} are attached")]
    NetworkFull {
        /// Maximum number of participants.
        limit: usize,
    },
    /// Other error of the system.
    #[error(
        "could not {action}: {source}. If the cause is not clear, strace shows the system call"
    )]
    System {
        /// Operation.
        action: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

impl OpenError {
    /// Classifies the error of a system call by its remedy.
    #[must_use]
    pub fn of(action: &'static str, source: io::Error) -> OpenError {
        match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => OpenError::Denied { action, source },
            Some(libc::EMFILE | libc::ENFILE) => OpenError::TooManyFiles { action, source },
            _ => OpenError::System { action, source },
        }
    }

    /// Class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            OpenError::Domain { .. }
            | OpenError::ParticipantId { .. }
            | OpenError::SamplePorts { .. } => ErrorClass::InvalidOption,
            OpenError::Denied { .. } => ErrorClass::NotPermitted,
            OpenError::PortInUse { .. } | OpenError::SamplePortsInUse { .. } => {
                ErrorClass::AddressInUse
            }
            OpenError::NoFlows { .. } => ErrorClass::Unsupported,
            OpenError::TooManyFiles { .. }
            | OpenError::TooManyFlows { .. }
            | OpenError::NoMemory(_)
            | OpenError::NetworkFull { .. } => ErrorClass::LimitReached,
            OpenError::NoInterface { .. } | OpenError::NoInterfaces | OpenError::System { .. } => {
                ErrorClass::System
            }
            OpenError::Device { class, .. } => *class,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_do() {
        let cases = [
            (libc::EACCES, "rights it needs", ErrorClass::NotPermitted),
            (libc::EMFILE, "ulimit -n", ErrorClass::LimitReached),
            (
                libc::EADDRNOTAVAIL,
                "could not bind a socket",
                ErrorClass::System,
            ),
        ];
        for (number, remedy, class) in cases {
            let source = io::Error::from_raw_os_error(number);
            let error = OpenError::of("bind a socket", source);
            assert_eq!(error.class(), class, "{error}");
            assert!(error.to_string().contains(remedy), "{error}");
        }
    }
}
