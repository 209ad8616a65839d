//! How instances begin and end: WRITER_DATA_LIFECYCLE and READER_DATA_LIFECYCLE (DDS 1.4 §2.2.3.21, §2.2.3.22), the
//! writer's calls on instances, and time stamps of the user's own.

use std::time::Duration;

use isolane_datapath::{Lane, clock::monotonic_now};
use isolane_engine::{ChangeKind, WriterId, limits::BATCH_BYTES};
use isolane_wire::{
    cdr::{TopicType, key_hash, max_key_payload_bytes, write_key_of_payload},
    time::Timestamp,
};

use crate::{
    error::WriteError,
    limits::MIN_KEY_PAYLOAD_BYTES,
    qos::Qos,
    reader::DataReader,
    selection::InstanceHandle,
    sending::Addresses,
    state::State,
    writer::{DataWriter, lengthened},
};

impl Qos {
    /// WRITER_DATA_LIFECYCLE `autodispose_unregistered_instances`: whether
    /// [`DataWriter::unregister`](crate::DataWriter::unregister) disposes the instance, too. A writer that is deleted
    /// unregisters its instances and disposes none, whatever this says. The standard would have them disposed (DDS 1.4
    /// §2.2.3.21); but a writer that is deleted, like one whose process ends, says nothing of the end of what it has
    /// described. Who wants it unregisters first. On a reader this has no effect. Default: yes.
    #[must_use]
    pub fn autodispose(mut self, autodispose: bool) -> Self {
        self.autodispose = autodispose;
        self
    }

    /// READER_DATA_LIFECYCLE `autopurge_nowriter_samples_delay`: how long samples of an instance stay that nobody
    /// writes any more, read or not, a millisecond at the shortest; then the instance is forgotten. On a writer it
    /// has no effect. Default: for ever.
    #[must_use]
    pub fn autopurge_nowriter_samples(mut self, delay: Duration) -> Self {
        let lifecycle = &mut self.policies.reader_data_lifecycle;
        lifecycle.autopurge_nowriter_samples_delay = delay.into();
        self
    }

    /// READER_DATA_LIFECYCLE `autopurge_disposed_samples_delay`: the same of an instance that was disposed, which
    /// stays known. Samples that go so are counted (`purged`).
    #[must_use]
    pub fn autopurge_disposed_samples(mut self, delay: Duration) -> Self {
        let lifecycle = &mut self.policies.reader_data_lifecycle;
        lifecycle.autopurge_disposed_samples_delay = delay.into();
        self
    }
}

/// What unregistering an instance says.
pub(crate) fn unregistered(autodispose: bool) -> ChangeKind {
    match autodispose {
        true => ChangeKind::DisposeAndUnregister,
        false => ChangeKind::Unregister,
    }
}

/// The payload of an instance's end, from that of a sample; its length.
pub(crate) fn key_payload<T: TopicType>(payload: &[u8], out: &mut [u8]) -> Option<usize> {
    let length = write_key_of_payload::<T>(payload, out).ok()?;
    Some(lengthened(length, out))
}

/// The most bytes of that, or a few more; `usize::MAX`: the key has no bound.
pub(crate) fn key_payload_bytes<T: TopicType>() -> usize {
    max_key_payload_bytes::<T>().map_or(usize::MAX, |bytes| bytes.max(MIN_KEY_PAYLOAD_BYTES))
}

impl State {
    /// Sends the datagrams that unregister the instances of a writer that is deleted next, as many as a writer may have
    /// (`REGISTERED_INSTANCES` of the engine). Without a free frame the rest is not sent: readers learn of it by the end
    /// of the writer.
    pub(crate) fn unregister_instances(&mut self, id: WriterId, lane: Lane) {
        loop {
            let class = self.class_for(lane, BATCH_BYTES);
            let Some(mut frame) = self.take_frame(class) else {
                return;
            };
            let head = frame.head_room();
            let buffer = &mut frame.buffer_mut()[head..];
            let Some(bytes) = self.engine.next_unregister(monotonic_now(), id, buffer) else {
                return;
            };
            frame.set_range(head..head + bytes);
            self.send(lane, frame, Addresses::Writer(id));
        }
    }
}

impl<T: TopicType> DataWriter<T> {
    /// The handle of an instance that is to be written (DDS 1.4 §2.2.2.4.2.5). Nothing is said to readers, and
    /// nothing is taken for it: memory is taken when the writer is created.
    ///
    /// # Errors
    /// [`WriteError::Serialise`]: the key does not fit its type's bounds.
    pub fn register_instance(&self, key: &T) -> Result<InstanceHandle, WriteError> {
        Ok(key_hash(key)?)
    }

    /// Writes a sample with a time stamp of the user's own (§2.2.2.4.2.12). LIFESPAN and DEADLINE count from it, and
    /// readers that order by source order by it: no time stamp is to lie before that of the sample before.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_w_timestamp(&self, value: &T, timestamp: Timestamp) -> Result<(), WriteError> {
        self.write_change(value, ChangeKind::Alive, stamped(timestamp))
    }

    /// Disposes an instance likewise (§2.2.2.4.2.14).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn dispose_w_timestamp(&self, key: &T, timestamp: Timestamp) -> Result<(), WriteError> {
        self.write_change(key, ChangeKind::Dispose, stamped(timestamp))
    }

    /// Unregisters an instance likewise (§2.2.2.4.2.8).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn unregister_w_timestamp(&self, key: &T, timestamp: Timestamp) -> Result<(), WriteError> {
        let kind = unregistered(self.autodispose.get());
        self.write_change(key, kind, stamped(timestamp))
    }
}

/// A time stamp of the user's own, written now.
fn stamped(timestamp: Timestamp) -> impl FnOnce(&mut State) -> Timestamp {
    move |state| {
        state.engine.note_time(monotonic_now());
        timestamp
    }
}

impl<T: TopicType> DataReader<T> {
    /// Runs the loop until the reader has what its writers had written before it came (DDS 1.4 §2.2.2.5.3.34): of
    /// the writers that are matched then. False: not in time, which it is not either where KEEP_ALL has no room left
    /// and nobody takes. A VOLATILE reader is promised nothing, and does not wait.
    ///
    /// # Panics
    /// Inside a callback of the participant.
    pub fn wait_for_historical_data(&self, timeout: Duration) -> bool {
        let has_history = || self.core.state.borrow().engine.has_history(self.id);
        self.core.run_until(timeout, has_history)
    }
}
