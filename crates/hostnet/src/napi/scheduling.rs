//! How a thread is scheduled: read, set, and put back.

use std::io;

use serde::{Deserialize, Serialize};

/// A scheduling class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The ordinary class.
    Ordinary,
    /// SCHED_FIFO, with its priority.
    Fifo(u8),
    /// SCHED_RR, with its priority.
    RoundRobin(u8),
    /// Another one, by the kernel's number.
    Other(i32),
}

/// A thread of the kernel that receives frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadState {
    /// Its number.
    pub process_id: i32,
    /// Its class; `None` if that cannot be seen from here.
    pub policy: Option<Policy>,
    /// The cores it may run on; empty if that cannot be seen.
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

/// What can be set of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// Its class.
    pub policy: Policy,
    /// The cores it may run on; `None`: as they are.
    pub cores: Option<Vec<usize>>,
}

impl Scheduling {
    pub(super) fn fifo(priority: u8, cores: Option<Vec<usize>>) -> Scheduling {
        Scheduling {
            policy: Policy::Fifo(priority),
            cores,
        }
    }

    /// How a thread is scheduled; 0 is the calling one.
    ///
    /// # Errors
    /// What the system said; `ESRCH` if there is no such thread.
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
        let mut set = empty_set();
        // SAFETY: the kernel writes into a set of the stated size that is alive during the call.
        checked(unsafe { libc::sched_getaffinity(process_id, size_of_val(&set), &raw mut set) })?;
        let cores = (0..libc::CPU_SETSIZE as usize)
            // SAFETY: the index is within the set.
            .filter(|core| unsafe { libc::CPU_ISSET(*core, &set) })
            .collect();
        Ok(Scheduling {
            policy,
            cores: Some(cores),
        })
    }

    /// Schedules a thread so.
    ///
    /// # Errors
    /// What the system said; `ESRCH` if there is no such thread.
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
        let Some(cores) = &self.cores else {
            return Ok(());
        };
        let mut set = empty_set();
        for core in cores
            .iter()
            .filter(|core| **core < libc::CPU_SETSIZE as usize)
        {
            // SAFETY: the index is within the set.
            unsafe { libc::CPU_SET(*core, &mut set) };
        }
        // SAFETY: the set is of the stated size and alive during the call.
        checked(unsafe { libc::sched_setaffinity(process_id, size_of_val(&set), &raw const set) })?;
        Ok(())
    }
}

fn empty_set() -> libc::cpu_set_t {
    // SAFETY: a set is an array of integers, for which zero is a value.
    unsafe { std::mem::zeroed() }
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
        // Of the calling thread.
        let before = Scheduling::of(0).expect("one's own scheduling can be read");
        assert!(before.cores.as_ref().is_some_and(|cores| !cores.is_empty()));
        before.apply(0).expect("nothing changes");
        assert_eq!(Scheduling::of(0).expect("as before"), before);
    }

    #[test]
    fn a_thread_that_ended_is_an_error_and_shows_as_unknown() {
        let nobody = i32::MAX;
        assert!(Scheduling::of(nobody).is_err());
        assert!(Scheduling::fifo(1, None).apply(nobody).is_err());
        assert_eq!(ThreadState::of(nobody).policy, None);
    }
}
