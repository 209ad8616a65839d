//! Resource usage of this process, as counted by the kernel.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

use crate::Outcome;

/// Samples between two readings of the CPU clock, which is a system call.
const STRIDE: u64 = 1_024;

/// Returns user and system time of all threads of this process, in nanoseconds.
pub(crate) fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time over a number of samples.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuMeter {
    /// Samples and time at the first reading.
    first: Option<(u64, u64)>,
    last: (u64, u64),
}

impl CpuMeter {
    /// Reads the clock at the first sample and then every [`STRIDE`] samples. Call it with each sample's number.
    pub(crate) fn note(&mut self, samples: u64) {
        if self.first.is_none() || samples.is_multiple_of(STRIDE) {
            self.last = (samples, cpu_ns());
            self.first.get_or_insert(self.last);
        }
    }

    /// Prints time and samples between the first and the last reading.
    pub(crate) fn print(&self) {
        let (samples, time_ns) = self.first.unwrap_or_default();
        println!("cpu_samples {}", self.last.0 - samples);
        println!("cpu_ns {}", self.last.1 - time_ns);
    }
}

/// Prints resident memory and threads of this process.
pub(crate) fn print_process() -> Outcome<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.ok_or_else(|| format!("/proc/self/status has no {name}"))
    };
    println!("resident_bytes {}", field("VmRSS:")? * 1_024);
    println!("threads {}", field("Threads:")?);
    Ok(())
}
