//! Namespace settings that exist only as files in /proc and /sys.
//!
//! `/proc/sys/net` shows the namespace of the thread that opens it. `/sys/class/net` shows the namespace of the process
//! that mounted it. To reach another one, a thread enters it, unshares its mount namespace and mounts sysfs there; both
//! vanish with the thread.

use std::fs;
use std::io;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Disables IPv6 for devices created later in the calling thread's network namespace. Its router solicitations and
/// duplicate address detection would add frames to the cable.
pub(super) fn disable_ipv6() -> io::Result<()> {
    match fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1") {
        // The kernel has no IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Mounts the sysfs of the calling thread's network namespace on `/sys`, for that thread only. Call it on a thread made
/// for it.
pub(super) fn show_own_devices() -> io::Result<()> {
    // SAFETY: only the calling thread's view of mounts changes; no memory or descriptor is involved. The thread was
    // made for this and shares its view with no other afterwards.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    // Otherwise the mount would propagate back to the original namespace.
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
    Ok(())
}

/// Steers the receive work of a device to `core` (receive packet steering); `None` disables steering. Returns the
/// number of receive queues.
pub(super) fn steer_receive_work(interface: &str, core: Option<usize>) -> io::Result<usize> {
    let mask = core.map_or_else(|| "0".to_owned(), core_mask);
    let mut queues = 0;
    for entry in fs::read_dir(format!("/sys/class/net/{interface}/queues"))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("rx-") {
            fs::write(entry.path().join("rps_cpus"), &mask)?;
            queues += 1;
        }
    }
    Ok(queues)
}

/// CPU mask with one core in the kernel's format: groups of 32 bits in hexadecimal, most significant first.
fn core_mask(core: usize) -> String {
    let mut mask = format!("{:x}", 1_u32 << (core % 32));
    for _ in 0..core / 32 {
        mask.push_str(",00000000");
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_one_bit_in_groups_of_32() {
        assert_eq!(core_mask(0), "1");
        assert_eq!(core_mask(1), "2");
        assert_eq!(core_mask(31), "80000000");
        assert_eq!(core_mask(33), "2,00000000");
        assert_eq!(core_mask(64), "1,00000000,00000000");
    }
}
