//! Prefaulting of sample memory.
//!
//! The system backs memory page by page at the first write. Without prefaulting, the first sample in a slot pays for a
//! page fault.

use core::hint::black_box;

use crate::engine::Engine;

/// Smallest page size of the supported systems, so that no page is missed.
const PAGE_BYTES: usize = 4_096;

impl Engine {
    /// Writes to every page of all slots without changing their contents. Call it before start only; the time is
    /// proportional to the memory.
    pub fn touch_slots(&mut self) {
        for index in 0..self.writers.end() {
            let writer = self.writers.get_mut(index);
            if let Some(history) = writer.and_then(|writer| writer.history.as_mut()) {
                history.memory_mut().for_each(touch);
            }
        }
        for index in 0..self.readers.end() {
            let reader = self.readers.get_mut(index);
            if let Some(cache) = reader.and_then(|reader| reader.cache.as_mut()) {
                cache.memory_mut().for_each(touch);
            }
            let reader = self.readers.get_mut(index);
            if let Some(assemblies) = reader.and_then(|reader| reader.assemblies.as_mut()) {
                touch(assemblies.memory_mut());
            }
        }
    }
}

fn touch(memory: &mut [u8]) {
    for page in memory.chunks_mut(PAGE_BYTES) {
        // The same value; `black_box` hides that from the compiler.
        page[0] = black_box(page[0]);
    }
    if let Some(last) = memory.last_mut() {
        // The memory need not begin at a page boundary.
        *last = black_box(*last);
    }
}
