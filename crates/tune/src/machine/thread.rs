//! Kernel threads and their scheduling.

use std::fs;

use isolane_hostnet::link::index_of;
use isolane_hostnet::napi::{self, Policy, Scheduling};

use crate::limits::MAX_ENTRIES;
use crate::setting::{SettingError, ThreadClass};

/// Flag of a kernel thread in a process's flags (PF_KTHREAD).
const OF_KERNEL: u32 = 0x0020_0000;
/// Index of the flags field after the name in `/proc/PID/stat`.
const FLAGS: usize = 6;

/// Process ids and names of all kernel threads.
pub(crate) struct KernelThreads(Vec<(i32, String)>);

impl KernelThreads {
    /// Lists the kernel threads; in a container, none are visible.
    pub(crate) fn list() -> Self {
        let Ok(processes) = fs::read_dir("/proc") else {
            return Self(Vec::new());
        };
        let thread = |process: i32| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            if !is_of_kernel(&stat) {
                return None;
            }
            let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
            Some((process, name.trim_end().to_owned()))
        };
        let mut threads: Vec<(i32, String)> = processes
            .take(MAX_ENTRIES)
            .filter_map(|entry| thread(entry.ok()?.file_name().to_str()?.parse().ok()?))
            .collect();
        threads.sort_unstable();
        Self(threads)
    }

    /// Thread whose name starts with `start`; `None` if several do, since any of them may be the right one.
    pub(crate) fn with_prefix(&self, start: &str) -> Option<(i32, &str)> {
        let mut threads = self.0.iter().filter(|(_, name)| name.starts_with(start));
        let (process, name) = threads.next()?;
        threads
            .next()
            .is_none()
            .then_some((*process, name.as_str()))
    }

    fn named(&self, name: &str) -> Result<i32, SettingError> {
        let mut threads = self.0.iter().filter(|(_, known)| known == name);
        let (process, _) = threads.next().ok_or(SettingError::Gone)?;
        match threads.count() {
            0 => Ok(*process),
            others => Err(SettingError::System(format!(
                "{} kernel threads have this name, so none is chosen",
                others + 1
            ))),
        }
    }
}

fn is_of_kernel(stat: &str) -> bool {
    // The name may contain anything, even brackets.
    let behind_name = stat.rsplit_once(") ").map(|(_, rest)| rest);
    let flags = behind_name.and_then(|rest| rest.split(' ').nth(FLAGS)?.parse::<u32>().ok());
    flags.is_some_and(|flags| flags & OF_KERNEL != 0)
}

pub(super) fn read(name: &str) -> Result<ThreadClass, SettingError> {
    class(find(name)?)
}

/// Scheduling of a thread, if isolane can restore its scheduling class.
pub(crate) fn class(process: i32) -> Result<ThreadClass, SettingError> {
    let scheduling = Scheduling::of(process).map_err(from_io)?;
    let fifo = match scheduling.policy {
        Policy::Ordinary => None,
        Policy::Fifo(priority) => Some(priority),
        other => {
            return Err(SettingError::System(format!(
                "its scheduling class is {other:?}, which isolane does not change"
            )));
        }
    };
    let cores = scheduling.cores.unwrap_or_default();
    Ok(ThreadClass {
        fifo,
        cores: cores
            .into_iter()
            .filter_map(|core| core.try_into().ok())
            .collect(),
    })
}

pub(super) fn write(name: &str, class: &ThreadClass) -> Result<(), SettingError> {
    let cores: Vec<usize> = class.cores.iter().copied().map(usize::from).collect();
    let scheduling = Scheduling {
        policy: class.fifo.map_or(Policy::Ordinary, Policy::Fifo),
        cores: Some(cores).filter(|cores| !cores.is_empty()),
    };
    scheduling.apply(find(name)?).map_err(from_io)
}

fn find(name: &str) -> Result<i32, SettingError> {
    let napi_thread = match napi_instance(name) {
        Some((interface, instance)) => napi_thread(interface, instance)?,
        None => None,
    };
    match napi_thread {
        Some(process) => Ok(process),
        None => KernelThreads::list().named(name),
    }
}

/// Parses a NAPI thread's name (`napi/eth0-8193`) into interface and instance.
pub(crate) fn napi_instance(thread: &str) -> Option<(&str, u32)> {
    let (interface, number) = thread.strip_prefix("napi/")?.rsplit_once('-')?;
    Some((interface, number.parse().ok()?))
}

/// Finds the thread of a NAPI instance of an interface in this network namespace; `None` if the kernel lists no
/// instance, as for an interface that is down. Fails with [`SettingError::Gone`] if the interface has no such instance,
/// or the instance no thread.
///
/// Threads of all network namespaces are visible, so a thread of the same name may belong to another namespace's
/// interface.
fn napi_thread(interface: &str, instance: u32) -> Result<Option<i32>, SettingError> {
    let index = index_of(interface).map_err(from_io)?;
    let queues = napi::state(index).unwrap_or_default();
    if queues.is_empty() {
        return Ok(None);
    }
    let mut queues = queues.into_iter();
    let queue = queues.find(|queue| queue.instance == instance);
    let thread = queue.and_then(|queue| queue.thread);
    let thread = thread.ok_or(SettingError::Gone)?;
    Ok(Some(thread.process_id))
}

fn from_io(error: std::io::Error) -> SettingError {
    SettingError::from_io(&error, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_the_kernel_is_known_by_its_flags() {
        assert!(is_of_kernel("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0"));
        assert!(!is_of_kernel("1 (a) S 0) S 0 1 1 0 -1 4194560 0 0"));
        assert!(!is_of_kernel("1 (cut"));
        // The test itself is not a kernel thread, whatever its name.
        let own = fs::read_to_string("/proc/self/stat").expect("procfs");
        assert!(!is_of_kernel(&own));
        assert_eq!(read("no such thread"), Err(SettingError::Gone));
    }

    #[test]
    fn a_name_that_several_threads_have_names_none() {
        let threads = [
            "irq/24-eth0",
            "irq/24-s-eth0",
            "irq/25-eth1",
            "napi",
            "napi",
        ];
        let threads = (1..).zip(threads.map(String::from)).collect();
        let threads = KernelThreads(threads);
        assert_eq!(threads.named("irq/25-eth1"), Ok(3));
        assert_eq!(threads.named("irq/26-eth2"), Err(SettingError::Gone));
        assert!(matches!(
            threads.named("napi"),
            Err(SettingError::System(_))
        ));
        assert_eq!(threads.with_prefix("irq/25-"), Some((3, "irq/25-eth1")));
        assert_eq!(threads.with_prefix("irq/24-"), None);
    }
}
