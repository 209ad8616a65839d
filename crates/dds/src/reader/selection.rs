//! Reading and taking several samples by state, by instance, or by condition (DDS 1.4 §2.2.2.5.3).
//!
//! [`DataReader::take`] and its siblings return the oldest sample and allocate nothing for it. The methods here return
//! a list. Its sample states are of one moment, and its ranks count within the list. The list groups samples by
//! instance, starting with the instance of the oldest sample. With ordered access of TOPIC or GROUP scope
//! ([`Qos::presentation`](crate::Qos::presentation)), the list keeps the order of all samples.

use isolane_datapath::clock::monotonic_now;
use isolane_rtps::{InstanceSelector, Selection, StateMask};
use isolane_wire::cdr::{KeyHash, TopicType, key_hash, read_payload};
use thiserror::Error;

use crate::{
    condition::ReadCondition,
    reader::{DataReader, Sample, decode, drop_expired},
};

/// Instance handle: the key hash, or zeros for a topic without a key. Instances are ordered by their handles.
pub type InstanceHandle = KeyHash;

/// Reason why samples could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The reader is not enabled.
    #[error("the reader is not enabled: enable it, and its participant before it")]
    NotEnabled,
    /// The reader does not know the instance, or no longer knows it.
    #[error(
        "the reader knows no such instance: take handles from SampleInfo::instance_handle or lookup_instance"
    )]
    UnknownInstance,
    /// The condition belongs to another reader.
    #[error("the condition was made by another reader: each reader has conditions of its own")]
    ForeignCondition,
}

/// Kind of access: whether samples stay in the cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Take,
}

/// States of samples, or a condition with states and a query.
enum Matching<'a> {
    States(StateMask),
    Condition(&'a ReadCondition),
}

/// Generates the two methods of an access, of which the first leaves the samples in the cache and the second removes
/// them. The list has the parameters before and after `max_samples`.
macro_rules! read_and_take {
    ($(
        $(#[$read_doc:meta])* $read:ident,
        $(#[$take_doc:meta])* $take:ident
        ($($before:ident: $Before:ty),*; $($after:ident: $After:ty),*) => $which:expr, $matching:expr;
    )*) => {
        impl<T: TopicType> DataReader<T> {$(
            $(#[$read_doc])*
            pub fn $read(
                &self,
                $($before: $Before,)*
                max_samples: usize,
                $($after: $After),*
            ) -> Result<Vec<Sample<T>>, ReadError> {
                self.access($which, &$matching, max_samples, Access::Read)
            }

            $(#[$take_doc])*
            pub fn $take(
                &self,
                $($before: $Before,)*
                max_samples: usize,
                $($after: $After),*
            ) -> Result<Vec<Sample<T>>, ReadError> {
                self.access($which, &$matching, max_samples, Access::Take)
            }
        )*}
    };
}

read_and_take! {
    /// Reads up to `max_samples` samples in these states without removing them (DDS 1.4 §2.2.2.5.3.8). Samples that
    /// are not of the type are omitted.
    ///
    /// # Errors
    /// [`ReadError::NotEnabled`].
    read_samples,
    /// Takes up to `max_samples` samples in these states (§2.2.2.5.3.9). Samples that are not of the type are omitted
    /// and count as rejected.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Network, Participant, Qos, StateMask, TopicType, ViewState};
    ///
    /// #[derive(TopicType)]
    /// struct Lamp { #[topic(key)] number: u8, is_on: bool }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let qos = Qos::reliable().keep_all();
    /// let writer = participant.create_writer::<Lamp>("Lamps", &qos)?;
    /// let reader = participant.create_reader::<Lamp>("Lamps", &qos)?;
    /// writer.write(&Lamp { number: 7, is_on: true })?;
    /// writer.write(&Lamp { number: 8, is_on: false })?;
    /// writer.write(&Lamp { number: 7, is_on: false })?;
    /// assert!(participant.run_until(Duration::from_secs(5), || reader.available() == 3));
    ///
    /// let seen = reader.read_samples(usize::MAX, StateMask::NOT_READ)?;
    /// assert_eq!(seen[0].info.view_state, ViewState::New);
    /// assert_eq!(seen[0].info.sample_rank, 1); // one more of lamp 7 follows
    /// assert!(reader.read_samples(usize::MAX, StateMask::NOT_READ)?.is_empty());
    /// // All of one lamp, then all of the next.
    /// let first = reader.take_next_instance(None, usize::MAX, StateMask::empty())?;
    /// assert_eq!(first.len(), 2);
    /// let last = first[1].info.instance_handle();
    /// let second = reader.take_next_instance(Some(last), usize::MAX, StateMask::empty())?;
    /// assert_eq!(second.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ReadError::NotEnabled`].
    take_samples
    (; mask: StateMask) => InstanceSelector::Any, Matching::States(mask);

    /// Reads samples of one instance (§2.2.2.5.3.14).
    ///
    /// # Errors
    /// [`ReadError::NotEnabled`], [`ReadError::UnknownInstance`].
    read_instance,
    /// Takes samples of one instance (§2.2.2.5.3.15).
    ///
    /// # Errors
    /// As [`read_instance`](Self::read_instance).
    take_instance
    (instance: InstanceHandle; mask: StateMask)
        => InstanceSelector::Instance(instance), Matching::States(mask);

    /// Reads samples of the next instance after `previous` that has samples in these states (§2.2.2.5.3.16). `None`
    /// selects the first such instance. Without one, the list is empty. The reader need not know `previous` any more.
    ///
    /// # Errors
    /// [`ReadError::NotEnabled`].
    read_next_instance,
    /// Takes samples of the next instance, chosen as in [`read_next_instance`](Self::read_next_instance)
    /// (§2.2.2.5.3.17).
    ///
    /// # Errors
    /// [`ReadError::NotEnabled`].
    take_next_instance
    (previous: Option<InstanceHandle>; mask: StateMask)
        => InstanceSelector::After(previous), Matching::States(mask);

    /// Reads samples that match a condition (§2.2.2.5.3.10).
    ///
    /// # Errors
    /// [`ReadError::NotEnabled`], [`ReadError::ForeignCondition`].
    read_w_condition,
    /// Takes samples that match a condition (§2.2.2.5.3.11).
    ///
    /// # Errors
    /// As [`read_w_condition`](Self::read_w_condition).
    take_w_condition
    (condition: &ReadCondition;) => InstanceSelector::Any, Matching::Condition(condition);

    /// Reads samples that match a condition, of the next instance that has such samples (§2.2.2.5.3.18).
    ///
    /// # Errors
    /// As [`read_w_condition`](Self::read_w_condition).
    read_next_instance_w_condition,
    /// Takes samples that match a condition, of the next instance that has such samples (§2.2.2.5.3.19).
    ///
    /// # Errors
    /// As [`read_w_condition`](Self::read_w_condition).
    take_next_instance_w_condition
    (previous: Option<InstanceHandle>, condition: &ReadCondition;)
        => InstanceSelector::After(previous), Matching::Condition(condition);
}

impl<T: TopicType> DataReader<T> {
    /// Returns the handle of the instance with this key (§2.2.2.5.3.29); `None` if the reader does not know the
    /// instance.
    #[must_use]
    pub fn lookup_instance(&self, key: &T) -> Option<InstanceHandle> {
        let handle = key_hash(key).ok()?;
        let state = self.core.state.borrow();
        let is_known = state.protocol.knows_instance(self.id, handle);
        is_known.then_some(handle)
    }

    fn access(
        &self,
        which: InstanceSelector,
        matching: &Matching<'_>,
        max_samples: usize,
        access: Access,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        let (mask, query) = match matching {
            Matching::States(mask) => (*mask, None),
            Matching::Condition(condition) if condition.is_of(&self.core, self.id) => {
                (condition.mask(), condition.query())
            }
            Matching::Condition(_) => return Err(ReadError::ForeignCondition),
        };
        let mut state = self.core.state.borrow_mut();
        if !state.protocol.is_reader_enabled(self.id) {
            return Err(ReadError::NotEnabled);
        }
        if let InstanceSelector::Instance(handle) = which
            && !state.protocol.knows_instance(self.id, handle)
        {
            return Err(ReadError::UnknownInstance);
        }
        drop_expired(&mut state.protocol, self.id);
        state.listeners.note_access(self.id);
        let selection = Selection {
            which,
            mask,
            query,
            max_samples,
        };
        let count = state.protocol.select(self.id, &selection);
        let (mut samples, mut unreadable) = (Vec::with_capacity(count), Vec::new());
        let selected = (0..count).map_while(|nth| state.protocol.selected(self.id, nth));
        for sample in selected {
            let value = match sample.info.valid_data() {
                true => decode(sample.payload, read_payload).map(Some),
                false => Ok(None),
            };
            let info = sample.info;
            match value {
                Ok(value) => samples.push(Sample { value, info }),
                Err((_, reason)) => unreadable.push((info.writer, reason)),
            }
        }
        match access {
            Access::Read => state.protocol.read_selected(self.id),
            Access::Take => {
                state.protocol.take_selected(self.id);
                for (writer, reason) in unreadable {
                    state.reject_delivered(self.id, writer, reason);
                }
                // The clock is read at most once: all samples are taken now.
                let mut now = None;
                for sample in samples.iter().filter(|sample| sample.value.is_some()) {
                    let now = || *now.get_or_insert_with(monotonic_now);
                    state.note_response(self.id, sample.info.received, now);
                }
            }
        }
        Ok(samples)
    }
}
