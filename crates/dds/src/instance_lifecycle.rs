//! Instance lifecycle: WRITER_DATA_LIFECYCLE and READER_DATA_LIFECYCLE (DDS 1.4 §2.2.3.21, §2.2.3.22), the writer's
//! operations on instances, and source time stamps of the application.

use std::time::Duration;

use isolane_datapath::clock::monotonic_now;
use isolane_rtps::{ChangeKind, LocalParticipant};
use isolane_wire::{
    cdr::{TopicType, key_hash, max_key_payload_bytes, write_key_of_payload},
    time::Timestamp,
};

use crate::{
    error::WriteError,
    limits::MIN_KEY_PAYLOAD_BYTES,
    qos::Qos,
    reader::DataReader,
    reader::selection::InstanceHandle,
    writer::{DataWriter, lengthened},
};

impl Qos {
    /// WRITER_DATA_LIFECYCLE `autodispose_unregistered_instances`: whether
    /// [`DataWriter::unregister`](crate::DataWriter::unregister) also disposes the instance. Default: true. No effect
    /// on a reader.
    ///
    /// A deleted writer unregisters its instances and never disposes them. This deviates from the standard (DDS 1.4
    /// §2.2.3.21): the end of a writer, like that of its process, does not mean that the described object has ended.
    /// To dispose instances, unregister them first.
    #[must_use]
    pub fn autodispose(mut self, autodispose: bool) -> Self {
        self.autodispose = autodispose;
        self
    }

    /// READER_DATA_LIFECYCLE `autopurge_nowriter_samples_delay`: how long samples of an instance without writers stay,
    /// read or not, at least a millisecond. Afterwards the instance is removed too. No effect on a writer. Default:
    /// infinite.
    #[must_use]
    pub fn autopurge_nowriter_samples(mut self, delay: Duration) -> Self {
        let lifecycle = &mut self.policies.reader_data_lifecycle;
        lifecycle.autopurge_nowriter_samples_delay = delay.into();
        self
    }

    /// READER_DATA_LIFECYCLE `autopurge_disposed_samples_delay`: how long samples of a disposed instance stay. The
    /// instance itself stays known. Purged samples are counted (`purged`). Default: infinite.
    #[must_use]
    pub fn autopurge_disposed_samples(mut self, delay: Duration) -> Self {
        let lifecycle = &mut self.policies.reader_data_lifecycle;
        lifecycle.autopurge_disposed_samples_delay = delay.into();
        self
    }
}

/// Returns the kind of change that unregisters an instance.
pub(crate) fn unregistered(autodispose: bool) -> ChangeKind {
    match autodispose {
        true => ChangeKind::DisposeAndUnregister,
        false => ChangeKind::Unregister,
    }
}

/// Serialises the payload of a dispose or unregister from that of a sample, and returns its length.
pub(crate) fn key_payload<T: TopicType>(payload: &[u8], out: &mut [u8]) -> Option<usize> {
    let length = write_key_of_payload::<T>(payload, out).ok()?;
    Some(lengthened(length, out))
}

/// Returns an upper bound of that length; `usize::MAX` if the key has no bound.
pub(crate) fn key_payload_bytes<T: TopicType>() -> usize {
    max_key_payload_bytes::<T>().map_or(usize::MAX, |bytes| bytes.max(MIN_KEY_PAYLOAD_BYTES))
}

impl<T: TopicType> DataWriter<T> {
    /// Returns the handle of an instance that will be written (DDS 1.4 §2.2.2.4.2.5). It sends nothing and reserves
    /// nothing, because memory is allocated at the writer's creation.
    ///
    /// # Errors
    /// [`WriteError::Serialise`]: the key exceeds the bounds of its type.
    pub fn register_instance(&self, key: &T) -> Result<InstanceHandle, WriteError> {
        Ok(key_hash(key)?)
    }

    /// Writes a sample with a given source time stamp (§2.2.2.4.2.12). LIFESPAN, DEADLINE and DESTINATION_ORDER
    /// BY_SOURCE_TIMESTAMP use it, so time stamps must not decrease.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_w_timestamp(&self, value: &T, timestamp: Timestamp) -> Result<(), WriteError> {
        self.write_change(value, ChangeKind::Alive, stamped(timestamp))
    }

    /// Disposes an instance with a given source time stamp (§2.2.2.4.2.14).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn dispose_w_timestamp(&self, key: &T, timestamp: Timestamp) -> Result<(), WriteError> {
        self.write_change(key, ChangeKind::Dispose, stamped(timestamp))
    }

    /// Unregisters an instance with a given source time stamp (§2.2.2.4.2.8).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn unregister_w_timestamp(&self, key: &T, timestamp: Timestamp) -> Result<(), WriteError> {
        let kind = unregistered(self.autodispose.get());
        self.write_change(key, kind, stamped(timestamp))
    }
}

/// Returns a function that returns `timestamp`, and advances the time of the participant it is called with.
fn stamped(timestamp: Timestamp) -> impl FnOnce(&mut LocalParticipant) -> Timestamp {
    move |protocol| {
        protocol.note_time(monotonic_now());
        timestamp
    }
}

impl<T: TopicType> DataReader<T> {
    /// Runs the loop until the reader has the historical data of its currently matched writers (DDS 1.4
    /// §2.2.2.5.3.34). Returns false on a timeout, also if a KEEP_ALL cache is full and no samples are taken. VOLATILE
    /// and best-effort readers do not wait.
    ///
    /// # Panics
    /// Inside a callback of the participant.
    pub fn wait_for_historical_data(&self, timeout: Duration) -> bool {
        let has_history = || self.core.state.borrow().protocol.has_history(self.id);
        self.core.run_until(timeout, has_history)
    }
}
