//! Instances: the policies WRITER_DATA_LIFECYCLE and READER_DATA_LIFECYCLE (DDS 1.4 §2.2.3.21, §2.2.3.22) and the
//! operations on instances (§2.2.2.4.2, §2.2.2.5.3). Also operations with source time stamps of the application.
//!
//! A handle is the key hash. If no key of the type is longer than the hash, the hash contains the key. Otherwise the
//! hash is a digest, and the key is read from a stored sample of the instance. Keys are not stored separately, since
//! that would take memory for every instance that ever existed.

use std::time::Duration;

use isolane_datapath::clock::monotonic_now;
use isolane_rtps::{ChangeKind, LocalParticipant};
use isolane_wire::{
    cdr::{
        CdrError, TopicType, key_hash, max_key_payload_bytes, read_key, read_key_hash,
        write_key_of_payload,
    },
    time::Timestamp,
};
use thiserror::Error;

use crate::{
    error::WriteError,
    limits::MIN_KEY_PAYLOAD_BYTES,
    qos::Qos,
    reader::DataReader,
    reader::selection::InstanceHandle,
    writer::{DataWriter, lengthened},
};

/// Reason why a handle has no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The reader does not know the instance, or no longer knows it.
    #[error(
        "the reader knows no such instance: take handles from SampleInfo::instance_handle or lookup_instance"
    )]
    UnknownInstance,
    /// Keys of this type are longer than a handle, and no sample of the instance is stored.
    #[error(
        "the key is longer than its handle, and no sample of the instance is kept any more: ask before the last one is taken, or keep the key beside the handle"
    )]
    NotKept,
    /// The handle does not belong to this type.
    #[error("the handle is not one of this topic's type: {0}")]
    NoHandle(CdrError),
}

/// Returns the key contained in a handle; `None` if keys of the type can be longer.
fn of_handle<T: TopicType>(handle: &InstanceHandle) -> Option<Result<T, KeyError>> {
    let key = read_key_hash(handle)?;
    Some(key.map_err(KeyError::NoHandle))
}

setters! {
    Qos:

    /// WRITER_DATA_LIFECYCLE `autodispose_unregistered_instances`: whether
    /// [`DataWriter::unregister`](crate::DataWriter::unregister) also disposes the instance. Default: true. No effect
    /// on a reader.
    ///
    /// A deleted writer unregisters its instances and never disposes them. This deviates from the standard (DDS 1.4
    /// §2.2.3.21): the end of a writer or its process does not mean that the described object has ended. To dispose
    /// instances, unregister them before the writer is deleted.
    autodispose(autodispose: bool) => autodispose = autodispose;

    /// READER_DATA_LIFECYCLE `autopurge_nowriter_samples_delay`: how long samples of an instance without writers stay,
    /// read or not. The minimum is a millisecond. Afterwards the instance is removed too. No effect on a writer.
    /// Default: infinite.
    autopurge_nowriter_samples(delay: Duration) =>
        policies.reader_data_lifecycle.autopurge_nowriter_samples_delay = delay.into();

    /// READER_DATA_LIFECYCLE `autopurge_disposed_samples_delay`: how long samples of a disposed instance stay. The
    /// instance itself stays known. Purged samples are counted (`purged`). Default: infinite.
    autopurge_disposed_samples(delay: Duration) =>
        policies.reader_data_lifecycle.autopurge_disposed_samples_delay = delay.into();
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

/// Returns an upper bound of the payload length of a dispose or unregister; `usize::MAX` if the key has no bound.
pub(crate) fn key_payload_bytes<T: TopicType>() -> usize {
    max_key_payload_bytes::<T>().map_or(usize::MAX, |bytes| bytes.max(MIN_KEY_PAYLOAD_BYTES))
}

impl<T: TopicType> DataWriter<T> {
    /// Returns the handle of an instance that will be written (DDS 1.4 §2.2.2.4.2.5). The call sends nothing and
    /// reserves nothing, because memory is allocated at the writer's creation.
    ///
    /// # Errors
    /// [`WriteError::Serialise`]: the key exceeds the bounds of its type.
    pub fn register_instance(&self, key: &T) -> Result<InstanceHandle, WriteError> {
        Ok(key_hash(key)?)
    }

    /// Writes a sample with a given source time stamp (§2.2.2.4.2.12). LIFESPAN, DEADLINE and DESTINATION_ORDER
    /// BY_SOURCE_TIMESTAMP use the time stamps, so they must not decrease.
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

    /// Returns the handle of an instance, as [`register_instance`](Self::register_instance). A writer does not store
    /// instances, so every key has a handle. `None` if the key exceeds the bounds of its type.
    #[must_use]
    pub fn lookup_instance(&self, key: &T) -> Option<InstanceHandle> {
        key_hash(key).ok()
    }

    /// Returns the key of an instance, as [`DataReader::get_key_value`].
    ///
    /// # Errors
    /// [`KeyError::NotKept`] if keys of the type can be longer than 16 bytes and the writer's history has no sample of
    /// the instance; [`KeyError::NoHandle`].
    pub fn get_key_value(&self, handle: InstanceHandle) -> Result<T, KeyError> {
        if let Some(key) = of_handle(&handle) {
            return key;
        }
        let state = self.core.state.borrow();
        let kept = state.protocol.kept_change(self.id, handle);
        let key = kept.and_then(|(is_value, payload)| read_key(payload, !is_value).ok());
        key.ok_or(KeyError::NotKept)
    }
}

/// Returns a function that returns `timestamp`, and advances the participant's time to it.
fn stamped(timestamp: Timestamp) -> impl FnOnce(&mut LocalParticipant) -> Timestamp {
    move |protocol| {
        protocol.note_time(monotonic_now());
        timestamp
    }
}

impl<T: TopicType> DataReader<T> {
    /// Returns the key of an instance, as a value whose other members are zero, false or empty.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Lamp { #[topic(key)] number: u8, is_on: bool }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let writer = participant.create_writer::<Lamp>("Lamps", &Qos::reliable())?;
    /// let reader = participant.create_reader::<Lamp>("Lamps", &Qos::reliable())?;
    /// writer.write(&Lamp { number: 7, is_on: true })?;
    /// assert!(participant.run_until(Duration::from_secs(5), || reader.available() == 1));
    /// let handle = reader.take()?.expect("it came").info.instance_handle();
    /// assert_eq!(reader.get_key_value(handle)?.number, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`KeyError::UnknownInstance`]; [`KeyError::NotKept`] if keys of the type can be longer than 16 bytes and all
    /// samples of the instance were taken.
    pub fn get_key_value(&self, handle: InstanceHandle) -> Result<T, KeyError> {
        let state = self.core.state.borrow();
        if !state.protocol.knows_instance(self.id, handle) {
            return Err(KeyError::UnknownInstance);
        }
        if let Some(key) = of_handle(&handle) {
            return key;
        }
        let found = state.protocol.find_in_instance(self.id, handle, |sample| {
            read_key(sample.payload, !sample.info.valid_data()).ok()
        });
        found.ok_or(KeyError::NotKept)
    }

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
