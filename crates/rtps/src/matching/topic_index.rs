//! Index of user endpoints by topic.
//!
//! A participant may have thousands of topics; comparing every announcement with all endpoints would make discovery
//! quadratic. Endpoints of a topic form a chain in the order of creation. Names with equal hashes share a chain, which
//! is harmless because names are compared anyway.

use alloc::{vec, vec::Vec};
use core::hash::BuildHasher;

use crate::{
    hash::{Index, index},
    slab::Id,
};

/// First and last endpoint of a chain.
#[derive(Debug, Clone, Copy)]
struct Ends<I> {
    first: I,
    last: I,
}

/// User writers, or readers, by topic.
#[derive(Debug)]
pub(crate) struct TopicIndex<I> {
    chains: Index<u64, Ends<I>>,
    /// Next endpoint in the chain of each endpoint.
    next: Vec<Option<I>>,
}

impl<I: Id> TopicIndex<I> {
    pub(crate) fn new(endpoints: usize, seed: u64) -> Self {
        Self {
            chains: index(endpoints, seed),
            next: vec![None; endpoints],
        }
    }

    pub(crate) fn hash(&self, topic_name: &str) -> u64 {
        self.chains.hasher().hash_one(topic_name)
    }

    /// Appends an endpoint to the chain of its topic. It must not be in any chain.
    pub(crate) fn insert(&mut self, topic_name: &str, endpoint: I) {
        let key = self.hash(topic_name);
        let alone = Ends {
            first: endpoint,
            last: endpoint,
        };
        self.next[usize::from(endpoint.slot())] = None;
        if let Some(ends) = self.chains.get_mut(&key) {
            self.next[usize::from(ends.last.slot())] = Some(endpoint);
            ends.last = endpoint;
        } else {
            self.chains.insert(key, alone);
        }
    }

    /// Removes an endpoint from the chain of its topic.
    pub(crate) fn remove(&mut self, topic_name: &str, endpoint: I) {
        let key = self.hash(topic_name);
        let after = self.next[usize::from(endpoint.slot())].take();
        let Some(ends) = self.chains.get_mut(&key) else {
            return;
        };
        if ends.first == endpoint {
            match after {
                Some(after) => ends.first = after,
                None => {
                    self.chains.remove(&key);
                }
            }
            return;
        }
        let mut before = ends.first;
        while let Some(next) = self.next[usize::from(before.slot())] {
            if next == endpoint {
                self.next[usize::from(before.slot())] = after;
                if ends.last == endpoint {
                    ends.last = before;
                }
                return;
            }
            before = next;
        }
    }

    /// Returns the first endpoint of a topic.
    pub(crate) fn first(&self, topic_name: &str) -> Option<I> {
        let ends = self.chains.get(&self.hash(topic_name))?;
        Some(ends.first)
    }

    /// Returns the next endpoint in the same chain.
    pub(crate) fn next(&self, endpoint: I) -> Option<I> {
        self.next.get(usize::from(endpoint.slot())).copied()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::ReaderId;

    fn of(topics: &TopicIndex<ReaderId>, name: &str) -> Vec<u16> {
        core::iter::successors(topics.first(name), |&at| topics.next(at))
            .map(|id| id.0)
            .collect()
    }

    #[test]
    fn endpoints_of_a_topic_come_in_the_order_of_their_creation_and_leave_from_anywhere() {
        for gone in [3, 1, 4] {
            let mut topics = TopicIndex::new(8, 1);
            for (name, endpoint) in [("A", 3), ("B", 0), ("A", 1), ("A", 4), ("B", 2)] {
                topics.insert(name, ReaderId(endpoint));
            }
            assert_eq!(of(&topics, "A"), [3, 1, 4]);
            topics.remove("A", ReaderId(gone));
            let left: Vec<u16> = [3, 1, 4].into_iter().filter(|&at| at != gone).collect();
            assert_eq!(of(&topics, "A"), left);
            topics.insert("A", ReaderId(gone));
            assert_eq!(of(&topics, "A"), [left, vec![gone]].concat());
            assert_eq!(of(&topics, "B"), [0, 2]);
            assert_eq!(of(&topics, "C"), []);
        }
    }

    #[test]
    fn a_topic_without_endpoints_leaves_nothing() {
        let mut topics = TopicIndex::new(2, 1);
        for number in 0..1_000 {
            let name = alloc::format!("topic {number}");
            topics.insert(&name, ReaderId(1));
            topics.remove(&name, ReaderId(1));
        }
        assert!(topics.chains.is_empty());
        topics.remove("never there", ReaderId(0));
        assert_eq!(topics.first("never there"), None);
    }
}
