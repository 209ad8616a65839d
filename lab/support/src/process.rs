//! Child processes of a check: their end by SIGINT or SIGKILL, and their memory.

use std::process::Child;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::Result;

/// Child process that is killed when dropped.
pub struct Killed(pub Child);

impl Killed {
    /// Sends SIGINT to the process, and waits for its end. Returns an error if it does not end within `timeout`.
    pub fn interrupt(&mut self, timeout: Duration) -> Result<()> {
        kill_process(Pid::from_child(&self.0), Signal::INT)?;
        let begin = Instant::now();
        while self.0.try_wait()?.is_none() {
            if begin.elapsed() > timeout {
                let seconds = timeout.as_secs();
                return Err(format!("a program runs {seconds} s after its interrupt").into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the resident memory of a process in bytes, VmRSS (proc_pid_status(5)); `None` if the process has ended.
pub fn resident_bytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_process_is_known() {
        let resident = resident_bytes(std::process::id()).expect("it runs");
        assert!(resident > 100_000, "{resident}");
        assert_eq!(resident_bytes(u32::MAX), None);
    }
}
