//! Process settings for measuring threads: CPU affinity, real-time priority, locked memory, exact timers.
//!
//! All are optional. For each setting that the machine refuses, a [`Note`] in the result states what was not done and
//! what it costs.

use std::num::NonZeroU64;
use std::{fmt, fs, io};

use rustix::mm::MlockAllFlags;
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, CpuSet, capabilities};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::clock::NANOS_PER_SECOND;
use crate::report::EndUsage;
use crate::system;

/// SCHED_FIFO priority of the cable: above the hosts and everything that disturbs them.
pub const CABLE_PRIORITY: u8 = 80;
/// SCHED_FIFO priority of both ends of a round trip.
pub const HOST_PRIORITY: u8 = 70;

/// A step the machine did not allow, with its consequence for the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Attempted step in the infinitive: "run at FIFO priority 80".
    pub tried: String,
    /// Reason given by the system.
    pub why: String,
    /// Consequence for the result.
    pub cost: String,
}

impl Note {
    pub(crate) fn new(tried: impl Into<String>, why: impl fmt::Display, cost: &str) -> Note {
        Note {
            tried: tried.into(),
            why: why.to_string(),
            cost: cost.into(),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}: {} ({})", self.tried, self.why, self.cost)
    }
}

/// Resources of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// User and system time of all threads, in nanoseconds.
    pub cpu_ns: u64,
    /// Resident memory in bytes.
    pub resident_bytes: u64,
    /// Number of threads.
    pub threads: u64,
}

impl Usage {
    /// Resources up to now. Memory and threads are 0 if `/proc` does not have them.
    pub fn now() -> Usage {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            number.unwrap_or(0)
        };
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Usage {
            cpu_ns: cpu.tv_sec as u64 * NANOS_PER_SECOND + cpu.tv_nsec as u64,
            resident_bytes: field("VmRSS:") * 1_024,
            threads: field("Threads:"),
        }
    }

    /// Resources with the CPU time since `before`.
    #[must_use]
    pub fn since(self, before: &Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns - before.cpu_ns,
            ..self
        }
    }

    /// Resources of two processes together. Memory and threads are those of the larger one.
    pub(crate) fn plus(self, other: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns + other.cpu_ns,
            resident_bytes: self.resident_bytes.max(other.resident_bytes),
            threads: self.threads.max(other.threads),
        }
    }

    /// Resources of an end that handled this number of samples.
    pub(crate) fn per_sample(self, samples: u64) -> EndUsage {
        let is_known = |value: u64| Some(value).filter(|value| *value > 0);
        EndUsage {
            cpu_us_per_sample: is_known(samples)
                .map(|samples| self.cpu_ns as f64 / 1e3 / samples as f64),
            resident_bytes: is_known(self.resident_bytes),
            threads: is_known(self.threads),
        }
    }
}

/// Cores of the parts of a test (usually core 0 for both hosts, core 1 for cable and flood).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cores {
    /// Core of both hosts, their receive work and the flood's sinks.
    pub hosts: usize,
    /// Core of the cable, its receive work and the flood's senders.
    pub cable: usize,
}

impl Cores {
    /// First two cores this process may use. With a single core, both are that one.
    pub fn of_machine() -> Cores {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let mut usable = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let hosts = usable.next().unwrap_or(0);
        let cable = usable.next().unwrap_or(hosts);
        Cores { hosts, cable }
    }
}

/// Pins the calling thread to `core`.
pub fn pin_to_core(core: usize) -> Result<(), Note> {
    let refused = |why: &dyn fmt::Display| {
        Note::new(
            format!("stay on core {core}"),
            why,
            "the parts of the test disturb each other on the same cores",
        )
    };
    if core >= CpuSet::MAX_CPU {
        return Err(refused(&"no such core"));
    }
    let mut cores = CpuSet::new();
    cores.set(core);
    rustix::thread::sched_setaffinity(None, &cores).map_err(|error| refused(&error))
}

/// Gives the calling thread the policy SCHED_FIFO at `priority` (1 to 99).
pub fn run_first_in_first_out(priority: u8) -> Result<(), Note> {
    system::set_fifo(priority).map_err(|error| {
        Note::new(
            format!("run at FIFO priority {priority}"),
            with_remedy(&error, "CAP_SYS_NICE or an rtprio limit is needed"),
            "other processes of the machine delay this one",
        )
    })
}

/// Locks all present and future memory of the process (mlockall(2)).
///
/// Refuses to lock under a memlock limit: the lock might succeed, and the next allocation beyond the limit would end
/// the process.
pub fn lock_memory() -> Result<(), Note> {
    let refused = |why: &dyn fmt::Display| {
        Note::new(
            "lock memory",
            why,
            "a page fault may fall into a measurement",
        )
    };
    let remedy = "CAP_IPC_LOCK or no memlock limit is needed";
    if memory_locks_are_limited() {
        return Err(refused(&format_args!("not permitted; {remedy}")));
    }
    rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
        .map_err(|error| refused(&with_remedy(&error.into(), remedy)))
}

fn memory_locks_are_limited() -> bool {
    let is_privileged =
        capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    // The kernel counts CAP_IPC_LOCK in the initial user namespace only, although root holds it in any namespace.
    let counts = is_privileged
        && fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| is_initial_namespace(&map));
    !counts && getrlimit(Resource::Memlock).current.is_some()
}

/// Returns whether a user id map (user_namespaces(7)) is that of the initial namespace: the identity.
fn is_initial_namespace(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Sets the calling thread's timer slack to 1 ns (50 us by default).
pub fn exact_timers() -> Result<(), Note> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).map_err(|error| {
        Note::new(
            "make timers exact",
            error,
            "ordinary threads wake up to 50 us late",
        )
    })
}

/// Notes collected from [`pin_to_core`] and the other steps of a start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes(pub Vec<Note>);

impl Notes {
    /// Pins the calling thread to `core`, if there is one.
    pub fn pinned(core: Option<usize>) -> Notes {
        let pinned = core.map(pin_to_core);
        Notes(pinned.and_then(Result::err).into_iter().collect())
    }

    /// Keeps the note of a refused step.
    pub fn collect(&mut self, step: Result<(), Note>) {
        self.0.extend(step.err());
    }
}

fn with_remedy(error: &io::Error, remedy: &str) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("not permitted; {remedy}"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_does_not_exist_is_a_note_and_no_panic() {
        let note = pin_to_core(usize::MAX).unwrap_err();
        assert!(
            note.to_string().contains("could not stay on core"),
            "{note}"
        );
    }

    #[test]
    fn only_the_initial_namespace_maps_every_user_to_itself() {
        assert!(is_initial_namespace("         0          0 4294967295\n"));
        assert!(!is_initial_namespace("         0       1000          1\n"));
        assert!(!is_initial_namespace("         0          0          1\n"));
        assert!(!is_initial_namespace(""));
    }

    #[test]
    fn the_cores_of_the_machine_can_be_pinned_to() {
        let cores = Cores::of_machine();
        std::thread::spawn(move || {
            assert_eq!(pin_to_core(cores.cable), Ok(()));
            assert_eq!(rustix::thread::sched_getcpu(), cores.cable);
        })
        .join()
        .unwrap();
    }
}
