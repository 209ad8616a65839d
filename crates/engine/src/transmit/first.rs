//! First transmissions: each sample of a reliable writer once, to all its readers.

use isolane_wire::{guid::EntityId, rtps::MessageWriter, time::Instant};

use super::gap;
use crate::{
    engine::Engine,
    ids::WriterId,
    work::{Destinations, Work, WorkKind},
    write::data_head,
};

impl Engine {
    /// First transmission of the next unsent sample.
    pub(super) fn send_data(
        &mut self,
        now: Instant,
        index: u16,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let header = self.header;
        let writer = self.writers.get_mut(index)?;
        writer.data_filed = false;
        let history = writer.history.as_ref()?;
        let Some(sequence) = history.at_or_after(writer.next_unsent) else {
            // All that was unsent has been pushed out.
            writer.ledger.evicted_unsent +=
                (writer.last.get() + 1 - writer.next_unsent.get()) as u64;
            writer.next_unsent = writer.last.next();
            return None;
        };
        let skipped = writer.next_unsent;
        let begins_run = writer.highest_acknowledged >= skipped;
        writer.ledger.evicted_unsent += (sequence.get() - skipped.get()) as u64;
        let (change, payload) = history.get(sequence)?;
        let (sample, level) = (change.sample(), writer.level);
        let mut bytes = 0;
        if !writer.destinations.is_empty() {
            let head = data_head(writer.guid.entity, EntityId::UNKNOWN, sequence, &sample);
            let written = MessageWriter::new(buffer, &header).and_then(|mut message| {
                if skipped < sequence {
                    message.gap(&gap(
                        writer.guid.entity,
                        EntityId::UNKNOWN,
                        skipped,
                        sequence,
                    ))?;
                }
                message
                    .info_timestamp(sample.timestamp)?
                    .data(&head, payload)?;
                Ok(message)
            });
            match written {
                Ok(mut message) => {
                    writer.next_unsent = sequence.next();
                    writer.ledger.sent += 1;
                    writer.since_demand += 1;
                    // The last of a run tells what there is, so that a loss before it shows at
                    // once; a quarter of the history sent demands an acknowledgement.
                    let is_last = writer.next_unsent > writer.last;
                    let demands = writer.since_demand >= writer.demand_after();
                    if writer.reliable && (is_last || demands) {
                        let heartbeat = writer.heartbeat(!demands);
                        // Where it finds no room the timer's heartbeat follows.
                        let _ = message.heartbeat(&heartbeat);
                    }
                    bytes = message.len();
                }
                Err(_) => {
                    writer.next_unsent = sequence.next();
                    writer.ledger.sent += 1;
                    self.counters.buffer_too_small += 1;
                }
            }
        } else {
            writer.next_unsent = sequence.next();
            writer.ledger.unmatched += 1;
        }
        if writer.next_unsent <= writer.last {
            writer.data_filed = true;
            let priority = writer.data_priority();
            self.file(priority, WorkKind::Data, index);
        }
        self.release_acknowledged(index);
        self.arm_heartbeat(now, index);
        if begins_run {
            self.hasten_heartbeat(now, index);
        }
        Some(Work {
            kind: WorkKind::Data,
            level,
            bytes,
            to: Destinations::Writer(WriterId(index)),
        })
    }
}
