//! Reading and taking several samples at a time: by their states, by instance, by a condition (DDS 1.4 §2.2.2.5.3).
//!
//! [`DataReader::take`] and its siblings take one sample, the oldest, and allocate nothing for it. What is here gives a
//! list, in which all that is said of the samples' states is as of one moment, and their ranks count within it. Samples
//! of an instance are behind one another there, the instance first whose oldest sample came first; where
//! [`Qos::presentation`](crate::Qos::presentation) asks for ordered access beyond an instance, all keep their order.

use isolane_datapath::clock::monotonic_now;
use isolane_engine::{InstanceSelector, Query, Selection, StateMask};
use isolane_wire::cdr::{KeyHash, TopicType, key_hash, read_payload};
use thiserror::Error;

use crate::{
    conditions::ReadCondition,
    reader::{DataReader, Sample, decode},
};

/// What names an instance here: its key hash, zeros for a topic without a key. Instances are in the order of these.
pub type InstanceHandle = KeyHash;

/// Why nothing could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The reader is not enabled.
    #[error("the reader is not enabled: enable it, and its participant before it")]
    NotEnabled,
    /// The reader does not know the instance, or has forgotten it.
    #[error(
        "the reader knows no such instance: take handles from SampleInfo::instance_handle or lookup_instance"
    )]
    UnknownInstance,
    /// The condition is of another reader.
    #[error("the condition was made by another reader: each reader has conditions of its own")]
    ForeignCondition,
}

/// Whether what was read stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Take,
}

impl<T: TopicType> DataReader<T> {
    /// Reads up to `max_samples` samples in these states, which stay (DDS 1.4 §2.2.2.5.3.8). A sample that is not of
    /// the type is left out.
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

    /// Takes up to `max_samples` samples in these states (§2.2.2.5.3.9). A sample that is not of the type is left
    /// out, and counts as rejected.
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

    /// Reads samples of the next instance behind `previous` that has such samples, or with `None` of the first
    /// (§2.2.2.5.3.16). Nothing: there is no further one. `previous` need not be known any more.
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

    /// Takes samples of the next instance, likewise (§2.2.2.5.3.17).
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

    /// Reads samples that a condition holds of (§2.2.2.5.3.10).
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

    /// Takes samples that a condition holds of (§2.2.2.5.3.11).
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

    /// Reads samples of the next instance that has such that a condition holds of (§2.2.2.5.3.18).
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

    /// Takes samples of the next instance, likewise (§2.2.2.5.3.19).
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

    /// The handle of the instance with this key (§2.2.2.5.3.29); `None`: the reader does not know it.
    #[must_use]
    pub fn lookup_instance(&self, key: &T) -> Option<InstanceHandle> {
        let handle = key_hash(key).ok()?;
        let state = self.core.state.borrow();
        let is_known = state.engine.knows_instance(self.id, handle);
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
        if !state.engine.is_reader_enabled(self.id) {
            return Err(ReadError::NotEnabled);
        }
        if let InstanceSelector::Instance(handle) = which
            && !state.engine.knows_instance(self.id, handle)
        {
            return Err(ReadError::UnknownInstance);
        }
        state.drop_expired(self.id);
        state.note_look(self.id);
        let selection = Selection {
            which,
            mask,
            query,
            max_samples,
        };
        let count = state.engine.select(self.id, &selection);
        let (mut samples, mut unreadable) = (Vec::with_capacity(count), Vec::new());
        let selected = (0..count).map_while(|nth| state.engine.selected(self.id, nth));
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
            Access::Read => state.engine.read_selected(self.id),
            Access::Take => {
                state.engine.take_selected(self.id);
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
