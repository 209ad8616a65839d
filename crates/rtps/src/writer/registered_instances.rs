//! Registered instances of a keyed writer (DDS 1.4 §2.2.2.4.2.5), which it unregisters when it is deleted (§2.2.3.21).
//!
//! A writer keeps the serialised key of each instance from its first sample until its unregister.
//! [`LocalParticipant::next_unregister`] makes datagrams of those keys before [`LocalParticipant::delete_writer`]: DATA
//! with key, KEY_HASH and STATUS_INFO, as for an unregister by the user. Each is sent once. A reader that misses one
//! learns from discovery that the writer is gone.
//!
//! All memory is allocated in advance. A sample of the instance written last costs a comparison of key hashes, any
//! other sample an index lookup.

use alloc::{boxed::Box, vec, vec::Vec};

use isolane_wire::{
    cdr::KeyHash,
    guid::EntityId,
    message::{INFO_TIMESTAMP_BYTES, MessageWriter},
    time::{Instant, Timestamp},
};

use crate::{
    hash::{Index, index},
    limits::{BATCH_BYTES, DEFAULT_SAMPLES, REGISTERED_INSTANCES, REGISTERED_KEY_BYTES},
    participant::LocalParticipant,
    slab::WriterId,
    writer::{
        history::ChangeKind,
        write::{WriteSample, data_head},
    },
};

/// Serialises the key of a payload; returns its length. `None` if the payload cannot be read, or the key does not fit.
pub type KeyPayload = fn(payload: &[u8], out: &mut [u8]) -> Option<usize>;

/// Instances that a writer has registered, with their keys.
#[derive(Debug)]
pub(crate) struct RegisteredInstances {
    key_payload: KeyPayload,
    slots: Index<KeyHash, u16>,
    free: Vec<u16>,
    /// Instance of the last sample, if it is registered.
    last: Option<KeyHash>,
    slot_bytes: usize,
    keys: Box<[u8]>,
    lengths: Box<[u16]>,
}

impl RegisteredInstances {
    fn new(key_payload: KeyPayload, instances: u16, slot_bytes: usize, seed: u64) -> Self {
        let count = usize::from(instances);
        Self {
            key_payload,
            slots: index(count, seed),
            free: (0..instances).rev().collect(),
            last: None,
            slot_bytes,
            keys: vec![0; count * slot_bytes].into_boxed_slice(),
            lengths: vec![0; count].into_boxed_slice(),
        }
    }

    /// Returns whether a sample changes nothing: its instance was written last, and it does not unregister.
    #[inline]
    pub(crate) fn knows(&self, sample: &WriteSample) -> bool {
        sample.key_hash == self.last && !sample.kind.unregisters()
    }

    /// Applies a sample that is not [known](Self::knows).
    pub(crate) fn note(&mut self, sample: &WriteSample, payload: &[u8]) {
        let (kind, Some(key)) = (sample.kind, sample.key_hash) else {
            return;
        };
        if kind.unregisters() {
            self.last = None;
            self.free.extend(self.slots.remove(&key));
            return;
        }
        if self.slots.contains_key(&key) {
            self.last = Some(key);
            return;
        }
        let Some(&slot) = self.free.last() else {
            return;
        };
        let room = &mut self.keys[usize::from(slot) * self.slot_bytes..][..self.slot_bytes];
        let length = match kind {
            ChangeKind::Alive => (self.key_payload)(payload, room),
            // The payload of a dispose is the key.
            _ => room.get_mut(..payload.len()).map(|room| {
                room.copy_from_slice(payload);
                payload.len()
            }),
        };
        let Some(length) = length else { return };
        self.free.pop();
        self.lengths[usize::from(slot)] = length as u16;
        self.slots.insert(key, slot);
        self.last = Some(key);
    }

    fn next(&self) -> Option<(KeyHash, &[u8])> {
        let (key, &slot) = self.slots.iter().next()?;
        let slot = usize::from(slot);
        let length = usize::from(self.lengths[slot]);
        Some((*key, &self.keys[slot * self.slot_bytes..][..length]))
    }

    fn remove(&mut self, key: &KeyHash) {
        self.slots.remove(key);
    }
}

impl LocalParticipant {
    /// Makes a keyed writer keep the keys of its instances, of at most `key_bytes` with the encapsulation header, and
    /// unregister them when it is deleted. Call it before the first sample.
    ///
    /// [`REGISTERED_INSTANCES`] and [`REGISTERED_KEY_BYTES`] bound what is kept. No effect on a writer with coherent or
    /// ordered access, whose samples are numbered in their group.
    pub fn keep_keys(&mut self, id: WriterId, key_payload: KeyPayload, key_bytes: usize) {
        let seed = self.shared.config.seed;
        let Some(writer) = self.writers.get_mut(id) else {
            return;
        };
        if writer.presents.is_some() {
            return;
        }
        let limit = u16::try_from(writer.data.qos.resource_limits.max_instances);
        let limit = limit.ok().filter(|&limit| limit > 0);
        let instances = limit.unwrap_or(DEFAULT_SAMPLES).min(REGISTERED_INSTANCES);
        let slot_bytes = key_bytes.min(REGISTERED_KEY_BYTES).next_multiple_of(4);
        let registered = RegisteredInstances::new(key_payload, instances, slot_bytes, seed);
        writer.registered = Some(Box::new(registered));
    }

    /// Writes the next datagram that unregisters instances of a writer about to be deleted, for [all its
    /// readers](LocalParticipant::destinations). Returns its length; `None` if nothing is left to unregister or no
    /// reader is matched. Unsent samples are dropped with the writer.
    pub fn next_unregister(
        &mut self,
        now: Instant,
        id: WriterId,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let (header, timestamp) = (self.shared.header, self.shared.timestamp(now));
        let writer = self.writers.get_mut(id)?;
        if writer.destinations.is_empty() {
            return None;
        }
        let timestamp = timestamp.max(writer.last_stamp.unwrap_or(Timestamp::ZERO));
        let registered = writer.registered.as_mut()?;
        let room = buffer.len().min(BATCH_BYTES);
        let mut message = MessageWriter::new(&mut buffer[..room], &header).ok()?;
        let mut sequence = writer.last;
        while let Some((key, payload)) = registered.next() {
            let sample = WriteSample {
                kind: ChangeKind::Unregister,
                key_hash: Some(key),
                timestamp,
            };
            let entity = writer.guid.entity;
            let head = data_head(entity, EntityId::UNKNOWN, sequence.next(), &sample);
            let is_first = sequence == writer.last;
            let bytes = head.buffer_len() + payload.len();
            if message.remaining() < bytes + if is_first { INFO_TIMESTAMP_BYTES } else { 0 } {
                break;
            }
            if is_first {
                message.info_timestamp(timestamp).ok()?;
            }
            message.data(&head, payload).ok()?;
            sequence = sequence.next();
            registered.remove(&key);
        }
        if sequence == writer.last {
            return None;
        }
        let bytes = message.len();
        let count = (sequence.get() - writer.last.get()) as u64;
        writer.pass_unsent(writer.last.next());
        writer.ledger.sent += count;
        writer.last = sequence;
        writer.next_unsent = sequence.next();
        Some(bytes)
    }
}
