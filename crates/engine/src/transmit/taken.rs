//! ACKNACKs of samples taken, sent between two deliveries.
//!
//! A KEEP_ALL reader has as many slots as it promised, and its writer advances with its acknowledgements. If it
//! acknowledged every received sample, the writer could send as many again while the slots are still in use. All would
//! be refused and repaired. Therefore, while samples wait for delivery, acknowledgements follow the user in steps of a
//! part of the slots. The full ACKNACK, which may request missing samples, follows when none are left.

use isolane_wire::{
    rtps::AckNack,
    sequence::{SequenceNumber, SequenceNumberSet},
};

use super::to_one;
use crate::{
    cache::Cache,
    engine::Engine,
    limits::TAKEN_SHARE,
    work::{Work, WorkKind},
};

impl Engine {
    /// Returns the cache, and the oldest sample of a writer that a KEEP_ALL reader has not delivered.
    fn untaken(&self, index: u16) -> Option<(&Cache, SequenceNumber)> {
        let proxy = self.writer_proxies.get(index)?;
        let cache = self.readers.get(proxy.reader)?.cache.as_ref()?;
        Some((cache, cache.first_untaken(index)?))
    }

    pub(super) fn has_untaken(&self, index: u16) -> bool {
        self.untaken(index).is_some()
    }

    /// Acknowledges the samples taken if they are worth a datagram. The full ACKNACK stays filed.
    pub(super) fn send_taken(&mut self, index: u16, buffer: &mut [u8]) -> Option<Work> {
        let header = self.header;
        let (cache, untaken) = self.untaken(index)?;
        let step = (cache.keeps() / TAKEN_SHARE).max(1);
        let proxy = self.writer_proxies.get_mut(index)?;
        let untaken = untaken.min(proxy.expected);
        let reader = self.readers.get_mut(proxy.reader)?;
        let is_worth_it = untaken.get().saturating_sub(proxy.acknowledged.get()) >= step as i64;
        let (to, level, prefix) = (proxy.reply_to, reader.level, proxy.guid.prefix);
        let priority = reader.protocol_priority();
        let mut bytes = 0;
        if is_worth_it {
            proxy.acknowledged = untaken;
            reader.acknack_count = reader.acknack_count.wrapping_add(1);
            let acknack = AckNack {
                reader: reader.guid.entity,
                writer: proxy.guid.entity,
                state: SequenceNumberSet::new(untaken),
                count: reader.acknack_count,
                is_final: true,
            };
            bytes = self.finish(
                buffer,
                |message| {
                    message
                        .info_destination(prefix)?
                        .acknack(&acknack)
                        .map(|_| ())
                },
                header,
            );
        }
        self.file(priority, WorkKind::AckNack, index);
        Some(Work {
            kind: WorkKind::AckNack,
            level,
            bytes: self.spend(prefix, to.as_ref(), bytes),
            to: to_one(to),
        })
    }
}
