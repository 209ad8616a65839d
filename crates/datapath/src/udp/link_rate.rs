//! Link rate of an interface, as its driver reports (ethtool).

use std::io;
use std::ptr;

use super::socket::{Socket, interface_request};

/// Request number of the ioctl (linux/sockios.h).
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Command that reads link settings (linux/ethtool.h).
const ETHTOOL_GSET: u32 = 1;

/// `struct ethtool_cmd` (linux/ethtool.h).
#[repr(C)]
#[derive(Default)]
struct LinkSettings {
    command: u32,
    supported: u32,
    advertising: u32,
    speed_low: u16,
    port: [u8; 6],
    max_packets: [u32; 2],
    speed_high: u16,
    crossover: [u8; 2],
    partner: u32,
    reserved: [u32; 2],
}

const _: () = assert!(size_of::<LinkSettings>() == 44, "as large as the kernel's");

/// Link rate of an interface in bits per second. `None` if the driver does not report one, as for `lo`, most wireless
/// devices, and links without carrier.
pub(super) fn link_bits_per_s(name: &str) -> Option<u64> {
    speed_mbps(name)
        .ok()
        .flatten()
        .map(|speed| u64::from(speed) * 1_000_000)
}

fn speed_mbps(name: &str) -> io::Result<Option<u32>> {
    let socket = Socket::new()?;
    let mut settings = LinkSettings {
        command: ETHTOOL_GSET,
        ..LinkSettings::default()
    };
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_data = ptr::from_mut(&mut settings).cast();
    // SAFETY: the request points to a structure of the size that the kernel accesses for this command.
    if unsafe { libc::ioctl(socket.raw(), SIOCETHTOOL, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(known_speed(settings.speed_low, settings.speed_high))
}

/// Joins the halves of the speed; 0 and all ones mean unknown (SPEED_UNKNOWN).
fn known_speed(low: u16, high: u16) -> Option<u32> {
    let speed = u32::from(high) << 16 | u32::from(low);
    let is_known = speed != 0 && speed != u32::from(u16::MAX) && speed != u32::MAX;
    is_known.then_some(speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_put_together_of_both_halves_and_may_be_unknown() {
        assert_eq!(known_speed(1_000, 0), Some(1_000));
        assert_eq!(known_speed(0x86a0, 1), Some(100_000));
        for (low, high) in [(0, 0), (u16::MAX, 0), (u16::MAX, u16::MAX)] {
            assert_eq!(known_speed(low, high), None);
        }
    }

    #[test]
    fn an_interface_without_a_link_or_that_is_not_there_has_no_rate() {
        assert_eq!(link_bits_per_s("lo"), None);
        assert_eq!(link_bits_per_s("none"), None);
    }
}
