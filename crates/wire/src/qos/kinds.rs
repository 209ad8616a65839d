//! Kinds of the QoS policies, with their numbers on the wire.

use super::wire_form::WireForm;
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

        impl WireForm for $name {
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
    /// The default is that of readers and topics; the writers' default is [`Reliable`](Self::Reliable).
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

/// Data representation (DDS-XTypes 1.3 §7.6.3.1.1). Unknown numbers are kept, because a list may also contain
/// known ones.
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
