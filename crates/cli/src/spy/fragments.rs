//! IP fragments, put together as the receiving host does it: a large sample in one datagram crosses
//! the wire in many packets.

use std::collections::VecDeque;

use crate::limits::{FRAGMENTED_PACKETS, PACKET_BYTES};

/// What fragments of one packet have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) source: [u8; 4],
    pub(super) destination: [u8; 4],
    pub(super) identification: u16,
}

/// One fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<'a> {
    pub(super) key: Key,
    /// Where in the packet's payload it belongs.
    pub(super) offset: usize,
    pub(super) is_last: bool,
    pub(super) bytes: &'a [u8],
}

/// A packet's payload, whole again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) bytes: Vec<u8>,
    pub(super) fragments: usize,
}

/// A packet of which parts are missing.
struct Partial {
    key: Key,
    parts: Vec<(usize, Vec<u8>)>,
    /// Known once the last fragment has come.
    length: Option<usize>,
    held_bytes: usize,
}

/// The packets of which parts are missing, the oldest first.
#[derive(Default)]
pub(super) struct Fragments {
    partial: VecDeque<Partial>,
    /// Packets that never became whole.
    pub(super) given_up: u64,
}

impl Fragments {
    /// Takes a fragment; the whole payload, if it was the one that was missing.
    pub(super) fn add(&mut self, fragment: Fragment<'_>) -> Option<Whole> {
        let end = fragment.offset + fragment.bytes.len();
        // Fragments but the last come in units of eight bytes; what is empty or reaches beyond the
        // largest packet is nobody's.
        if fragment.bytes.is_empty() || end > PACKET_BYTES {
            self.given_up += 1;
            return None;
        }
        let index = self.index_of(fragment.key);
        let partial = &mut self.partial[index];
        let overlaps = partial
            .parts
            .iter()
            .any(|(offset, bytes)| *offset < end && fragment.offset < offset + bytes.len());
        if overlaps {
            // One that was sent twice changes nothing; one that contradicts is not believed.
            return None;
        }
        partial.held_bytes += fragment.bytes.len();
        partial
            .parts
            .push((fragment.offset, fragment.bytes.to_vec()));
        if fragment.is_last {
            partial.length = Some(end);
        }
        // Without overlaps, as many bytes as the packet has are all of them.
        if partial.length != Some(partial.held_bytes) {
            return None;
        }
        let mut partial = self.partial.remove(index)?;
        partial.parts.sort_by_key(|(offset, _)| *offset);
        Some(Whole {
            fragments: partial.parts.len(),
            bytes: partial
                .parts
                .into_iter()
                .flat_map(|(_, bytes)| bytes)
                .collect(),
        })
    }

    /// Packets that are not whole yet.
    pub(super) fn pending(&self) -> u64 {
        self.partial.len() as u64
    }

    fn index_of(&mut self, key: Key) -> usize {
        if let Some(index) = self.partial.iter().position(|partial| partial.key == key) {
            return index;
        }
        if self.partial.len() == FRAGMENTED_PACKETS {
            self.partial.pop_front();
            self.given_up += 1;
        }
        self.partial.push_back(Partial {
            key,
            parts: Vec::new(),
            length: None,
            held_bytes: 0,
        });
        self.partial.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(identification: u16, offset: usize, is_last: bool, bytes: &[u8]) -> Fragment<'_> {
        Fragment {
            key: Key {
                source: [10, 0, 0, 1],
                destination: [10, 0, 0, 2],
                identification,
            },
            offset,
            is_last,
            bytes,
        }
    }

    #[test]
    fn parts_in_any_order_make_a_whole() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.add(part(1, 16, true, b"end")), None);
        assert_eq!(fragments.add(part(2, 0, false, b"01234567")), None);
        assert_eq!(fragments.add(part(1, 0, false, b"01234567")), None);
        assert_eq!(fragments.add(part(1, 0, false, b"01234567")), None, "again");
        let whole = fragments
            .add(part(1, 8, false, b"89abcdef"))
            .expect("whole");
        assert_eq!(whole.bytes, b"0123456789abcdefend");
        assert_eq!(whole.fragments, 3);
        assert_eq!((fragments.pending(), fragments.given_up), (1, 0));
    }

    #[test]
    fn packets_that_never_become_whole_are_given_up_when_others_need_the_room() {
        let mut fragments = Fragments::default();
        for identification in 0..=FRAGMENTED_PACKETS as u16 {
            assert_eq!(
                fragments.add(part(identification, 0, false, b"01234567")),
                None
            );
        }
        assert_eq!(fragments.given_up, 1);
        assert_eq!(fragments.pending(), FRAGMENTED_PACKETS as u64);
    }

    #[test]
    fn what_reaches_beyond_the_largest_packet_is_nobodys() {
        let mut fragments = Fragments::default();
        assert_eq!(
            fragments.add(part(1, PACKET_BYTES - 7, true, b"01234567")),
            None
        );
        assert_eq!((fragments.pending(), fragments.given_up), (0, 1));
    }
}
