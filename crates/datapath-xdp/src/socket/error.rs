//! Errors of opening a queue or a socket, each with its remedy.

use std::fmt;
use std::io;

use isolane_datapath::ErrorClass;

use crate::limits::{BIND_PATIENCE, MAX_RING_ENTRIES};

/// Ring of an AF_XDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingKind {
    /// Empty chunks, to the kernel.
    Fill,
    /// Sent chunks, from the kernel.
    Completion,
    /// Received frames, from the kernel.
    Receive,
    /// Frames to send, to the kernel.
    Transmit,
}

impl fmt::Display for RingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RingKind::Fill => "fill",
            RingKind::Completion => "completion",
            RingKind::Receive => "receive",
            RingKind::Transmit => "transmit",
        })
    }
}

/// Error of opening a queue or a socket on it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A capability is missing.
    #[error(
        "not permitted to {action}, which needs {capability}. Run the program as root, or give its file all \
         capabilities that lanes need: setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep FILE"
    )]
    Denied {
        /// Operation that failed.
        action: &'static str,
        /// Name of the capability.
        capability: &'static str,
    },
    /// The memory exceeds the limit of locked memory.
    #[error(
        "memory of {bytes} bytes, shared with the kernel, is more than this process may lock: raise the limit (ulimit \
         -l, or LimitMEMLOCK= of the service) or give the program CAP_IPC_LOCK"
    )]
    MemoryLock {
        /// Bytes to register.
        bytes: usize,
    },
    /// The device or its driver has no zero copy.
    #[error(
        "interface {interface} has no zero copy: its driver does not support it, or not on this queue. Choose copy, \
         or auto, which uses zero copy only where it is supported"
    )]
    NoZeroCopy {
        /// Name of the interface.
        interface: String,
    },
    /// The interface does not exist in this network namespace.
    #[error(
        "there is no interface {interface} in this network namespace: it was removed, renamed or moved. `ip link` \
         shows the interfaces of this namespace"
    )]
    NoInterface {
        /// Name of the interface, or its index if it has none.
        interface: String,
    },
    /// The interface is down.
    #[error("interface {interface} is down: ip link set {interface} up")]
    InterfaceDown {
        /// Name of the interface.
        interface: String,
    },
    /// The queue does not exist.
    #[error(
        "interface {interface} has no queue {queue}: ethtool -l {interface} shows how many queues it has, ethtool -L \
         {interface} combined N changes the number"
    )]
    NoQueue {
        /// Name of the interface.
        interface: String,
        /// Requested queue, from 0.
        queue: u32,
    },
    /// Another socket is bound to the queue.
    #[error(
        "queue {queue} of interface {interface} is used by another program's AF_XDP socket, and still was after {} \
         ms: a queue belongs to one program. Choose another queue, or end that program (/proc/PID/fd shows its \
         socket; ss --xdp -a lists it, if the kernel supports that)",
        BIND_PATIENCE.as_millis()
    )]
    QueueTaken {
        /// Name of the interface.
        interface: String,
        /// Queue, from 0.
        queue: u32,
    },
    /// The number of entries is invalid.
    #[error(
        "a {ring} ring cannot have {entries} entries: choose a power of two from 1 to \
         {MAX_RING_ENTRIES}"
    )]
    RingEntries {
        /// Kind of ring.
        ring: RingKind,
        /// Requested entries.
        entries: u32,
    },
    /// The kernel has no AF_XDP.
    #[error(
        "this kernel has no AF_XDP sockets: use a kernel built with CONFIG_XDP_SOCKETS, or the datapath udp, which \
         works everywhere"
    )]
    NoXdpSockets,
    /// No file descriptor is left.
    #[error("no file descriptor is left to {action}: raise the limit (ulimit -n)")]
    TooManyFiles {
        /// Operation that failed.
        action: &'static str,
    },
    /// Any other system error.
    #[error(
        "could not {action}: {source}. If the cause is not clear, strace shows the system call"
    )]
    System {
        /// Operation that failed.
        action: &'static str,
        /// Error from the system.
        source: io::Error,
    },
}

impl OpenError {
    /// Class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            OpenError::RingEntries { .. } => ErrorClass::InvalidOption,
            OpenError::Denied { .. } => ErrorClass::NotPermitted,
            OpenError::NoZeroCopy { .. } | OpenError::NoXdpSockets => ErrorClass::Unsupported,
            OpenError::MemoryLock { .. } | OpenError::TooManyFiles { .. } => {
                ErrorClass::LimitReached
            }
            OpenError::NoInterface { .. }
            | OpenError::InterfaceDown { .. }
            | OpenError::NoQueue { .. }
            | OpenError::QueueTaken { .. }
            | OpenError::System { .. } => ErrorClass::System,
        }
    }

    /// Maps the error of a system call that does not involve a device.
    pub(super) fn of(action: &'static str, source: io::Error) -> OpenError {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => OpenError::Denied {
                action,
                capability: "CAP_NET_RAW",
            },
            Some(libc::EMFILE | libc::ENFILE) => OpenError::TooManyFiles { action },
            Some(libc::EAFNOSUPPORT) => OpenError::NoXdpSockets,
            _ => OpenError::System { action, source },
        }
    }

    /// Maps the error of binding to a queue.
    pub(super) fn of_bind(interface: String, queue: u32, source: io::Error) -> OpenError {
        match source.raw_os_error() {
            Some(libc::EBUSY) => OpenError::QueueTaken { interface, queue },
            Some(libc::EOPNOTSUPP) => OpenError::NoZeroCopy { interface },
            Some(libc::ENODEV | libc::ENXIO) => OpenError::NoInterface { interface },
            Some(libc::ENETDOWN) => OpenError::InterfaceDown { interface },
            // Rings and memory were checked before; the remaining cause of EINVAL is a queue beyond the last.
            Some(libc::EINVAL) => OpenError::NoQueue { interface, queue },
            _ => OpenError::of("bind an AF_XDP socket to a queue", source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_binding_say_what_to_do() {
        let cases = [
            (libc::EBUSY, "Choose another queue"),
            (libc::EOPNOTSUPP, "Choose copy"),
            (libc::ENODEV, "ip link"),
            (libc::ENETDOWN, "ip link set eth7 up"),
            (libc::EINVAL, "ethtool -l eth7"),
            (libc::EPERM, "CAP_NET_RAW"),
            (libc::EMFILE, "ulimit -n"),
            (libc::EIO, "strace"),
        ];
        for (number, remedy) in cases {
            let source = io::Error::from_raw_os_error(number);
            let message = OpenError::of_bind("eth7".into(), 1, source).to_string();
            assert!(message.contains(remedy), "{message}");
        }
    }
}
