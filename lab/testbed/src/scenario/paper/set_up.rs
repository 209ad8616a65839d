//! Set-up of both hosts. The guest configures its hosts itself; the scenario `tune` shows the same through
//! `isolane tune`.

use std::fs;
use std::path::PathBuf;

use isolane_bench::experiment::Load;
use isolane_bench::namespace::{Host, TestHosts};
use isolane_support::{Result, command};
use rustix::mount::{MountFlags, mount};
use serde::Deserialize;
use toml::Table;

use crate::inside::tools;

/// Set-up of both hosts, as an experiment's file states it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetUp {
    /// Name in tables and results.
    pub(super) name: String,
    /// Values of the cells.
    pub(super) set: Table,
    /// Disturbances under which it is measured: `none` and `flood`.
    pub(super) disturbances: Vec<Load>,
    /// True when the applications have a real-time priority.
    #[serde(default = "yes")]
    pub(super) real_time: bool,
    /// True with the experiment's host set-up.
    #[serde(default = "yes")]
    pub(super) tuned: bool,
    /// True with one lane for all levels.
    #[serde(default)]
    pub(super) one_lane: bool,
    /// Command lines for each device, `{}`, before the lane is attached and after those of the host set-up.
    #[serde(default)]
    lines: Vec<String>,
    /// Attribute files of each device in sysfs, or kernel settings (sysctl), each with its value during the measurement
    /// and afterwards.
    #[serde(default)]
    files: Vec<[String; 3]>,
    /// True with the threads of receive interrupts at [`RECEIVE_PRIORITY`].
    #[serde(default = "yes")]
    receive_threads_first: bool,
    /// True with the receiving NAPI threads at [`RECEIVE_PRIORITY`].
    #[serde(default)]
    napi_threads_first: bool,
}

fn yes() -> bool {
    true
}

impl SetUp {
    /// Configures both hosts' devices; `tuned` has the command lines of the host set-up.
    pub(super) fn apply(&self, hosts: &TestHosts, tuned: &[String]) -> Result<()> {
        let tuned = tuned.iter().filter(|_| self.tuned);
        for line in tuned.chain(&self.lines) {
            for host in Host::BOTH {
                in_host(hosts, host, &line.replace("{}", host.interface()))?;
            }
        }
        Ok(())
    }

    /// Applies the settings that need the lanes attached: the driver requests its interrupts anew when a lane is
    /// attached or detached, and their threads start with the default priority.
    pub(super) fn begin(&self) -> Result<()> {
        self.write_files(1)?;
        for host in Host::BOTH {
            if self.receive_threads_first {
                raise_receive_threads(host)?;
            }
            if self.napi_threads_first {
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
        self.write_files(2)
    }

    fn write_files(&self, value: usize) -> Result<()> {
        for file in &self.files {
            for host in Host::BOTH {
                // An absolute path, of a kernel setting, replaces the device's folder.
                let path = attributes(host).join("class/net").join(host.interface());
                let path = path.join(&file[0]);
                fs::write(&path, &file[value])
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
