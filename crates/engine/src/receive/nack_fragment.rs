//! NACK_FRAG reception (RTPS 2.5 §8.3.8.12).

use isolane_wire::{guid::Guid, rtps::NackFrag, time::Instant};

use super::MessageReceiver;
use crate::engine::Engine;

impl Engine {
    /// Files the repair of the requested fragments. Only the latest NACK_FRAG of a reader is stored; the reader
    /// requests other missing fragments later.
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
        // A reader that never acknowledged anything gets no repair.
        let is_ready = proxy.reliable && proxy.is_ready() && writer.fragmenter.cuts();
        if !is_ready || !proxy.fragments.accept(now, nack.count) {
            return;
        }
        let under_way = writer.fragmenter.under_way.map(|at| at.sequence);
        let is_sent = nack.sequence < writer.next_unsent || under_way == Some(nack.sequence);
        // A sample sent as one DATA has no fragments.
        if !is_sent || nack.state.is_empty() || writer.goes_whole(nack.sequence) {
            return;
        }
        proxy.fragments.ask_for(nack.sequence, &nack.state);
        self.file_repair(index);
        // The NACK_FRAG shows progress of the reader.
        self.hasten_heartbeat(now, writer_index);
    }
}
