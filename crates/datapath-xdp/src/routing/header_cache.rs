//! Header cache: set-associative, keyed by flow, constant time on a hit.
//!
//! An entry is rebuilt when its generation differs from the tables', or when another flow evicted it. Peers choose
//! addresses and ports, so they can make flows evict each other. Each eviction costs a look-up in bounded tables and
//! affects no other flow's delivery.

use super::decision::Reason;
use super::header::{Flow, Template};
use crate::limits::{FLOW_SETS, FLOW_WAYS};

/// Cached route decision for one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) flow: Flow,
    /// Generation of the source tables; 0 marks a free place.
    pub(super) generation: u64,
    pub(super) answer: Result<Template, Reason>,
    /// Next hop on the link.
    pub(super) neighbour: Option<[u8; 4]>,
    /// Used since the last call of [`HeaderCache::take_used`].
    pub(super) is_used: bool,
}

/// Set-associative cache. A flow can be only in its own set.
#[derive(Debug)]
pub(super) struct HeaderCache {
    places: Vec<Option<Entry>>,
    /// Round-robin index of the way to evict when all of a set are in use.
    next: u8,
}

impl HeaderCache {
    pub(super) fn new() -> HeaderCache {
        HeaderCache {
            places: vec![None; FLOW_SETS * FLOW_WAYS],
            next: 0,
        }
    }

    /// Place of a flow's entry, if it was built from tables of this generation.
    #[inline]
    pub(super) fn find(&self, flow: &Flow, generation: u64) -> Option<usize> {
        let place = self.place_of(flow)?;
        match &self.places[place] {
            Some(entry) if entry.generation == generation => Some(place),
            _ => None,
        }
    }

    #[inline]
    fn place_of(&self, flow: &Flow) -> Option<usize> {
        let first = set(flow) * FLOW_WAYS;
        let places = &self.places[first..first + FLOW_WAYS];
        let is_own =
            |place: &Option<Entry>| place.as_ref().is_some_and(|entry| entry.flow == *flow);
        Some(first + places.iter().position(is_own)?)
    }

    /// Entry at a place.
    #[inline]
    pub(super) fn at(&self, place: usize) -> Option<&Entry> {
        self.places[place].as_ref()
    }

    /// Mutable entry at a place.
    #[inline]
    pub(super) fn at_mut(&mut self, place: usize) -> Option<&mut Entry> {
        self.places[place].as_mut()
    }

    /// Place for a flow's new entry: its own, an idle one, or one to evict.
    pub(super) fn place_for(&mut self, flow: &Flow) -> usize {
        if let Some(own) = self.place_of(flow) {
            return own;
        }
        let first = set(flow) * FLOW_WAYS;
        let places = &self.places[first..first + FLOW_WAYS];
        let is_idle = |place: &Option<Entry>| place.as_ref().is_none_or(|entry| !entry.is_used);
        let way = places.iter().position(is_idle).unwrap_or_else(|| {
            self.next = self.next.wrapping_add(1);
            usize::from(self.next) % FLOW_WAYS
        });
        first + way
    }

    pub(super) fn put(&mut self, place: usize, entry: Entry) {
        self.places[place] = Some(entry);
    }

    /// Next hops used since the last call; an address may be repeated.
    pub(super) fn take_used(&mut self) -> impl Iterator<Item = [u8; 4]> {
        self.places.iter_mut().flatten().filter_map(|entry| {
            let is_used = std::mem::take(&mut entry.is_used);
            entry.neighbour.filter(|_| is_used)
        })
    }
}

/// Set index of a flow: a multiplicative hash, in which each input bit affects the upper bits.
#[inline]
fn set(flow: &Flow) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let address = u64::from(u32::from_be_bytes(flow.destination));
    let ports = u64::from(flow.destination_port) << 16 | u64::from(flow.source_port);
    let mixed = (address << 32 | ports) ^ u64::from(flow.level.get()) << 61;
    (mixed.wrapping_mul(ODD) >> (u64::BITS - FLOW_SETS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use isolane_wire::level::Level;

    use super::*;

    fn flow(number: u32) -> Flow {
        Flow {
            destination: (0x0a00_0000 + number / 8).to_be_bytes(),
            destination_port: 7411,
            source_port: 40_000,
            level: Level::ALL[number as usize % 8],
        }
    }

    fn put(cache: &mut HeaderCache, flow: Flow, is_used: bool) {
        let place = cache.place_for(&flow);
        let entry = Entry {
            flow,
            generation: 1,
            answer: Err(Reason::NoRoute),
            neighbour: Some(flow.destination),
            is_used,
        };
        cache.put(place, entry);
    }

    #[test]
    fn a_flow_is_found_again() {
        let mut cache = HeaderCache::new();
        assert!(cache.find(&flow(1), 1).is_none());
        put(&mut cache, flow(1), true);
        assert!(cache.find(&flow(1), 1).is_some());
        assert!(cache.find(&flow(2), 1).is_none());
    }

    #[test]
    fn the_flows_of_a_usual_system_all_find_room() {
        let mut cache = HeaderCache::new();
        let count = (FLOW_SETS * FLOW_WAYS / 4) as u32;
        for number in 0..count {
            put(&mut cache, flow(number), true);
        }
        let found = (0..count).filter(|number| cache.find(&flow(*number), 1).is_some());
        let found = found.count() as u32;
        assert!(found * 10 >= count * 9, "{found} of {count}");
    }

    #[test]
    fn an_idle_flow_gives_way_before_one_in_use() {
        let mut cache = HeaderCache::new();
        let wanted = set(&flow(0));
        let mut same = (0..).map(flow).filter(|flow| set(flow) == wanted);
        let first: Vec<Flow> = same.by_ref().take(FLOW_WAYS).collect();
        for (number, flow) in first.iter().enumerate() {
            put(&mut cache, *flow, number != 2);
        }
        let newcomer = same.next().expect("there is always another");
        put(&mut cache, newcomer, true);
        assert!(cache.find(&newcomer, 1).is_some());
        for (number, flow) in first.iter().enumerate() {
            assert_eq!(cache.find(flow, 1).is_some(), number != 2);
        }
    }

    #[test]
    fn who_was_used_is_said_once() {
        let mut cache = HeaderCache::new();
        put(&mut cache, flow(1), true);
        put(&mut cache, flow(900), false);
        assert_eq!(cache.take_used().collect::<Vec<_>>(), [flow(1).destination]);
        assert_eq!(cache.take_used().count(), 0);
    }
}
