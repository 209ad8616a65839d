//! Memory of how far readers were with writers whose ends were announced. Anybody can announce an end in a
//! participant's name; when the writer is announced again, its readers go on where they were.

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

/// The matches that ended last, the oldest first to be forgotten.
#[derive(Debug, Default)]
pub(crate) struct PartedMatches {
    matches: heapless::Vec<Parted, PARTED_REMEMBERED>,
}

impl PartedMatches {
    /// Remembers how far a reader is with a writer that ends.
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

    /// Forgets the writers of a participant that is gone: another start of it may have its name and number anew.
    pub(crate) fn forget(&mut self, prefix: GuidPrefix) {
        self.matches.retain(|it| it.writer.prefix != prefix);
    }

    /// Sets a new proxy to where the former one was, if there was one.
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
