//! Scheduling of threads: read, set, and restored.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// Scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// SCHED_OTHER.
    Ordinary,
    /// SCHED_FIFO, with its priority.
    Fifo(u8),
    /// SCHED_RR, with its priority.
    RoundRobin(u8),
    /// Another policy, by its kernel number.
    Other(i32),
}

/// NAPI thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadState {
    /// Thread id.
    pub process_id: i32,
    /// Policy; `None` if unreadable.
    pub policy: Option<Policy>,
    /// CPU affinity; empty if unreadable.
    pub cores: Vec<usize>,
}

impl ThreadState {
    pub(super) fn of(process_id: i32) -> ThreadState {
        let scheduling = Scheduling::of(process_id).ok();
        ThreadState {
            process_id,
            policy: scheduling.as_ref().map(|known| known.policy),
            cores: scheduling.and_then(|known| known.cores).unwrap_or_default(),
        }
    }
}

/// Scheduling of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// Policy.
    pub policy: Policy,
    /// CPU affinity; `None` for unchanged.
    pub cores: Option<Vec<usize>>,
}

impl Scheduling {
    pub(super) fn fifo(priority: u8, cores: Option<Vec<usize>>) -> Scheduling {
        Scheduling {
            policy: Policy::Fifo(priority),
            cores,
        }
    }

    /// Scheduling of a thread; 0 is the calling one.
    ///
    /// # Errors
    /// The system's error; `ESRCH` if there is no such thread.
    pub fn of(process_id: i32) -> io::Result<Scheduling> {
        // SAFETY: no memory is involved.
        let number = checked(unsafe { libc::sched_getscheduler(process_id) })?;
        let mut parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the kernel writes into parameters that are alive during the call.
        checked(unsafe { libc::sched_getparam(process_id, &raw mut parameters) })?;
        let priority = u8::try_from(parameters.sched_priority).unwrap_or(0);
        let policy = match number & !libc::SCHED_RESET_ON_FORK {
            libc::SCHED_OTHER => Policy::Ordinary,
            libc::SCHED_FIFO => Policy::Fifo(priority),
            libc::SCHED_RR => Policy::RoundRobin(priority),
            other => Policy::Other(other),
        };
        let set = sched_getaffinity(Pid::from_raw(process_id))?;
        let cores = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
        Ok(Scheduling {
            policy,
            cores: Some(cores.collect()),
        })
    }

    /// Sets the scheduling of a thread.
    ///
    /// # Errors
    /// The system's error; `ESRCH` if there is no such thread.
    pub fn apply(&self, process_id: i32) -> io::Result<()> {
        let (number, priority) = match self.policy {
            Policy::Ordinary => (libc::SCHED_OTHER, 0),
            Policy::Fifo(priority) => (libc::SCHED_FIFO, priority),
            Policy::RoundRobin(priority) => (libc::SCHED_RR, priority),
            Policy::Other(number) => (number, 0),
        };
        let parameters = libc::sched_param {
            sched_priority: i32::from(priority),
        };
        // SAFETY: the parameters are alive during the call.
        checked(unsafe { libc::sched_setscheduler(process_id, number, &raw const parameters) })?;
        if let Some(cores) = &self.cores {
            let mut set = CpuSet::new();
            for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
                set.set(*core);
            }
            sched_setaffinity(Pid::from_raw(process_id), &set)?;
        }
        Ok(())
    }
}

fn checked(result: i32) -> io::Result<i32> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_can_be_put_back() {
        // The calling thread.
        let before = Scheduling::of(0).expect("one's own scheduling can be read");
        assert!(before.cores.as_ref().is_some_and(|cores| !cores.is_empty()));
        before.apply(0).expect("nothing changes");
        assert_eq!(Scheduling::of(0).expect("as before"), before);
    }

    #[test]
    fn a_thread_that_ended_is_an_error_and_shows_as_unknown() {
        let no_thread = i32::MAX;
        assert!(Scheduling::of(no_thread).is_err());
        assert!(Scheduling::fifo(1, None).apply(no_thread).is_err());
        assert_eq!(ThreadState::of(no_thread).policy, None);
    }
}
