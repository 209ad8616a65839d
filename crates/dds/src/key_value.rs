//! Conversion of an instance handle to its key (DDS 1.4 §2.2.2.4.2, §2.2.2.5.3).
//!
//! A handle is the key hash. If no key of the type is longer than the hash, the hash contains the key. Otherwise the
//! hash is a digest, and the key is read from a stored sample of the instance. Keys are not stored separately, since
//! that would take memory for every instance that ever existed.

use isolane_wire::cdr::{CdrError, TopicType, key_hash, read_key, read_key_hash};
use thiserror::Error;

use crate::{reader::DataReader, reader::selection::InstanceHandle, writer::DataWriter};

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
}

impl<T: TopicType> DataWriter<T> {
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
