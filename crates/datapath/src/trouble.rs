//! What a datapath had to do without, and why a lane could not be opened: in sentences that say what
//! happened, why, and what to do.

use std::io;

use crate::lane::Lane;
use crate::limits::MAX_DOMAIN;
use crate::pool::NoMemory;

/// Something that works less well than asked for, but works. Each says what, why, and what to
/// do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// An interface does not take part in multicast.
    #[error(
        "no multicast on interface {interface}: {reason}. Unicast goes on; peers there must be \
         named, or the interface given multicast: ip link set {interface} multicast on"
    )]
    NoMulticast {
        /// Its name.
        interface: String,
        /// Why.
        reason: String,
    },
    /// More interfaces than can be used.
    #[error("interface {interface} is not used, {limit} others are: name those that are meant")]
    TooManyInterfaces {
        /// The one left out.
        interface: String,
        /// How many can be used.
        limit: usize,
    },
    /// The kernel gave a smaller receive buffer.
    #[error(
        "the receive buffer of {lane} has {got} bytes instead of {wanted}: raise \
         net.core.rmem_max, or give the program CAP_NET_ADMIN"
    )]
    SmallReceiveBuffer {
        /// Whose.
        lane: Lane,
        /// Bytes asked for.
        wanted: usize,
        /// Bytes granted.
        got: usize,
    },
    /// The kernel did not take the lane's priority.
    #[error(
        "datagrams of {lane} leave without SO_PRIORITY {priority} ({reason}): queues of this \
         host do not prefer them. Give the program CAP_NET_ADMIN. Their DSCP is set"
    )]
    NoPriority {
        /// Whose.
        lane: Lane,
        /// The priority wanted.
        priority: u8,
        /// What the kernel said.
        reason: String,
    },
    /// No port of the formula (RTPS 2.5 §9.6.2.3) is free for discovery.
    #[error(
        "all {tried} participant ports of domain {domain} are taken on this host: discovery uses port {port}. \
         Participants that only name this host as a peer do not find this one; multicast, or naming them here, does"
    )]
    KernelPort {
        /// The domain.
        domain: u32,
        /// How many ports were tried.
        tried: u32,
        /// The port that the kernel chose.
        port: u16,
    },
    /// Levels that were to have lanes of a device go by kernel sockets.
    #[error("interface {interface} gets no lanes, kernel sockets are used instead: {reason}")]
    NoDeviceLanes {
        /// The device.
        interface: String,
        /// Why, and what to do about it.
        reason: String,
    },
    /// Something about a device that costs something.
    #[error("interface {interface}: {what}")]
    Device {
        /// Its name.
        interface: String,
        /// What, why, and what to do about it.
        what: String,
    },
    /// A datapath that was asked for if it works does not.
    #[error("the datapath {wanted} is not used: {reason}")]
    NotUsed {
        /// Its name.
        wanted: &'static str,
        /// Why, and what to do about it.
        reason: String,
    },
    /// A socket option that only improves things was not taken.
    #[error("{lane} goes without {option} ({reason})")]
    OptionRefused {
        /// Whose.
        lane: Lane,
        /// The option's name.
        option: &'static str,
        /// What the kernel said.
        reason: String,
    },
}

/// Interfaces that would do, and what to try.
fn others(present: &str) -> String {
    match present {
        "" => String::from("none is. Bring"),
        present => format!("there are: {present}. Name one of these, or bring"),
    }
}

/// Why a lane could not be opened, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A domain without ports.
    #[error(
        "domain {domain} has no ports: they end at 65,535. Choose a domain from 0 to {MAX_DOMAIN}"
    )]
    Domain {
        /// The domain asked for.
        domain: u32,
    },
    /// A participant id without a port.
    #[error(
        "participant id {participant_id} has no port in domain {domain}: choose one from 0 to \
         {limit}, or none, to take the first that is free"
    )]
    ParticipantId {
        /// The id asked for.
        participant_id: u32,
        /// In which domain.
        domain: u32,
        /// The last id there.
        limit: u32,
    },
    /// An interface that is not there, is down, or has no IPv4 address.
    #[error(
        "there is no interface {wanted} that is up with an IPv4 address; {} it up: ip link set {wanted} up",
        others(present)
    )]
    NoInterface {
        /// The name asked for.
        wanted: String,
        /// Names of those that would do.
        present: String,
    },
    /// No interface at all.
    #[error(
        "no interface is up with an IPv4 address: at least loopback is needed (ip link set lo up)"
    )]
    NoInterfaces,
    /// The system refused a port that was asked for.
    #[error(
        "port {port}, for {purpose}, is taken by another socket: choose another one, or end the \
         program that has it (ss -ulpn 'sport = :{port}')"
    )]
    PortInUse {
        /// The UDP port.
        port: u16,
        /// What it is for.
        purpose: &'static str,
    },
    /// The system does not allow it.
    #[error(
        "the system does not let this program {action}: {source}. Run it with the rights it \
         needs, or outside of the sandbox that forbids it"
    )]
    Denied {
        /// What was tried.
        action: &'static str,
        /// EACCES or EPERM.
        source: io::Error,
    },
    /// No descriptor was left.
    #[error(
        "no file descriptor is left to {action}: {source}. Raise the limit (ulimit -n) or use \
         fewer levels"
    )]
    TooManyFiles {
        /// What was tried.
        action: &'static str,
        /// EMFILE or ENFILE.
        source: io::Error,
    },
    /// The datapath has no flows beside those of its lanes.
    #[error(
        "the datapath {datapath} gives no topic a port of its own: it shares its level's. Choose \
         xdp if the topic needs a budget of its own"
    )]
    NoFlows {
        /// Its name.
        datapath: &'static str,
    },
    /// All flows beside those of lanes are in use.
    #[error(
        "all {limit} ports for topics of their own are in use: give fewer topics a budget of their \
         own, or let them share their level's"
    )]
    TooManyFlows {
        /// How many there can be.
        limit: usize,
    },
    /// A lane of a device could not be made.
    #[error("interface {interface} gets no lanes: {source}")]
    Device {
        /// The device.
        interface: String,
        /// What happened, and what to do about it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system has no memory left for the lane's frames.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// The network is full.
    #[error("the memory network has no room for another participant: {limit} are attached")]
    NetworkFull {
        /// How many it holds.
        limit: usize,
    },
    /// Anything else the system said.
    #[error("could not {action}: {source}. If the cause is not plain, strace shows the call")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    /// The error of a system call, by what can be done about it.
    #[must_use]
    pub fn of(action: &'static str, source: io::Error) -> OpenError {
        match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => OpenError::Denied { action, source },
            Some(libc::EMFILE | libc::ENFILE) => OpenError::TooManyFiles { action, source },
            _ => OpenError::System { action, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_do() {
        let cases = [
            (libc::EACCES, "rights it needs"),
            (libc::EMFILE, "ulimit -n"),
            (libc::EADDRNOTAVAIL, "could not bind a socket"),
        ];
        for (number, remedy) in cases {
            let source = io::Error::from_raw_os_error(number);
            let message = OpenError::of("bind a socket", source).to_string();
            assert!(message.contains(remedy), "{message}");
        }
    }
}
