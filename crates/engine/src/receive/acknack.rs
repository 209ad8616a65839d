//! ACKNACK (RTPS 2.5 §8.3.8.1): what a reader has of a writer here, and what it asks for.

use isolane_wire::{
    guid::Guid,
    rtps::AckNack,
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

use super::MessageReceiver;
use crate::{engine::Engine, writer::WriterStatus};

impl Engine {
    pub(super) fn receive_acknack(
        &mut self,
        now: Instant,
        message: &MessageReceiver,
        acknack: &AckNack,
    ) {
        let reader = Guid {
            prefix: message.prefix,
            entity: acknack.reader,
        };
        let Some(&writer_index) = self.writer_by_entity.get(&acknack.writer) else {
            self.counters.unmatched_acknacks += 1;
            return;
        };
        let Some(&index) = self.proxy_of_reader.get(&(writer_index, reader)) else {
            self.counters.unmatched_acknacks += 1;
            return;
        };
        let Some(proxy) = self.reader_proxies.get_mut(index) else {
            return;
        };
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        let was_ready = proxy.is_ready();
        if !proxy.reliable || !proxy.accept_acknack(acknack) {
            return;
        }
        if !was_ready {
            writer.status |= WriterStatus::PUBLICATION_MATCHED;
        }
        // A peer cannot acknowledge what was not sent.
        let base = acknack.state.base().min(writer.next_unsent);
        let before = proxy.done_to();
        let progress = proxy.acknowledge(base);
        let after = proxy.done_to();
        let lowest = writer.lowest_acknowledged;
        writer.highest_acknowledged = writer.highest_acknowledged.max(base);
        let mut requested = SequenceNumberSet::new(acknack.state.base().max(SequenceNumber(1)));
        for sequence in acknack.state.iter() {
            if sequence < writer.next_unsent {
                requested.insert(sequence);
            }
        }
        let asks = !requested.is_empty();
        if asks {
            proxy.requested = requested;
        }
        if asks || !acknack.is_final {
            // Where nothing is asked for it answers with a HEARTBEAT.
            self.file_repair(index);
        }
        if before != after && (before <= lowest || after < lowest) {
            // It was this reader that all the others wait for, or is now.
            self.refresh_lowest(writer_index);
        }
        if progress || !was_ready {
            self.release_acknowledged(writer_index);
            self.note_writer(writer_index);
        }
        // Always, since a reader may also have gone back to the beginning.
        self.arm_heartbeat(now, writer_index);
        if progress {
            self.hasten_heartbeat(now, writer_index);
        }
    }
}
