//! The kernel's release and clock, and the capabilities of this process for loading and attaching XDP programs.

use std::fmt;
use std::fs;
use std::io;

/// Capabilities for loading and attaching, by number (linux/capability.h). Without CAP_PERFMON the verifier allows no
/// computed offset into a packet, such as the end of a header with options.
const NEEDED: [(u32, &str); 3] = [
    (39, "CAP_BPF"),
    (38, "CAP_PERFMON"),
    (CAP_NET_ADMIN, "CAP_NET_ADMIN"),
];
const CAP_NET_ADMIN: u32 = 12;

/// Includes CAP_BPF and CAP_PERFMON, which were split off from it.
const CAP_SYS_ADMIN: u32 = 21;

/// Host name of the thread's UTS namespace; empty if unreadable.
#[must_use]
pub fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| String::new(), |name| name.trim_end().to_owned())
}

/// Capability names, displayed as in "CAP_BPF and CAP_NET_ADMIN".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapabilityNames(pub Vec<&'static str>);

impl fmt::Display for CapabilityNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" and "))
    }
}

/// Capabilities that the thread lacks; empty if unreadable.
#[must_use]
pub fn missing_capabilities() -> CapabilityNames {
    CapabilityNames(effective_capabilities().map_or_else(Vec::new, missing_of))
}

/// Effective capability set of the thread, a bit for each number; `None` if unreadable.
#[must_use]
pub fn effective_capabilities() -> Option<u64> {
    effective(&fs::read_to_string("/proc/thread-self/status").ok()?)
}

/// Effective capability set in a status file (proc_pid_status(5)).
fn effective(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn missing_of(effective: u64) -> Vec<&'static str> {
    let has = |number: u32| effective >> number & 1 == 1;
    let lacks = |(number, name): &(u32, &'static str)| {
        let includes = *number != CAP_NET_ADMIN && has(CAP_SYS_ADMIN);
        (!has(*number) && !includes).then_some(*name)
    };
    NEEDED.iter().filter_map(lacks).collect()
}

/// Chosen word of a kernel file with a list of choices: `none [integrity] confidentiality`.
#[must_use]
pub fn chosen_word(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

/// Returns whether the process is in a user namespace, whose capabilities do not permit bpf(2).
#[must_use]
pub fn in_user_namespace() -> bool {
    // The initial namespace maps all ids.
    const EVERYBODY: [&str; 3] = ["0", "0", "4294967295"];
    fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !map.split_whitespace().eq(EVERYBODY))
}

/// Kernel release, such as "6.18.2".
#[must_use]
pub fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// Returns whether a release is at least this one; an unknown release counts as new.
#[must_use]
pub fn is_since(release: &str, major: u32, minor: u32) -> bool {
    let mut numbers = release
        .split(|character: char| !character.is_ascii_digit())
        .map_while(|digits| digits.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(a), Some(b)) => (a, b) >= (major, minor),
        _ => true,
    }
}

/// The clock is not synchronised (linux/timex.h, `STA_UNSYNC`).
const UNSYNCHRONISED: libc::c_int = 0x40;

/// Returns true when the kernel's clock is synchronised. Reads only; sets nothing.
///
/// # Errors
/// The error of adjtimex(2).
pub fn clock_is_synchronised() -> io::Result<bool> {
    // SAFETY: all bits of `timex` are numbers, for which zero is a value; `modes` of zero sets nothing.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `clock` is a `timex` that lives and is exclusively borrowed for the length of the call.
    if unsafe { libc::adjtimex(&raw mut clock) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(clock.status & UNSYNCHRONISED == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_exactly() {
        assert_eq!(effective("Name:\tx\n"), None);
        let root = effective("Name:\tx\nCapEff:\t000001ffffffffff\n").unwrap();
        assert_eq!(missing_of(root), [""; 0]);
        assert_eq!(missing_of(0), ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"]);
        assert_eq!(missing_of(1 << 39 | 1 << 38), ["CAP_NET_ADMIN"]);
        assert_eq!(missing_of(1 << CAP_SYS_ADMIN | 1 << 12), [""; 0]);
        let both = CapabilityNames(missing_of(1 << 38));
        assert_eq!(both.to_string(), "CAP_BPF and CAP_NET_ADMIN");
    }

    #[test]
    fn releases_compare_by_their_numbers() {
        assert!(is_since("6.18.44-fc-v669", 5, 15));
        assert!(!is_since("5.4.0-150-generic", 5, 9));
        assert!(is_since("5.15", 5, 15));
        assert!(is_since("", 5, 15));
    }

    #[test]
    fn anybody_may_ask() {
        clock_is_synchronised().expect("an answer");
    }

    #[test]
    fn the_word_in_brackets_is_the_chosen_one() {
        let text = "none [integrity] confidentiality\n";
        assert_eq!(chosen_word(text), Some("integrity"));
        assert_eq!(chosen_word("none"), None);
    }
}
