//! NAPI threads: their scheduling, and their discovery on kernels whose family `netdev` does not report them.
//!
//! On those kernels sysfs switches threads per device, and a thread's name contains the device's. Threads of all
//! network namespaces are visible, and a device of another namespace may have the same name. So threads count as a
//! device's only if its switch is on and the device can have that many instances.

use std::fs;
use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::limits::MAX_NAPI_INSTANCES;
use crate::netdev::Instance;

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

/// Starts or stops the threads of all NAPI instances of a device. sysfs shows a device only if it was mounted for the
/// device's network namespace.
pub(super) fn set_threaded(interface: &str, is_threaded: bool) -> io::Result<()> {
    let value = if is_threaded { "1" } else { "0" };
    fs::write(format!("/sys/class/net/{interface}/threaded"), value)
}

/// Instances of a device that run in threads, ascending; empty if the threads could be another device's.
pub(super) fn instances(interface: &str) -> Vec<Instance> {
    let folder = format!("/sys/class/net/{interface}");
    let switch = fs::read_to_string(format!("{folder}/threaded"));
    // At most one per queue and direction. If the device has fewer threads, those of a device of the same name in
    // another namespace may count as its own.
    let queues = fs::read_dir(format!("{folder}/queues")).map_or(0, Iterator::count);
    let most = match switch.as_deref().map(str::trim) {
        Ok("0") | Err(_) => 0,
        Ok(_) => queues.min(MAX_NAPI_INSTANCES),
    };
    own(threads(interface, most + 1), most)
}

/// The threads, unless there are more than the device can have.
fn own(threads: Vec<Instance>, most: usize) -> Vec<Instance> {
    match threads.len() > most {
        true => Vec::new(),
        false => threads,
    }
}

/// At most `most` of the threads whose names contain the device's, ascending.
fn threads(interface: &str, most: usize) -> Vec<Instance> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut found: Vec<Instance> = processes
        .filter_map(|entry| {
            let process: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
            Some(Instance {
                number: number_of(name.trim(), interface)?,
                thread: Some(process),
                is_threaded: Some(true),
                ..Instance::default()
            })
        })
        .take(most)
        .collect();
    found.sort_by_key(|instance| instance.number);
    found
}

/// Instance number in a thread's name, `napi/eth0-8193`.
fn number_of(thread: &str, interface: &str) -> Option<u32> {
    let rest = thread.strip_prefix("napi/")?;
    rest.strip_prefix(interface)?
        .strip_prefix('-')?
        .parse()
        .ok()
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

    #[test]
    fn threads_of_several_devices_of_one_name_belong_to_none() {
        let thread = |number| Instance {
            number,
            ..Instance::default()
        };
        let of_one = vec![thread(8193), thread(8194)];
        assert_eq!(own(of_one.clone(), 2), of_one);
        assert_eq!(own(of_one, 1), []);
        // A device without a switch.
        assert_eq!(instances("no such device"), []);
    }

    #[test]
    fn a_thread_is_known_by_its_interface_and_number() {
        assert_eq!(number_of("napi/eth0-8193", "eth0"), Some(8193));
        assert_eq!(number_of("napi/eth0-a-8193", "eth0-a"), Some(8193));
        assert_eq!(number_of("napi/eth0-a-8193", "eth0"), None);
        assert_eq!(number_of("ksoftirqd/0", "eth0"), None);
    }
}
