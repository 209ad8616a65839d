//! Reading of this process's rights.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::{Resource, getrlimit};

use super::files::text;
use crate::facts::{Permission, Rights};

/// Capability numbers (linux/capability.h).
const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;
const IPC_LOCK: u32 = 14;
const SYS_NICE: u32 = 23;

pub(super) fn rights() -> Rights {
    let effective = text("/proc/self/status").and_then(|status| effective(&status));
    let has = |capability: u32| effective.map(|set| set & (1 << capability) != 0);
    let limit = |resource| Some(getrlimit(resource).current.unwrap_or(u64::MAX));
    Rights {
        net_admin: has(NET_ADMIN),
        net_raw: has(NET_RAW),
        sys_nice: has(SYS_NICE),
        ipc_lock: has(IPC_LOCK),
        realtime_priority_limit: limit(Resource::Rtprio),
        locked_memory_limit_bytes: limit(Resource::Memlock),
        af_xdp: af_xdp(),
    }
}

/// Effective capability set in `/proc/self/status`.
fn effective(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Tests for AF_XDP by opening and closing a socket, without binding it.
fn af_xdp() -> Permission {
    match socket(AddressFamily::XDP, SocketType::RAW, None) {
        Ok(_) => Permission::Granted,
        Err(Errno::PERM | Errno::ACCESS) => Permission::Refused,
        Err(Errno::AFNOSUPPORT) => Permission::Absent,
        Err(_) => Permission::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_capabilities_are_a_line_of_the_status() {
        let status = "Name:\tx\nCapEff:\t0000000000003000\nSeccomp:\t0\n";
        assert_eq!(effective(status), Some(1 << NET_ADMIN | 1 << NET_RAW));
        assert_eq!(effective("Name:\tx\n"), None);
    }
}
