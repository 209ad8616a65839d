//! Other load of the cores of a throughput run, and what the system did meanwhile.

use std::collections::BTreeSet;
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::Config;
use crate::process::{Note, pin_to_core};
use crate::report::{Run, RunCores, SystemActivity};

/// Activity of the system since the stream began, and a busy loop on each core if the run has them. Dropping the value
/// ends the loops.
pub(in crate::scenario) struct Load {
    began: Instant,
    before: SystemActivity,
    cores: RunCores,
    stop: Arc<AtomicBool>,
    loops: Vec<JoinHandle<Result<(), Note>>>,
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

    /// Ends the loops, and adds the activity to the run. A run whose loops were not on their cores is invalid.
    pub(in crate::scenario) fn end(mut self, run: &mut Run) {
        let activity = SystemActivity::since_boot(self.cores).since(&self.before);
        let took_ns = self.began.elapsed().as_nanos() as f64;
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.loops.drain(..).filter_map(|it| it.join().ok());
        for note in ended.filter_map(Result::err) {
            let why = || format!("a busy loop had no core: {note}");
            run.invalid.get_or_insert_with(why);
        }
        if let (Some(stream), Some(stolen)) = (&mut run.stream, &activity.core_steal_ns) {
            let cores_ns = took_ns * stolen.len() as f64;
            stream.stolen = Some(stolen.values().sum::<u64>() as f64 / cores_ns);
        }
        run.system = Some(activity);
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
    use crate::report::Stream;

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
            let mut run = Run {
                stream: Some(Stream::default()),
                ..Run::default()
            };
            load.end(&mut run);
            run
        };
        for busy in [false, true] {
            let run = used(busy);
            assert_eq!(run.invalid, None);
            assert!(run.system.is_some());
            let stolen = run.stream.and_then(|stream| stream.stolen);
            assert!(stolen.is_some_and(|share| (0.0..=1.0).contains(&share)));
        }
    }
}
