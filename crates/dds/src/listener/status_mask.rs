//! Mask of changed statuses of an endpoint (DDS 1.4 §2.2.4.1).
//!
//! A status counts as changed until a listener or its getter reads the change. `DATA_AVAILABLE` counts as changed
//! until the reader is accessed.

use bitflags::bitflags;

use crate::{
    listener::{Endpoint, Kind},
    reader::DataReader,
    writer::DataWriter,
};
use isolane_wire::cdr::TopicType;

bitflags! {
    /// Statuses of writers and readers, numbered as in the standard (DDS 1.4 §2.3.3, `StatusKind`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct StatusMask: u32 {
        /// An instance was not written for a DEADLINE period.
        const OFFERED_DEADLINE_MISSED = 1 << 1;
        /// An instance received no sample for a DEADLINE period.
        const REQUESTED_DEADLINE_MISSED = 1 << 2;
        /// A reader requests more than a writer offers.
        const OFFERED_INCOMPATIBLE_QOS = 1 << 5;
        /// A writer offers less than a reader requests.
        const REQUESTED_INCOMPATIBLE_QOS = 1 << 6;
        /// Samples will never arrive.
        const SAMPLE_LOST = 1 << 7;
        /// Samples arrived and were not accepted.
        const SAMPLE_REJECTED = 1 << 8;
        /// Samples have become available since the last access to the reader.
        const DATA_AVAILABLE = 1 << 10;
        /// A writer was not asserted within its lease.
        const LIVELINESS_LOST = 1 << 11;
        /// Matched writers lost or regained liveliness.
        const LIVELINESS_CHANGED = 1 << 12;
        /// Readers were matched or unmatched.
        const PUBLICATION_MATCHED = 1 << 13;
        /// Writers were matched or unmatched.
        const SUBSCRIPTION_MATCHED = 1 << 14;
    }
}

impl Kind {
    pub(crate) const fn mask(self) -> StatusMask {
        match self {
            Self::PublicationMatched => StatusMask::PUBLICATION_MATCHED,
            Self::OfferedIncompatibleQos => StatusMask::OFFERED_INCOMPATIBLE_QOS,
            Self::SubscriptionMatched => StatusMask::SUBSCRIPTION_MATCHED,
            Self::RequestedIncompatibleQos => StatusMask::REQUESTED_INCOMPATIBLE_QOS,
            Self::SampleLost => StatusMask::SAMPLE_LOST,
            Self::SampleRejected => StatusMask::SAMPLE_REJECTED,
            Self::OfferedDeadlineMissed => StatusMask::OFFERED_DEADLINE_MISSED,
            Self::RequestedDeadlineMissed => StatusMask::REQUESTED_DEADLINE_MISSED,
            Self::LivelinessLost => StatusMask::LIVELINESS_LOST,
            Self::LivelinessChanged => StatusMask::LIVELINESS_CHANGED,
        }
    }
}

impl<T: TopicType> DataWriter<T> {
    /// Returns the statuses with unread changes (DDS 1.4 §2.2.2.1.1.6).
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        let mut state = self.core.state.borrow_mut();
        state.take_notes_now();
        state.listeners.status_changes(Endpoint::Writer(self.id))
    }
}

impl<T: TopicType> DataReader<T> {
    /// Returns the statuses with unread changes (DDS 1.4 §2.2.2.1.1.6).
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        let mut state = self.core.state.borrow_mut();
        state.take_notes_now();
        state.listeners.status_changes(Endpoint::Reader(self.id))
    }
}
