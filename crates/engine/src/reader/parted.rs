//! Positions of readers at writers whose end was announced. Such an announcement can be forged; when the writer is
//! announced again, its readers continue at these positions.

use isolane_wire::{
    guid::{Guid, GuidPrefix},
    sequence::SequenceNumber,
};

use super::WriterProxy;
use crate::limits::PARTED_REMEMBERED;

#[derive(Debug, Clone, Copy)]
struct Parted {
    writer: Guid,
    reader: Guid,
    expected: SequenceNumber,
}

/// Most recent ended matches. The oldest is replaced first.
#[derive(Debug, Default)]
pub(crate) struct PartedMatches {
    matches: heapless::Vec<Parted, PARTED_REMEMBERED>,
}

impl PartedMatches {
    /// Records a reader's position when its match with a writer ends.
    pub(crate) fn note(&mut self, proxy: &WriterProxy, reader: Guid) {
        if !proxy.begun {
            return;
        }
        if self.matches.is_full() {
            self.matches.remove(0);
        }
        let parted = Parted {
            writer: proxy.guid,
            reader,
            expected: proxy.settled_position(),
        };
        let _ = self.matches.push(parted);
    }

    /// Drops the records of a removed participant, since another start of it may reuse GUIDs and sequence numbers.
    pub(crate) fn forget(&mut self, prefix: GuidPrefix) {
        self.matches.retain(|it| it.writer.prefix != prefix);
    }

    /// Sets a new proxy to the recorded position, if there is one.
    pub(crate) fn resume(&self, proxy: &mut WriterProxy, reader: Guid) {
        let mut matches = self.matches.iter().rev();
        let is_it = |it: &&Parted| it.writer == proxy.guid && it.reader == reader;
        if let Some(parted) = matches.find(is_it) {
            proxy.restart_from(parted.expected);
            proxy.begun = true;
            proxy.skips_history = false;
        }
    }
}
