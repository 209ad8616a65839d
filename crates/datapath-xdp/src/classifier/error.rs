//! Why there is no classifier on an interface, and what to do about it.

use std::io;

use isolane_hostnet::capabilities::{self, Names};

use super::foreign::Foreign;

/// Why the classifier could not be loaded, attached, or told something.
#[derive(Debug, thiserror::Error)]
pub enum ClassifierError {
    /// The process may not load programs.
    #[error(
        "the kernel lets this process load no program at the driver: it lacks {missing}. Start it as \
         root, or give its file the capabilities: setcap \
         cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep FILE"
    )]
    Denied {
        /// The capabilities that are missing.
        missing: Names,
    },
    /// It has the capabilities, but not where they count.
    #[error(
        "the kernel lets this process load no program at the driver: it has the capabilities in a \
         user namespace only. Start it as root of the machine, or in a container with \
         CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    )]
    UserNamespace,
    /// The limit of locked memory is too low (kernels before 5.11).
    #[error(
        "the memory of the classifier's maps, {bytes} bytes, is beyond what this process may lock, \
         {limit_bytes}: raise it with ulimit -l unlimited, or LimitMEMLOCK=infinity in its unit"
    )]
    Memlock {
        /// What the maps take.
        bytes: usize,
        /// What is allowed.
        limit_bytes: u64,
    },
    /// The kernel lacks something.
    #[error(
        "the kernel is {release}, and {what} needs {needs}: use a newer one, or the datapath udp"
    )]
    TooOld {
        /// The kernel's release.
        release: String,
        /// What cannot be done.
        what: &'static str,
        /// The first release that can.
        needs: &'static str,
    },
    /// The kernel's verifier refused the program.
    #[error(
        "the kernel ({release}) refused the classifier: {cause}. The end of its log: {log}. This is \
         not expected of any kernel since 5.9: please report it; meanwhile use the datapath udp"
    )]
    Rejected {
        /// The kernel's release.
        release: String,
        /// What it said.
        cause: io::Error,
        /// The last lines of the verifier's log.
        log: String,
    },
    /// There is no such interface in this network namespace.
    #[error(
        "there is no interface {interface_index} in this network namespace: it was removed or moved"
    )]
    NoInterface {
        /// Its index.
        interface_index: u32,
    },
    /// Somebody else's program is on the hook.
    #[error(
        "another XDP program is on {interface}, {program}, and stays there: end its owner, or remove \
         it with `ip link set dev {interface} xdp off` if nobody needs it, or use another interface \
         or the datapath udp"
    )]
    Foreign {
        /// The interface's name.
        interface: String,
        /// Who it is.
        program: Foreign,
    },
    /// The driver cannot run programs.
    #[error(
        "the driver of {interface} has no native XDP: use the datapath udp, or ask for generic mode, \
         which needs no driver and is no faster than a socket"
    )]
    NoNativeMode {
        /// The interface's name.
        interface: String,
    },
    /// Frames may be too large for one buffer.
    #[error(
        "the driver of {interface} runs no program at this MTU: lower it, on a veth pair the peer's \
         too: ip link set dev {interface} mtu 1500"
    )]
    MtuTooLarge {
        /// The interface's name.
        interface: String,
    },
    /// The driver has too few queues.
    #[error(
        "the driver of {interface} has too few queues to run a program: give it more with ethtool -L, \
         on a veth pair as many receive queues as the peer has transmit queues"
    )]
    TooFewQueues {
        /// The interface's name.
        interface: String,
    },
    /// It is attached once only.
    #[error("the classifier is attached to an interface already: load another one for this one")]
    AlreadyAttached,
    /// A queue that the classifier has no sockets for.
    #[error(
        "queue {queue} is beyond the {limit} queues of an interface that lanes can be on: steer the \
         critical traffic to a lower one",
        limit = crate::limits::MAX_QUEUES
    )]
    Queue {
        /// The queue.
        queue: u32,
    },
    /// Anything else.
    #[error("{doing} failed: {cause}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the kernel said.
        cause: io::Error,
    },
}

impl ClassifierError {
    /// Wraps an error of the system.
    pub(super) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> ClassifierError {
        move |cause| ClassifierError::System { doing, cause }
    }
}

/// What it means that the kernel made no link.
pub(super) fn not_attached(
    cause: io::Error,
    interface_index: u32,
    interface: String,
) -> ClassifierError {
    match cause.raw_os_error() {
        Some(libc::EPERM) => ClassifierError::Denied {
            missing: capabilities::missing(),
        },
        Some(libc::EBUSY | libc::EEXIST) => match Foreign::on(interface_index) {
            Ok(Some(program)) => ClassifierError::Foreign { interface, program },
            _ => ClassifierError::System {
                doing: "attaching the classifier",
                cause,
            },
        },
        Some(libc::EOPNOTSUPP) => ClassifierError::NoNativeMode { interface },
        Some(libc::ERANGE) => ClassifierError::MtuTooLarge { interface },
        Some(libc::ENOSPC) => ClassifierError::TooFewQueues { interface },
        Some(libc::ENODEV) => ClassifierError::NoInterface { interface_index },
        _ => ClassifierError::System {
            doing: "attaching the classifier",
            cause,
        },
    }
}
