//! Reading the machine this program runs on. Nothing is changed, and what cannot be read is `None`.

mod files;
mod lanes;
mod links;
mod network;
mod rights;
mod system;

pub use links::interfaces;

use crate::facts::Facts;

/// Reads the machine, as this process in its namespaces sees it.
pub fn probe() -> Facts {
    let name = rustix::system::uname();
    // Without netlink there is nothing to say about interfaces.
    let interfaces = interfaces().unwrap_or_default();
    Facts {
        origin: String::from("probed"),
        hostname: name.nodename().to_string_lossy().into_owned(),
        kernel: system::kernel(&name),
        cores: system::cores(),
        rights: rights::rights(),
        scheduling: system::scheduling(),
        memory: system::memory(),
        network: network::network(),
        lanes: lanes::lanes(&interfaces),
        interfaces,
        programs: system::programs(),
    }
}
