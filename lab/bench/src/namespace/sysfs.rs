//! Settings of a namespace that exist only as files.
//!
//! `/proc/sys/net` shows the namespace of the thread that opens it. `/sys/class/net` shows the
//! namespace of whoever mounted it: to reach another one, a thread enters it, takes a mount
//! namespace of its own, and mounts sysfs there; both vanish with the thread.

use std::fs;
use std::io;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Keeps IPv6 away from devices that appear in the calling thread's network namespace from now on:
/// its router solicitations and duplicate checks would be frames on the cable that nobody sent.
pub(super) fn disable_ipv6() -> io::Result<()> {
    match fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1") {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Replaces, for the calling thread only, `/sys` by that of its network namespace. To be used on a
/// thread made for it.
pub(super) fn show_own_devices() -> io::Result<()> {
    // SAFETY: only the calling thread's view of mounts changes; no memory or descriptor is
    // involved. The thread was made for this and shares its view with nobody afterwards.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    // Without this the new mount would spread back to the namespace we came from.
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
    Ok(())
}

/// Lets the receive work of a device run on `core` (receive packet steering), whatever core its
/// peer sent from; `None` leaves it where it begins. Returns how many receive queues there were.
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

/// A set of one core as the kernel writes it: groups of 32 bits in hexadecimal, most significant
/// first.
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
