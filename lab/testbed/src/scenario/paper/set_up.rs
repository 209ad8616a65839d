//! Set-ups of both hosts: the four that `paper` compares, and those of `ablation`, each of which differs from a lane's
//! full set-up in one thing.
//!
//! The guest configures its hosts itself; the scenario `tune` shows the same through `isolane tune`.

use std::fs;
use std::path::PathBuf;

use isolane_bench::experiment::Datapath;
use isolane_bench::namespace::{Host, TestHosts};
use isolane_bench::report::Stage;
use isolane_support::{Result, command};
use rustix::mount::{MountFlags, mount};

use crate::inside::tools;

/// Set-up of both hosts in a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetUp {
    /// Name in tables and results.
    pub(super) name: &'static str,
    /// Datapath of critical samples.
    pub(super) datapath: Datapath,
    /// True when the applications have a real-time priority.
    pub(super) is_real_time: bool,
    /// True with the host set-up ([`TUNED`]) and raised receive threads.
    pub(super) is_tuned: bool,
    /// Stage that a lane's set-up lacks.
    pub(super) without: Option<Stage>,
    /// Loads under which it is measured, true for the flood. Other receive modes run with and without the flood.
    pub(super) loads: &'static [bool],
    /// Command lines for each device before the lane is attached, after those of [`TUNED`].
    lines: &'static [&'static str],
    /// Attribute files of each device in sysfs, or kernel settings (sysctl), each with its value during the measurement
    /// and afterwards.
    files: &'static [[&'static str; 3]],
    /// True with the threads of receive interrupts at [`RECEIVE_PRIORITY`].
    raises_receive_threads: bool,
    /// True with the receiving NAPI threads at [`RECEIVE_PRIORITY`].
    raises_napi_threads: bool,
}

/// Command lines of the host set-up for each device, `{}`. With one processor the driver has one queue for all frames
/// in both directions, so there is nothing to steer.
const TUNED: [&str; 3] = [
    // An interrupt for each frame, without coalescing.
    "ethtool --coalesce {} rx-usecs 0",
    // No GRO: no frame waits to be merged with others.
    "ethtool --offload {} gro off",
    // One FIFO queueing discipline, without fairness between flows, as in Meszlényi et al.
    "tc qdisc replace dev {} root pfifo",
];

/// AF_XDP lanes with the host set-up, and rate limits for unvalidated senders.
pub(super) const LANE_TUNED: SetUp = SetUp {
    name: "lane tuned",
    datapath: Datapath::Xdp,
    is_real_time: true,
    is_tuned: true,
    without: None,
    loads: &[false, true],
    lines: &[],
    files: &[],
    raises_receive_threads: true,
    raises_napi_threads: false,
};

/// Kernel sockets with the host set-up.
const SOCKETS_TUNED: SetUp = SetUp {
    name: "sockets tuned",
    datapath: Datapath::Udp,
    ..LANE_TUNED
};

/// Kernel sockets with the distribution's defaults; the applications have a real-time priority. The baseline of
/// Meszlényi et al.
const SOCKETS_REAL_TIME: SetUp = SetUp {
    name: "sockets real-time",
    is_tuned: false,
    raises_receive_threads: false,
    ..SOCKETS_TUNED
};

/// Kernel sockets with the distribution's defaults; the applications have the ordinary priority.
pub(super) const SOCKETS_UNTUNED: SetUp = SetUp {
    name: "sockets untuned",
    is_real_time: false,
    ..SOCKETS_REAL_TIME
};

/// Set-ups of `paper`: the untuned ones come first, because the host set-up is not undone.
pub(super) const COMPARED: &[SetUp] = &[
    SOCKETS_UNTUNED,
    SOCKETS_REAL_TIME,
    SOCKETS_TUNED,
    LANE_TUNED,
];

/// A lane's full set-up under the flood, from which one part is removed.
const FLOODED: SetUp = SetUp {
    loads: &[true],
    ..LANE_TUNED
};

/// Set-ups of `ablation`.
pub(super) const ABLATED: &[SetUp] = &[
    LANE_TUNED,
    SetUp {
        name: "without: interrupts at once (rx-usecs 0, not 3)",
        lines: &["ethtool --coalesce {} rx-usecs 3"],
        ..FLOODED
    },
    SetUp {
        name: "without: no merging of frames (gro off)",
        lines: &["ethtool --offload {} gro on"],
        ..FLOODED
    },
    SetUp {
        name: "without: a plain transmit queue (pfifo, not fq_codel)",
        lines: &["tc qdisc replace dev {} root fq_codel"],
        ..FLOODED
    },
    SetUp {
        name: "without: receive threads first (60, not 50)",
        raises_receive_threads: false,
        ..FLOODED
    },
    SetUp {
        name: "without: budgets for foreign traffic",
        without: Some(Stage::Budgets),
        ..FLOODED
    },
    SetUp {
        name: "without: a lane for each level (one for all)",
        without: Some(Stage::Lanes),
        ..FLOODED
    },
    SetUp {
        name: "without: AF_XDP (kernel sockets)",
        ..SOCKETS_TUNED
    },
    // NAPI deferred by a timer of 50 us: interrupts only after two empty polls.
    SetUp {
        name: "with: deferred interrupts",
        files: &[
            ["napi_defer_hard_irqs", "2", "0"],
            ["gro_flush_timeout", "50000", "0"],
        ],
        ..LANE_TUNED
    },
    // The threads that wait for frames poll for 50 us.
    SetUp {
        name: "with: busy polling",
        files: &[
            ["/proc/sys/net/core/busy_poll", "50", "0"],
            ["/proc/sys/net/core/busy_read", "50", "0"],
        ],
        ..LANE_TUNED
    },
    SetUp {
        name: "with: NAPI threads (60)",
        files: &[["threaded", "1", "0"]],
        raises_napi_threads: true,
        ..LANE_TUNED
    },
    // A separate transmit queue for ordinary-priority frames. This set-up is last, because it changes the device's
    // queues.
    SetUp {
        name: "with: two transmit queues (mqprio)",
        lines: &[
            "ethtool --set-channels {} combined 2",
            // All frames are received on the lane's queue.
            "ethtool --set-rxfh-indir {} equal 1",
            "tc qdisc replace dev {} root mqprio num_tc 2 map 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
             queues 1@0 1@1 hw 0",
        ],
        ..FLOODED
    },
];

impl SetUp {
    /// Configures both hosts' devices.
    pub(super) fn apply(&self, hosts: &TestHosts) -> Result<()> {
        let tuned = TUNED.iter().filter(|_| self.is_tuned);
        for line in tuned.chain(self.lines) {
            for host in Host::BOTH {
                in_host(hosts, host, &line.replace("{}", host.interface()))?;
            }
        }
        Ok(())
    }

    /// Applies the settings that need the lanes attached: the driver requests its interrupts anew when a lane is
    /// attached or detached, and their threads start with the default priority.
    pub(super) fn begin(&self) -> Result<()> {
        self.write_files(|file| file[1])?;
        for host in Host::BOTH {
            if self.raises_receive_threads {
                raise_receive_threads(host)?;
            }
            if self.raises_napi_threads {
                // The receiving ones come first in the driver's order.
                let threads = threads_of(&format!("napi/{}-", host.interface()))?;
                let receive = &threads[..threads.len() / 2];
                receive.iter().try_for_each(|&thread| raise(thread))?;
            }
        }
        Ok(())
    }

    /// Restores the attribute files.
    pub(super) fn end(&self) -> Result<()> {
        self.write_files(|file| file[2])
    }

    fn write_files(&self, value: fn(&[&'static str; 3]) -> &'static str) -> Result<()> {
        for file in self.files {
            for host in Host::BOTH {
                // An absolute path, of a kernel setting, replaces the device's folder.
                let path = attributes(host).join("class/net").join(host.interface());
                let path = path.join(file[0]);
                fs::write(&path, value(file))
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// Folder of the attributes of a host's devices.
fn attributes(host: Host) -> PathBuf {
    PathBuf::from(format!("/run/{}", host.interface()))
}

/// Mounts the attributes of a host's devices: sysfs shows the devices of the namespace in which it was mounted.
pub(super) fn mount_attributes(hosts: &TestHosts, host: Host) -> Result<()> {
    let folder = attributes(host);
    fs::create_dir_all(&folder)?;
    let mounted = hosts.run(host, || {
        mount("sysfs", &folder, "sysfs", MountFlags::empty(), None)
    })?;
    mounted.map_err(|error| format!("cannot mount {}: {error}", folder.display()).into())
}

/// Priority of receive threads: above transmit-completion threads (50, as all interrupt threads), which no one waits
/// for, and below the applications (70). When all have the same priority, each round trip waits for transmit-completion
/// threads of both hosts before its reply is received, and under a flood for more of them. With one queue, no thread
/// serves bulk traffic alone, so none is raised wrongly.
const RECEIVE_PRIORITY: u8 = 60;

/// Raises the priority of the threads of a host's receive interrupts.
fn raise_receive_threads(host: Host) -> Result<()> {
    let name = format!("{}-rx-", host.interface());
    let interrupts = fs::read_to_string("/proc/interrupts")?;
    let receive = interrupts_of(&name, &interrupts);
    if receive.is_empty() {
        return Err(format!("there is no interrupt {name}*: {interrupts}").into());
    }
    for interrupt in receive {
        let [thread] = threads_of(&format!("irq/{interrupt}-"))?[..] else {
            return Err(format!(
                "interrupt {interrupt} has no thread: is this a kernel with PREEMPT_RT?"
            )
            .into());
        };
        raise(thread)?;
    }
    Ok(())
}

fn raise(thread: u32) -> Result<()> {
    tools::run("chrt", &format!("--fifo --pid {RECEIVE_PRIORITY} {thread}"))?;
    Ok(())
}

/// Interrupt numbers in `/proc/interrupts` whose names have this prefix.
fn interrupts_of(name: &str, interrupts: &str) -> Vec<u32> {
    let of_name = interrupts.lines().filter(|line| {
        let last = line.split_whitespace().next_back();
        last.is_some_and(|last| last.starts_with(name))
    });
    let numbers = of_name.filter_map(|line| line.split_once(':')?.0.trim().parse().ok());
    numbers.collect()
}

/// Kernel threads whose names have this prefix, in the order of creation.
fn threads_of(name: &str) -> Result<Vec<u32>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let id = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let command = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if let Some(id) = id
            && command.starts_with(name)
        {
            threads.push(id);
        }
    }
    threads.sort_unstable();
    Ok(threads)
}

/// Runs a command line of the guest's programs in a host's namespace.
pub(super) fn in_host(hosts: &TestHosts, host: Host, line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let mut program = tools::program(words.next().unwrap_or_default());
    program.args(words);
    command::quiet_output(&mut hosts.command(host, program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_found_by_the_name_of_its_queue() {
        let interrupts = "           CPU0\n 27:  104  PCI-MSIX-0000:01:00.0  1-edge  host-a-rx-0\n \
                          28:  99  PCI-MSIX-0000:01:00.0  2-edge  host-a-tx-0\nNMI:  0  Non-maskable interrupts\n";
        assert_eq!(interrupts_of("host-a-rx-", interrupts), [27]);
        assert_eq!(interrupts_of("host-b-rx-", interrupts), [0; 0]);
    }
}
