//! Information about a sample.

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

/// Information about a sample (DDS 1.4 §2.2.2.5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleInfo {
    /// GUID of the writer.
    pub writer: Guid,
    /// Sequence number of the writer.
    pub sequence: SequenceNumber,
    /// Source timestamp; `None` if the writer sent none.
    pub source_timestamp: Option<Timestamp>,
    /// Reception time by this participant's clock: the kernel's timestamp of the datagram, or else the time at which it
    /// was read.
    pub received: Instant,
    /// Expiry of its LIFESPAN by this participant's clock; `None` if it never expires.
    pub expires: Option<Instant>,
    /// Value, or end of the instance with only a key.
    pub kind: ChangeKind,
    /// Read state of the sample.
    pub sample_state: SampleState,
    /// New until a sample of the instance's current generation is read. Always new without a cache.
    pub view_state: ViewState,
    /// Current state of the instance; without a cache the state this sample sets.
    pub instance_state: InstanceState,
    /// Number of generations of the instance after a dispose, on reception of the sample.
    pub disposed_generation_count: u32,
    /// Number of generations of the instance after the loss of all writers, on reception of the sample.
    pub no_writers_generation_count: u32,
    /// Number of samples of the instance that follow in the same [selection](crate::Selection).
    pub sample_rank: u32,
    /// Generations between this sample and the last one of its instance in the same selection.
    pub generation_rank: u32,
    /// Generations between this sample and now.
    pub absolute_generation_rank: u32,
    /// Key hash of the instance; `None` for topics without a key.
    pub key_hash: Option<KeyHash>,
}

impl SampleInfo {
    /// Returns whether the sample has a value (DDS 1.4: `valid_data`).
    #[must_use]
    pub fn valid_data(&self) -> bool {
        self.kind == ChangeKind::Alive
    }

    /// Handle of the instance at the reader; zeros for topics without a key.
    #[must_use]
    pub fn instance_handle(&self) -> KeyHash {
        self.key_hash.unwrap_or_default()
    }

    /// Handle of the writer.
    #[must_use]
    pub fn publication_handle(&self) -> Guid {
        self.writer
    }
}
