//! NAPI threads where the kernel does not know the netlink family `netdev`, or no threads in it: a
//! switch for all of a device, and threads found by their names.
//!
//! Threads are seen from all network namespaces, and devices of several may have the same name. So threads are taken for
//! a device's own only where its switch is on, and where there are no more of them than it can have instances.

use std::fs;
use std::io;

use crate::limits::MAX_NAPI_INSTANCES;
use crate::netdev::Instance;

/// Has all NAPI instances of a device run in threads, or none. Sysfs shows a device only where it
/// was mounted for the device's network namespace.
pub(super) fn set_threaded(interface: &str, is_threaded: bool) -> io::Result<()> {
    let value = if is_threaded { "1" } else { "0" };
    fs::write(format!("/sys/class/net/{interface}/threaded"), value)
}

/// The instances of a device that run in threads, by the threads' names, ascending; none where it cannot be told which
/// threads are its own.
pub(super) fn instances(interface: &str) -> Vec<Instance> {
    let folder = format!("/sys/class/net/{interface}");
    let switch = fs::read_to_string(format!("{folder}/threaded"));
    // One for each queue of each direction at most. Where a device has fewer, threads of another namespace's device of the
    // same name may pass for its own.
    let queues = fs::read_dir(format!("{folder}/queues")).map_or(0, Iterator::count);
    let most = match switch.as_deref().map(str::trim) {
        Ok("0") | Err(_) => 0,
        Ok(_) => queues.min(MAX_NAPI_INSTANCES),
    };
    own(threads(interface, most + 1), most)
}

/// These threads, if there are no more than the device can have.
fn own(threads: Vec<Instance>, most: usize) -> Vec<Instance> {
    match threads.len() > most {
        true => Vec::new(),
        false => threads,
    }
}

/// So many at most of the threads whose names have a device's, ascending.
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

/// The instance's number in a thread's name, `napi/eth0-8193`.
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
    fn threads_of_several_devices_of_one_name_are_nobodys() {
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
