//! Kinds of the QoS policies and policy ids, with their numbers on the wire.

use core::fmt;

use super::parameter_value::ParameterValue;
use crate::bytes::{Reader, Writer};

/// Defines an enumeration with wire numbers and its encoding.
macro_rules! kinds {
    ($(#[$documentation:meta])* $name:ident, default $default:ident {
        $($(#[$of_variant:meta])* $variant:ident = $number:literal,)+
    }) => {
        $(#[$documentation])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$of_variant])* $variant = $number,)+
        }

        impl $name {
            /// Number on the wire.
            #[must_use]
            pub const fn number(self) -> u32 {
                self as u32
            }

            /// Returns the kind with this wire number, if any.
            #[must_use]
            pub const fn of_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl ParameterValue for $name {
            fn read(reader: &mut Reader<'_>) -> Option<Self> {
                Self::of_number(reader.u32().ok()?)
            }

            fn write(&self, writer: &mut Writer<'_>) {
                writer.u32(self.number());
            }

            fn bytes(&self) -> usize {
                4
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::$default
            }
        }
    };
}

kinds! {
    /// RELIABILITY kind (DDS 1.4 §2.2.3.14).
    ///
    /// The default of readers and topics is best-effort; the default of writers is [`Reliable`](Self::Reliable).
    ReliabilityKind, default BestEffort {
        /// Lost samples are not sent again.
        BestEffort = 1,
        /// Lost samples are sent again while they are in the writer's history.
        Reliable = 2,
    }
}

kinds! {
    /// DURABILITY kind: samples that late-joining readers receive (DDS 1.4 §2.2.3.4).
    DurabilityKind, default Volatile {
        /// No earlier samples.
        Volatile = 0,
        /// Samples in the writer's history.
        TransientLocal = 1,
        /// Samples that a service keeps in memory.
        Transient = 2,
        /// Samples that a service keeps on disk.
        Persistent = 3,
    }
}

kinds! {
    /// HISTORY kind (DDS 1.4 §2.2.3.18).
    HistoryKind, default KeepLast {
        /// The newest `depth` samples of each instance.
        KeepLast = 0,
        /// All samples, up to the resource limits.
        KeepAll = 1,
    }
}

kinds! {
    /// LIVELINESS kind: the source of liveliness assertions (DDS 1.4 §2.2.3.11).
    LivelinessKind, default Automatic {
        /// Asserted by the middleware while the process lives.
        Automatic = 0,
        /// Asserted by the application, for all writers of the participant together.
        ManualByParticipant = 1,
        /// Asserted by the application, for each writer.
        ManualByTopic = 2,
    }
}

kinds! {
    /// OWNERSHIP kind (DDS 1.4 §2.2.3.9).
    OwnershipKind, default Shared {
        /// All writers can update an instance.
        Shared = 0,
        /// Only the writer with the highest strength can update an instance.
        Exclusive = 1,
    }
}

kinds! {
    /// DESTINATION_ORDER kind (DDS 1.4 §2.2.3.17).
    DestinationOrderKind, default ByReceptionTimestamp {
        /// Samples are ordered by reception.
        ByReceptionTimestamp = 0,
        /// Samples are ordered by the writer's timestamp.
        BySourceTimestamp = 1,
    }
}

kinds! {
    /// PRESENTATION access scope of coherence and order (DDS 1.4 §2.2.3.6).
    PresentationAccessScope, default Instance {
        /// Samples of an instance.
        Instance = 0,
        /// Samples of a writer.
        Topic = 1,
        /// Samples of a publisher.
        Group = 2,
    }
}

/// Data representation (DDS-XTypes 1.3 §7.6.3.1.1). Unknown numbers are valid, because an announced list may contain
/// known and unknown numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataRepresentationId(pub i16);

impl DataRepresentationId {
    /// XCDR version 1; the default of an endpoint that announces none.
    pub const XCDR1: Self = Self(0);
    /// XML.
    pub const XML: Self = Self(1);
    /// XCDR version 2.
    pub const XCDR2: Self = Self(2);
}

/// QoS policy id (DDS 1.4 §2.3.3, `QosPolicyId_t`; DDS-XTypes 1.3 §7.6.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyId(pub u32);

/// Defines the policy ids and their names.
macro_rules! policies {
    ($($name:ident = $number:literal,)+) => {
        #[allow(missing_docs, reason = "the names are the policies'")]
        impl PolicyId {
            $(pub const $name: Self = Self($number);)+

            /// Name of the policy in the standard; `UNKNOWN` if the standard does not define this id.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                    _ => "UNKNOWN",
                }
            }
        }
    };
}

policies! {
    USER_DATA = 1,
    DURABILITY = 2,
    PRESENTATION = 3,
    DEADLINE = 4,
    LATENCY_BUDGET = 5,
    OWNERSHIP = 6,
    OWNERSHIP_STRENGTH = 7,
    LIVELINESS = 8,
    TIME_BASED_FILTER = 9,
    PARTITION = 10,
    RELIABILITY = 11,
    DESTINATION_ORDER = 12,
    HISTORY = 13,
    RESOURCE_LIMITS = 14,
    ENTITY_FACTORY = 15,
    WRITER_DATA_LIFECYCLE = 16,
    READER_DATA_LIFECYCLE = 17,
    TOPIC_DATA = 18,
    GROUP_DATA = 19,
    TRANSPORT_PRIORITY = 20,
    LIFESPAN = 21,
    DURABILITY_SERVICE = 22,
    DATA_REPRESENTATION = 23,
    TYPE_CONSISTENCY_ENFORCEMENT = 24,
}

impl fmt::Debug for PolicyId {
    /// Formats the name, or the number of an unknown policy.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "UNKNOWN" => write!(formatter, "PolicyId({})", self.0),
            name => formatter.write_str(name),
        }
    }
}

impl fmt::Display for PolicyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
