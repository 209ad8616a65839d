//! Errors, each with the reason and the remedy.

use isolane_datapath::{ErrorClass, OpenError, RateLimitError};
use isolane_rtps::{CreateError, EnableError, SetQosError, StaticError};
use isolane_wire::{
    cdr::{CdrError, CdrType, MemberLength},
    qos::PolicyId,
};

use crate::participant::{placement::PlacementError, thread::ThreadEnded};

/// Reason why a participant or an endpoint could not be created.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Error of the datapath: sockets, interfaces, permissions.
    #[error(transparent)]
    Datapath(#[from] OpenError),
    /// Error of the RTPS participant: a full table, or an invalid QoS.
    #[error(transparent)]
    Endpoint(#[from] CreateError),
    /// The budget is invalid.
    #[error(transparent)]
    Budget(#[from] RateLimitError),
    /// The executor's job table is full.
    #[error(
        "the job table of this participant is full: it has {} places, and more if limits.local_endpoints is larger; \
         use several participants",
        crate::limits::MAX_JOBS
    )]
    TooManyJobs,
    /// The maximum sample size exceeds the limit.
    #[error(
        "samples of {asked} bytes were requested, but the limit is {limit} bytes: 16 MiB for a sample, and one frame \
         of the datapath for a sample that is sent as a single datagram or written by another thread; lower max_bytes \
         or max_datagram_bytes"
    )]
    SampleTooLarge {
        /// Requested size in bytes.
        asked: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The participant already uses the topic with another type.
    #[error(
        "topic {topic} already has the type {existing} in this participant, but the type {asked} was requested, and a \
         topic has one type: use the same type, or another topic name"
    )]
    OtherType {
        /// Topic name.
        topic: String,
        /// Type of the existing endpoint.
        existing: String,
        /// Requested type.
        asked: &'static str,
    },
    /// A PARTITION exceeds the bounds of announcements.
    #[error(
        "partition {name:?} is longer than {} bytes, or there are more than {} partitions: use fewer and shorter names",
        isolane_wire::limits::MAX_PARTITION_BYTES,
        isolane_wire::limits::MAX_PARTITIONS
    )]
    Partition {
        /// Partition name.
        name: String,
    },
    /// A policy has more octets than announcements hold.
    #[error(
        "{policy} has more than {} octets: shorten it, and publish the rest in a topic",
        isolane_wire::limits::MAX_OCTETS
    )]
    Octets {
        /// USER_DATA, TOPIC_DATA or GROUP_DATA.
        policy: PolicyId,
    },
    /// A DEADLINE or a response deadline is zero.
    #[error(
        "every sample misses a deadline of zero: give Qos::{setting} a longer time, or leave it out for no deadline"
    )]
    ZeroDeadline {
        /// Method of [`Qos`](crate::Qos) that sets the deadline.
        setting: &'static str,
    },
    /// A remote writer, which is enabled at creation, could not be enabled.
    #[error(transparent)]
    Enable(#[from] EnableError),
    /// The memory of the process cannot be locked.
    #[error(
        "memory cannot be locked ({source}): raise the limit (ulimit -l unlimited, or LimitMEMLOCK=infinity in a systemd unit), give the program CAP_IPC_LOCK, or build the participant without lock_memory"
    )]
    Lock {
        /// Error of the system.
        source: std::io::Error,
    },
    /// The loop's thread cannot be scheduled as requested.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The participant's own thread has ended.
    #[error(transparent)]
    Ended(#[from] ThreadEnded),
    /// A static description is invalid.
    #[error(transparent)]
    Described(#[from] StaticError),
    /// The participant is described with an address that it does not have.
    #[error(
        "participant {name:?} is described at {address}, which is not an address of its interfaces: start it on the \
         host that has the address, or correct the description"
    )]
    DescribedElsewhere {
        /// Participant name.
        name: String,
        /// Described address.
        address: std::net::Ipv4Addr,
    },
    /// There are fewer than eight ports from the described one on.
    #[error(
        "a described participant needs eight ports, one for each level, but fewer than eight follow from port {port}: \
         describe it with a port of at most 65528"
    )]
    DescribedPort {
        /// First described port.
        port: u16,
    },
    /// The level mapping lets levels share a port.
    #[error(
        "a described participant has a port for each level, but the level mapping lets levels share a port: leave the \
         level mapping out"
    )]
    DescribedSharedLane,
    /// The list of datapaths is empty.
    #[error(
        "no datapath is given: name at least one, or leave Builder::datapaths out to use kernel sockets"
    )]
    NoDatapath,
    /// A timer with a period of zero would always be due.
    #[error("a timer needs a period of at least a nanosecond")]
    NoPeriod,
    /// The announcement has too many destinations.
    #[error(
        "this participant would announce itself to {places} destinations (groups, and ports of named peers), but the \
         limit is {}: name fewer peers, or use multicast",
        crate::limits::ANNOUNCED_PLACES
    )]
    TooManyPeers {
        /// Number of destinations: groups, and ports of named peers.
        places: usize,
    },
    /// A system call of the loop failed.
    #[error("could not {action}: {source}")]
    System {
        /// Attempted action.
        action: &'static str,
        /// Error of the system.
        source: std::io::Error,
    },
}

impl BuildError {
    /// Returns whether a required UDP port is used by another program.
    #[must_use]
    pub fn is_port_taken(&self) -> bool {
        matches!(self, Self::Datapath(error) if error.class() == ErrorClass::AddressInUse)
    }

    /// Returns whether the settings are invalid on any machine, so that other settings are needed rather than another
    /// machine or more permissions.
    #[must_use]
    pub fn is_wrong_setting(&self) -> bool {
        match self {
            Self::Datapath(error) => error.class() == ErrorClass::InvalidOption,
            Self::Endpoint(CreateError::NoMemory { .. }) => false,
            Self::Endpoint(_)
            | Self::Described(_)
            | Self::DescribedElsewhere { .. }
            | Self::DescribedPort { .. }
            | Self::DescribedSharedLane
            | Self::NoDatapath
            | Self::ZeroDeadline { .. }
            | Self::Placement(PlacementError::Priority { .. } | PlacementError::Spin { .. })
            | Self::SampleTooLarge { .. }
            | Self::Budget(_)
            | Self::Octets { .. } => true,
            _ => false,
        }
    }
}

/// Reason why policies were not changed. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum QosError {
    /// A policy is immutable, or contradicts another one.
    #[error(transparent)]
    Policies(#[from] SetQosError),
    /// The policies are invalid for any endpoint.
    #[error(transparent)]
    Unusable(#[from] BuildError),
    /// `max_bytes` is fixed when an endpoint is created.
    #[error(
        "max_bytes cannot change from {existing} to {asked} after an endpoint is created, because its memory is \
         allocated: keep the value, or create another endpoint"
    )]
    MaxBytes {
        /// Size at creation.
        existing: usize,
        /// Requested size.
        asked: usize,
    },
}

/// Reason why a sample was not written. Nothing was sent then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// All frames of this level are in use: the loop did not run, or the link is slower than the writer. The write can
    /// be retried later.
    #[error("no frame of this level is free: run the loop, or write less often")]
    NoFrame,
    /// Error of the RTPS participant.
    #[error(transparent)]
    Protocol(#[from] isolane_rtps::WriteError),
    /// The serialised sample exceeds the writer's `max_bytes`.
    #[error(
        "the sample is larger than this writer's maximum of {limit} bytes{}: raise Qos::max_bytes (for a described \
         topic: max_bytes in isolane.toml), or shorten the sample",
        Longest(.longest)
    )]
    TooLarge {
        /// Maximum size in bytes, including the encapsulation header.
        limit: usize,
        /// Longest string or sequence of the sample.
        longest: Option<MemberLength>,
    },
    /// A string or sequence exceeds the bound of its member.
    #[error(
        "member {:?} has a length of {}, but its bound is {}: shorten the value, or raise the bound in the type, \
         #[topic(bound = N)], on both sides",
        .0.name, .0.length, .0.bound.unwrap_or_default()
    )]
    BoundExceeded(MemberLength),
    /// The sample cannot be serialised.
    #[error("the sample cannot be serialised: {0}")]
    Serialise(#[from] CdrError),
    /// The ring to the executor is full: the executor is behind, or the writer's history is full.
    #[error(
        "the executor has not yet taken the samples that were written before: write again later"
    )]
    QueueFull,
    /// The participant was dropped, or its thread has ended.
    #[error(
        "the participant of this writer no longer exists: keep the Participant, or the ParticipantHandle, for as long as \
         its writers write"
    )]
    Gone,
}

impl WriteError {
    /// Returns the error for a sample that exceeds the writer's `max_bytes`.
    pub(crate) fn too_large(limit: usize) -> Self {
        Self::TooLarge {
            limit,
            longest: None,
        }
    }

    /// Adds the member of the value that makes the sample too long.
    #[cold]
    pub(crate) fn of<T: CdrType>(self, value: &T) -> Self {
        let (limit, is_bound) = match self {
            Self::TooLarge { limit, .. }
            | Self::Protocol(isolane_rtps::WriteError::TooLarge { limit }) => (limit, false),
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

/// Longest member of a sample, formatted for people.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datapath_says_whether_other_settings_or_another_port_would_help() {
        let of = |class| {
            BuildError::from(OpenError::Device {
                interface: "eth7".into(),
                class,
                source: "refused".into(),
            })
        };
        let judged = |error: &BuildError| (error.is_wrong_setting(), error.is_port_taken());
        assert_eq!(judged(&of(ErrorClass::InvalidOption)), (true, false));
        assert_eq!(judged(&of(ErrorClass::AddressInUse)), (false, true));
        assert_eq!(judged(&of(ErrorClass::NotPermitted)), (false, false));
        let no_ports = BuildError::from(OpenError::Domain { domain: 233 });
        assert_eq!(judged(&no_ports), (true, false));
    }
}
