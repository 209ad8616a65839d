//! NAPI threads on kernels whose family `netdev` does not report them: sysfs switches them per device, and their names
//! contain the device's.
//!
//! Threads of all network namespaces are visible, and a device of another namespace may have the same name. So threads
//! count as a device's only if its switch is on and it can have that many instances.

use std::fs;
use std::io;

use crate::limits::MAX_NAPI_INSTANCES;
use crate::netdev::Instance;

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
