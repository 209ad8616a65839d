//! Acceptance of one DATA by one reader: sequence number, instance and cache entry.
//!
//! The end of a coherent set is a DATA without payload that takes a sequence number but is no sample (RTPS 2.5 §8.7.6).

use isolane_wire::{
    cdr::{CdrError, KeyHash},
    message::{CoherentSetInfo, Data, PayloadKind},
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use crate::{
    coherent_access::{keep_in_turn, note_place},
    participant::{Facts, Shared},
    reader::{
        Origin, Reader, ReaderStatus, Readers, Settled, WriterProxy,
        cache::{Cache, Refused, SampleInfo},
        instance::InstanceState,
    },
    receiver::MessageReceiver,
    slab::WriterProxyId,
    status::RejectReason,
    writer::history::ChangeKind,
};

/// Checks whether a reader accepts this sequence number. Returns `Some(true)` if it shows earlier samples as lost, and
/// `None` if the sample is dropped and counted.
#[inline]
pub(crate) fn is_due(
    proxy: &mut WriterProxy,
    reader: &mut Reader,
    sequence: SequenceNumber,
    now: Instant,
) -> Option<bool> {
    proxy.heard = now;
    if sequence < proxy.expected {
        reader.ledger.duplicates += 1;
        return None;
    }
    if proxy.last < sequence {
        proxy.last = sequence;
    }
    begin_unasked(proxy, reader, sequence);
    if proxy.reliable {
        return is_requested(proxy, reader, sequence).then_some(false);
    }
    let missing = (sequence.get() - proxy.expected.get()) as u64;
    let has_lost = reader.ledger.lose(missing, proxy.begun);
    if has_lost {
        reader.status |= ReaderStatus::SAMPLE_LOST;
    }
    proxy.expected = sequence;
    Some(has_lost)
}

impl Readers {
    /// Decides whether a best-effort reader follows a sample whose number is far from the reader's position, or far
    /// from the last number that an address of the writer's participant confirmed. `index` is that of the proxy.
    #[cold]
    #[inline(never)]
    pub(crate) fn settle_position(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        now: Instant,
        message: &MessageReceiver,
        index: WriterProxyId,
        sequence: SequenceNumber,
    ) -> Settled {
        let is_own = facts.is_own_address(shared, message.prefix, message.source);
        let proxy = &mut self.proxies[index];
        let reader = &mut self.table[proxy.reader];
        let is_far = proxy.is_far(sequence);
        let settled = proxy.settle(sequence, Origin { now, is_own }, &mut reader.ledger);
        shared.counters.jumps_doubted += u64::from(is_far || settled == Settled::Refused);
        if settled == Settled::Confirmed {
            reader.status |= ReaderStatus::SAMPLE_LOST;
        }
        settled
    }
}

/// Starts a reader that skips history at the first sample or fragment that arrives without a request.
#[inline]
pub(crate) fn begin_unasked(
    proxy: &mut WriterProxy,
    reader: &mut Reader,
    sequence: SequenceNumber,
) {
    if proxy.skips_history && !proxy.started && !proxy.begun {
        // It was not requested, so it is not part of the history.
        let missing = (sequence.get() - proxy.expected.get()) as u64;
        reader.ledger.lose(missing, false);
        proxy.jump(sequence);
        // This holds even if there is no room for the sample now, because it is then requested again.
        proxy.skips_history = false;
    }
}

/// Returns whether a reliable reader still needs this sequence number. It does not if the sample was received out of
/// order.
#[inline(never)]
fn is_requested(proxy: &WriterProxy, reader: &mut Reader, sequence: SequenceNumber) -> bool {
    let is_within = proxy.in_window(sequence);
    if is_within && !proxy.has(sequence) {
        return true;
    }
    // A number beyond the window is requested later.
    reader.ledger.duplicates += u64::from(is_within);
    reader.ledger.deferred += u64::from(!is_within);
    false
}

/// Reason why a reader can never accept a sample.
pub(crate) enum Unfit {
    Rejected(RejectReason),
    /// The payload is too large, with its size in bytes.
    TooLarge(u32),
}

impl From<RejectReason> for Unfit {
    fn from(reason: RejectReason) -> Self {
        Self::Rejected(reason)
    }
}

/// Instance and change kind of a DATA.
pub(crate) struct Content {
    pub(crate) kind: ChangeKind,
    pub(crate) key_hash: Option<KeyHash>,
}

impl Content {
    /// Parses what a reader needs before the user reads the payload.
    #[inline]
    pub(crate) fn of(reader: &Reader, data: &Data<'_>) -> Result<Self, Unfit> {
        if data.non_standard {
            // RTPS 2.5 §8.3.8.2: the payload has a vendor-specific format.
            return Err(RejectReason::NotOfType.into());
        }
        let kind = match data.status_info() {
            status if status.disposed && status.unregistered => ChangeKind::DisposeAndUnregister,
            status if status.disposed => ChangeKind::Dispose,
            status if status.unregistered => ChangeKind::Unregister,
            _ => ChangeKind::Alive,
        };
        let key_hash = match reader.keyed {
            true => Some(key_hash(reader, data)?),
            false => None,
        };
        if kind == ChangeKind::Alive && data.payload != PayloadKind::Data {
            return Err(RejectReason::NotOfType.into());
        }
        if data.bytes.len() > reader.max_payload_bytes {
            return Err(Unfit::TooLarge(data.bytes.len() as u32));
        }
        Ok(Self { kind, key_hash })
    }

    #[inline]
    pub(crate) fn instance_state(&self) -> InstanceState {
        match self.kind {
            ChangeKind::Alive => InstanceState::Alive,
            ChangeKind::Dispose | ChangeKind::DisposeAndUnregister => {
                InstanceState::NotAliveDisposed
            }
            ChangeKind::Unregister => InstanceState::NotAliveNoWriters,
        }
    }
}

/// Returns the key hash of a sample, from its payload if possible, else from its inline QoS.
#[inline]
fn key_hash(reader: &Reader, data: &Data<'_>) -> Result<KeyHash, RejectReason> {
    let from_payload = match (reader.key_of, data.payload) {
        (Some(key_of), PayloadKind::Data) => key_of(data.bytes, false),
        (Some(key_of), PayloadKind::Key) => key_of(data.bytes, true),
        _ => return data.key_hash().ok_or(RejectReason::NotOfType),
    };
    from_payload.or_else(|error| without_key(data, error))
}

/// Returns the writer's key hash for a payload whose key cannot be read. A sample with an encapsulation that the type
/// cannot use is rejected nevertheless.
#[cold]
#[inline(never)]
fn without_key(data: &Data<'_>, error: CdrError) -> Result<KeyHash, RejectReason> {
    match (RejectReason::of(error, data.bytes), data.payload) {
        (reason @ RejectReason::Encapsulation(_), PayloadKind::Data) => Err(reason),
        (reason, _) => data.key_hash().ok_or(reason),
    }
}

/// Result of storing a sample in a cache.
pub(crate) enum Stored {
    /// Stored in order; samples waiting for it may follow.
    InOrder,
    /// Waits for earlier samples, or will be resent.
    OutOfOrder,
    /// Never acceptable.
    Never(Unfit),
}

/// Stores a sample in the reader's cache. `index` is that of the proxy.
#[inline(never)]
pub(crate) fn keep(
    index: WriterProxyId,
    proxy: &mut WriterProxy,
    reader: &mut Reader,
    info: SampleInfo,
    payload: &[u8],
) -> Stored {
    let Some(cache) = &mut reader.cache else {
        return Stored::OutOfOrder;
    };
    if cache.groups() {
        return match keep_in_turn(index, proxy, reader, info, payload) {
            Ok(()) => Stored::InOrder,
            Err(Refused::TooLarge) => Stored::Never(Unfit::TooLarge(payload.len() as u32)),
            Err(_) => {
                reader.ledger.deferred += 1;
                // Other samples may have waited for this number.
                Stored::InOrder
            }
        };
    }
    let sequence = info.sequence;
    let is_next = sequence == proxy.expected;
    let stored = if is_next {
        cache.push(index, info, payload)
    } else {
        cache.wait(index, info, payload).map(|displaced| {
            if let Some(displaced) = displaced {
                proxy.unmark(displaced);
                reader.ledger.deferred += 1;
            }
        })
    };
    match stored {
        Ok(()) if is_next => {
            proxy.begun = true;
            proxy.advance();
            reader.ledger.account();
            Stored::InOrder
        }
        Ok(()) => {
            proxy.mark(sequence);
            Stored::OutOfOrder
        }
        Err(Refused::TooLarge) => Stored::Never(Unfit::TooLarge(payload.len() as u32)),
        Err(refused) if proxy.reliable => {
            reader.ledger.deferred += 1;
            // Only the next sample in order blocks further requests until the user takes one. Later samples are
            // requested when their turn comes.
            if is_next {
                reader.refuse(refused);
            }
            Stored::OutOfOrder
        }
        Err(_) => Stored::Never(RejectReason::NoRoom.into()),
    }
}

impl Readers {
    /// Processes the end of a set at one reader; `index` is that of the proxy. A reader without sets only advances past
    /// the number when all earlier ones have arrived.
    #[cold]
    pub(crate) fn receive_set_end(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        (received, source_timestamp): (Instant, Option<Timestamp>),
        index: WriterProxyId,
        data: &Data<'_>,
        mark: &CoherentSetInfo,
    ) {
        let proxy = &mut self.proxies[index];
        let reader = &mut self.table[proxy.reader];
        if reader.cache.as_ref().is_some_and(Cache::groups) {
            let info = SampleInfo {
                writer: proxy.guid,
                sequence: data.sequence,
                source_timestamp,
                received,
                kind: ChangeKind::Alive,
                ..SampleInfo::UNSEEN
            };
            note_place(proxy, reader, data.sequence, mark, true);
            if keep_in_turn(index, proxy, reader, info, &[]).is_err() {
                reader.ledger.deferred += 1;
            }
        } else if data.sequence == proxy.expected {
            proxy.begun = true;
            proxy.advance();
            reader.ledger.account();
            reader.ledger.set_ends += 1;
        } else {
            // Resent later.
            reader.ledger.deferred += 1;
        }
        self.advance_proxy(shared, facts, index);
    }
}
