//! The six built-in endpoints: those of SEDP, and those of the participant message topic.

use isolane_wire::{
    builtin_data::{EndpointData, parse_key_guid},
    cdr::CdrError,
    guid::EntityId,
    qos::{DurabilityKind, QosPolicies, ReliabilityKind},
};

use crate::{
    limits::{DISCOVERY_SLOT_BYTES, MESSAGE_CACHE_SLOTS, MESSAGE_SLOT_BYTES, SEDP_CACHE_SLOTS},
    participant::{BUILTIN_ENDPOINTS, LocalParticipant, Shared},
    reader::{
        KeyOf,
        cache::{Cache, Room},
        reassembly::Reassembly,
    },
    sample_memory::Sizes,
    slab::{ReaderId, WriterId},
    timed_qos::{MESSAGES, PARTICIPANT_LIVELINESS_KINDS},
    writer::history::{History, HistoryPlan, Keep},
};

impl LocalParticipant {
    /// Creates the two writers and two readers of SEDP (RTPS 2.5 §8.5.4.2), and the pair for participant messages
    /// (§8.4.13.3): reliable, TRANSIENT_LOCAL, KEEP_LAST 1. SEDP is keyed by the endpoint's GUID, participant messages
    /// by the participant and the message kind.
    ///
    /// # Errors
    /// Number of bytes that could not be allocated.
    pub(crate) fn create_builtin_endpoints(&mut self) -> Result<(), usize> {
        let local = self.shared.config.limits.local_endpoints;
        // The dispose of a deleted endpoint stays for late joiners, in addition to the announcement of its successor.
        let announced = local.saturating_mul(2).saturating_add(1);
        let of_sedp = Builtin {
            instances: announced,
            written_bytes: DISCOVERY_SLOT_BYTES / 2,
            room: Room {
                samples: SEDP_CACHE_SLOTS as u16,
                waiting: SEDP_CACHE_SLOTS as u16,
                held: 0,
                sizes: Sizes::fixed(DISCOVERY_SLOT_BYTES).taken_from(self.shared.config.zeroed),
            },
            // Not all peers send the key hash, but the announcement always holds the key.
            key_of: |payload, _| {
                let guid = parse_key_guid(payload).ok_or(CdrError::Truncated)?;
                Ok(guid.to_bytes())
            },
        };
        let of_messages = Builtin {
            instances: PARTICIPANT_LIVELINESS_KINDS.len() as u16,
            written_bytes: MESSAGE_SLOT_BYTES,
            room: Room {
                // All waiting messages may become available together, and are consumed then.
                samples: MESSAGE_CACHE_SLOTS + 1,
                waiting: MESSAGE_CACHE_SLOTS,
                held: 0,
                sizes: Sizes::fixed(MESSAGE_SLOT_BYTES).taken_from(self.shared.config.zeroed),
            },
            key_of: |payload, _| {
                let key = payload.get(4..20).and_then(|key| key.try_into().ok());
                key.ok_or(CdrError::Truncated)
            },
        };
        let endpoints = [
            (
                EntityId::SEDP_PUBLICATIONS_WRITER,
                EntityId::SEDP_PUBLICATIONS_READER,
                &of_sedp,
            ),
            (
                EntityId::SEDP_SUBSCRIPTIONS_WRITER,
                EntityId::SEDP_SUBSCRIPTIONS_READER,
                &of_sedp,
            ),
            (
                EntityId::P2P_MESSAGE_WRITER,
                EntityId::P2P_MESSAGE_READER,
                &of_messages,
            ),
        ];
        for (index, (writer, reader, builtin)) in (0..BUILTIN_ENDPOINTS).zip(endpoints) {
            self.create_builtin_pair(index, (writer, reader), builtin)?;
        }
        Ok(())
    }

    fn create_builtin_pair(
        &mut self,
        index: u16,
        (writer, reader): (EntityId, EntityId),
        builtin: &Builtin,
    ) -> Result<(), usize> {
        let mut qos = QosPolicies::default();
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.durability = DurabilityKind::TransientLocal;
        let data = |guid| EndpointData {
            qos: qos.clone(),
            ..EndpointData::new(guid)
        };
        let seed = self.shared.config.seed;
        let guid = self.shared.guid(writer);
        let bytes = builtin.written_bytes;
        let keep = Keep::Last { depth: 1 };
        let plan = HistoryPlan::new(
            keep,
            builtin.instances,
            Sizes::fixed(bytes).taken_from(self.shared.config.zeroed),
        );
        let history = History::try_new(plan, seed)?;
        let writer =
            self.writers
                .writer(&self.shared, guid, data(guid), None, Some(history), bytes);
        let inserted = self.insert_writer(writer);
        assert_eq!(
            inserted,
            Ok(WriterId(index)),
            "the built-in writers come first"
        );

        let guid = self.shared.guid(reader);
        let bytes = builtin.room.sizes.slot_bytes();
        let mut cache = Cache::try_new(Keep::All, true, builtin.room, seed)?;
        if index != MESSAGES {
            // A participant that announces endpoints endlessly leaves slots to others.
            cache.share();
        }
        let mut reader =
            self.readers
                .reader(&self.shared, guid, data(guid), None, Some(cache), bytes);
        reader.key_of = Some(builtin.key_of);
        reader.assemblies = Reassembly::for_payloads_of(bytes, self.shared.config.zeroed)?;
        let inserted = self.readers.table.insert(reader);
        assert_eq!(
            inserted,
            Ok(ReaderId(index)),
            "the built-in readers come first"
        );
        self.make_room_to_file();
        Ok(())
    }
}

impl Shared {
    /// Returns the number of matches for which a new endpoint allocates memory; `room` is the maximum number of
    /// matches.
    pub(crate) fn matches_at_start(&self, room: usize) -> usize {
        if self.config.limits.fixed_memory {
            room
        } else {
            0
        }
    }
}

/// Sizes and key function of a built-in writer and reader.
struct Builtin {
    instances: u16,
    written_bytes: usize,
    room: Room,
    key_of: KeyOf,
}
