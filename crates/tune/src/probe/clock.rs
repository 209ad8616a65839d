//! The clock: what the kernel was told of it, what ptp4l tells, and how far devices' clocks are from it.

use std::fs::OpenOptions;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};

use super::files::entries;
use crate::facts::{Clock, DeviceClock};
use crate::limits::{DEVICE_CLOCK_TRIES, MAX_DEVICE_CLOCKS};
use crate::ptp::{self, Silence};

const CLASS: &str = "/sys/class/ptp";
const DEVICES: &str = "/dev";

pub(super) fn clock(programs: &[String]) -> Clock {
    let kernel = isolane_hostnet::kernel_clock::kernel_clock().ok();
    let (ptp, ptp_silence) = match ptp::ask(&ptp::SOCKETS) {
        Ok(told) => (Some(told), None),
        Err(Silence::Because(why)) => (None, Some(why)),
        Err(Silence::NoSocket) if programs.iter().any(|name| name == "ptp4l") => {
            let why = format!("it has no socket at {}", ptp::SOCKETS.join(" or "));
            (None, Some(why))
        }
        Err(Silence::NoSocket) => (None, None),
    };
    Clock {
        is_kept: kernel.map(|clock| clock.is_kept),
        maximum_error_us: kernel.map(|clock| clock.maximum_error_us),
        estimated_error_us: kernel.map(|clock| clock.estimated_error_us),
        tai_offset_s: kernel.map(|clock| clock.tai_offset_s),
        ptp,
        ptp_silence,
        devices: device_clocks(Path::new(CLASS), Path::new(DEVICES)),
    }
}

/// The clocks of a class folder of sysfs whose files in `devices` may be read.
fn device_clocks(class: &Path, devices: &Path) -> Vec<DeviceClock> {
    let numbered = entries(class).into_iter().filter_map(|name| {
        let number: u32 = name.strip_prefix("ptp")?.parse().ok()?;
        Some((number, name))
    });
    numbered
        .take(MAX_DEVICE_CLOCKS)
        .filter_map(|(number, name)| {
            let (ahead_ns, window_ns) = read_beside_kernel(&devices.join(&name))?;
            Some(DeviceClock {
                number,
                interfaces: entries(class.join(name).join("device/net")),
                ahead_ns,
                window_ns,
            })
        })
        .collect()
}

/// How far a device's clock is ahead of the kernel's, and how wrong that may be, in nanoseconds.
fn read_beside_kernel(path: &Path) -> Option<(i64, u64)> {
    let mut options = OpenOptions::new();
    // What is not a clock is not waited for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let device = options.read(true).custom_flags(flags).open(path).ok()?;
    let id = || DynamicClockId::Dynamic(device.as_fd());
    ahead(
        || nanoseconds(clock_gettime_dynamic(id()).ok()?),
        || nanoseconds(clock_gettime(ClockId::Realtime)),
    )
}

fn nanoseconds(time: Timespec) -> Option<i64> {
    time.tv_sec
        .checked_mul(1_000_000_000)?
        .checked_add(time.tv_nsec)
}

/// One clock between two reads of the other, some times: the smallest window counts. The clock was read anywhere within
/// it, and its middle is taken.
fn ahead(
    mut device: impl FnMut() -> Option<i64>,
    mut kernel: impl FnMut() -> Option<i64>,
) -> Option<(i64, u64)> {
    let mut once = || {
        let (before, read, after) = (kernel()?, device()?, kernel()?);
        // One that was set back meanwhile tells nothing.
        let window_ns = u64::try_from(after.checked_sub(before)?).ok()?;
        let middle = before.checked_add(i64::try_from(window_ns / 2).ok()?)?;
        Some((read.checked_sub(middle)?, window_ns))
    };
    let tries = (0..DEVICE_CLOCK_TRIES).filter_map(|_| once());
    tries.min_by_key(|&(_, window_ns)| window_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device 500 ns ahead of a kernel's clock that goes on by those steps, in nanoseconds, between reads.
    fn measured(steps: &[i64]) -> Option<(i64, u64)> {
        let now = std::cell::Cell::new(1_000_000_i64);
        let step = std::cell::Cell::new(0);
        let read = || {
            let index = step.get();
            step.set(index + 1);
            now.set(now.get() + steps.get(index % steps.len()).copied().unwrap_or(0));
            Some(now.get())
        };
        ahead(|| read().map(|time| time + 500), read)
    }

    #[test]
    fn the_read_that_was_quickest_counts() {
        // Three reads a try: of all but the last try the device's takes 9 us longer.
        let slow = [0, 9_000, 100].repeat(DEVICE_CLOCK_TRIES - 1);
        let steps = [slow, vec![0, 50, 50]].concat();
        assert_eq!(measured(&steps), Some((500, 100)));
        let (ahead_ns, window_ns) = measured(&[0, 9_000, 100]).expect("a distance");
        assert_eq!(window_ns, 9_100);
        assert!(
            ahead_ns.abs_diff(500) <= window_ns,
            "{ahead_ns} is within the window"
        );
    }

    #[test]
    fn a_clock_that_was_set_meanwhile_or_lies_about_everything_tells_nothing() {
        assert_eq!(measured(&[-5_000]), None, "set back");
        assert_eq!(ahead(|| None, || Some(1)), None);
        assert_eq!(ahead(|| Some(i64::MIN), || Some(1)), None);
        let far = Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        };
        assert_eq!(nanoseconds(far), None);
    }

    #[test]
    fn the_kernels_own_clock_is_hardly_ahead_of_itself() {
        let kernel = || nanoseconds(clock_gettime(ClockId::Realtime));
        let (ahead_ns, window_ns) = ahead(kernel, kernel).expect("a distance");
        assert!(
            ahead_ns.unsigned_abs() <= window_ns,
            "{ahead_ns} of {window_ns}"
        );
    }

    #[test]
    fn a_file_that_is_no_clock_is_none() {
        let folder = std::env::temp_dir().join(format!("isolane-phc-{}", std::process::id()));
        let (class, devices) = (folder.join("class"), folder.join("dev"));
        std::fs::create_dir_all(class.join("ptp0/device/net/eth0")).expect("a folder");
        std::fs::create_dir_all(class.join("ptp-broken")).expect("a folder");
        std::fs::create_dir_all(&devices).expect("a folder");
        std::fs::write(devices.join("ptp0"), "no clock").expect("a file");
        assert_eq!(device_clocks(&class, &devices), []);
        assert_eq!(device_clocks(&folder.join("nowhere"), &devices), []);
        std::fs::remove_dir_all(&folder).expect("an end");
    }
}
