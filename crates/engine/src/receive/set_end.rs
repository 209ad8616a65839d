//! End of a coherent set: a DATA without payload that takes a sequence number but is no sample (RTPS 2.5 §8.7.6).

use isolane_wire::{
    rtps::{Data, SetMark},
    time::Instant,
};

use super::MessageReceiver;
use crate::{
    cache::{Cache, SampleInfo},
    engine::Engine,
    history::ChangeKind,
    presentation::{keep_in_turn, note_place},
};

impl Engine {
    /// Processes the end of a set at one reader; `index` is that of the proxy. A reader without sets only advances past
    /// the number when all earlier ones have arrived.
    #[cold]
    pub(super) fn receive_set_end(
        &mut self,
        now: Instant,
        message: &MessageReceiver,
        index: u16,
        data: &Data<'_>,
        mark: &SetMark,
    ) {
        let Some(proxy) = self.writer_proxies.get_mut(index) else {
            return;
        };
        let Some(reader) = self.readers.get_mut(proxy.reader) else {
            return;
        };
        if reader.cache.as_ref().is_some_and(Cache::groups) {
            let info = SampleInfo {
                writer: proxy.guid,
                sequence: data.sequence,
                source_timestamp: message.timestamp,
                received: now,
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
        self.advance_proxy(index);
    }
}
