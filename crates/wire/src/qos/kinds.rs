//! The choices that policies offer, with their numbers on the wire.

use super::wire_form::WireForm;
use crate::bytes::{Reader, Writer};

/// Defines an enumeration with its numbers, and how to read and write it.
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
            /// The number on the wire.
            #[must_use]
            pub const fn number(self) -> u32 {
                self as u32
            }

            /// The kind with this number on the wire, if there is one.
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
    /// Whether lost samples are repeated (DDS 1.4 §2.2.3.14).
    ///
    /// The default is that of readers and topics; a writer's is [`Reliable`](Self::Reliable).
    ReliabilityKind, default BestEffort {
        /// A lost sample is lost.
        BestEffort = 1,
        /// A lost sample is sent again while it is in the history.
        Reliable = 2,
    }
}

kinds! {
    /// What readers that come late receive (DDS 1.4 §2.2.3.4).
    DurabilityKind, default Volatile {
        /// Nothing.
        Volatile = 0,
        /// What the writer still has, while it lives.
        TransientLocal = 1,
        /// What a service keeps in memory.
        Transient = 2,
        /// What a service keeps on disk.
        Persistent = 3,
    }
}

kinds! {
    /// How much is kept of each instance (DDS 1.4 §2.2.3.18).
    HistoryKind, default KeepLast {
        /// The newest samples, as many as the depth says.
        KeepLast = 0,
        /// All, up to the resource limits.
        KeepAll = 1,
    }
}

kinds! {
    /// Who says that a writer is alive (DDS 1.4 §2.2.3.11).
    LivelinessKind, default Automatic {
        /// The middleware, while the process lives.
        Automatic = 0,
        /// The application, once for all writers of the participant.
        ManualByParticipant = 1,
        /// The application, for each writer.
        ManualByTopic = 2,
    }
}

kinds! {
    /// How many writers may update an instance (DDS 1.4 §2.2.3.9).
    OwnershipKind, default Shared {
        /// All of them.
        Shared = 0,
        /// The strongest one.
        Exclusive = 1,
    }
}

kinds! {
    /// Which of two samples is the later (DDS 1.4 §2.2.3.17).
    DestinationOrderKind, default ByReceptionTimestamp {
        /// The one received later.
        ByReceptionTimestamp = 0,
        /// The one with the later timestamp of its writer.
        BySourceTimestamp = 1,
    }
}

kinds! {
    /// Among what coherence and order hold (DDS 1.4 §2.2.3.6).
    PresentationAccessScope, default Instance {
        /// The samples of an instance.
        Instance = 0,
        /// The samples of a writer.
        Topic = 1,
        /// The samples of a publisher.
        Group = 2,
    }
}

/// In what form samples travel (DDS-XTypes 1.3 §7.6.3.1.1). Other numbers than those named here are
/// kept, for they may stand beside one that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataRepresentationId(pub i16);

impl DataRepresentationId {
    /// CDR, version 1. An endpoint that announces nothing means this one.
    pub const XCDR1: Self = Self(0);
    /// XML.
    pub const XML: Self = Self(1);
    /// CDR, version 2.
    pub const XCDR2: Self = Self(2);
}
