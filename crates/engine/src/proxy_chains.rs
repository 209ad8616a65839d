//! Lookup from a remote writer to its chain of proxies, one for each matched local reader.
//!
//! Every submessage of a writer needs it. A small direct-mapped cache in front of the index, addressed by the low bits
//! of the entity number, avoids hashing. Writers with the same cache entry cost each other only the index lookup, so it
//! does not matter that peers choose the numbers.

use isolane_wire::guid::Guid;

use crate::{index::PeerIndex, limits::REMEMBERED_WRITERS};

#[derive(Debug)]
pub(crate) struct ProxyChains {
    first: PeerIndex<Guid, u16>,
    remembered: [Option<(Guid, u16)>; REMEMBERED_WRITERS],
}

impl ProxyChains {
    /// Creates a table for `entries` writers; `is_fixed` allocates all of it now.
    pub(crate) fn new(entries: usize, is_fixed: bool, seed: u64) -> Self {
        Self {
            first: PeerIndex::new(entries, is_fixed, seed),
            remembered: [None; REMEMBERED_WRITERS],
        }
    }

    /// Returns the first proxy of a writer.
    pub(crate) fn get(&self, writer: &Guid) -> Option<u16> {
        self.first.get(writer).copied()
    }

    /// Returns the first proxy of a writer, through the cache.
    #[inline]
    pub(crate) fn recall(&mut self, writer: &Guid) -> Option<u16> {
        match self.remembered[place(writer)] {
            Some((remembered, first)) if remembered == *writer => Some(first),
            _ => self.look_up(writer),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, writer: &Guid) -> Option<u16> {
        let first = self.get(writer)?;
        self.remembered[place(writer)] = Some((*writer, first));
        Some(first)
    }

    /// Sets the first proxy; returns the former one.
    pub(crate) fn insert(&mut self, writer: Guid, first: u16) -> Option<u16> {
        self.forget(&writer);
        self.first.insert(writer, first)
    }

    /// Removes a writer without proxies.
    pub(crate) fn remove(&mut self, writer: &Guid) {
        self.forget(writer);
        self.first.remove(writer);
    }

    fn forget(&mut self, writer: &Guid) {
        self.remembered[place(writer)] = None;
    }
}

/// Returns the cache entry of a writer.
#[inline]
fn place(writer: &Guid) -> usize {
    // The last byte is the entity kind, which writers share. Participants of the same program have the same numbers, so
    // the prefix is mixed in.
    let [_, _, number, _] = writer.entity.0;
    let [.., participant] = writer.prefix.0;
    usize::from(number ^ participant) % REMEMBERED_WRITERS
}

#[cfg(test)]
mod tests {
    use isolane_wire::guid::{EntityId, EntityKind, GuidPrefix};

    use super::*;

    fn writer(participant: u8, number: u32) -> Guid {
        Guid {
            prefix: GuidPrefix([participant; 12]),
            entity: EntityId::user(number, EntityKind::WRITER_NO_KEY),
        }
    }

    #[test]
    fn writers_that_share_a_place_are_found_each() {
        let mut chains = ProxyChains::new(3, false, 1);
        let others = 1 + REMEMBERED_WRITERS as u32;
        let writers = [writer(1, 1), writer(2, 2), writer(1, others)];
        for (first, &writer) in (0..).zip(&writers) {
            assert_eq!(chains.recall(&writer), None);
            assert_eq!(chains.insert(writer, first), None);
        }
        for _ in 0..2 {
            for (first, writer) in (0..).zip(&writers) {
                assert_eq!(chains.recall(writer), Some(first));
            }
        }
        assert_eq!(chains.recall(&writer(2, others + 1)), None);
    }

    #[test]
    fn what_changes_is_not_remembered_as_it_was() {
        let mut chains = ProxyChains::new(1, true, 1);
        let writer = writer(1, 1);
        chains.insert(writer, 3);
        assert_eq!(chains.recall(&writer), Some(3));
        assert_eq!(chains.insert(writer, 4), Some(3));
        assert_eq!(chains.recall(&writer), Some(4));
        chains.remove(&writer);
        assert_eq!(chains.recall(&writer), None);
    }

    #[test]
    fn nobody_is_not_found_in_an_empty_place() {
        assert_eq!(ProxyChains::new(1, true, 1).recall(&Guid::UNKNOWN), None);
    }
}
