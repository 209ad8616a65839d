//! Other load of the cores of a throughput run, and what the system did meanwhile.

use std::collections::BTreeSet;
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::Config;
use crate::process::{Note, pin_to_core};
use crate::report::{RunCores, SystemActivity};

/// Activity of the system since the stream began, and a busy loop on each core if the run has them. Dropping the value
/// ends the loops.
pub(in crate::scenario) struct Load {
    began: Instant,
    before: SystemActivity,
    cores: RunCores,
    stop: Arc<AtomicBool>,
    loops: Vec<JoinHandle<Result<(), Note>>>,
}

/// Activity of the system while a stream ran.
#[derive(Default)]
pub(in crate::scenario) struct LoadReport {
    pub(super) activity: Option<SystemActivity>,
    /// Share of the CPU time of all cores that a hypervisor took.
    pub(super) stolen: Option<f64>,
    /// Busy loops that could not stay on their core.
    pub(super) notes: Vec<Note>,
}

impl Load {
    pub(in crate::scenario) fn begin(config: &Config) -> Load {
        let (write, read) = (config.cores.hosts, config.cores.cable);
        let cores = RunCores {
            ping: write,
            pong: read,
            cable: read,
            receive_work: read,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let loop_on = |core| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                pin_to_core(core)?;
                while !stop.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
                Ok(())
            })
        };
        let loops = match config.busy {
            true => BTreeSet::from([write, read])
                .into_iter()
                .map(loop_on)
                .collect(),
            false => Vec::new(),
        };
        Load {
            began: Instant::now(),
            before: SystemActivity::since_boot(cores),
            cores,
            stop,
            loops,
        }
    }

    pub(in crate::scenario) fn end(mut self) -> LoadReport {
        let activity = SystemActivity::since_boot(self.cores).since(&self.before);
        let took_ns = self.began.elapsed().as_nanos() as f64;
        let machine = thread::available_parallelism().map_or(1, usize::from);
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.loops.drain(..).filter_map(|it| it.join().ok());
        LoadReport {
            stolen: activity
                .steal_ns
                .map(|ns| ns as f64 / took_ns / machine as f64),
            notes: ended.filter_map(Result::err).collect(),
            activity: Some(activity),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::experiment::Cell;
    use crate::process::Usage;

    #[test]
    fn busy_loops_use_cpu_time_until_they_end() {
        let used = |busy| {
            let cell = Cell {
                busy,
                ..Cell::default()
            };
            let load = Load::begin(&cell.throughput());
            assert_eq!(load.loops.is_empty(), !busy);
            let before = Usage::now();
            // Other tests of this process use CPU time too, so only the lower bound is certain.
            while busy && Usage::now().since(&before).cpu_ns < 10_000_000 {
                thread::sleep(Duration::from_millis(1));
            }
            load.end()
        };
        for busy in [false, true] {
            let report = used(busy);
            assert!(report.notes.is_empty(), "{:?}", report.notes);
            assert!(report.activity.is_some());
            assert!(
                report
                    .stolen
                    .is_none_or(|share| (0.0..=1.0).contains(&share))
            );
        }
    }
}
