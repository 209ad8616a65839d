//! What is said of a sample beside its value.

use isolane_wire::{
    cdr::KeyHash,
    guid::Guid,
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use crate::{
    history::ChangeKind,
    instance::InstanceState,
    states::{SampleState, ViewState},
};

/// What is known of a sample beside its value (DDS 1.4 §2.2.2.5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleInfo {
    /// The writer.
    pub writer: Guid,
    /// The writer's number for it.
    pub sequence: SequenceNumber,
    /// When the writer says it was written; `None` if it does not say.
    pub source_timestamp: Option<Timestamp>,
    /// When it came in, by this participant's clock: when its datagram arrived as the kernel stamps it, else when
    /// it was read.
    pub received: Instant,
    /// When it outlives the LIFESPAN its writer gave it, by this participant's clock; `None`: never.
    pub expires: Option<Instant>,
    /// A sample, or the end of its instance: then there is no value, only a key.
    pub kind: ChangeKind,
    /// Whether it was read before.
    pub sample_state: SampleState,
    /// Whether samples of its instance were looked at before, since that was born again last. Without a
    /// cache always new.
    pub view_state: ViewState,
    /// The state of its instance now; without a cache what this sample says of it.
    pub instance_state: InstanceState,
    /// How often its instance had been born again after it was disposed, when the sample came in.
    pub disposed_generation_count: u32,
    /// How often after nobody wrote it any more.
    pub no_writers_generation_count: u32,
    /// Samples of its instance that follow it in the same [selection](crate::Selection).
    pub sample_rank: u32,
    /// Lives of its instance between it and the last sample of that in the same selection.
    pub generation_rank: u32,
    /// Lives of its instance between it and now.
    pub absolute_generation_rank: u32,
    /// The instance; `None` for topics without a key.
    pub key_hash: Option<KeyHash>,
}

impl SampleInfo {
    /// Whether there is a value (DDS 1.4: `valid_data`).
    #[must_use]
    pub fn valid_data(&self) -> bool {
        self.kind == ChangeKind::Alive
    }

    /// What names its instance at the reader; zeros for topics without a key.
    #[must_use]
    pub fn instance_handle(&self) -> KeyHash {
        self.key_hash.unwrap_or_default()
    }

    /// What names its writer.
    #[must_use]
    pub fn publication_handle(&self) -> Guid {
        self.writer
    }
}
