//! Readers, on the participant's own thread.

use std::marker::PhantomData;

use isolane_datapath::clock::monotonic_now;
use isolane_engine::{Incompatible, Priority, ReaderId, ReaderLedger, SampleInfo};
use isolane_executor::JobConfig;
use isolane_wire::cdr::{CdrError, TopicType, read_payload, read_payload_into, view_payload};

use crate::{
    error::BuildError,
    participant::{Of, Participant},
    qos::Qos,
    runtime::Task,
};

/// A sample: its value, where there is one, and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<V> {
    /// `None` when it says only that its instance has ended.
    pub value: Option<V>,
    /// Writer, number, times, state of the instance.
    pub info: SampleInfo,
}

/// A reader of one topic (DDS 1.4 §2.2.2.5.3). Dropping it deletes it, and with it its callback.
pub struct DataReader<T: TopicType> {
    participant: Participant,
    id: ReaderId,
    name: String,
    priority: Priority,
    of: Of<T>,
}

impl<T: TopicType> DataReader<T> {
    pub(crate) fn new(participant: Participant, id: ReaderId, qos: &Qos, topic: &str) -> Self {
        let priority = Priority::of_data(qos.transport_level());
        Self {
            participant,
            id,
            name: topic.into(),
            priority,
            of: PhantomData,
        }
    }

    /// Sets the callback of a view reader: it sees each sample in the received frame, strings and
    /// sequences borrowed from it, inside the job that receives.
    pub fn on_view(&self, mut callback: impl FnMut(Sample<T::View<'_>>) + 'static) {
        let callback = move |payload: &[u8], info: &SampleInfo| {
            let value = match info.valid_data() {
                true => match view_payload::<T>(payload) {
                    Ok(view) => Some(view),
                    Err(_) => return false,
                },
                false => None,
            };
            callback(Sample { value, info: *info });
            true
        };
        self.participant.core.state.borrow_mut().readers[self.id.index()].view =
            Some(Box::new(callback));
    }

    /// Sets the callback of a reader with a cache: it takes each sample, in a job of its own at the
    /// topic's priority, one an activation. `value` is where samples are decoded; what it has
    /// reserved is reused.
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_sample(
        &self,
        mut value: T,
        mut callback: impl FnMut(Sample<&T>) + 'static,
    ) -> Result<(), BuildError>
    where
        T: 'static,
    {
        let core = std::rc::Rc::downgrade(&self.participant.core);
        let id = self.id;
        let callback = move || {
            let Some(core) = core.upgrade() else { return };
            let info = {
                let mut state = core.state.borrow_mut();
                let Some(sample) = state.engine.sample(id, 0) else {
                    return;
                };
                let info = *sample.info;
                let decoded = match info.valid_data() {
                    true => read_payload_into(sample.payload, &mut value),
                    false => Ok(()),
                };
                state.engine.remove_oldest(id);
                if decoded.is_err() {
                    state.engine.reject_delivered(id);
                    return;
                }
                info
            };
            callback(Sample {
                value: info.valid_data().then_some(&value),
                info,
            });
        };
        let mut state = self.participant.core.state.borrow_mut();
        let name = format!("callback {}", self.name);
        let job = match state.readers[id.index()].job {
            Some(job) => job,
            None => state.add_job(
                JobConfig::event(&name, self.priority.get()),
                Task::Callback(id),
            )?,
        };
        state.readers[id.index()].job = Some(job);
        state.readers[id.index()].cached = Some(Box::new(callback));
        if state.engine.available(id) > 0 {
            state.executor.activate(job, monotonic_now());
        }
        Ok(())
    }

    /// Samples that wait to be taken.
    #[must_use]
    pub fn available(&self) -> usize {
        self.participant
            .core
            .state
            .borrow()
            .engine
            .available(self.id)
    }

    /// Takes the oldest sample (DDS 1.4 §2.2.2.5.3.9).
    ///
    /// # Errors
    /// The payload is not of the type, or exceeds its bounds: the sample is gone, counted as
    /// rejected.
    pub fn take(&self) -> Result<Option<Sample<T>>, CdrError> {
        let mut state = self.participant.core.state.borrow_mut();
        let Some(sample) = state.engine.sample(self.id, 0) else {
            return Ok(None);
        };
        let info = *sample.info;
        let value = info
            .valid_data()
            .then(|| read_payload(sample.payload))
            .transpose();
        state.engine.remove_oldest(self.id);
        if value.is_err() {
            state.engine.reject_delivered(self.id);
        }
        Ok(Some(Sample {
            value: value?,
            info,
        }))
    }

    /// Takes the oldest sample into `value`, reusing what it has reserved. `value` is untouched
    /// where the info says that there is no value.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_into(&self, value: &mut T) -> Result<Option<SampleInfo>, CdrError> {
        let mut state = self.participant.core.state.borrow_mut();
        let Some(sample) = state.engine.sample(self.id, 0) else {
            return Ok(None);
        };
        let info = *sample.info;
        let decoded = match info.valid_data() {
            true => read_payload_into(sample.payload, value),
            false => Ok(()),
        };
        state.engine.remove_oldest(self.id);
        if decoded.is_err() {
            state.engine.reject_delivered(self.id);
        }
        decoded.map(|()| Some(info))
    }

    /// Reads the `nth` sample, oldest first, without taking it (§2.2.2.5.3.8), and whether it was read
    /// before.
    ///
    /// # Errors
    /// The payload is not of the type, or exceeds its bounds; it stays until it is taken.
    pub fn read(&self, nth: usize) -> Result<Option<(Sample<T>, bool)>, CdrError> {
        let mut state = self.participant.core.state.borrow_mut();
        let Some(sample) = state.engine.sample(self.id, nth) else {
            return Ok(None);
        };
        let (info, read) = (*sample.info, sample.read);
        let value = info
            .valid_data()
            .then(|| read_payload(sample.payload))
            .transpose()?;
        state.engine.mark_read(self.id, nth);
        Ok(Some((Sample { value, info }, read)))
    }

    /// Writers matched now.
    #[must_use]
    pub fn matched_writers(&self) -> usize {
        self.participant
            .core
            .state
            .borrow()
            .engine
            .matched_writers(self.id)
    }

    /// The last writer that offered less than this reader requests.
    #[must_use]
    pub fn incompatible(&self) -> Option<Incompatible> {
        self.participant
            .core
            .state
            .borrow()
            .engine
            .requested_incompatible(self.id)
    }

    /// Where its samples went.
    #[must_use]
    pub fn ledger(&self) -> ReaderLedger {
        let state = self.participant.core.state.borrow();
        state.engine.reader_ledger(self.id).unwrap_or_default()
    }
}

impl<T: TopicType> Drop for DataReader<T> {
    fn drop(&mut self) {
        // While unwinding from a panic inside a step the state may be borrowed.
        let Ok(mut state) = self.participant.core.state.try_borrow_mut() else {
            return;
        };
        state.engine.delete_reader(monotonic_now(), self.id);
        let slot = std::mem::take(&mut state.readers[self.id.index()]);
        if let Some(job) = slot.job {
            state.executor.remove(job);
        }
    }
}
