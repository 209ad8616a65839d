//! Reading of this machine. It changes nothing, and unreadable values are `None`.

mod devices;
mod links;
mod system;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

pub(crate) use self::devices::{device_interrupts, interrupt_names, queue_folders};
pub use self::links::interfaces;
use isolane_datapath::Kinds;

use crate::apply::Here;
use crate::facts::Facts;
use crate::limits::{MAX_ENTRIES, MAX_FILE_BYTES};
use crate::plan::Identity;

/// Reads the machine, as visible to this process in its namespaces, and the facts that kinds of datapaths need.
pub fn probe(kinds: Kinds) -> Facts {
    let name = rustix::system::uname();
    // Without netlink no interface is known.
    let interfaces = interfaces().unwrap_or_default();
    let cores = system::cores();
    Facts {
        origin: String::from("probed"),
        hostname: name.nodename().to_string_lossy().into_owned(),
        machine_id: text("/etc/machine-id").filter(|id| !id.is_empty()),
        boot_id: text("/proc/sys/kernel/random/boot_id"),
        kernel: system::kernel_facts(&name),
        rights: system::rights(),
        scheduling: system::scheduling(),
        memory: system::memory(),
        network: system::network(),
        devices: devices::devices(&interfaces),
        lanes: links::lanes(&interfaces, kinds),
        interrupts: devices::all_interrupts(),
        programs: system::programs(),
        boot: system::boot(),
        attributes: system::attributes(&cores.online, &interfaces),
        documents: system::documents(),
        cores,
        interfaces,
    }
}

/// Identity of this machine and of its current boot.
pub fn here() -> Here {
    let name = rustix::system::uname();
    Here {
        machine: Identity {
            hostname: name.nodename().to_string_lossy().into_owned(),
            machine_id: text("/etc/machine-id").filter(|id| !id.is_empty()),
        },
        boot_id: text("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
        cores: system::present_cores(),
    }
}

/// Trimmed text of a file; `None` if unreadable.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    Some(whole(path)?.trim().to_owned())
}

/// Exact text of a file; `None` if unreadable.
fn whole(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parsed content of a file; `None` if unreadable or invalid.
fn value<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// Sorted names of a directory's entries; empty if unreadable.
pub(crate) fn entries(path: impl AsRef<Path>) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .take(MAX_ENTRIES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_nothing() {
        assert_eq!(text("/nowhere/at/all"), None);
        assert_eq!(value::<u64>("/proc/version"), None);
        assert!(entries("/nowhere/at/all").is_empty());
    }
}
