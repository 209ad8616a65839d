//! NACK_FRAG (RTPS 2.5 §8.3.8.12): which fragments of a sample a reader lacks.

use isolane_wire::{guid::Guid, rtps::NackFrag, time::Instant};

use super::MessageReceiver;
use crate::engine::Engine;

impl Engine {
    /// Files the repair. One NACK_FRAG a reader is kept, the last: what it lacks beside that it says again when
    /// it has been told that it got this.
    pub(super) fn receive_nack_frag(
        &mut self,
        now: Instant,
        message: &MessageReceiver,
        nack: &NackFrag,
    ) {
        let reader = Guid {
            prefix: message.prefix,
            entity: nack.reader,
        };
        let found = self.writer_by_entity.get(&nack.writer).copied();
        let found = found.and_then(|writer| self.proxy_of_reader.get(&(writer, reader)).copied());
        let Some(index) = found else {
            self.counters.unmatched_acknacks += 1;
            return;
        };
        let Some(proxy) = self.reader_proxies.get_mut(index) else {
            return;
        };
        let writer_index = proxy.writer;
        let Some(writer) = self.writers.get(writer_index) else {
            return;
        };
        // Whoever has never acknowledged anything is sent nothing on its word alone.
        let is_ready = proxy.reliable && proxy.is_ready() && writer.fragmenter.cuts();
        if !is_ready || !proxy.fragments.accept(now, nack.count) {
            return;
        }
        let under_way = writer.fragmenter.under_way.map(|at| at.sequence);
        let is_sent = nack.sequence < writer.next_unsent || under_way == Some(nack.sequence);
        // What went in one piece has no fragments: one would be longer than its sample.
        if !is_sent || nack.state.is_empty() || writer.goes_whole(nack.sequence) {
            return;
        }
        proxy.fragments.ask_for(nack.sequence, &nack.state);
        self.file_repair(index);
        // It lives, and gets on.
        self.hasten_heartbeat(now, writer_index);
    }
}
