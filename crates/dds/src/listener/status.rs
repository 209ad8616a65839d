//! Communication statuses of endpoints (DDS 1.4 §2.2.4.1), with the names of the standard.
//!
//! A status has totals and their changes since it was last read. A job of the endpoint notifies listeners at the
//! priority of the topic's protocol work, one listener per activation. A getter returns the current status. A change is
//! reported once, by the listener or by the getter.
//!
//! A status counts as changed ([`StatusMask`]) until a listener or its getter reads the change. `DATA_AVAILABLE`
//! counts as changed until the reader is accessed.
//!
//! The table at the end of this file lists the statuses of writers and readers. The code for each status is generated
//! from the table.

use bitflags::bitflags;
use isolane_rtps::{
    DeadlineMissed, Incompatible, LivelinessChanged, LivelinessLost, LocalParticipant, LostReason,
    Matched, ReaderStatus, RejectReason, SampleLost, SampleRejected, WriterStatus,
};
use isolane_wire::{cdr::TopicType, guid::Guid, qos::PolicyId};

use crate::{error::BuildError, listener::Endpoint, reader::DataReader, writer::DataWriter};

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

/// Matched readers of a writer (`PUBLICATION_MATCHED`). A reader counts from the match on;
/// [`DataWriter::matched_readers`](crate::DataWriter::matched_readers) counts readers that are confirmed to receive
/// samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublicationMatchedStatus {
    /// Number of readers that ever matched.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
    /// Number of readers matched now.
    pub current_count: u32,
    /// Change of `current_count` since the status was last read.
    pub current_count_change: i32,
    /// Reader that was matched or unmatched last.
    pub last_subscription_handle: Option<Guid>,
}

/// Matched writers of a reader (`SUBSCRIPTION_MATCHED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscriptionMatchedStatus {
    /// Number of writers that ever matched.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
    /// Number of writers matched now.
    pub current_count: u32,
    /// Change of `current_count` since the status was last read.
    pub current_count_change: i32,
    /// Writer that was matched or unmatched last.
    pub last_publication_handle: Option<Guid>,
}

/// Readers that request more than a writer offers (`OFFERED_INCOMPATIBLE_QOS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedIncompatibleQosStatus {
    /// Number of such readers so far.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
    /// First incompatible policy of the last incompatible reader; [`PolicyId::name`] returns its name.
    pub last_policy_id: Option<PolicyId>,
    /// Last incompatible reader.
    pub last_subscription_handle: Option<Guid>,
}

/// Writers that offer less than a reader requests (`REQUESTED_INCOMPATIBLE_QOS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedIncompatibleQosStatus {
    /// Number of such writers so far.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
    /// First incompatible policy of the last incompatible writer; [`PolicyId::name`] returns its name.
    pub last_policy_id: Option<PolicyId>,
    /// Last incompatible writer.
    pub last_publication_handle: Option<Guid>,
}

/// Samples that will never arrive at a reader (`SAMPLE_LOST`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleLostStatus {
    /// Number of lost samples.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
    /// Number of lost samples that exceed the reader's [`Qos::max_bytes`](crate::Qos::max_bytes).
    pub too_large: u64,
    /// Reason for the last loss.
    pub last_reason: LostReason,
}

/// Samples that arrived at a reader and were not accepted (`SAMPLE_REJECTED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleRejectedStatus {
    /// Number of rejected samples.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
    /// Reason for the last rejection.
    pub last_reason: Option<RejectReason>,
}

/// DEADLINE periods in which an instance was not written (`OFFERED_DEADLINE_MISSED`). An instance is supervised from
/// its first sample until it is disposed or unregistered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedDeadlineMissedStatus {
    /// Number of missed periods of all instances.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
    /// Key hash of the instance that missed a period last; zeros for a topic without a key.
    pub last_instance_handle: Option<[u8; 16]>,
}

/// DEADLINE periods in which an instance received no sample (`REQUESTED_DEADLINE_MISSED`). An instance is supervised
/// from the first received sample until it is disposed or has no writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedDeadlineMissedStatus {
    /// Number of missed periods of all instances.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
    /// Key hash of the instance that missed a period last; zeros for a topic without a key.
    pub last_instance_handle: Option<[u8; 16]>,
}

/// Expirations of a writer's LIVELINESS lease without an assertion (`LIVELINESS_LOST`). A writer that stays silent
/// counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LivelinessLostStatus {
    /// Number of expirations.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
}

/// Liveliness of a reader's matched writers (`LIVELINESS_CHANGED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LivelinessChangedStatus {
    /// Number of matched writers that are alive.
    pub alive_count: u32,
    /// Number of matched writers that are not alive.
    pub not_alive_count: u32,
    /// Change of `alive_count` since the status was last read.
    pub alive_count_change: i32,
    /// Change of `not_alive_count` since the status was last read.
    pub not_alive_count_change: i32,
    /// Writer of the last change.
    pub last_publication_handle: Option<Guid>,
}

/// Implements the conversion of counts of the RTPS participant to a status: each field of the status, and its source.
macro_rules! from_counts {
    ($($Counts:ident => $Status:ident { $($field:ident: $count:ident),* })*) => {$(
        impl From<$Counts> for $Status {
            fn from(counts: $Counts) -> Self {
                Self { $($field: counts.$count.into()),* }
            }
        }
    )*};
}

from_counts! {
    Matched => PublicationMatchedStatus {
        total_count: total, total_count_change: total_change,
        current_count: current, current_count_change: current_change,
        last_subscription_handle: last
    }
    Matched => SubscriptionMatchedStatus {
        total_count: total, total_count_change: total_change,
        current_count: current, current_count_change: current_change,
        last_publication_handle: last
    }
    Incompatible => OfferedIncompatibleQosStatus {
        total_count: total, total_count_change: total_change,
        last_policy_id: policy, last_subscription_handle: other
    }
    Incompatible => RequestedIncompatibleQosStatus {
        total_count: total, total_count_change: total_change,
        last_policy_id: policy, last_publication_handle: other
    }
    SampleLost => SampleLostStatus {
        total_count: total, total_count_change: change,
        too_large: too_large, last_reason: reason
    }
    SampleRejected => SampleRejectedStatus {
        total_count: total, total_count_change: change, last_reason: reason
    }
    DeadlineMissed => OfferedDeadlineMissedStatus {
        total_count: total, total_count_change: change, last_instance_handle: last_instance
    }
    DeadlineMissed => RequestedDeadlineMissedStatus {
        total_count: total, total_count_change: change, last_instance_handle: last_instance
    }
    LivelinessLost => LivelinessLostStatus { total_count: total, total_count_change: change }
    LivelinessChanged => LivelinessChangedStatus {
        alive_count: alive, alive_count_change: alive_change,
        not_alive_count: not_alive, not_alive_count_change: not_alive_change,
        last_publication_handle: last
    }
}

/// Generates the statuses of the endpoints, with the listener setter and the getter of each, from their table.
///
/// An endpoint in the table has its handle, its set of changed statuses in the RTPS participant, and that set's
/// conversion. A status has its setter's documentation, its kind, field, type and bit. Then come the function that
/// takes its change from the RTPS participant, the setter, the getter, and the changes that a read resets.
macro_rules! statuses {
    ($($Endpoint:ident $Handle:ident $Changed:ident $mask_of:ident {$(
        $(#[$doc:meta])*
        $Kind:ident {
            $field:ident: $Status:ident, $MASK:ident, $take:ident;
            $on:ident, $get:ident; resets $($change:ident)+
        }
    )*})*) => {
        /// Kind of status with a listener.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind { $($($Kind,)*)* }

        impl Kind {
            pub(crate) const ALL: &[Self] = &[$($(Self::$Kind,)*)*];
            pub(crate) const COUNT: usize = Self::ALL.len();

            pub(crate) const fn mask(self) -> StatusMask {
                match self { $($(Self::$Kind => StatusMask::$MASK,)*)* }
            }

            $(
                /// Returns the statuses of an endpoint that have changed in the RTPS participant.
                pub(crate) fn $mask_of(changed: $Changed) -> StatusMask {
                    let mut mask = StatusMask::empty();
                    $(mask.set(StatusMask::$MASK, changed.contains($Changed::$MASK));)*
                    mask
                }
            )*
        }

        /// Statuses of an endpoint as of the last read; only those of its kind are used.
        #[derive(Debug, Clone, Copy, Default)]
        pub(crate) struct Statuses { $($($field: $Status,)*)* }

        impl Statuses {
            /// Takes the change of one kind from the RTPS participant. Returns false if there is none.
            pub(crate) fn take(
                &mut self,
                protocol: &mut LocalParticipant,
                of: Endpoint,
                kind: Kind,
            ) -> bool {
                let taken = match (of, kind) {
                    $($((Endpoint::$Endpoint(id), Kind::$Kind) => {
                        protocol.$take(id).map(|taken| self.$field = taken.into())
                    })*)*
                    _ => None,
                };
                taken.is_some()
            }

            /// Resets the changes after a read.
            pub(crate) fn settle(&mut self) {
                $($($(self.$field.$change = 0;)+)*)*
            }
        }

        $(impl<T: TopicType> $Handle<T> {
            /// Returns the statuses with unread changes (DDS 1.4 §2.2.2.1.1.6).
            #[must_use]
            pub fn status_changes(&self) -> StatusMask {
                self.core.status_changes(Endpoint::$Endpoint(self.id))
            }

            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// [`BuildError::TooManyJobs`].
                pub fn $on(
                    &self,
                    mut listener: impl FnMut($Status) + 'static,
                ) -> Result<(), BuildError> {
                    let topic = (self.topic.as_str(), self.level);
                    let listener = Box::new(move |statuses: &Statuses| listener(statuses.$field));
                    self.core.listen(Endpoint::$Endpoint(self.id), Kind::$Kind, topic, listener)
                }

                #[doc = concat!("Returns `", stringify!($MASK), "` (DDS 1.4 §2.2.4.1).")]
                #[must_use]
                pub fn $get(&self) -> $Status {
                    self.core.status(Endpoint::$Endpoint(self.id), Kind::$Kind).$field
                }
            )*
        })*
    };
}

statuses! {
    Writer DataWriter WriterStatus of_writer {
        /// Sets the listener of `PUBLICATION_MATCHED`: a reader matches, or no longer matches.
        ///
        /// Every listener runs as a separate job at the priority of the topic's protocol work. It may do what any callback
        /// may, and is also notified of changes before it was set.
        PublicationMatched {
            publication_matched: PublicationMatchedStatus, PUBLICATION_MATCHED, take_publication_matched;
            on_publication_matched, publication_matched_status; resets total_count_change current_count_change
        }

        /// Sets the listener of `OFFERED_INCOMPATIBLE_QOS`: a reader requests more than the writer offers.
        OfferedIncompatibleQos {
            offered_incompatible_qos: OfferedIncompatibleQosStatus, OFFERED_INCOMPATIBLE_QOS, take_offered_incompatible;
            on_offered_incompatible_qos, offered_incompatible_qos_status; resets total_count_change
        }

        /// Sets the listener of `OFFERED_DEADLINE_MISSED`: an instance was not written for a DEADLINE period.
        OfferedDeadlineMissed {
            offered_deadline_missed: OfferedDeadlineMissedStatus, OFFERED_DEADLINE_MISSED, take_offered_deadline_missed;
            on_offered_deadline_missed, offered_deadline_missed_status; resets total_count_change
        }

        /// Sets the listener of `LIVELINESS_LOST`: the writer was neither asserted nor written for a lease duration.
        LivelinessLost {
            liveliness_lost: LivelinessLostStatus, LIVELINESS_LOST, take_liveliness_lost;
            on_liveliness_lost, liveliness_lost_status; resets total_count_change
        }
    }
    Reader DataReader ReaderStatus of_reader {
        /// Sets the listener of `SUBSCRIPTION_MATCHED`: a writer matches, or no longer matches.
        ///
        /// Every listener runs as a separate job at the priority of the topic's protocol work. It may do what any callback
        /// may, and is also notified of changes before it was set.
        ///
        /// ```
        /// use std::{cell::Cell, rc::Rc, time::Duration};
        /// use isolane::{Network, Participant, Qos, TopicType};
        ///
        /// #[derive(TopicType)]
        /// struct Door { is_open: bool }
        ///
        /// let network = Network::new(1);
        /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
        /// let reader = participant.create_reader::<Door>("Doors", &Qos::reliable())?;
        /// let writers = Rc::new(Cell::new(0));
        /// let count = Rc::clone(&writers);
        /// reader.on_subscription_matched(move |status| count.set(status.current_count))?;
        /// let writer = participant.create_writer::<Door>("Doors", &Qos::reliable())?;
        /// assert!(participant.run_until(Duration::from_secs(5), || writers.get() == 1));
        /// drop(writer);
        /// assert!(participant.run_until(Duration::from_secs(5), || writers.get() == 0));
        /// # Ok::<(), isolane::BuildError>(())
        /// ```
        SubscriptionMatched {
            subscription_matched: SubscriptionMatchedStatus, SUBSCRIPTION_MATCHED, take_subscription_matched;
            on_subscription_matched, subscription_matched_status; resets total_count_change current_count_change
        }

        /// Sets the listener of `REQUESTED_INCOMPATIBLE_QOS`: a writer offers less than the reader requests.
        RequestedIncompatibleQos {
            requested_incompatible_qos: RequestedIncompatibleQosStatus, REQUESTED_INCOMPATIBLE_QOS, take_requested_incompatible;
            on_requested_incompatible_qos, requested_incompatible_qos_status; resets total_count_change
        }

        /// Sets the listener of `SAMPLE_LOST`: samples will never arrive.
        SampleLost {
            sample_lost: SampleLostStatus, SAMPLE_LOST, take_sample_lost;
            on_sample_lost, sample_lost_status; resets total_count_change
        }

        /// Sets the listener of `SAMPLE_REJECTED`: samples arrived and were not accepted.
        SampleRejected {
            sample_rejected: SampleRejectedStatus, SAMPLE_REJECTED, take_sample_rejected;
            on_sample_rejected, sample_rejected_status; resets total_count_change
        }

        /// Sets the listener of `REQUESTED_DEADLINE_MISSED`: an instance received no sample for a DEADLINE period.
        ///
        /// ```
        /// use std::{cell::Cell, rc::Rc, time::Duration};
        /// use isolane::{Network, Participant, Qos, TopicType};
        ///
        /// #[derive(TopicType)]
        /// struct Pressure { bar: f32 }
        ///
        /// let network = Network::new(1);
        /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
        /// let qos = Qos::reliable().deadline(Duration::from_millis(10));
        /// let writer = participant.create_writer::<Pressure>("Pressure", &qos)?;
        /// let reader = participant.create_reader::<Pressure>("Pressure", &qos)?;
        /// let missed = Rc::new(Cell::new(0));
        /// let count = Rc::clone(&missed);
        /// reader.on_requested_deadline_missed(move |status| count.set(status.total_count))?;
        /// writer.write(&Pressure { bar: 2.5 })?; // and no more
        /// assert!(participant.run_until(Duration::from_secs(5), || missed.get() >= 2));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        RequestedDeadlineMissed {
            requested_deadline_missed: RequestedDeadlineMissedStatus, REQUESTED_DEADLINE_MISSED, take_requested_deadline_missed;
            on_requested_deadline_missed, requested_deadline_missed_status; resets total_count_change
        }

        /// Sets the listener of `LIVELINESS_CHANGED`: matched writers appear, disappear, lose or regain liveliness.
        LivelinessChanged {
            liveliness_changed: LivelinessChangedStatus, LIVELINESS_CHANGED, take_liveliness_changed;
            on_liveliness_changed, liveliness_changed_status; resets alive_count_change not_alive_count_change
        }
    }
}
