//! Reserved memory that is touched before it is used.
//!
//! The system gives out memory page by page, when it is first written. A sample that is the first in
//! its slot pays for that with a page fault, unless somebody has written to the page before.

use core::hint::black_box;

use crate::engine::Engine;

/// The smallest page of the systems isolane runs on: none is missed where they are larger.
const PAGE_BYTES: usize = 4_096;

impl Engine {
    /// Writes to every page of every slot of histories and caches; what is in them stays. Before start
    /// only: it takes as long as there is memory.
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
        // What it was, but the compiler cannot know that.
        page[0] = black_box(page[0]);
    }
    if let Some(last) = memory.last_mut() {
        // The memory need not begin on a page.
        *last = black_box(*last);
    }
}
