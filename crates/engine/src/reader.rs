//! A local reader, what it has counted, and what it knows of each writer it is matched with.

mod jump;
mod ledger;
mod parted;
mod proxy;

use alloc::{boxed::Box, vec::Vec};

use bitflags::bitflags;
use isolane_wire::{
    cdr::{CdrError, KeyHash},
    discovery::EndpointData,
    guid::{EntityId, Guid},
    level::Level,
    time::Instant,
};

use crate::{
    assembly::Assemblies,
    cache::{Cache, Refused},
    clock::{LivelinessTally, ReaderClock},
    content_filter::ContentFilter,
    matching::Incompatible,
    priority::Priority,
    status::{EncapsulationsRefused, MatchTally, RejectReason},
};

pub(crate) use self::jump::{Origin, Settled, Verdict};
pub use self::ledger::ReaderLedger;
pub(crate) use self::parted::PartedMatches;
pub(crate) use self::proxy::{Answer, WriterProxy, is_news};

/// Returns the key of a serialised sample or of a serialised key, as a hash (RTPS 2.5 §9.6.4.8), or why the bytes
/// are not of the type.
pub type KeyOf = fn(payload: &[u8], key_only: bool) -> Result<KeyHash, CdrError>;

/// How samples reach the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryMode {
    /// As a view of the received frame, while it is being received; nothing is kept. For best
    /// effort only.
    View,
    /// Through the cache.
    Cache,
}

bitflags! {
    /// What has changed at a reader since it was last asked (DDS 1.4 §2.2.4.1).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ReaderStatus: u8 {
        /// Samples are available.
        const DATA_AVAILABLE = 1;
        /// The number of matched writers changed.
        const SUBSCRIPTION_MATCHED = 2;
        /// A writer offers less than is requested.
        const REQUESTED_INCOMPATIBLE_QOS = 4;
        /// A sample will never come.
        const SAMPLE_LOST = 8;
        /// A sample came and was not taken in.
        const SAMPLE_REJECTED = 16;
        /// An instance was not updated for a whole period.
        const REQUESTED_DEADLINE_MISSED = 32;
        /// Writers are no longer alive, or are again.
        const LIVELINESS_CHANGED = 64;
    }
}

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) guid: Guid,
    pub(crate) data: EndpointData,
    pub(crate) keyed: bool,
    pub(crate) key_of: Option<KeyOf>,
    pub(crate) level: Option<Level>,
    pub(crate) reliable: bool,
    pub(crate) volatile: bool,
    pub(crate) is_enabled: bool,
    pub(crate) max_payload_bytes: usize,
    /// Bytes that its samples have.
    pub(crate) sample_bytes: usize,
    /// `None`: samples are delivered as views.
    pub(crate) cache: Option<Cache>,
    /// Samples that come in fragments; `None`: there is no room for any.
    pub(crate) assemblies: Option<Assemblies>,
    /// Of the last NACK_FRAG to any writer.
    pub(crate) nack_count: i32,
    pub(crate) proxies: Vec<u16>,
    pub(crate) status: ReaderStatus,
    /// It is on the list of endpoints with something to tell.
    pub(crate) noted: bool,
    pub(crate) incompatible: Option<Incompatible>,
    /// What its policies of time need.
    pub(crate) clock: Option<Box<ReaderClock>>,
    pub(crate) content_filter: Option<ContentFilter>,
    pub(crate) clock_filed: bool,
    /// The group it belongs to.
    pub(crate) subscriber: Option<u16>,
    /// When it is looked at again how far others are that it waits for.
    pub(crate) ask_at: Option<Instant>,
    pub(crate) liveliness: LivelinessTally,
    pub(crate) matched: MatchTally,
    /// What the user was told of the ledger's lost and rejected.
    pub(crate) told_lost: u64,
    pub(crate) told_rejected: u64,
    pub(crate) told_too_large: u64,
    /// Payload bytes of the last sample that was too large.
    pub(crate) too_large_bytes: u32,
    pub(crate) reject_reason: RejectReason,
    pub(crate) encapsulations_refused: Option<EncapsulationsRefused>,
    pub(crate) ledger: ReaderLedger,
    /// A sample was refused for want of room: ask again when there is some.
    pub(crate) blocked: bool,
    /// A sample was refused so that those of other writers find room.
    pub(crate) put_off: bool,
    /// Less was asked for than is missing, for want of room: ask for more when what was asked for
    /// has come and been taken.
    pub(crate) asked_for_less: bool,
    /// Of the last ACKNACK to any writer. It outlives the proxies, so that a writer that was
    /// forgotten and found again, and has forgotten nothing itself, sees it grow.
    pub(crate) acknack_count: i32,
}

impl Reader {
    pub(crate) fn protocol_priority(&self) -> Priority {
        self.level
            .map_or(Priority::DISCOVERY, Priority::of_protocol)
    }

    /// Whether what a submessage's reader is called means this one (RTPS 2.5 §8.3.8: an unknown reader means
    /// all that match).
    #[inline]
    pub(crate) fn is_meant(&self, reader: EntityId) -> bool {
        reader == EntityId::UNKNOWN || reader == self.guid.entity
    }

    /// Counts a sample that came from `writer` and was not taken in.
    pub(crate) fn count_rejected(&mut self, writer: Guid, reason: RejectReason) {
        self.ledger.rejected += 1;
        self.reject_reason = reason;
        if let RejectReason::Encapsulation(identifier) = reason {
            let former = self.encapsulations_refused;
            self.encapsulations_refused = Some(EncapsulationsRefused {
                total: former.map_or(0, |refused| refused.total) + 1,
                identifier,
                writer,
            });
        }
    }

    /// The next sample in order found no place; what then comes of it is worked out when one is free.
    pub(crate) fn refuse(&mut self, why: Refused) {
        match why {
            Refused::PutOff => self.put_off = true,
            Refused::Full | Refused::TooLarge => self.blocked = true,
            Refused::Order | Refused::Sets => {}
        }
    }

    pub(crate) fn ledger(&self) -> ReaderLedger {
        let mut ledger = self.ledger;
        if let Some(cache) = &self.cache {
            ledger.available = cache.counted;
            ledger.waiting = cache.waiting() as u64;
            ledger.evicted = cache.evicted;
            ledger.expired += cache.expired;
            ledger.purged = cache.purged;
            ledger.unregistered = cache.unregistered;
            ledger.held = cache.held() as u64;
            ledger.in_sets = cache.in_sets() as u64;
        }
        ledger
    }
}
