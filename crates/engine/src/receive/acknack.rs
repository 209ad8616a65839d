//! ACKNACK reception (RTPS 2.5 §8.3.8.1).

use isolane_wire::{
    guid::Guid,
    rtps::AckNack,
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

use super::MessageReceiver;
use crate::engine::Engine;

impl Engine {
    pub(super) fn receive_acknack(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
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
        let mut known = self.proxy_of_reader.get(&(writer_index, reader)).copied();
        if known.is_none()
            && self.uses_descriptions()
            && self.meet_static(now, message.prefix, message.source)
        {
            known = self.proxy_of_reader.get(&(writer_index, reader)).copied();
        }
        let Some(index) = known else {
            self.counters.unmatched_acknacks += 1;
            return;
        };
        let Some(proxy) = self.reader_proxies.get_mut(index) else {
            return;
        };
        let (was_ready, was_silent) = (proxy.is_ready(), proxy.is_silent());
        if !proxy.reliable {
            return;
        }
        let is_news = proxy.accept_acknack(now, acknack);
        // A peer with several interfaces may send each ACKNACK from all of them; each copy validates its source
        // address.
        if proxy.answered_from != message.source.ipv4() || !proxy.is_reachable {
            let bytes = message.count(acknack.buffer_len());
            self.earn(message.prefix, bytes);
            self.note_answer(index, message.source);
        }
        if !is_news {
            return;
        }
        let Some(proxy) = self.reader_proxies.get_mut(index) else {
            return;
        };
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        // A peer cannot acknowledge samples not sent yet.
        let base = acknack.state.base().min(writer.next_unsent);
        let begins = proxy.begins(acknack);
        let before = proxy.done_to();
        let progress = proxy.acknowledge(base);
        let after = proxy.done_to();
        let had_unwanted = progress && proxy.pass_unwanted();
        let lowest = writer.lowest_acknowledged;
        writer.highest_acknowledged = writer.highest_acknowledged.max(base);
        self.file_what_is_asked(index, !was_ready, acknack);
        if was_silent || before != after && (before <= lowest || after < lowest) {
            // This reader was, or is now, the one with the lowest acknowledgement.
            self.refresh_lowest(writer_index);
        }
        if was_silent {
            // Its address is a destination again.
            self.refresh_destinations(writer_index);
        }
        if had_unwanted {
            self.refresh_unwanted(writer_index);
        }
        if begins {
            self.join_reader(index);
        }
        if progress || !was_ready || begins {
            self.release_acknowledged(writer_index);
            self.note_writer(writer_index);
        }
        // Unconditional, since a reader may also have restarted from the beginning.
        self.arm_heartbeat(now, writer_index);
        if progress {
            self.hasten_heartbeat(now, writer_index);
        }
    }

    /// Files the requested samples, and after a reader's first ACKNACK also the history.
    fn file_what_is_asked(&mut self, index: u16, is_first: bool, acknack: &AckNack) {
        let Some(proxy) = self.reader_proxies.get_mut(index) else {
            return;
        };
        let Some(writer) = self.writers.get(proxy.writer) else {
            return;
        };
        // Requests for samples received meanwhile are dropped.
        let base = acknack.state.base();
        for had in proxy.requested.iter().take_while(|&had| had < base) {
            proxy.requested.remove(had);
        }
        proxy.fragments.acknowledge(base);
        let begins_history = is_first && proxy.is_reachable && proxy.history_next.is_some();
        let mut requested = SequenceNumberSet::new(base.max(SequenceNumber(1)));
        for sequence in acknack.state.iter() {
            // History is sent once and in order, without requests.
            let is_history = begins_history && sequence < proxy.history_end;
            let comes = proxy.fragments.comes(sequence);
            if sequence < writer.next_unsent && !is_history && !comes {
                requested.insert(sequence);
            }
        }
        let asks = !requested.is_empty();
        if asks {
            proxy.requested = requested;
        }
        if begins_history {
            self.file_history(index);
        }
        if asks || !acknack.is_final {
            // Without requests the answer is a HEARTBEAT.
            self.file_repair(index);
        }
    }
}
