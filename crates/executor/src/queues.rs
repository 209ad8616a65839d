//! Queues of jobs: ready jobs, and jobs that wait for a release time.
//!
//! Inserting, choosing and removing a ready job take constant time; the same by time take time logarithmic in the
//! number of jobs. None allocates.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use isolane_wire::time::Instant;

use crate::job::{Job, Release, State, Trigger};
use crate::limits::{MAX_PRIORITY, PRIORITIES};

pub(crate) struct Queues {
    pub(crate) ready: ReadyQueue,
    /// Periodic jobs by next release, and deferred sporadic ones.
    pub(crate) releases: TimeQueue,
}

impl Queues {
    pub(crate) fn new(priority_mapping: fn(u8) -> u8, max_jobs: usize) -> Queues {
        Queues {
            ready: ReadyQueue::new(priority_mapping, max_jobs),
            releases: TimeQueue::new(max_jobs),
        }
    }

    /// Handles an event of an idle job: ready at once, or deferred if it is sporadic and too early.
    #[inline]
    pub(crate) fn arrive(&mut self, index: u16, job: &mut Job, release: Release) {
        if let Trigger::Sporadic {
            min_interarrival_ns,
        } = job.config.trigger
            && let Some(last) = job.last_release
            && release.at < after(last, min_interarrival_ns)
        {
            job.state = State::Deferred;
            job.statistics.releases_deferred += 1;
            self.releases
                .insert(index, after(last, min_interarrival_ns));
            return;
        }
        self.make_ready(index, job, release);
    }

    #[inline]
    pub(crate) fn make_ready(&mut self, index: u16, job: &mut Job, release: Release) {
        job.state = State::Ready(release);
        job.last_release = Some(release.at);
        self.ready.push(index, job.config.priority);
    }
}

/// Saturating addition.
pub(crate) fn after(instant: Instant, nanos: u64) -> Instant {
    Instant::new(instant.as_nanos().saturating_add(nanos))
}

/// End of a list.
const NONE: u16 = u16::MAX;

/// Head and tail of a non-empty list.
#[derive(Clone, Copy)]
struct List {
    head: u16,
    tail: u16,
}

#[derive(Clone, Copy)]
struct Link {
    before: u16,
    behind: u16,
}

/// Queue of ready jobs: an occupancy bit and an intrusive doubly linked list per priority, in the order of release.
pub(crate) struct ReadyQueue {
    /// List of each priority.
    list_of: [u8; PRIORITIES],
    /// Bit *l*: list *l* is not empty.
    occupied: u32,
    lists: [List; PRIORITIES],
    links: Box<[Link]>,
    count: usize,
}

impl ReadyQueue {
    pub(crate) fn new(priority_mapping: fn(u8) -> u8, max_jobs: usize) -> ReadyQueue {
        let link = Link {
            before: NONE,
            behind: NONE,
        };
        let list = List {
            head: NONE,
            tail: NONE,
        };
        ReadyQueue {
            list_of: core::array::from_fn(|priority| {
                priority_mapping(priority as u8).min(MAX_PRIORITY)
            }),
            occupied: 0,
            lists: [list; PRIORITIES],
            links: vec![link; max_jobs].into_boxed_slice(),
            count: 0,
        }
    }

    /// Returns whether the mapping of priorities to lists is the identity.
    pub(crate) fn has_list_per_priority(&self) -> bool {
        (0..)
            .zip(&self.list_of)
            .all(|(priority, list)| priority == *list)
    }

    #[inline]
    fn list_of(&self, priority: u8) -> usize {
        // Priorities are below PRIORITIES: the remainder only spares a bounds check.
        usize::from(self.list_of[usize::from(priority) % PRIORITIES])
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Appends a job that is in no list.
    #[inline]
    pub(crate) fn push(&mut self, index: u16, priority: u8) {
        let list = self.list_of(priority);
        let before = match self.is_occupied(list) {
            true => self.lists[list].tail,
            false => NONE,
        };
        if before == NONE {
            self.lists[list].head = index;
            self.occupied |= 1 << list;
        } else {
            self.links[usize::from(before)].behind = index;
        }
        self.links[usize::from(index)] = Link {
            before,
            behind: NONE,
        };
        self.lists[list].tail = index;
        self.count += 1;
    }

    /// Highest non-empty list.
    #[inline]
    pub(crate) fn highest(&self) -> Option<usize> {
        Some(self.occupied.checked_ilog2()? as usize)
    }

    #[inline]
    pub(crate) fn is_occupied(&self, list: usize) -> bool {
        self.occupied >> list & 1 == 1
    }

    /// First job of a list; `None` if empty.
    #[inline]
    pub(crate) fn first_of(&self, list: usize) -> Option<u16> {
        self.is_occupied(list).then(|| self.lists[list].head)
    }

    /// Returns true if a job of the next lower priority is ready.
    #[inline]
    pub(crate) fn is_occupied_below(&self, priority: u8) -> bool {
        self.occupied & (1 << priority >> 1) != 0
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: u16, priority: u8) {
        let list = self.list_of(priority);
        let Link { before, behind } = self.links[usize::from(index)];
        self.count -= 1;
        if before == NONE && behind == NONE {
            self.occupied &= !(1 << list);
            return;
        }
        if before == NONE {
            self.lists[list].head = behind;
        } else {
            self.links[usize::from(before)].behind = behind;
        }
        if behind == NONE {
            self.lists[list].tail = before;
        } else {
            self.links[usize::from(behind)].before = before;
        }
    }
}

const ABSENT: u16 = u16::MAX;

/// Queue of jobs by time: a binary heap that records the position of each job, so that jobs can be removed. Each job
/// is in the heap at most once, so the heap never grows.
pub(crate) struct TimeQueue {
    /// Heap by time; equal instants by index, so that runs are reproducible.
    heap: Vec<(Instant, u16)>,
    /// Position of each job in `heap`.
    places: Box<[u16]>,
}

impl TimeQueue {
    pub(crate) fn new(max_jobs: usize) -> TimeQueue {
        TimeQueue {
            heap: Vec::with_capacity(max_jobs),
            places: vec![ABSENT; max_jobs].into_boxed_slice(),
        }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<(Instant, u16)> {
        self.heap.first().copied()
    }

    /// Removes and returns the earliest job if it is due.
    pub(crate) fn pop_if(&mut self, due: impl Fn(Instant) -> bool) -> Option<(Instant, u16)> {
        let (at, index) = self.first()?;
        if !due(at) {
            return None;
        }
        self.remove(index);
        Some((at, index))
    }

    /// Sets or replaces the job's instant.
    pub(crate) fn insert(&mut self, index: u16, at: Instant) {
        self.remove(index);
        let place = self.heap.len();
        self.heap.push((at, index));
        self.places[usize::from(index)] = place as u16;
        self.rise(place);
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: u16) {
        let place = self.places[usize::from(index)];
        if place != ABSENT {
            self.take_out(index, usize::from(place));
        }
    }

    fn take_out(&mut self, index: u16, place: usize) {
        self.places[usize::from(index)] = ABSENT;
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.note_place(place);
            self.sink(place);
            self.rise(place);
        }
    }

    fn note_place(&mut self, place: usize) {
        let (_, index) = self.heap[place];
        self.places[usize::from(index)] = place as u16;
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.note_place(one);
        self.note_place(other);
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent] <= self.heap[place] {
                break;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let Some(left_entry) = self.heap.get(left) else {
                break;
            };
            let child = match self.heap.get(left + 1) {
                Some(right_entry) if right_entry < left_entry => left + 1,
                _ => left,
            };
            if self.heap[place] <= self.heap[child] {
                break;
            }
            self.swap(place, child);
            place = child;
        }
    }
}
