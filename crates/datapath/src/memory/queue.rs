//! Datagram queue of a lane: a byte ring, allocated when the lane opens.

use std::collections::VecDeque;

use isolane_wire::locator::Locator;

struct Entry {
    from: Locator,
    len: usize,
}

/// FIFO bounded in datagrams and bytes.
pub(super) struct DatagramQueue {
    entries: VecDeque<Entry>,
    max_datagrams: usize,
    /// Consecutive payloads, wrapping around.
    ring: Box<[u8]>,
    /// Position of the oldest payload.
    head: usize,
    used: usize,
}

impl DatagramQueue {
    pub(super) fn new(max_datagrams: usize, max_bytes: usize) -> DatagramQueue {
        DatagramQueue {
            entries: VecDeque::with_capacity(max_datagrams),
            max_datagrams,
            ring: vec![0; max_bytes].into_boxed_slice(),
            head: 0,
            used: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends a datagram; returns false, without effect, if it does not fit.
    pub(super) fn push(&mut self, from: Locator, bytes: &[u8]) -> bool {
        let room = self.ring.len() - self.used;
        if bytes.len() > room || self.entries.len() == self.max_datagrams {
            return false;
        }
        let tail = (self.head + self.used) % self.ring.len().max(1);
        let (first, second) = bytes.split_at(bytes.len().min(self.ring.len() - tail));
        self.ring[tail..tail + first.len()].copy_from_slice(first);
        self.ring[..second.len()].copy_from_slice(second);
        self.used += bytes.len();
        let len = bytes.len();
        self.entries.push_back(Entry { from, len });
        true
    }

    /// Removes the oldest datagram and returns its source and length. Copies as much as fits to `buffer`.
    pub(super) fn pop_into(&mut self, buffer: &mut [u8]) -> Option<(Locator, usize)> {
        let Entry { from, len } = self.entries.pop_front()?;
        let copied = len.min(buffer.len());
        let before_end = copied.min(self.ring.len() - self.head);
        let (first, second) = buffer[..copied].split_at_mut(before_end);
        first.copy_from_slice(&self.ring[self.head..self.head + first.len()]);
        second.copy_from_slice(&self.ring[..second.len()]);
        self.head = (self.head + len) % self.ring.len().max(1);
        self.used -= len;
        Some((from, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Locator = Locator::udpv4([10, 0, 0, 1], 7410);

    fn pop(queue: &mut DatagramQueue) -> Option<Vec<u8>> {
        let mut buffer = [0; 32];
        let (from, len) = queue.pop_into(&mut buffer)?;
        assert_eq!(from, FROM);
        Some(buffer[..len].to_vec())
    }

    #[test]
    fn datagrams_go_round_the_ring_unchanged() {
        let mut queue = DatagramQueue::new(4, 10);
        for round in 0..50_u8 {
            assert!(queue.push(FROM, &[round; 4]));
            assert!(queue.push(FROM, &[]));
            assert!(queue.push(FROM, &[round + 1; 5]));
            assert_eq!(pop(&mut queue), Some(vec![round; 4]));
            assert_eq!(pop(&mut queue), Some(vec![]));
            assert_eq!(pop(&mut queue), Some(vec![round + 1; 5]));
            assert_eq!(pop(&mut queue), None);
        }
    }

    #[test]
    fn a_datagram_longer_than_the_buffer_is_taken_off_whole() {
        let mut queue = DatagramQueue::new(4, 100);
        assert!(queue.push(FROM, &[1; 40]));
        assert!(queue.push(FROM, &[2; 4]));
        let mut buffer = [0; 32];
        assert_eq!(queue.pop_into(&mut buffer), Some((FROM, 40)));
        assert_eq!(buffer, [1; 32]);
        assert_eq!(pop(&mut queue), Some(vec![2; 4]));
    }

    #[test]
    fn both_bounds_are_kept() {
        let mut queue = DatagramQueue::new(2, 10);
        assert!(!queue.push(FROM, &[0; 11]));
        assert!(queue.push(FROM, &[1; 10]));
        assert!(!queue.push(FROM, &[2]));
        assert!(queue.push(FROM, &[]));
        assert!(!queue.push(FROM, &[]), "two datagrams are there");
        assert_eq!(pop(&mut queue), Some(vec![1; 10]));
        assert!(queue.push(FROM, &[3]));
    }
}
