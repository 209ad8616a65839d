//! Reading of this machine. It changes nothing, and unreadable values are `None`.

mod devices;
pub(crate) mod files;
mod links;
mod system;

pub(crate) use self::devices::{device_interrupts, interrupt_names, queue_folders};
pub(crate) use files::number_list;
pub use links::interfaces;

use isolane_datapath::Kinds;

use self::files::text;
use crate::apply::Here;
use crate::facts::Facts;
use crate::plan::Identity;

/// Reads the machine, as visible to this process in its namespaces, with what the kinds of datapaths depend on.
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
        kernel: system::kernel(&name),
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
