//! Scheduling of the thread that runs the loop: its core, and its priority under SCHED_FIFO.

use std::{fs, io};

use isolane_hostnet::napi::{Policy, Scheduling};
use rustix::io::Errno;

/// List of online cores.
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Microseconds of each period in which threads under SCHED_FIFO and SCHED_RR may run; -1 means no limit.
const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// Reason why the loop's thread is not scheduled as requested.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    /// The core is offline or does not exist.
    #[error(
        "core {core} is not online (online: {online}): choose one of these, or bring it online: echo 1 > /sys/devices/system/cpu/cpu{core}/online"
    )]
    CoreOffline {
        /// Requested core.
        core: u16,
        /// Online cores.
        online: String,
    },
    /// The core is outside the cpuset of this process.
    #[error(
        "core {core} is not in the cpuset of this process: start it where the core is, with `isolation = \"cpuset\"` in isolane.slice (systemd-run --slice=isolane.slice PROGRAM, or Slice=isolane.slice in its unit), or choose one of its cores (Cpus_allowed_list in /proc/self/status)"
    )]
    CoreNotInCpuset {
        /// Requested core.
        core: u16,
    },
    /// The system refused the core for another reason.
    #[error("the loop's thread cannot be bound to core {core}: {source}")]
    Core {
        /// Requested core.
        core: u16,
        /// Error of the system.
        source: io::Error,
    },
    /// The priority is not in the range of SCHED_FIFO.
    #[error("{priority} is no priority of SCHED_FIFO: choose one from 1 to 99")]
    Priority {
        /// Requested priority.
        priority: u8,
    },
    /// The process lacks the permission for the priority.
    #[error(
        "SCHED_FIFO with priority {priority} is not permitted: set LimitRTPRIO={priority} or more in its unit (rtprio in /etc/security/limits.conf), give the program CAP_SYS_NICE, or stay with the ordinary class (priority = \"ordinary\")"
    )]
    NotPermitted {
        /// Requested priority.
        priority: u8,
    },
    /// The system refused the priority for another reason.
    #[error("the loop's thread cannot have priority {priority} under SCHED_FIFO: {source}")]
    Realtime {
        /// Requested priority.
        priority: u8,
        /// Error of the system.
        source: io::Error,
    },
    /// A busy-polling thread under SCHED_FIFO would starve other threads of its core.
    #[error(
        "a loop that spins under SCHED_FIFO keeps all others off its core, and {reason}: use Waiting::Sleep (waiting = \"sleep\"), or the ordinary class (priority = \"ordinary\")"
    )]
    Spin {
        /// Reason why others need the core.
        reason: &'static str,
    },
}

/// Requested scheduling of the thread that runs the loop.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Placement {
    pub(crate) core: Option<u16>,
    /// Priority under SCHED_FIFO; `None` leaves the class unchanged.
    pub(crate) priority: Option<u8>,
}

impl Placement {
    /// Tries each option on the calling thread, whose scheduling is restored afterwards. Removes the refused options
    /// and returns the reasons.
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

    /// Applies the options to the calling thread.
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

/// Returns whether a list such as `0-3,6` contains the core.
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
