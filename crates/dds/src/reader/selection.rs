//! Reading and taking several samples by state, by instance, or by condition (DDS 1.4 §2.2.2.5.3).
//!
//! [`DataReader::take`] and its siblings return the oldest sample and allocate nothing for it. The methods here return
//! a list, whose sample states are those of one moment and whose ranks count within the list. The list groups samples
//! by instance, starting with the instance of the oldest sample. With ordered access beyond an instance
//! ([`Qos::presentation`](crate::Qos::presentation)), it keeps the order of all samples.

use isolane_datapath::clock::monotonic_now;
use isolane_rtps::{InstanceSelector, Query, Selection, StateMask};
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

impl<T: TopicType> DataReader<T> {
    /// Reads up to `max_samples` samples in these states without removing them (DDS 1.4 §2.2.2.5.3.8). Samples that
    /// are not of the type are omitted.
    ///
    /// # Errors
    /// [`ReadError::NotEnabled`].
    pub fn read_samples(
        &self,
        max_samples: usize,
        mask: StateMask,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        self.access(InstanceSelector::Any, mask, max_samples, None, Access::Read)
    }

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
    pub fn take_samples(
        &self,
        max_samples: usize,
        mask: StateMask,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        self.access(InstanceSelector::Any, mask, max_samples, None, Access::Take)
    }

    /// Reads samples of one instance (§2.2.2.5.3.14).
    ///
    /// # Errors
    /// [`ReadError::NotEnabled`], [`ReadError::UnknownInstance`].
    pub fn read_instance(
        &self,
        instance: InstanceHandle,
        max_samples: usize,
        mask: StateMask,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        let which = InstanceSelector::Instance(instance);
        self.access(which, mask, max_samples, None, Access::Read)
    }

    /// Takes samples of one instance (§2.2.2.5.3.15).
    ///
    /// # Errors
    /// As [`read_instance`](Self::read_instance).
    pub fn take_instance(
        &self,
        instance: InstanceHandle,
        max_samples: usize,
        mask: StateMask,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        let which = InstanceSelector::Instance(instance);
        self.access(which, mask, max_samples, None, Access::Take)
    }

    /// Reads samples of the next instance after `previous` that has such samples, or of the first one with `None`
    /// (§2.2.2.5.3.16). The list is empty if there is none. The reader need not know `previous` any more.
    ///
    /// # Errors
    /// [`ReadError::NotEnabled`].
    pub fn read_next_instance(
        &self,
        previous: Option<InstanceHandle>,
        max_samples: usize,
        mask: StateMask,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        let which = InstanceSelector::After(previous);
        self.access(which, mask, max_samples, None, Access::Read)
    }

    /// Takes samples of the next instance, chosen as in [`read_next_instance`](Self::read_next_instance)
    /// (§2.2.2.5.3.17).
    ///
    /// # Errors
    /// [`ReadError::NotEnabled`].
    pub fn take_next_instance(
        &self,
        previous: Option<InstanceHandle>,
        max_samples: usize,
        mask: StateMask,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        let which = InstanceSelector::After(previous);
        self.access(which, mask, max_samples, None, Access::Take)
    }

    /// Reads samples that match a condition (§2.2.2.5.3.10).
    ///
    /// # Errors
    /// [`ReadError::NotEnabled`], [`ReadError::ForeignCondition`].
    pub fn read_w_condition(
        &self,
        condition: &ReadCondition,
        max_samples: usize,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        self.access_by(condition, InstanceSelector::Any, max_samples, Access::Read)
    }

    /// Takes samples that match a condition (§2.2.2.5.3.11).
    ///
    /// # Errors
    /// As [`read_w_condition`](Self::read_w_condition).
    pub fn take_w_condition(
        &self,
        condition: &ReadCondition,
        max_samples: usize,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        self.access_by(condition, InstanceSelector::Any, max_samples, Access::Take)
    }

    /// Reads samples that match a condition, of the next instance that has such samples (§2.2.2.5.3.18).
    ///
    /// # Errors
    /// As [`read_w_condition`](Self::read_w_condition).
    pub fn read_next_instance_w_condition(
        &self,
        previous: Option<InstanceHandle>,
        condition: &ReadCondition,
        max_samples: usize,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        self.access_by(
            condition,
            InstanceSelector::After(previous),
            max_samples,
            Access::Read,
        )
    }

    /// Takes samples that match a condition, of the next instance that has such samples (§2.2.2.5.3.19).
    ///
    /// # Errors
    /// As [`read_w_condition`](Self::read_w_condition).
    pub fn take_next_instance_w_condition(
        &self,
        previous: Option<InstanceHandle>,
        condition: &ReadCondition,
        max_samples: usize,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        self.access_by(
            condition,
            InstanceSelector::After(previous),
            max_samples,
            Access::Take,
        )
    }

    /// Returns the handle of the instance with this key (§2.2.2.5.3.29); `None` if the reader does not know it.
    #[must_use]
    pub fn lookup_instance(&self, key: &T) -> Option<InstanceHandle> {
        let handle = key_hash(key).ok()?;
        let state = self.core.state.borrow();
        let is_known = state.protocol.knows_instance(self.id, handle);
        is_known.then_some(handle)
    }

    fn access_by(
        &self,
        condition: &ReadCondition,
        which: InstanceSelector,
        max_samples: usize,
        access: Access,
    ) -> Result<Vec<Sample<T>>, ReadError> {
        if !condition.is_of(&self.core, self.id) {
            return Err(ReadError::ForeignCondition);
        }
        let (mask, query) = (condition.mask(), condition.query());
        self.access(which, mask, max_samples, query, access)
    }

    fn access(
        &self,
        which: InstanceSelector,
        mask: StateMask,
        max_samples: usize,
        query: Option<Query<'_>>,
        access: Access,
    ) -> Result<Vec<Sample<T>>, ReadError> {
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
                for sample in samples.iter().filter(|sample| sample.value.is_some()) {
                    state.note_response(self.id, sample.info.received, monotonic_now);
                }
            }
        }
        Ok(samples)
    }
}
