//! Scheduling of the thread that runs the loop: its core, and its priority under SCHED_FIFO.

use std::{fs, io};

use isolane_hostnet::napi::{Policy, Scheduling};
use rustix::io::Errno;

/// Cores that are online, as the kernel lists them.
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Microseconds of each period that threads under SCHED_FIFO and SCHED_RR may run; -1: all.
const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// Why the loop's thread is not scheduled as asked for.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    /// The core is not there.
    #[error(
        "core {core} is not online (online: {online}): choose one of these, or bring it online: echo 1 > /sys/devices/system/cpu/cpu{core}/online"
    )]
    CoreOffline {
        /// The core asked for.
        core: u16,
        /// Those that are there.
        online: String,
    },
    /// The core is there, and this process may not use it.
    #[error(
        "core {core} is not in the cpuset of this process: start it where the core is, with `isolation = \"cpuset\"` in isolane.slice (systemd-run --slice=isolane.slice PROGRAM, or Slice=isolane.slice in its unit), or choose one of its cores (Cpus_allowed_list in /proc/self/status)"
    )]
    CoreNotInCpuset {
        /// The core asked for.
        core: u16,
    },
    /// The system refuses the core for another reason.
    #[error("the loop's thread cannot be bound to core {core}: {source}")]
    Core {
        /// The core asked for.
        core: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The priority is none of SCHED_FIFO.
    #[error("{priority} is no priority of SCHED_FIFO: choose one from 1 to 99")]
    Priority {
        /// The priority asked for.
        priority: u8,
    },
    /// The process has no right to the priority.
    #[error(
        "SCHED_FIFO with priority {priority} is not permitted: set LimitRTPRIO={priority} or more in its unit (rtprio in /etc/security/limits.conf), give the program CAP_SYS_NICE, or stay with the ordinary class (priority = \"ordinary\")"
    )]
    NotPermitted {
        /// The priority asked for.
        priority: u8,
    },
    /// The system refuses the priority for another reason.
    #[error("the loop's thread cannot have priority {priority} under SCHED_FIFO: {source}")]
    Realtime {
        /// The priority asked for.
        priority: u8,
        /// What the system said.
        source: io::Error,
    },
    /// A thread that never sleeps would keep others off a core they need.
    #[error(
        "a loop that spins under SCHED_FIFO keeps all others off its core, and {reason}: use Waiting::Sleep (waiting = \"sleep\"), or the ordinary class (priority = \"ordinary\")"
    )]
    Spin {
        /// Why others need the core.
        reason: &'static str,
    },
}

/// What the thread that runs the loop is to have.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Placement {
    pub(crate) core: Option<u16>,
    /// Of SCHED_FIFO; `None`: as it is.
    pub(crate) priority: Option<u8>,
}

impl Placement {
    /// Tries each part on the calling thread, which is then scheduled as before. Takes what is refused out, and
    /// returns why.
    pub(crate) fn take_refused(&mut self, spins: bool) -> io::Result<Vec<PlacementError>> {
        let before = Scheduling::of(0)?;
        let core = self.bind(&before);
        let realtime = self.check_spin(spins).and_then(|()| self.raise());
        before.apply(0)?;
        if core.is_err() {
            self.core = None;
        }
        if realtime.is_err() {
            self.priority = None;
        }
        Ok(core.err().into_iter().chain(realtime.err()).collect())
    }

    /// Schedules the calling thread so.
    pub(crate) fn apply(&self) -> Result<(), PlacementError> {
        if let Ok(before) = Scheduling::of(0) {
            self.bind(&before)?;
        }
        self.raise()
    }

    fn bind(&self, before: &Scheduling) -> Result<(), PlacementError> {
        let Some(core) = self.core else {
            return Ok(());
        };
        let bound = Scheduling {
            policy: before.policy,
            cores: Some(vec![usize::from(core)]),
        };
        bound.apply(0).map_err(|source| {
            let online = fs::read_to_string(ONLINE).unwrap_or_default();
            let online = online.trim().to_owned();
            match Errno::from_io_error(&source) {
                Some(Errno::INVAL) if !is_listed(core, &online) => {
                    PlacementError::CoreOffline { core, online }
                }
                Some(Errno::INVAL) => PlacementError::CoreNotInCpuset { core },
                _ => PlacementError::Core { core, source },
            }
        })
    }

    fn raise(&self) -> Result<(), PlacementError> {
        let Some(priority) = self.priority else {
            return Ok(());
        };
        if !(1..=99).contains(&priority) {
            return Err(PlacementError::Priority { priority });
        }
        let raised = Scheduling {
            policy: Policy::Fifo(priority),
            cores: None,
        };
        let refused = |source| match Errno::from_io_error(&source) {
            Some(Errno::PERM) => PlacementError::NotPermitted { priority },
            _ => PlacementError::Realtime { priority, source },
        };
        raised.apply(0).map_err(refused)
    }

    fn check_spin(&self, spins: bool) -> Result<(), PlacementError> {
        let online = fs::read_to_string(ONLINE).unwrap_or_default();
        let runtime = fs::read_to_string(RUNTIME).unwrap_or_default();
        let reason = match (spins && self.priority.is_some(), self.core) {
            (false, _) => return Ok(()),
            (true, None) => "it is bound to no core of its own",
            (true, Some(_)) if online.trim() == "0" => "this machine has no other",
            (true, Some(_)) if runtime.trim() != "-1" => {
                "the kernel interrupts it for the others (kernel.sched_rt_runtime_us is not -1)"
            }
            (true, Some(_)) => return Ok(()),
        };
        Err(PlacementError::Spin { reason })
    }
}

/// Whether a list as `0-3,6` has the core.
fn is_listed(core: u16, list: &str) -> bool {
    list.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bounds = first.parse::<u16>().ok().zip(last.parse().ok());
        bounds.is_some_and(|(first, last)| (first..=last).contains(&core))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_found_in_the_kernels_list() {
        assert!(is_listed(2, "0-3,6") && is_listed(6, "0-3,6") && is_listed(0, "0"));
        assert!(!is_listed(4, "0-3,6") && !is_listed(0, ""));
    }
}
