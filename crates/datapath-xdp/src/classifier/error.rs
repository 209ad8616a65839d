//! Errors of loading, attaching and configuring a classifier, each with its remedy.

use std::io;

use isolane_datapath::ErrorClass;
use isolane_hostnet::kernel::{self, CapabilityNames};

use super::attachment::Foreign;

/// Error of loading, attaching or configuring the classifier.
#[derive(Debug, thiserror::Error)]
pub enum ClassifierError {
    /// The process lacks capabilities to load BPF programs.
    #[error(
        "the kernel does not let this process load the classifier, because the process lacks {missing}. Start it as \
         root, or give its file the capabilities: setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep FILE"
    )]
    Denied {
        /// Missing capabilities.
        missing: CapabilityNames,
    },
    /// The process has the capabilities in a user namespace only.
    #[error(
        "the kernel does not let this process load the classifier, because the process has the capabilities only in a \
         user namespace. Start it as root of the machine, or in a container with CAP_BPF, CAP_PERFMON and \
         CAP_NET_ADMIN"
    )]
    UserNamespace,
    /// The limit of locked memory is too low (kernels before 5.11).
    #[error(
        "the classifier's maps need {bytes} bytes, but this process may lock only {limit_bytes}: raise the limit with \
         ulimit -l unlimited, or LimitMEMLOCK=infinity in its unit"
    )]
    Memlock {
        /// Size of the maps.
        bytes: usize,
        /// Limit of the process.
        limit_bytes: u64,
    },
    /// The kernel lacks a feature.
    #[error(
        "the kernel is {release}, but {what} needs {needs}: use a newer kernel, or the datapath udp"
    )]
    TooOld {
        /// Release of the kernel.
        release: String,
        /// Operation that needs the feature.
        what: &'static str,
        /// First release that has it.
        needs: &'static str,
    },
    /// The kernel's verifier rejected the program.
    #[error(
        "the kernel ({release}) refused the classifier: {cause}. The end of its log: {log}. This is \
         not expected of any kernel since 5.9: please report it; meanwhile use the datapath udp"
    )]
    Rejected {
        /// Release of the kernel.
        release: String,
        /// Error from the kernel.
        cause: io::Error,
        /// Last lines of the verifier's log.
        log: String,
    },
    /// The interface does not exist in this network namespace.
    #[error(
        "there is no interface {interface_index} in this network namespace: it was removed or moved"
    )]
    NoInterface {
        /// Index of the interface.
        interface_index: u32,
    },
    /// Another process's program is attached to the XDP hook.
    #[error(
        "another XDP program is attached to {interface} ({program}), and isolane does not replace it: end its owner, \
         or remove it with `ip link set dev {interface} xdp off` if it is not needed, or use another interface or the \
         datapath udp"
    )]
    Foreign {
        /// Name of the interface.
        interface: String,
        /// Attached program.
        program: Foreign,
    },
    /// The driver has no native XDP.
    #[error(
        "the driver of {interface} has no native XDP: use the datapath udp, or request the generic mode, which needs \
         no driver support and is no faster than a socket"
    )]
    NoNativeMode {
        /// Name of the interface.
        interface: String,
    },
    /// The MTU is so large that a frame may exceed one buffer.
    #[error(
        "the driver of {interface} runs no XDP program at this MTU: lower the MTU, on a veth pair also that of the \
         peer: ip link set dev {interface} mtu 1500"
    )]
    MtuTooLarge {
        /// Name of the interface.
        interface: String,
    },
    /// The driver has too few queues.
    #[error(
        "the driver of {interface} has too few queues to run an XDP program: add queues with ethtool -L; on a veth \
         pair, it needs as many receive queues as the peer has transmit queues"
    )]
    TooFewQueues {
        /// Name of the interface.
        interface: String,
    },
    /// The classifier is attached already; it attaches once only.
    #[error(
        "this classifier is already attached to an interface: load another classifier for the second interface"
    )]
    AlreadyAttached,
    /// The queue is beyond the limit.
    #[error(
        "queue {queue} is beyond the first {limit} queues of an interface, which lanes can use: steer the critical \
         traffic to a lower queue",
        limit = crate::limits::MAX_QUEUES
    )]
    Queue {
        /// Queue number.
        queue: u32,
    },
    /// Any other system error.
    #[error("{doing} failed: {cause}")]
    System {
        /// Operation that failed.
        doing: &'static str,
        /// Error from the kernel.
        cause: io::Error,
    },
}

impl ClassifierError {
    /// Class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            ClassifierError::Denied { .. } | ClassifierError::UserNamespace => {
                ErrorClass::NotPermitted
            }
            ClassifierError::TooOld { .. }
            | ClassifierError::Rejected { .. }
            | ClassifierError::NoNativeMode { .. } => ErrorClass::Unsupported,
            ClassifierError::Memlock { .. } => ErrorClass::LimitReached,
            ClassifierError::NoInterface { .. }
            | ClassifierError::Foreign { .. }
            | ClassifierError::MtuTooLarge { .. }
            | ClassifierError::TooFewQueues { .. }
            | ClassifierError::AlreadyAttached
            | ClassifierError::Queue { .. }
            | ClassifierError::System { .. } => ErrorClass::System,
        }
    }

    /// Wraps a system error.
    pub(super) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> ClassifierError {
        move |cause| ClassifierError::System { doing, cause }
    }
}

/// Maps an error of `BPF_LINK_CREATE` to its cause.
pub(super) fn not_attached(
    cause: io::Error,
    interface_index: u32,
    interface: String,
) -> ClassifierError {
    match cause.raw_os_error() {
        Some(libc::EPERM) => ClassifierError::Denied {
            missing: kernel::missing_capabilities(),
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
