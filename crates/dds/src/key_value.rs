//! From the handle of an instance back to its key (DDS 1.4 §2.2.2.4.2, §2.2.2.5.3).
//!
//! A handle is the key hash. Where no key of the type is longer than that, the hash is the key, and nothing else is
//! needed. Of a longer one it is a digest: then the key is read from a sample of the instance that is still there. No
//! keys are remembered beside samples: that would take memory for each instance there ever was.

use isolane_wire::cdr::{CdrError, TopicType, key_hash, read_key, read_key_hash};
use thiserror::Error;

use crate::{reader::DataReader, selection::InstanceHandle, writer::DataWriter};

/// Why there is no key for a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The reader does not know the instance, or has forgotten it.
    #[error(
        "the reader knows no such instance: take handles from SampleInfo::instance_handle or lookup_instance"
    )]
    UnknownInstance,
    /// Keys of this type are longer than a handle, and no sample of the instance is there to read it from.
    #[error(
        "the key is longer than its handle, and no sample of the instance is kept any more: ask before the last one is taken, or keep the key beside the handle"
    )]
    NotKept,
    /// The handle is none of this type.
    #[error("the handle is not one of this topic's type: {0}")]
    NoHandle(CdrError),
}

/// The key that a handle is, if no key of the type is longer.
fn of_handle<T: TopicType>(handle: &InstanceHandle) -> Option<Result<T, KeyError>> {
    let key = read_key_hash(handle)?;
    Some(key.map_err(KeyError::NoHandle))
}

impl<T: TopicType> DataReader<T> {
    /// The key of an instance: a value whose other members are zero, false or empty.
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
    /// [`KeyError::UnknownInstance`]; [`KeyError::NotKept`] where keys of the type can be longer than 16 bytes, and
    /// all samples of the instance were taken.
    pub fn get_key_value(&self, handle: InstanceHandle) -> Result<T, KeyError> {
        let state = self.core.state.borrow();
        if !state.engine.knows_instance(self.id, handle) {
            return Err(KeyError::UnknownInstance);
        }
        if let Some(key) = of_handle(&handle) {
            return key;
        }
        let found = state.engine.find_in_instance(self.id, handle, |sample| {
            read_key(sample.payload, !sample.info.valid_data()).ok()
        });
        found.ok_or(KeyError::NotKept)
    }
}

impl<T: TopicType> DataWriter<T> {
    /// The handle of an instance: that of [`register_instance`](Self::register_instance). A writer remembers no
    /// instances, so each key has one. `None`: the key does not fit its type's bounds.
    #[must_use]
    pub fn lookup_instance(&self, key: &T) -> Option<InstanceHandle> {
        key_hash(key).ok()
    }

    /// The key of an instance, as [`DataReader::get_key_value`] gives it.
    ///
    /// # Errors
    /// [`KeyError::NotKept`] where keys of the type can be longer than 16 bytes, and nothing of the instance is in the
    /// writer's history; [`KeyError::NoHandle`].
    pub fn get_key_value(&self, handle: InstanceHandle) -> Result<T, KeyError> {
        if let Some(key) = of_handle(&handle) {
            return key;
        }
        let state = self.core.state.borrow();
        let kept = state.engine.kept_change(self.id, handle);
        let key = kept.and_then(|(is_value, payload)| read_key(payload, !is_value).ok());
        key.ok_or(KeyError::NotKept)
    }
}
