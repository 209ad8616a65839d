//! NAPI threads where the kernel does not know the netlink family `netdev`, or no threads in it: a
//! switch for all of a device, and threads found by their names.

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

/// The instances of a device that run in threads, by the threads' names, ascending.
pub(super) fn instances(interface: &str) -> Vec<Instance> {
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
        .take(MAX_NAPI_INSTANCES)
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
    fn a_thread_is_known_by_its_interface_and_number() {
        assert_eq!(number_of("napi/eth0-8193", "eth0"), Some(8193));
        assert_eq!(number_of("napi/eth0-a-8193", "eth0-a"), Some(8193));
        assert_eq!(number_of("napi/eth0-a-8193", "eth0"), None);
        assert_eq!(number_of("ksoftirqd/0", "eth0"), None);
    }
}
