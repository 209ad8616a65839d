//! How a host is set up for critical samples: what `isolane tune` would do, in one place until it does.

use std::fs;
use std::process::Command;

use isolane_bench::namespace::{Host, Testbed};
use serde::{Deserialize, Serialize};

use crate::inside::tools;
use isolane_support::Result;

/// A setting of a host, and why it is made.
///
/// With one processor the driver has one queue, which everything lands on in both directions: there is nothing
/// to steer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// An interrupt for each frame: none waits for others.
    PromptInterrupts,
    /// No frame waits to be merged with others.
    NoMerging,
    /// What is sent waits in one queue, without work for fairness between flows: as in paper 000.
    PlainQueue,
    /// Threads that receive come before those that look after what was sent ([`RECEIVE_PRIORITY`]).
    ThreadOrder,
}

impl Measure {
    pub(super) const ALL: [Measure; 4] = [
        Measure::PromptInterrupts,
        Measure::NoMerging,
        Measure::PlainQueue,
        Measure::ThreadOrder,
    ];

    /// For tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Measure::PromptInterrupts => "interrupts at once (rx-usecs 0, not 3)",
            Measure::NoMerging => "no merging of frames (gro off)",
            Measure::PlainQueue => "a plain transmit queue (pfifo, not fq_codel)",
            Measure::ThreadOrder => "receive threads first (60, not 50)",
        }
    }

    /// The line that makes it on a device, `{}`, and the one after which the device is as it was found.
    fn lines(self) -> Option<[&'static str; 2]> {
        match self {
            Measure::PromptInterrupts => Some([
                "ethtool --coalesce {} rx-usecs 0",
                "ethtool --coalesce {} rx-usecs 3",
            ]),
            Measure::NoMerging => Some([
                "ethtool --offload {} gro off",
                "ethtool --offload {} gro on",
            ]),
            Measure::PlainQueue => Some([
                "tc qdisc replace dev {} root pfifo",
                "tc qdisc replace dev {} root fq_codel",
            ]),
            Measure::ThreadOrder => None,
        }
    }
}

/// The priority of threads that receive: above those that look after what was sent (50, as all interrupt
/// threads have it), for which nobody waits, and below the applications (70). In a trace each round trip
/// waited for such threads of both hosts before its reply was received, and beside a flood for more of them.
/// There is one queue: no thread serves bulk alone, so none that is raised or passed by is the wrong one.
const RECEIVE_PRIORITY: u8 = 60;

/// Sets a host's device up, without one of the measures if it is about that one.
pub(super) fn apply(hosts: &Testbed, host: Host, without: Option<Measure>) -> Result<()> {
    for measure in Measure::ALL {
        if let Some([with, as_found]) = measure.lines() {
            let line = if without == Some(measure) {
                as_found
            } else {
                with
            };
            on_device(hosts, host, line)?;
        }
    }
    Ok(())
}

/// Runs a line of the guest's programs, in which `{}` is the device, in a host's namespace.
pub(super) fn on_device(hosts: &Testbed, host: Host, line: &str) -> Result<String> {
    in_host(hosts, host, &line.replace("{}", host.interface()))
}

/// Orders a host's threads. The driver requests its interrupts anew for a lane that is attached, and for one that
/// goes, and their threads begin with the priority that all have: this is for when the ends are there.
pub(super) fn order_threads(host: Host) -> Result<()> {
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
        order(thread)?;
    }
    Ok(())
}

/// The same for the threads that NAPI has where its work is done in threads of its own: those that receive
/// come first in the driver's order.
pub(super) fn order_napi_threads(host: Host) -> Result<()> {
    let threads = threads_of(&format!("napi/{}-", host.interface()))?;
    let receive = threads.len() / 2;
    threads[..receive]
        .iter()
        .try_for_each(|&thread| order(thread))
}

fn order(thread: u32) -> Result<()> {
    tools::run("chrt", &format!("--fifo --pid {RECEIVE_PRIORITY} {thread}"))?;
    Ok(())
}

/// The numbers of interrupts whose names begin so, in `/proc/interrupts`.
fn interrupts_of(name: &str, interrupts: &str) -> Vec<u32> {
    let of_name = interrupts.lines().filter(|line| {
        let last = line.split_whitespace().next_back();
        last.is_some_and(|last| last.starts_with(name))
    });
    let numbers = of_name.filter_map(|line| line.split_once(':')?.0.trim().parse().ok());
    numbers.collect()
}

/// The threads of the kernel's whose names begin so, in the order in which they were made.
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

/// Runs a line of the guest's programs in a host's namespace.
pub(super) fn in_host(hosts: &Testbed, host: Host, line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let mut command: Command = tools::program(words.next().unwrap_or_default());
    command.args(words);
    tools::output(hosts.command(host, command))
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
