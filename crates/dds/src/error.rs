//! What can go wrong, and what to do about it.

use isolane_datapath::{OpenError, ProtectError};
use isolane_datapath_xdp::xdp::XdpError;
use isolane_engine::{CreateError, EnableError, SetQosError, StaticError};
use isolane_wire::{
    cdr::{CdrError, CdrType, MemberLength},
    qos::PolicyId,
};

use crate::placement::PlacementError;

/// Why a participant or an endpoint could not be created.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The datapath: sockets, interfaces, rights.
    #[error(transparent)]
    Datapath(#[from] OpenError),
    /// The engine: its tables and the QoS.
    #[error(transparent)]
    Endpoint(#[from] CreateError),
    /// A budget that cannot be kept.
    #[error(transparent)]
    Budget(#[from] ProtectError),
    /// The executor's table of jobs.
    #[error(
        "this participant has no place for another job, of which there are {} and more where limits.local_endpoints is \
         larger; use several participants",
        crate::limits::MAX_JOBS
    )]
    TooManyJobs,
    /// A bound of samples that is more than can be had.
    #[error(
        "samples of {asked} bytes are asked for, and {limit} bytes is the most that can be had here: of a sample 16 MiB, of one that leaves as a single datagram or is written by another thread what a frame of the datapath carries; lower max_bytes or max_datagram_bytes"
    )]
    SampleTooLarge {
        /// What was asked for.
        asked: usize,
        /// The bound.
        limit: usize,
    },
    /// A topic has one type.
    #[error(
        "topic {topic} already has the type {existing} in this participant, and was asked for with {asked}: a topic has one type. Give one of them another name, or use the same type"
    )]
    OtherType {
        /// The topic's name.
        topic: String,
        /// The type of the endpoint that is there.
        existing: String,
        /// The type asked for.
        asked: &'static str,
    },
    /// A PARTITION that announcements have no room for.
    #[error(
        "partition {name:?} is longer than {} bytes, or one too many of {}: use fewer and shorter names",
        isolane_wire::limits::MAX_PARTITION_BYTES,
        isolane_wire::limits::MAX_PARTITIONS
    )]
    Partition {
        /// Its name.
        name: String,
    },
    /// More octets than announcements have room for.
    #[error(
        "{policy} has more than {} octets: announce less, and the rest by a topic of its own",
        isolane_wire::limits::MAX_OCTETS
    )]
    Octets {
        /// USER_DATA, TOPIC_DATA or GROUP_DATA.
        policy: PolicyId,
    },
    /// A DEADLINE, or a response deadline, of zero.
    #[error(
        "a deadline of zero is missed by every sample: give Qos::{setting} a time, or leave it out if there is none"
    )]
    ZeroDeadline {
        /// Which of them: the method of [`Qos`](crate::Qos).
        setting: &'static str,
    },
    /// A writer of another thread is enabled when it is created, and could not be.
    #[error(transparent)]
    Enable(#[from] EnableError),
    /// The memory of the process cannot be kept from being paged out.
    #[error(
        "memory cannot be locked ({source}): raise the limit (ulimit -l unlimited, or LimitMEMLOCK=infinity in a systemd unit), give the program CAP_IPC_LOCK, or build the participant without lock_memory"
    )]
    Lock {
        /// What the system said.
        source: std::io::Error,
    },
    /// The loop's thread cannot be scheduled as asked for.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// What is described cannot be.
    #[error(transparent)]
    Described(#[from] StaticError),
    /// The participant is described to be reached where it is not.
    #[error(
        "participant {name:?} is described at {address}, which is no address of the interfaces it uses: start it on the host that has it, or describe it where it is"
    )]
    DescribedElsewhere {
        /// Its name.
        name: String,
        /// Where it is described.
        address: std::net::Ipv4Addr,
    },
    /// There are not enough ports from there on.
    #[error(
        "a described participant takes eight ports, one a level, and from {port} on there are fewer: describe it at 65528 at most"
    )]
    DescribedPort {
        /// The first of them.
        port: u16,
    },
    /// The level mapping lets levels share a port.
    #[error(
        "a described participant has a port for each level, but the level mapping lets levels share one: leave it out"
    )]
    DescribedSharedLane,
    /// A timer without a period would always be due.
    #[error("a timer needs a period of at least a nanosecond")]
    NoPeriod,
    /// More peers are named than one announcement reaches.
    #[error(
        "the named peers are {places} places to announce this participant to, {} is the limit: name fewer, or use multicast",
        crate::limits::ANNOUNCED_PLACES
    )]
    TooManyPeers {
        /// Groups, and ports of named peers.
        places: usize,
    },
    /// The system refused something the loop needs.
    #[error("could not {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl BuildError {
    /// Whether a UDP port that is needed belongs to another program.
    #[must_use]
    pub fn is_port_taken(&self) -> bool {
        matches!(self, Self::Datapath(OpenError::PortInUse { .. }))
    }

    /// Whether something was asked for that no machine could give: other settings are needed, not
    /// another machine or other rights.
    #[must_use]
    pub fn is_wrong_setting(&self) -> bool {
        let source = match self {
            Self::Endpoint(CreateError::NoMemory { .. }) => return false,
            Self::Endpoint(_)
            | Self::Described(_)
            | Self::DescribedElsewhere { .. }
            | Self::DescribedPort { .. }
            | Self::DescribedSharedLane
            | Self::ZeroDeadline { .. }
            | Self::Placement(PlacementError::Priority { .. } | PlacementError::Spin { .. })
            | Self::SampleTooLarge { .. }
            | Self::Budget(_)
            | Self::Octets { .. } => return true,
            Self::Datapath(OpenError::Device { source, .. }) => source,
            _ => return false,
        };
        matches!(
            source.downcast_ref(),
            Some(
                XdpError::UmemTooSmall { .. }
                    | XdpError::QueueNumber { .. }
                    | XdpError::Socket(isolane_datapath_xdp::socket::OpenError::RingEntries { .. })
            )
        )
    }
}

/// Why policies were not changed. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum QosError {
    /// As the engine says: a policy that must not change, or that contradicts another one.
    #[error(transparent)]
    Policies(#[from] SetQosError),
    /// What no endpoint could have.
    #[error(transparent)]
    Unusable(#[from] BuildError),
    /// Slots have the size they were created with.
    #[error(
        "max_bytes cannot change from {existing} to {asked} once an endpoint is created: its memory is taken; leave it as it is, or create another endpoint"
    )]
    MaxBytes {
        /// What the endpoint was created with.
        existing: usize,
        /// What was asked for.
        asked: usize,
    },
}

/// Why a sample was not written. Nothing of it was sent then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Every frame of this level is on its way: the loop was not run, or the link is slower than
    /// the writer. The sample may be written later.
    #[error("no frame of this level is free; run the loop, or write less")]
    NoFrame,
    /// As the engine says.
    #[error(transparent)]
    Engine(#[from] isolane_engine::WriteError),
    /// The serialised sample is larger than the writer's `max_bytes`.
    #[error(
        "the sample is larger than the {limit} bytes that this writer takes{}: raise Qos::max_bytes (of a described topic: max_bytes in isolane.toml), or shorten the sample",
        Longest(.longest)
    )]
    TooLarge {
        /// The most bytes, with the encapsulation header.
        limit: usize,
        /// The sample's longest string or sequence.
        longest: Option<MemberLength>,
    },
    /// A string or sequence is longer than its member's bound.
    #[error(
        "member {:?} has a length of {}, and its bound is {}: shorten it, or raise the bound in the type, #[topic(bound = N)], on both sides",
        .0.name, .0.length, .0.bound.unwrap_or_default()
    )]
    BoundExceeded(MemberLength),
    /// The sample cannot be serialised.
    #[error("the sample cannot be serialised: {0}")]
    Serialise(#[from] CdrError),
    /// The ring to the executor is full: it is behind, or the history it takes samples to is full.
    #[error("the executor has not yet taken what was written before; write later")]
    QueueFull,
    /// The participant is gone.
    #[error("the participant no longer exists")]
    Gone,
}

impl WriteError {
    /// A sample that does not fit the writer's `max_bytes`.
    pub(crate) fn too_large(limit: usize) -> Self {
        Self::TooLarge {
            limit,
            longest: None,
        }
    }

    /// Names the member of the value that makes the sample too long.
    #[cold]
    pub(crate) fn of<T: CdrType>(self, value: &T) -> Self {
        let (limit, is_bound) = match self {
            Self::TooLarge { limit, .. }
            | Self::Engine(isolane_engine::WriteError::TooLarge { limit }) => (limit, false),
            Self::Serialise(CdrError::BoundExceeded) => (0, true),
            other => return other,
        };
        let mut longest: Option<MemberLength> = None;
        value.lengths(&mut |member| {
            let exceeds = member.bound.is_some_and(|bound| member.length > bound);
            let is_longer = longest.is_none_or(|longest| member.length > longest.length);
            if is_longer && (exceeds || !is_bound) {
                longest = Some(member);
            }
        });
        match longest {
            Some(member) if is_bound => Self::BoundExceeded(member),
            _ if is_bound => self,
            longest => Self::TooLarge { limit, longest },
        }
    }
}

/// The longest member of a sample, for people.
struct Longest<'a>(&'a Option<MemberLength>);

impl std::fmt::Display for Longest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(MemberLength { name, length, .. }) => {
                write!(
                    f,
                    "; its longest member, {name:?}, has a length of {length}"
                )
            }
        }
    }
}
