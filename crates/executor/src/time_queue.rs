//! Queue of jobs that wait for a release time.
//!
//! The first job is found in constant time. Inserting and removing take time logarithmic in the number of jobs. Nothing
//! allocates.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use isolane_wire::time::Instant;

/// Position of a job that is not in the queue.
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
