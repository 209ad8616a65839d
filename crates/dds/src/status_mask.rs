//! Which statuses of an endpoint have changed, as a mask (DDS 1.4 §2.2.4.1).
//!
//! A status counts as changed from the moment something of it happens until it is told: by a listener, or by its
//! getter. `DATA_AVAILABLE` does until the reader is looked into.

use bitflags::bitflags;

use crate::{
    listeners::{Endpoint, Kind},
    reader::DataReader,
    state::State,
    writer::DataWriter,
};
use isolane_engine::ReaderId;
use isolane_wire::cdr::TopicType;

bitflags! {
    /// Statuses of writers and readers, by the standard's numbers (DDS 1.4 §2.3.3, `StatusKind`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct StatusMask: u32 {
        /// An instance was not written for a whole period of DEADLINE.
        const OFFERED_DEADLINE_MISSED = 1 << 1;
        /// Nothing came of an instance for a whole period of DEADLINE.
        const REQUESTED_DEADLINE_MISSED = 1 << 2;
        /// A reader requests more than a writer offers.
        const OFFERED_INCOMPATIBLE_QOS = 1 << 5;
        /// A writer offers less than a reader requests.
        const REQUESTED_INCOMPATIBLE_QOS = 1 << 6;
        /// Samples will never come.
        const SAMPLE_LOST = 1 << 7;
        /// Samples came and were not taken in.
        const SAMPLE_REJECTED = 1 << 8;
        /// Samples have become available since the reader was looked into last.
        const DATA_AVAILABLE = 1 << 10;
        /// A writer was not asserted in time.
        const LIVELINESS_LOST = 1 << 11;
        /// Matched writers are alive no longer, or again.
        const LIVELINESS_CHANGED = 1 << 12;
        /// Readers join and part.
        const PUBLICATION_MATCHED = 1 << 13;
        /// Writers join and part.
        const SUBSCRIPTION_MATCHED = 1 << 14;
    }
}

impl Kind {
    /// The bit of this status.
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

impl State {
    /// Something has changed that a condition may depend on: who waits for one asks again.
    #[inline]
    pub(crate) fn note_change(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }

    /// Samples of a reader have become available.
    #[inline]
    pub(crate) fn note_data(&mut self, reader: ReaderId) {
        self.note_change();
        self.reader_listening[reader.index()].changed |= StatusMask::DATA_AVAILABLE;
    }

    /// A reader's user looks into it: what is there is no news, and its states change by that.
    #[inline]
    pub(crate) fn note_look(&mut self, reader: ReaderId) {
        self.note_change();
        self.reader_listening[reader.index()].changed -= StatusMask::DATA_AVAILABLE;
    }

    /// Statuses of an endpoint that have changed.
    pub(crate) fn status_changes(&mut self, of: Endpoint) -> StatusMask {
        self.listening(of).changed
    }
}

impl<T: TopicType> DataWriter<T> {
    /// Statuses that have changed and were not told (DDS 1.4 §2.2.2.1.1.6).
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        let mut state = self.core.state.borrow_mut();
        state.gather_notes();
        state.status_changes(Endpoint::Writer(self.id))
    }
}

impl<T: TopicType> DataReader<T> {
    /// Statuses that have changed and were not told (DDS 1.4 §2.2.2.1.1.6).
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        let mut state = self.core.state.borrow_mut();
        state.gather_notes();
        state.status_changes(Endpoint::Reader(self.id))
    }
}
