//! Several runs at once: each mostly waits for its programs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does the work for each, so many at once, and returns what came of them in their order. What came of one is
/// shown as soon as it is there, with how many are done then.
pub(super) fn at_once<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&T) -> R + Sync,
    show: impl Fn(usize, &R) + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    // A program dies with the thread that started it, so a thread does its work to the end.
    let work_on = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(index) else { return };
        let result = work(item);
        let mut results = results.lock().expect("nothing panics while it holds this");
        show(results.len() + 1, &result);
        results.push((index, result));
    };
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work_on);
        }
    });
    let mut results = results.into_inner().expect("all threads have ended");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once_and_results_are_in_their_order() {
        let items: Vec<u64> = (0..100).collect();
        let shown = Mutex::new(Vec::new());
        let show = |done, _: &u64| shown.lock().unwrap().push(done);
        let doubled = at_once(&items, 4, |item| item * 2, show);
        assert!(doubled.into_iter().eq((0..100).map(|item| item * 2)));
        assert!(shown.into_inner().unwrap().into_iter().eq(1..=100));
    }
}
