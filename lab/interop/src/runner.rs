//! Execution of many runs, several at once, each with its own output folder. Prints each result as it arrives.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{fs, thread};

use isolane_support::Result;

use super::report::{Judged, RunReport, Verdict};

/// Folders of the runs of a command.
pub(super) struct Runner<'a> {
    folder: PathBuf,
    captures: Option<&'a Path>,
}

impl<'a> Runner<'a> {
    /// Creates a runner that writes output to `folder`, and captures, if any, to `captures`. Removes the output of an
    /// earlier command.
    pub(super) fn new(folder: PathBuf, captures: Option<&'a Path>) -> Self {
        // There may be none.
        let _ = fs::remove_dir_all(&folder);
        Self { folder, captures }
    }

    /// Executes the runs, `jobs` at once, and returns their results in the runs' order. `execute` gets a run, the
    /// folder of its programs' output, and the path of its captures without their endings, if requested. An error fails
    /// the run. The output of a failed run stays.
    pub(super) fn run<T: Display + Sync>(
        &self,
        runs: &[T],
        jobs: usize,
        execute: impl Fn(&T, &Path, Option<&Path>) -> Result<Judged> + Sync,
    ) -> Vec<RunReport> {
        let run_one = |run: &T| {
            let start = Instant::now();
            let name = run.to_string();
            let folder = self.folder.join(name.replace([' ', ':'], "-"));
            let capture = self.captures.map(|it| it.join(&name));
            let judged = fs::create_dir_all(&folder)
                .map_err(Into::into)
                .and_then(|()| execute(run, &folder, capture.as_deref()))
                .unwrap_or_else(|error| Judged::new(Err(error.to_string()), String::new()));
            if judged.verdict != Verdict::Fail {
                let _ = fs::remove_dir_all(&folder);
            }
            RunReport {
                name,
                labels: None,
                result: judged.verdict,
                detail: judged.detail,
                seconds: start.elapsed().as_secs_f64(),
                account: judged.account,
            }
        };
        let show = |done, report: &RunReport| {
            let account = match report.result {
                Verdict::Pass | Verdict::Skip => "",
                Verdict::Fail => &report.account,
            };
            eprint!("[{done}/{}] {report}\n{account}", runs.len());
        };
        at_once(runs, jobs, run_one, show)
    }
}

/// Runs the work for each item in `jobs` threads; returns the results in the items' order. Prints each result as it
/// arrives, with the number done. A run mostly waits for its programs.
fn at_once<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&T) -> R + Sync,
    show: impl Fn(usize, &R) + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    // PR_SET_PDEATHSIG kills a program when the thread that started it ends, so a thread finishes its work.
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
