//! New records of writers and readers, and the four that an engine makes for itself: those of SEDP.

use alloc::vec::Vec;

use isolane_wire::{
    discovery::{EndpointData, parse_key_guid},
    guid::{EntityId, Guid},
    level::Level,
    qos::{DurabilityKind, QosPolicies, ReliabilityKind},
    rtps::SampleHead,
    sequence::SequenceNumber,
};

use crate::{
    cache::{Cache, Room},
    engine::{BUILTIN_ENDPOINTS, Engine},
    history::{History, Keep},
    limits::{DISCOVERY_SLOT_BYTES, SEDP_CACHE_SLOTS},
    reader::{Reader, ReaderLedger, ReaderStatus},
    status::{MatchTally, RejectReason},
    writer::{Writer, WriterLedger, WriterStatus},
};

impl Engine {
    /// A writer that has written nothing.
    pub(crate) fn writer(
        &self,
        guid: Guid,
        data: EndpointData,
        keyed: bool,
        level: Option<Level>,
        history: Option<History>,
        max_payload_bytes: usize,
    ) -> Writer {
        Writer {
            guid,
            keyed,
            level,
            reliable: data.qos.reliability.kind == ReliabilityKind::Reliable,
            volatile: data.qos.durability == DurabilityKind::Volatile,
            data,
            max_payload_bytes,
            history,
            last: SequenceNumber(0),
            next_unsent: SequenceNumber(1),
            highest_acknowledged: SequenceNumber(1),
            lowest_acknowledged: crate::writer::NO_RELIABLE_READER,
            proxies: Vec::with_capacity(usize::from(self.config.limits.matches)),
            head: SampleHead::new(&self.header, guid.entity),
            destinations: heapless::Vec::new(),
            data_filed: false,
            heartbeat_filed: false,
            heartbeat_count: 0,
            heartbeat_period_ns: self.config.timing.heartbeat_period.as_nanos() as u64,
            since_demand: 0,
            is_refused: false,
            wants_room: false,
            status: WriterStatus::empty(),
            noted: false,
            incompatible: None,
            matched: MatchTally::default(),
            ledger: WriterLedger::default(),
        }
    }

    /// A reader that has received nothing.
    pub(crate) fn reader(
        &self,
        guid: Guid,
        data: EndpointData,
        keyed: bool,
        level: Option<Level>,
        cache: Option<Cache>,
        max_payload_bytes: usize,
    ) -> Reader {
        Reader {
            guid,
            keyed,
            key_of: None,
            level,
            reliable: data.qos.reliability.kind == ReliabilityKind::Reliable,
            volatile: data.qos.durability == DurabilityKind::Volatile,
            data,
            max_payload_bytes,
            cache,
            proxies: Vec::with_capacity(usize::from(self.config.limits.matches)),
            status: ReaderStatus::empty(),
            noted: false,
            incompatible: None,
            matched: MatchTally::default(),
            told_lost: 0,
            told_rejected: 0,
            reject_reason: RejectReason::default(),
            ledger: ReaderLedger::default(),
            blocked: false,
            asked_for_less: false,
            acknack_count: 0,
        }
    }

    /// The two writers and two readers of SEDP (RTPS 2.5 §8.5.4.2): reliable, TRANSIENT_LOCAL,
    /// KEEP_LAST 1, keyed by the endpoint's GUID.
    pub(crate) fn create_builtin_endpoints(&mut self) {
        let mut qos = QosPolicies::default();
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.durability = DurabilityKind::TransientLocal;
        let local = self.config.limits.local_endpoints;
        // An ended endpoint's last word stays for late joiners, beside what took its place.
        let announced = local.saturating_mul(2).saturating_add(1);
        let endpoints = [
            (
                EntityId::SEDP_PUBLICATIONS_WRITER,
                EntityId::SEDP_PUBLICATIONS_READER,
            ),
            (
                EntityId::SEDP_SUBSCRIPTIONS_WRITER,
                EntityId::SEDP_SUBSCRIPTIONS_READER,
            ),
        ];
        for (index, (writer, reader)) in (0..BUILTIN_ENDPOINTS).zip(endpoints) {
            let seed = self.config.seed;
            let guid = self.guid(writer);
            let history = History::new(
                Keep::Last { depth: 1 },
                announced,
                DISCOVERY_SLOT_BYTES / 2,
                seed,
            );
            let data = EndpointData {
                qos: qos.clone(),
                ..EndpointData::new(guid)
            };
            let writer = self.writer(
                guid,
                data,
                true,
                None,
                Some(history),
                DISCOVERY_SLOT_BYTES / 2,
            );
            let inserted = self.insert_writer(writer);
            assert_eq!(inserted, Ok(index), "the built-in writers come first");

            let guid = self.guid(reader);
            let room = Room {
                samples: SEDP_CACHE_SLOTS as u16,
                waiting: SEDP_CACHE_SLOTS as u16,
                slot_bytes: DISCOVERY_SLOT_BYTES,
            };
            let cache = Cache::new(Keep::All, true, room, seed);
            let data = EndpointData {
                qos: qos.clone(),
                ..EndpointData::new(guid)
            };
            let mut reader = self.reader(guid, data, true, None, Some(cache), DISCOVERY_SLOT_BYTES);
            // Peers send the key hash or not; the announcement always holds its key.
            reader.key_of = Some(|payload, _| parse_key_guid(payload).map(Guid::to_bytes));
            let inserted = self.readers.insert(reader);
            assert_eq!(inserted, Ok(index), "the built-in readers come first");
        }
    }
}
